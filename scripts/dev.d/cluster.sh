#!/usr/bin/env bash
# Usage: scripts/dev cluster up K [--name NAME]
#        scripts/dev cluster run [--name NAME | --hosts K] [--on HOST] [--] COMMAND [ARGS]
#        scripts/dev cluster link HOST [--name NAME] [delay=T] [loss=P] [rate=R] | cut | clean
#        scripts/dev cluster status [--name NAME]
#        scripts/dev cluster left [--name NAME] [--remove]
#        scripts/dev cluster down [--name NAME | --all]
#        scripts/dev cluster check
#
# Emulates K hosts on one machine with kernel namespaces. Each host has its own name, network,
# processes, System V memory and /dev/shm, so an MPI treats them as separate hosts and uses TCP
# between them. They are host1 to hostK at 10.213.0.1 to 10.213.0.K, on a bridge in another
# namespace, the head, from which ranks are started. If the kernel has time namespaces, the
# monotonic clocks of the hosts are five seconds apart. The machine's own network and its
# /etc/hosts do not change. The hosts share all files, as on a cluster with a common file system.
#
#   up      makes a cluster that stays until down
#   run     runs COMMAND in the head, or on HOST, of the cluster NAME, or of a new cluster of
#           K hosts that ends with it; use ./mpirun.sh --hosts to start ranks
#   link    delays (delay=100ms), drops (loss=5%) or throttles (rate=10mbit) the frames to and
#           from HOST; cut takes the link down, clean removes all of these settings
#   status  shows the processes of each host, and the contents of its /dev/shm
#   left    lists the files in each host's /dev/shm and session directory
#   down    ends a cluster and every process in it; --all: every cluster that `up` made
#   check   reports whether clusters can be made here; the exit code is 0 if they can
#
# NAME is `default` unless given. A command inside `run` uses the cluster that it runs in.
# Users other than root need a kernel that lets users make namespaces.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

SELF=$ROOT/scripts/dev.d/cluster.sh
NET=10.213.0 # used inside the namespaces only
HEAD=$NET.254
MAX_HOSTS=64
APART=5 # seconds between the clocks of neighbouring hosts
BASE=${TMPDIR:-/tmp}

dir_of() { # name
  [[ $1 =~ ^[A-Za-z0-9_.-]+$ ]] || die "a cluster's name has letters, digits, '_', '.' and '-' only, not '$1'"
  echo "$BASE/portolan-cluster.$EUID.$1"
}

