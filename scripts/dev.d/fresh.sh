#!/usr/bin/env bash
# Usage: scripts/dev fresh [--release bookworm|trixie] [--user] [--command one|two]
#        scripts/dev fresh [--release R] [--user] [--with FILE]... -- COMMAND [ARGS]
#        scripts/dev fresh check
#
# Runs the README's commands on a newly installed system: a bare root directory of a Debian release
# in separate namespaces, with only this machine's Rust and a clone of HEAD added. The commands are
# read from the section "Quick start" of the README. The exit code is the command's.
#
#   --release R   bookworm (Debian 12, the default) or trixie (Debian 13)
#   --command C   one, the default, or two
#   --user        run as an ordinary user without apt or sudo, on a system with a C compiler,
#                 Python, and an MPI from PyPI whose mpicc is in PATH; command one is then the
#                 command that the README gives for such users
#   --            run COMMAND in the clone, instead of the README's command
#   --with FILE   copy FILE into target/with of the clone
#   check         reports whether this machine can do it; the exit code is 0, or 77 if it cannot
#
# The script needs root, or a kernel and an account (/etc/subuid) that allow user namespaces. If it
# cannot run, it prints the reason, and the exit code is 77. mmdebstrap makes the root directory; if
# it is missing, apt installs it if that is permitted. The system uses this machine's network, with
# its settings for apt, cargo and pip.
#
# target/fresh keeps the bare system and the downloads of apt and cargo for the next run. A bare
# system is rebuilt after a week. The root directory itself is removed when the script ends or, if
# the script is killed, at the start of the next run.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # for chroot; ordinary users lack these
STORE=$ROOT/target/fresh
DAYS=7 # lifetime of a bare system
# The variables of this machine's environment that configure the network.
NETWORK=(http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
  PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_PROXY PIP_DEFAULT_TIMEOUT
  CARGO_HTTP_PROXY CARGO_HTTP_TIMEOUT CARGO_NET_RETRY)
CERTIFICATES=(SSL_CERT_FILE CARGO_HTTP_CAINFO PIP_CERT REQUESTS_CA_BUNDLE CURL_CA_BUNDLE)
CA_BUNDLE=/etc/portolan-fresh-ca.crt # in the root directory

refuse() { # why
  echo "fresh: cannot run here: $*" >&2
  exit 77
}

# ------------------------------------------------------- inside the namespaces

make_devices() { # root directory
  local name
  mount -t tmpfs -o mode=755 tmpfs "$1/dev"
  for name in null zero full random urandom tty; do
    : >"$1/dev/$name"
    mount --bind "/dev/$name" "$1/dev/$name"
  done
  mkdir "$1/dev/shm" "$1/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts" 2>/dev/null || true
  ln -s pts/ptmx "$1/dev/ptmx"
  ln -s /proc/self/fd "$1/dev/fd"
  ln -s /proc/self/fd/0 "$1/dev/stdin"
  ln -s /proc/self/fd/1 "$1/dev/stdout"
  ln -s /proc/self/fd/2 "$1/dev/stderr"
}

# Runs as root of the namespaces: unpacks the system, adds Rust and the clone, and runs the script.
inside_main() { # directory of this run, bare system, store, sysroot of Rust, user, MPI's prefix or nothing
  local work=$1 bare=$2 store=$3 rust=$4 user=$5 mpi=$6 root=$1/root home
  mkdir -p "$root"
  tar -xf "$bare" -C "$root" --numeric-owner --exclude='./dev/*'
  mount --bind "$root" "$root"
  make_devices "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys" 2>/dev/null || true
  echo 127.0.0.1 localhost "$(hostname)" >"$root/etc/hosts"
  rm -f "$root/etc/resolv.conf"
  cp "$work/resolv.conf" "$root/etc/resolv.conf"
  cp "$work/apt.conf" "$root/etc/apt/apt.conf.d/90host"
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/fresh"
  if [[ -e $work/ca.crt ]]; then cp "$work/ca.crt" "$root$CA_BUNDLE"; fi
  if [[ -e $work/pip.conf ]]; then cp "$work/pip.conf" "$root/etc/pip.conf"; fi
  mkdir -p "$root/opt/rust" "$root/var/cache/apt/archives"
  mount --bind "$rust" "$root/opt/rust"
  mount -o remount,ro,bind "$root/opt/rust" 2>/dev/null || true
  mount --bind "$work/archives" "$root/var/cache/apt/archives"
  home=/root
  if [[ $user != root ]]; then
    home=/home/$user
    chroot "$root" useradd -m -s /bin/bash "$user"
    chmod 700 "$root"/usr/bin/apt* "$root/usr/bin/dpkg" 2>/dev/null || true
    rm -f "$root"/usr/bin/apt{,-get}
  fi
  if [[ -n $mpi ]]; then
    mkdir -p "$root/opt/mpi"
    cp -a "$mpi/." "$root/opt/mpi/"
  fi
  mkdir -p "$root$home/.cargo/registry"
  if [[ -e $work/config.toml ]]; then cp "$work/config.toml" "$root$home/.cargo/"; fi
  cp -a "$work/portolan" "$root$home/portolan"
  cp "$work/run" "$root/tmp/run"
  chroot "$root" chown -R "$user:" "$home"
  # An ordinary user in the namespace cannot write to files that the namespace's root fetched.
  if [[ $user == root ]]; then mount --bind "$store/registry" "$root$home/.cargo/registry"; fi
  cd "$root"
  mkdir -p mnt
  pivot_root . mnt
  # shellcheck disable=SC2016 # for the inner shell
  exec chroot . /bin/bash -c '
    umount -l /mnt
    cd "$2/portolan"
    if [[ $1 == root ]]; then exec /bin/bash /tmp/run; fi
    exec setpriv --reuid "$1" --regid "$1" --init-groups /bin/bash /tmp/run' bash "$user" "$home"
}

