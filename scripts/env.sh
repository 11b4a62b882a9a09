# shellcheck shell=bash
# To be sourced: what differs between the MPIs, in one place.
#
#   . scripts/env.sh
#   use_mpi mpich|openmpi
#
# use_mpi exports PORTOLAN_MPI, MPICC, MPICXX, MPIFORT, MPIEXEC, GA_CONFIG and
# CARGO_TARGET_DIR (each MPI has a target directory of its own: objects built
# for one never meet the other), and sets MPI, PREFIX (where tests and examples
# find the installed library), and LAUNCH (the launcher with its flags, an array
# that wants `-n N PROGRAM` after it).

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ALL_MPIS=(mpich openmpi)

if ! command -v cargo >/dev/null && [[ -r ${HOME:-/root}/.cargo/env ]]; then
  . "${HOME:-/root}/.cargo/env"
fi

die() {
  echo "${0##*/}: $*" >&2
  exit 2
}

# Prints the comment that opens the calling script.
usage() {
  awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
}

# The value of the option "$1" is the next argument; there must be one.
needs_value() {
  (($# > 1)) || die "$1 needs a value"
}

check_mpi() {
  [[ " ${ALL_MPIS[*]} " == *" $1 "* ]] || die "unknown MPI '$1', known are: ${ALL_MPIS[*]}"
}

# Sets mpis to those that the value of an --mpi option stands for.
# shellcheck disable=SC2034 # here and below: for the scripts that source this one
choose_mpis() {
  mpis=("${ALL_MPIS[@]}")
  if [[ $1 != all ]]; then check_mpi "$1" && mpis=("$1"); fi
}

# Debian tells the tools of its MPIs apart by suffix; elsewhere the plain name is taken.
tool() {
  if command -v "$1.$MPI" >/dev/null; then echo "$1.$MPI"; else echo "$1"; fi
}

# The MPI that a compiler wrapper belongs to: only Open MPI's knows --showme.
mpi_of() {
  if "$1" --showme:version >/dev/null 2>&1; then echo openmpi; else echo mpich; fi
}

# shellcheck disable=SC2034
use_mpi() {
  check_mpi "$1"
  MPI=$1
  MPICC=$(tool mpicc)
  MPICXX=$(tool mpicxx)
  MPIFORT=$(tool mpifort)
  MPIEXEC=$(tool mpiexec)
  CARGO_TARGET_DIR=$ROOT/target/$MPI
  PREFIX=$CARGO_TARGET_DIR/prefix
  GA_CONFIG=ga-config
  local found
  for found in /usr/lib/*/ga/"$MPI"/bin/ga-config; do
    if [[ -x $found ]]; then GA_CONFIG=$found; fi
  done
  export PORTOLAN_MPI=$MPI MPICC MPICXX MPIFORT MPIEXEC GA_CONFIG CARGO_TARGET_DIR

  LAUNCH=("$MPIEXEC")
  if [[ $MPI == openmpi ]]; then
    # Open MPI refuses root, and more ranks than cores, unless told otherwise.
    LAUNCH+=(--oversubscribe)
    if ((EUID == 0)); then LAUNCH+=(--allow-run-as-root); fi
  fi
  local extra
  read -ra extra <<<"${PORTOLAN_MPIRUN_FLAGS:-}"
  LAUNCH+=("${extra[@]}")
}
