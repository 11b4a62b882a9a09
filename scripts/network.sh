#!/usr/bin/env bash
# Usage: scripts/network.sh [--mpi mpich|openmpi|all] [--quick | --full] [--list] [FILTER]
#
# Faults of the network between two hosts (scripts/cluster.sh link): frames that come 100 ms
# late each way, of which 5 % are lost, or that pass at 10 Mbit/s must not change a result;
# a link that is cut for a while neither; one that is cut for good must end the job, within
# a stated time, with an error that names the peer, and leave no rank and no file behind.
# One line a case; the last line is `N passed, N failed`. Programs must be built already:
# scripts/test-programs.sh does that.
#
#   --quick   one program a fault, the default
#   --full    more programs, and three ranks
#   FILTER    only cases whose name contains FILTER
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

mpi=all level=quick list='' filter=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --quick) level=quick && shift ;;
    --full) level=full && shift ;;
    --list) list=1 && shift ;;
    -h | --help) usage && exit ;;
    -*) die "unknown option '$1', see --help" ;;
    *) filter=$1 && shift ;;
  esac
done
if [[ $mpi == all ]]; then mpis=("${ALL_MPIS[@]}"); else check_mpi "$mpi" && mpis=("$mpi"); fi
cd "$ROOT"

# Programs whose number of round trips is small enough for a late network.
LATE=(traffic reductions)
OTHERS=(traffic strided accumulate rmw x10_async lapi_amsend cp_patterns)
REPORT=3 ABORT=10 # seconds without progress: until a rank says so, and until it ends the job
EDGE=20           # seconds that a launcher may take beyond that

# Cases: the fault, a program, ranks on each host.
cases=()
plan() { # fault, program, layout
  local label="$1 $2 [n=$(($(tr , + <<<"$3"))) hosts=$3]"
  if [[ $label == *"$filter"* ]]; then cases+=("$1|$2|$3|$label"); fi
}
plan_all() {
  local p
  if [[ $level == full ]]; then
    for p in "${LATE[@]}"; do plan delay=100ms "$p" 1,1; done
    plan delay=100ms traffic 2,1
    for p in "${OTHERS[@]}"; do
      plan loss=5% "$p" 1,1
      plan rate=10mbit "$p" 1,1
    done
    plan loss=5% traffic 2,1
    plan rate=10mbit traffic 2,1
    plan cut-and-whole traffic 2,1
    plan cut traffic 2,1
  else
    for p in delay=100ms loss=5% rate=10mbit; do plan "$p" traffic 1,1; done
  fi
  plan cut-and-whole traffic 1,1
  plan cut traffic 1,1
}
plan_all
if [[ -n $list ]]; then
  for line in "${cases[@]}"; do echo "${line##*|}"; done
  exit
fi

why=$(scripts/cluster.sh check) || {
  echo "skip network: $why"
  echo "0 passed, 0 failed"
  exit
}

NAME=network.$$
OUT=$(mktemp -d)
passed=0 failed=0
trap 'scripts/cluster.sh down --name "$NAME" >/dev/null 2>&1 || true; rm -rf "$OUT"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

ok() { # seconds
  passed=$((passed + 1))
  echo "ok   $case $1s"
}
bad() { # seconds, why
  failed=$((failed + 1))
  echo "FAIL $case $1s: $2"
  tail -q -n 30 "$OUT/output" | cut -c1-240 | sed 's/^/     | /'
}

cluster() { scripts/cluster.sh "$1" --name "$NAME" "${@:2}"; }
cluster_up() { scripts/cluster.sh up 2 --name "$NAME" >/dev/null; }

# Ranks of the case that still run, on any host.
ranks_left() {
  # shellcheck disable=SC2016
  cluster run -- sh -c 'grep -lzsFx "PORTOLAN_TEST_RUN=$1" /proc/[0-9]*/environ | cut -d / -f 3 |
    while read -r p; do grep -qx "$2" "/proc/$p/comm" 2>/dev/null && echo "$p"; done' sh "$mark" "$program" || true
}

# Files of ours that lie in a /dev/shm or a directory of sessions.
files_left() { cluster left | grep '[/ ]portolan' || true; }

start_job() { # seconds for all of it, environment ..., -- arguments of the program
  local limit=$1 environment=()
  shift
  while [[ $1 != -- ]]; do environment+=("$1") && shift; done
  shift
  begin=${EPOCHREALTIME/[.,]/}
  : >"$OUT/output" # what the case before has said is not this one's
  CLUSTER_KEEP=PORTOLAN_TEST_RUN scripts/cluster.sh run --name "$NAME" -- scripts/deadline.sh "$limit" "PORTOLAN_TEST_RUN=$mark" \
    env PORTOLAN_TEST_SECONDS=$((limit + 20)) "${environment[@]}" ./mpirun.sh --mpi "$MPI_NAME" \
    --per-host "$layout" "$BIN/$program" "$@" >"$OUT/output" 2>&1 </dev/null &
  job=$!
}
end_job() { # leaves its exit code in code
  code=0
  wait "$job" || code=$?
  local micros=$((${EPOCHREALTIME/[.,]/} - begin))
  seconds=$(printf '%d.%02d' $((micros / 1000000)) $((micros / 10000 % 100)))
}
says() { grep -aqE "$1" "$OUT/output"; }