if [[ ${1:-} == __inside ]]; then
  shift
  inside_main "$@"
  exit
fi

# --------------------------------------------------------------------- outside

release=bookworm user='' command=one check='' own=() with=()
while (($#)); do
  case $1 in
    --release) needs_value "$@" && release=$2 && shift 2 ;;
    --command) needs_value "$@" && command=$2 && shift 2 ;;
    --with) needs_value "$@" && with+=("$2") && shift 2 ;;
    --user) user=1 && shift ;;
    check) check=1 && shift ;;
    -h | --help) usage && exit ;;
    --) shift && own=("$@") && break ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ $release == bookworm || $release == trixie ]] || die "--release is bookworm or trixie"
[[ $command == one || $command == two ]] || die "--command is one or two"

# Prints a command of the README: one of the indented lines of the section. The third is for users
# without root.
readme_command() { # file, number
  awk -v wanted="$2" '
    /^## / { on = /^## Quick start$/ }
    on && /^    / && ++n == wanted { sub(/^    /, ""); print; exit }' "$1"
}

# The options that unshare needs, and a check of everything that the run uses.
USERNS=()
if ((EUID != 0)); then USERNS=(--user --map-auto --map-root-user); fi
SPACES=(-m -p -u -i --fork)
for t in unshare mount tar git cargo rustc; do
  command -v "$t" >/dev/null || refuse "no $t"
done
why=$(unshare "${USERNS[@]}" "${SPACES[@]}" sh -ec '
  mount -t proc proc /proc
  mount -t tmpfs tmpfs /mnt
  mkdir /mnt/old
  chown 1:1 /mnt/old' 2>&1) || refuse "this kernel or account lets us make no namespaces (${why//$'\n'/; })"
if ! command -v mmdebstrap >/dev/null; then
  can_install || refuse "no mmdebstrap, and it cannot be installed"
  as_root=()
  if ((EUID != 0)); then as_root=(sudo); fi
  get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install -y
    --no-install-recommends mmdebstrap)
  "${get[@]}" >/dev/null 2>&1 ||
    { "${as_root[@]}" apt-get -qq update && "${get[@]}" >/dev/null 2>&1; } ||
    refuse "no mmdebstrap, and apt could not install it"
fi
if [[ -n $check ]]; then exit 0; fi