# Prints the process id and the start time. The pair is unique; ids alone are reused.
identity() { # pid
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  stat=${stat##*) } # the program name may contain blanks
  set -- "$1" $stat
  # A zombie does not count as a process.
  [[ $2 != [ZX] ]] || return 1
  echo "$1 ${21}"
}

alive() { # directory of a cluster
  local head
  read -r head 2>/dev/null <"$1/head" || return 1
  [[ $(identity "${head%% *}") == "$head" ]]
}

head_pid() { # directory
  local pid _
  read -r pid _ <"$1/head" && echo "$pid"
}

# Sets name to the value of --name, and words to the other arguments.
take_name() { # arguments
  name=default words=()
  while (($#)); do
    case $1 in
      --name) needs_value "$@" && name=$2 && shift 2 ;;
      *) words+=("$1") && shift ;;
    esac
  done
}

# ------------------------------------------------------- inside the namespaces

no_ipv6() {
  if [[ -e /proc/sys/net/ipv6/conf/all/disable_ipv6 ]]; then
    echo 1 2>/dev/null >/proc/sys/net/ipv6/conf/all/disable_ipv6 || true
  fi
}

# Sets up a namespace; the head and the hosts share these steps. Until /proc is mounted again, it
# shows the process ids of the outer namespace, which identify this process to the outside.
settle() { # directory, own name
  local pid _
  read -r pid _ </proc/self/stat
  identity "$pid" >"$1/$2.new"
  mount -t proc proc /proc
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
  hostname "$2"
  ip link set lo up
  no_ipv6
  mv "$1/$2.new" "$1/$2"
}

# The first process of a process namespace: when it ends, the kernel ends all others. It only
# sleeps, and reaps the orphans that the kernel gives it.
stay() {
  trap 'exit 0' TERM
  while :; do
    sleep 1000000 &
    wait $! || true
  done
}

host_main() { # directory, name
  exec >/dev/null
  settle "$1" "$2"
  exec 2>/dev/null
  stay
}

# Adds a virtual network card: one end is in the host, the other on the bridge.
plug() { # directory, number
  local pid name=host$2
  await 10 test -e "$1/$name" || die "$name does not start"
  read -r pid _ <"$1/$name"
  ip link add "veth$2" type veth peer name eth0 netns "$pid"
  ip link set "veth$2" master br0 up
  nsenter -t "$pid" -n sh -c "ip addr add $NET.$2/24 dev eth0 && ip link set eth0 up"
}

# Succeeds if the kernel can give each host its own clock.
has_clocks() {
  [[ -e /proc/self/ns/time_for_children ]] && unshare -T --monotonic 1 true 2>/dev/null
}

head_main() { # directory, hosts
  local dir=$1 hosts=$2 k
  # This namespace is private, so the bridge cannot collide with other addresses.
  mount --bind "$dir/etc-hosts" /etc/hosts
  settle "$dir" head
  # Give the bridge a fixed address. It would otherwise take the address of a port, which changes
  # with the ports while the hosts still know the old address.
  ip link add br0 address 02:00:00:00:00:fe type bridge stp_state 0 forward_delay 0
  ip addr add "$HEAD/24" dev br0
  ip link set br0 up
  for ((k = 1; k <= hosts; k++)); do
    local clock=()
    if has_clocks; then clock=(-T --monotonic "$((k * APART))"); fi
    unshare -n -m -p -i -u "${clock[@]}" --fork --kill-child "$SELF" __host "$dir" "host$k" </dev/null &
  done
  for ((k = 1; k <= hosts; k++)); do plug "$dir" "$k"; done
  : >"$dir/ready"
  exec >/dev/null 2>&1
  stay
}

# Replaces ssh. It ignores ssh's options and, like ssh, does not pass on the caller's environment.
# The variables that $CLUSTER_KEEP names are an exception; they only mark processes.
agent_main() { # directory, arguments of ssh
  local dir=$1 keep=() variable pid
  shift
  while [[ ${1:-} == -* ]]; do
    case $1 in
      -[bcDEeFIiJLlmOopQRSWw]) shift 2 ;;
      *) shift ;;
    esac
  done
  (($# >= 1)) && [[ $1 =~ ^host[0-9]+$ && -e $dir/$1 ]] || die "no host '${1:-}' in this cluster"
  read -r pid _ <"$dir/$1" && shift
  for variable in ${CLUSTER_KEEP:-}; do keep+=("$variable=${!variable:-}"); done
  local clock=()
  if has_clocks; then clock=(-T); fi
  exec nsenter -t "$pid" -n -m -p -i -u "${clock[@]}" "--wd=${HOME:-/}" -- \
    env -i "HOME=${HOME:-/}" "USER=${USER:-root}" "LOGNAME=${LOGNAME:-root}" SHELL=/bin/sh \
    "PATH=$PATH" "${keep[@]}" /bin/sh -c "$*"
}

# ------------------------------------------------------------ making and ending

# Sets USERNS to the options that unshare needs in addition to the namespaces.
rights() {
  USERNS=()
  if ((EUID != 0)); then USERNS=(--user --map-root-user); fi
}

# Fails if clusters cannot be made here, and prints the reason.
check_main() {
  local tool
  for tool in unshare nsenter ip setpriv mount; do
    if ! command -v "$tool" >/dev/null; then
      echo "no $tool (packages util-linux and iproute2 have it)"
      return 1
    fi
  done
  rights
  # Try once everything that a cluster needs.
  # shellcheck disable=SC2016 # for the inner shell
  local why
  if ! why=$(unshare "${USERNS[@]}" -n -m -p -i -u --fork --kill-child sh -ec '
    mount -t proc proc /proc
    mount -t tmpfs tmpfs /dev/shm
    hostname head
    ip link add br0 type bridge
    ip link add veth1 type veth peer name eth0
    ip link set veth1 master br0' 2>&1); then
    echo "this kernel or account lets us make no namespaces with a network (${why//$'\n'/; })"
    return 1
  fi
}

# Ends all processes of the cluster in this directory, and removes the directory.
end_cluster() { # directory
  local pid
  if alive "$1"; then
    pid=$(head_pid "$1")
    kill -KILL "$pid" 2>/dev/null || true
    # The kernel ends the processes of all hosts before the process of the head.
    await 10 not alive "$1" || die "the cluster in $1 does not end: process $pid"
  fi
  rm -rf -- "$1"
}

# Removes the directories of clusters that were killed or did not survive a restart of the machine.
prune() {
  local dir maker
  for dir in "$BASE/portolan-cluster.$EUID".*; do
    [[ -d $dir ]] || continue
    alive "$dir" && continue
    # Keep it if its maker still runs: the cluster may be starting.
    if read -r maker 2>/dev/null <"$dir/maker" && [[ $(identity "${maker%% *}") == "$maker" ]]; then continue; fi
    [[ -e $dir/maker || -n $(find "$dir" -maxdepth 0 -mmin +1) ]] || continue
    rm -rf -- "$dir"
  done
}

# Makes the cluster, and sets DIR. A `bound` cluster ends with this process, however that ends.
make_cluster() { # name, hosts, bound|free
  local k before=() pid
  [[ $2 =~ ^[1-9][0-9]*$ ]] && (($2 <= MAX_HOSTS)) || die "between 1 and $MAX_HOSTS hosts, not '$2'"
  prune
  DIR=$(dir_of "$1")
  mkdir -m 700 "$DIR" 2>/dev/null || die "there is a cluster '$1' already (scripts/dev cluster down --name $1)"
  trap 'end_cluster "$DIR"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  identity $$ >"$DIR/maker"
  echo "$2" >"$DIR/hosts"
  mkdir "$DIR/tmp"
  {
    printf '127.0.0.1 localhost\n%s head\n' "$HEAD"
    for ((k = 1; k <= $2; k++)); do echo "$NET.$k host$k"; done
  } >"$DIR/etc-hosts"
  printf '#!/bin/sh\nexec "%s" __agent "%s" "$@"\n' "$SELF" "$DIR" >"$DIR/agent"
  chmod +x "$DIR/agent"
  rights
  if [[ $3 == bound ]]; then before=(setpriv --pdeathsig KILL); else before=(setsid); fi
  "${before[@]}" unshare "${USERNS[@]}" -n -m -p -i -u --fork --kill-child \
    "$SELF" __head "$DIR" "$2" </dev/null >/dev/null 2>"$DIR/errors" &
  pid=$!
  disown "$pid"
  is_ready_or_gone() { [[ -e $DIR/ready ]] || ! kill -0 "$pid" 2>/dev/null; }
  await 20 is_ready_or_gone || true
  [[ -e $DIR/ready ]] || die "the cluster could not be made: $(cat "$DIR/errors")"
  if [[ $3 == free ]]; then trap - EXIT INT TERM HUP; fi
}

# Sets DIR to the directory of an existing cluster.
find_cluster() { # name
  DIR=${CLUSTER_DIR:-}
  [[ -n $DIR ]] || DIR=$(dir_of "$1")
  [[ -n ${CLUSTER_DIR:-} ]] || alive "$DIR" || die "no cluster '$1' (scripts/dev cluster up K --name $1)"
}

# Sets ENTER to the prefix that runs a command in the head; it is empty inside a cluster.
enter_head() {
  ENTER=()
  [[ -z ${CLUSTER_DIR:-} ]] || return 0
  ENTER=(nsenter -t "$(head_pid "$DIR")")
  if ((EUID != 0)); then ENTER+=(-U --preserve-credentials); fi
  ENTER+=(-n -m -p -i -u "--wd=$PWD" --)
}

# ---------------------------------------------------------------------- commands

# Sends a signal to a run's processes on all hosts, as seen from the head.
signal_run() { # signal, mark
  # shellcheck disable=SC2016
  "${ENTER[@]}" sh -c 'grep -lzs "^CLUSTER_RUN=$2\$" /proc/[0-9]*/environ | cut -d / -f 3 | grep -vx "$$" |
    xargs -r kill "-$1"' sh "$1" "$2" 2>/dev/null || true
}

run_main() { # options and command
  local name=default hosts='' on='' mark code=0 command
  while (($#)); do
    case $1 in
      --name) needs_value "$@" && name=$2 && shift 2 ;;
      --hosts) needs_value "$@" && hosts=$2 && shift 2 ;;
      --on) needs_value "$@" && on=$2 && shift 2 ;;
      --) shift && break ;;
      -*) die "unknown option '$1', see --help" ;;
      *) break ;;
    esac
  done
  (($#)) || die "run what? see --help"
  if [[ -n $hosts ]]; then
    [[ -z ${CLUSTER_DIR:-} ]] || die "this runs in a cluster already, which has $(cat "$CLUSTER_DIR/hosts") hosts"
    make_cluster "run.$$.${EPOCHREALTIME//[.,]/}" "$hosts" bound
  else
    find_cluster "$name"
  fi
  enter_head
  mark=$$.${EPOCHREALTIME//[.,]/}
  local environment=(env "CLUSTER_DIR=$DIR" "CLUSTER_RUN=$mark" "CLUSTER_KEEP=CLUSTER_RUN ${CLUSTER_KEEP:-}")
  if [[ -n $on ]]; then
    command=("${environment[@]}" "$DIR/agent" "$on" "cd $(printf %q "$PWD") && $(printf '%q ' "$@")")
  else
    command=("${environment[@]}" setpriv --pdeathsig KILL "$@")
  fi
  # If this process is ended, the command must end too, with time to clean up.
  setpriv --pdeathsig KILL "${ENTER[@]}" "${command[@]}" <&0 &
  local child=$!
  finish() {
    signal_run TERM "$mark"
    await 3 not kill -0 "$child" 2>/dev/null || true
    exit "$1"
  }
  leave() {
    signal_run KILL "$mark"
    if [[ -n $hosts ]]; then end_cluster "$DIR"; fi
  }
  trap leave EXIT
  trap 'finish 130' INT
  trap 'finish 143' TERM HUP
  wait "$child" || code=$?
  exit "$code"
}

up_main() {
  local name words why
  take_name "$@"
  ((${#words[@]} == 1)) || die "up wants a number of hosts, see --help"
  why=$(check_main) || die "$why"
  make_cluster "$name" "${words[0]}" free
  echo "cluster $name: ${words[0]} hosts"
}

down_main() {
  local name words dir
  take_name "$@"
  case "${words[*]}" in
    '') ;;
    --all) name='' ;;
    *) die "unknown argument '${words[*]}', see --help" ;;
  esac
  if [[ -n $name ]]; then
    dir=$(dir_of "$name")
    [[ -d $dir ]] || die "no cluster '$name'"
    end_cluster "$dir"
  else
    for dir in "$BASE/portolan-cluster.$EUID".*; do
      # Leave out clusters that are bound to a run: they end with it.
      [[ -d $dir && $dir != *."run."* ]] && end_cluster "$dir"
    done
    prune
  fi
}

status_of() { # directory, as the head sees it
  local k pid _ name
  ip -o -4 addr show br0 | awk '{ print "  head", $4 }'
  for ((k = 1; k <= $(cat "$1/hosts"); k++)); do
    name=host$k
    read -r pid _ <"$1/$name"
    echo "  $name $NET.$k $(ip -br link show "veth$k" | awk '{ print $2 }')$(cat "$1/link.$name" 2>/dev/null || true)"
    nsenter -t "$pid" -p -m sh -c '
      for p in /proc/[0-9]*; do
        case ${p#/proc/} in 1 | $$) continue ;; esac
        line=$(tr "\0" " " <"$p/cmdline" 2>/dev/null) || continue
        case $line in "" | "sleep 1000000 ") ;; *) echo "    process ${p#/proc/}: $line" ;; esac
      done
      for f in $(ls /dev/shm); do echo "    /dev/shm/$f"; done'
  done
}

status_main() {
  local name='' dir found=
  while (($#)); do
    case $1 in
      --name) needs_value "$@" && name=$2 && shift 2 ;;
      *) die "unknown argument '$1', see --help" ;;
    esac
  done
  for dir in ${CLUSTER_DIR:-"$BASE/portolan-cluster.$EUID".${name:-*}}; do
    [[ -d $dir ]] || continue
    found=1
    if [[ -z ${CLUSTER_DIR:-} ]] && ! alive "$dir"; then
      echo "${dir##*"cluster.$EUID."}: half made or dead (down removes it)"
      continue
    fi
    echo "${dir##*"cluster.$EUID."}: $(cat "$dir/hosts") hosts"
    DIR=$dir
    enter_head
    "${ENTER[@]}" "$SELF" __status "$dir"
  done
  [[ -n $found ]] || echo "no cluster"
}

left_in_head() { # directory, what to do with a file
  local name pid _
  for name in "$1"/host[0-9]* "$1"/head; do
    [[ ${name##*/} =~ ^(host[0-9]+|head)$ ]] || continue
    if [[ $name == */head ]]; then pid=1; else read -r pid _ <"$name"; fi
    find "/proc/$pid/root/dev/shm" "/proc/$pid/root$1/tmp" -mindepth 1 "${@:2}" 2>/dev/null |
      sed "s|^/proc/$pid/root$1/tmp/|${name##*/}: sessions/|; s|^/proc/$pid/root|${name##*/}: |" || true
  done
}

left_main() {
  local name words what=()
  take_name "$@"
  case "${words[*]}" in
    '') ;;
    --remove) what=(-delete) ;;
    *) die "unknown argument '${words[*]}', see --help" ;;
  esac
  find_cluster "$name"
  enter_head
  "${ENTER[@]}" "$SELF" __left "$DIR" "${what[@]}"
}

# ------------------------------------------------------------------------- links

# Applies settings to a link: through netem if the kernel has it, and otherwise through wire.py.
link_in_head() { # directory, host, settings ...
  local dir=$1 host=$2 k=${2#host} word netem=() wire=() pid
  shift 2
  read -r pid _ <"$dir/$host"
  clean_link "$dir" "$host" "$k" "$pid"
  case ${1:-} in
    clean) return ;;
    cut)
      ip link set "veth$k" down
      echo " cut" >"$dir/link.$host"
      return ;;
  esac
  for word in "$@"; do
    case $word in
      delay=*) netem+=(delay "${word#*=}") wire+=(--delay "${word#*=}") ;;
      loss=*) netem+=(loss "${word#*=}") wire+=(--loss "${word#*=}") ;;
      rate=*) netem+=(rate "${word#*=}") wire+=(--rate "${word#*=}") ;;
      *) die "link knows delay=, loss=, rate=, cut and clean, not '$word'" ;;
    esac
  done
  ((${#wire[@]})) || die "link wants a setting, see --help"
  if tc qdisc add dev "veth$k" root netem "${netem[@]}" limit 20000 2>/dev/null; then
    nsenter -t "$pid" -n tc qdisc add dev eth0 root netem "${netem[@]}" limit 20000
    echo " netem $*" >"$dir/link.$host"
    return
  fi
  # Insert the wire between the bridge and the host's end of the link.
  ip link add "wire$k" type veth peer name "plug$k"
  ip link set "plug$k" master br0 up
  ip link set "wire$k" up
  ip link set "veth$k" nomaster
  setsid python3 "$ROOT/scripts/dev.d/lib/wire.py" "veth$k" "wire$k" "${wire[@]}" --ready "$dir/wire.$host" \
    </dev/null >/dev/null 2>"$dir/wire.$host.errors" &
  disown
  await 5 test -e "$dir/wire.$host" || die "the wire does not start: $(cat "$dir/wire.$host.errors")"
  echo " wire $*" >"$dir/link.$host"
}

clean_link() { # directory, host, its number, its process
  local wire
  tc qdisc del dev "veth$3" root 2>/dev/null || true
  nsenter -t "$4" -n tc qdisc del dev eth0 root 2>/dev/null || true
  if read -r wire 2>/dev/null <"$1/wire.$2"; then
    kill -KILL "$wire" 2>/dev/null || true
    ip link del "wire$3" 2>/dev/null || true
  fi
  rm -f "$1/wire.$2" "$1/link.$2"
  ip link set "veth$3" master br0 up
}

link_main() {
  local name words
  take_name "$@"
  find_cluster "$name"
  [[ ${words[0]:-} =~ ^host[0-9]+$ && -e $DIR/${words[0]} ]] || die "which host? see --help"
  ((${#words[@]} > 1)) || die "link wants a setting, see --help"
  enter_head
  "${ENTER[@]}" "$SELF" __link "$DIR" "${words[@]}"
}

# A function, so that bash reads all of it first: edits do not disturb a script that is running.
main() {
  (($#)) || { usage && exit 2; }
  local command=$1
  shift
  case $command in
    up | run | link | status | left | down) "${command}_main" "$@" ;;
    check) check_main && echo "clusters can be made here" ;;
    __head) head_main "$@" ;;
    __host) host_main "$@" ;;
    __agent) agent_main "$@" ;;
    __status) status_of "$@" ;;
    __left) left_in_head "$@" ;;
    __link) link_in_head "$@" ;;
    -h | --help) usage ;;
    *) die "unknown command '$command', see --help" ;;
  esac
  exit
}
main "$@"