# Waits until the job's output has a line.
await() { # expression, seconds
  local i
  for ((i = 0; i < $2 * 10; i++)); do
    says "$1" && return
    kill -0 "$job" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

what_is_left() {
  local left
  left=$(ranks_left)
  if [[ -n $left ]]; then echo "left ranks behind: ${left//$'\n'/ }" && return; fi
  left=$(files_left)
  if [[ -n $left ]]; then echo "left files behind: ${left//$'\n'/, }"; fi
}

# The results are right, however long it takes.
run_slow() { # fault
  local arguments=()
  cluster link host2 "$1"
  if [[ $program == traffic ]]; then arguments=(3); fi
  start_job 150 -- "${arguments[@]}"
  end_job
  cluster link host2 clean
  local left
  left=$(what_is_left)
  if ((code != 0)); then
    bad "$seconds" "exit code $code"
  elif ! says "^PASS $program\$"; then
    bad "$seconds" "does not say PASS $program"
  elif [[ -n $left ]]; then
    bad "$seconds" "$left"
  else
    ok "$seconds"
  fi
}

# A link that comes back loses nothing.
run_cut_and_whole() {
  start_job 120 PORTOLAN_WATCHDOG=$REPORT -- 8
  if await '^RUNNING' 60; then
    cluster link host2 cut
    sleep 4
    cluster link host2 clean
  fi
  end_job
  cluster link host2 clean
  local left
  left=$(what_is_left)
  if ((code != 0)) || ! says "^PASS $program\$"; then
    bad "$seconds" "exit code $code after the link came back"
  elif [[ -n $left ]]; then
    bad "$seconds" "$left"
  else
    ok "$seconds"
  fi
}

# A link that does not: a rank that waits for the one beyond it says so and names it, and
# all ranks end. The launcher itself may wait for its daemon on the far side, for as long as
# TCP does; told to end, as a batch system would tell it, it must.
run_cut() {
  local peer=$(($(tr , + <<<"$layout") - 1)) named='' left='' launcher='' i
  if [[ $("$PREFIX/bin/portolan-info" --markdown) != *PORTOLAN_WATCHDOG_ABORT* ]]; then
    echo "skip $case: this library has no PORTOLAN_WATCHDOG_ABORT"
    return
  fi
  start_job 150 PORTOLAN_WATCHDOG=$REPORT PORTOLAN_WATCHDOG_ABORT=$ABORT -- 100 alone
  if ! await '^RUNNING' 60; then
    end_job
    bad "$seconds" "does not start"
    return
  fi
  sleep 1
  cluster link host2 cut
  # Rank `peer` is the last one, on host2, whom nobody hears any more.
  if await "(waited|has been|no progress).*(rank|ranks|towards)[^0-9]*$peer" $((REPORT + EDGE)); then named=1; fi
  for ((i = 0; i < ABORT + EDGE; i++)); do
    left=$(ranks_left)
    [[ -n $left ]] || break
    sleep 1
  done
  if [[ -n $left ]]; then cluster run -- scripts/where.sh "PORTOLAN_TEST_RUN=$mark" >"$OUT/where" 2>&1 || true; fi
  for ((i = 0; i < 20; i++)); do
    kill -0 "$job" 2>/dev/null || break
    sleep 0.1
  done
  if kill -0 "$job" 2>/dev/null; then
    launcher=", its launcher when told to"
    kill -TERM "$job" 2>/dev/null || true
  fi
  end_job
  if [[ -z $named ]]; then
    bad "$seconds" "nobody said within $((REPORT + EDGE)) s that it waits for rank $peer"
  elif [[ -n $left ]]; then
    cat "$OUT/where" >>"$OUT/output"
    bad "$seconds" "ranks are still there $((ABORT + EDGE)) s after the link was cut: ${left//$'\n'/ }"
  elif ((code == 0)); then
    bad "$seconds" "exit code 0, though the link is cut"
  else
    left=$(what_is_left)
    if [[ -n $left ]]; then bad "$seconds" "$left"; else ok "$seconds"; fi
  fi
  if [[ -n $launcher && -z $left ]]; then echo "     | all ranks ended by themselves$launcher"; fi
  # What the MPI's own daemons on the far side hold goes with the cluster.
  cluster down
  cluster_up
}

for m in "${mpis[@]}"; do
  complete_mpi "$m"
  BIN=$CARGO_TARGET_DIR/programs/c
  cluster_up
  for line in "${cases[@]}"; do
    IFS='|' read -r fault program layout case <<<"$line"
    if [[ ! -x $BIN/$program ]]; then
      echo "c/$program|2||" >"$OUT/plan"
      scripts/test-programs.sh --mpi "$MPI_NAME" --plan "$OUT/plan" >"$OUT/output" 2>&1 || true
      [[ -x $BIN/$program ]] || { bad 0 "c/$program does not build" && continue; }
    fi
    mark=network.$$.$RANDOM
    case $fault in
      cut) run_cut ;;
      cut-and-whole) run_cut_and_whole ;;
      *) run_slow "$fault" ;;
    esac
  done
  cluster down
done
echo "$passed passed, $failed failed"
((failed == 0))