mkdir -p "$STORE/archives/partial" "$STORE/registry"
work=$STORE/run.$$
in_namespace() { unshare "${USERNS[@]}" -m -- "$@"; }
remove() { # directories; in a namespace unless root, because other users of one own some files
  if ((EUID == 0)); then rm -rf --one-file-system "$@"; else in_namespace rm -rf "$@"; fi
}
for left in "$STORE"/run.*; do # of runs that were killed
  if [[ -d $left && ! -d /proc/${left##*.} ]]; then remove "$left"; fi
done
child=''
end() {
  if [[ -n $child ]]; then
    kill -KILL "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  remove "$work"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$work"

# Link the packages from earlier runs into a separate directory, because apt locks its directory.
find "$STORE/archives" -name '*.deb' -mtime +30 -delete
cp -al "$STORE/archives" "$work/archives"

# Prints this machine's package sources, changed to the given release. Prints nothing if this
# machine does not run Debian.
sources_of() { # release
  local name file
  name=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  [[ -n $name ]] && grep -q '^ID=debian$' /etc/os-release || return 0
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    if [[ -e $file ]]; then
      grep -hE "^deb (\[[^]]*\] )?[^ ]+ $name(-security|-updates)? .*main" "$file" | sed "s/\b$name\b/$1/" || true
    fi
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    if [[ -e $file ]]; then # stanza by stanza
      awk -v RS= -v name="$name" -v new="$1" '
        $0 ~ "\n?Suites:[^\n]*" name && /Components:[^\n]*main/ && !/Enabled: *no/ {
          uri = suites = ""
          n = split($0, lines, "\n")
          for (i = 1; i <= n; i++) {
            if (lines[i] ~ /^URIs:/) { split(lines[i], words, /[ \t]+/); uri = words[2] }
            if (lines[i] ~ /^Suites:/) { suites = lines[i]; sub(/^Suites:[ \t]*/, "", suites) }
          }
          m = split(suites, words, /[ \t]+/)
          for (i = 1; i <= m; i++)
            if (words[i] ~ "^" name "(-security|-updates)?$") {
              sub("^" name, new, words[i])
              print "deb " uri " " words[i] " main"
            }
        }' "$file"
    fi
  done
}

apt-config dump 2>/dev/null | grep -E '^Acquire::(http|https|ftp|Check-|Retries)' >"$work/apt.conf" || true
bare=$STORE/$release${user:+-user}.tar
if [[ -z $(find "$bare" -mtime "-$DAYS" 2>/dev/null) ]]; then
  start=$SECONDS
  echo "fresh: making a bare system of $release"
  sources_of "$release" | sort -u >"$work/sources.list"
  options=(--variant=minbase --mode="$( ((EUID == 0)) && echo root || echo unshare)" --quiet
    --aptopt="$work/apt.conf")
  if [[ -n $user ]]; then options+=("--include=gcc,g++,libc6-dev,python3,python3-venv,ca-certificates"); fi
  if [[ -s $work/sources.list ]]; then sources=("$work/sources.list"); else sources=(); fi
  mmdebstrap "${options[@]}" "$release" "$work/bare.tar" "${sources[@]}" </dev/null >"$work/mmdebstrap.log" 2>&1 || {
    tail -n 20 "$work/mmdebstrap.log" >&2
    refuse "mmdebstrap could not make a system of $release"
  }
  mv "$work/bare.tar" "$bare"
  echo "fresh: took $((SECONDS - start)) s"
fi

git -C "$ROOT" clone --quiet --no-hardlinks "file://$ROOT" "$work/portolan"
git -C "$work/portolan" checkout --quiet --detach "$(git -C "$ROOT" rev-parse HEAD)"

if ((${#with[@]})); then
  mkdir -p "$work/portolan/target/with"
  cp "${with[@]}" "$work/portolan/target/with/"
fi

# The MPI of a machine without Debian's MPIs: a prefix with a bin/mpicc.
mpi=''
if [[ -n $user ]]; then
  mpi=$STORE/mpi
  if [[ ! -x $mpi/bin/mpicc ]]; then
    python3 -m venv "$work/venv" || refuse "no Python 3 with venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --prefix "$work/mpi" mpich ||
      refuse "no MPI could be fetched from PyPI"
    rm -rf "$mpi" && mv "$work/mpi" "$mpi"
  fi
fi

if ((${#own[@]})); then
  text=${own[*]@Q}
else
  number=1
  if [[ -n $user ]]; then number=3; fi
  if [[ $command == two ]]; then number=2; fi
  text=$(readme_command "$work/portolan/README.md" "$number")
  [[ -n $text ]] || die "the README has no command $number"
fi

# Write the script for the inside: the network settings, the paths of the tools, and the command.
cp -L /etc/resolv.conf "$work/resolv.conf" 2>/dev/null || : >"$work/resolv.conf"
{
  name=root home=/root path=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  if [[ -n $user ]]; then name=stranger home=/home/stranger path=/opt/mpi/bin:/opt/rust/bin:/usr/local/bin:/usr/bin:/bin; fi
  echo "exec env -i HOME=$home USER=$name LOGNAME=$name PATH=$path LANG=C.UTF-8 TERM=dumb CARGO_TERM_COLOR=never \\"
  for variable in "${NETWORK[@]}"; do
    if [[ -n ${!variable:-} ]]; then printf '  %q \\\n' "$variable=${!variable}"; fi
  done
  for variable in "${CERTIFICATES[@]}"; do
    if [[ -f ${!variable:-} ]]; then
      cp -L "${!variable}" "$work/ca.crt"
      printf '  %q \\\n' "$variable=$CA_BUNDLE"
    fi
  done
  printf '  /bin/bash -c %q\n' "$text"
} >"$work/run"
pip_conf=''
for file in /etc/pip.conf "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf"; do
  if [[ -e $file ]]; then pip_conf=$file; fi
done
if [[ -n $pip_conf ]]; then
  file=$(sed -n 's/^cert *= *//p' "$pip_conf")
  if [[ -f $file ]]; then cp -L "$file" "$work/ca.crt"; fi
  sed "s|^\(cert *= *\).*|\1$CA_BUNDLE|" "$pip_conf" >"$work/pip.conf"
fi
for file in "${CARGO_HOME:-$HOME/.cargo}"/config{.toml,}; do
  if [[ -e $file ]]; then cp "$file" "$work/config.toml"; fi
done

echo "fresh: $release${user:+, an ordinary user}: $text"
start=$SECONDS code=0
# If this process dies, the kernel kills unshare, and with it everything in the namespaces.
setpriv --pdeathsig KILL unshare "${USERNS[@]}" "${SPACES[@]}" --kill-child "$ROOT/scripts/dev" fresh __inside \
  "$work" "$bare" "$STORE" "$(rustc --print sysroot)" "${name:-root}" "$mpi" </dev/null &
child=$!
wait "$child" || code=$?
child=''
find "$work/archives" -maxdepth 1 -name '*.deb' -exec cp -aln -t "$STORE/archives" {} + || true
echo "fresh: exit code $code after $((SECONDS - start)) s"
exit "$code"
