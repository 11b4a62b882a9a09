#!/usr/bin/env bash
# Usage: scripts/dev regress [--mpi mpich|openmpi|all|wheels|every] [--hosts 1,2,3]
#                           [--quick | --full] [--suite programs,ranks,network,choices,mpi,slurm]
#                           [--case NAME] [--list] [--installed]
#
# The regression suite. Runs every test on several ranks, and the C, Fortran and Global Arrays
# programs of all interfaces, with each MPI: on one, two and three hosts, with 1 to 4 ranks spread
# evenly or unevenly, over each transfer path, at MPI_THREAD_SINGLE and MPI_THREAD_MULTIPLE. The
# hosts are namespaces of this machine with TCP between them (scripts/dev cluster). If they cannot
# be made, the suite uses virtual nodes instead and reports this.
#
#   programs  the programs of tests/c, tests/fortran and tests/ga
#   ranks     the tests on several ranks (tests/ranks)
#   network   delayed, lossy, slow and cut links between two hosts (tests/run/network.rs)
#   choices   one hundred starts on busy cores choose the same path (scripts/bench.py choices)
#   mpi       checks whether the known faults of the MPIs still occur (tests/mpi-bugs)
#   slurm     jobs under Slurm, by mpiexec and by srun (scripts/dev slurm), with Debian's MPIs
#
# All combinations would be about nine thousand launches of the programs alone. --full takes an
# hour on two cores. Its selection runs each program with every spread of ranks, every path on every
# number of hosts, every thread level on every number of hosts, and every path at every level; the
# remaining pairs rotate from program to program (tests/run/selection.rs). The tests on several
# ranks run each of their configurations on at least two spreads of ranks.
# --quick, the default, takes three minutes. It runs thirty programs once each, and two spreads of
# the tests on several ranks, all on several hosts.
#
#   --mpi M      wheels: the MPIs from PyPI (mpich-wheel, openmpi-wheel, intel-wheel) that can be
#                fetched; every: these and Debian's; all, the default: Debian's
#   --hosts L    only these numbers of hosts
#   --suite S    only these suites
#   --case NAME  only cases whose name contains NAME. A complete name, as in the report, runs that
#                case even if the selection does not contain it
#   --list       print the names of the cases that would run
#   --installed  use the libraries and tests as they are built
#
# Prints one line per case. If a case exceeds its deadline, the suite reports the state of each
# rank. The report is in target/regress: report.html, junit.xml, and a log for each suite. A failure
# that is a known fault of an MPI (tests/mpi-bugs/pins.txt) counts as pinned. The last line is
# `N passed, N failed`, and the exit code is 0 if no case failed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all hosts=1,2,3 level=quick suites='' case='' list='' installed=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --hosts) needs_value "$@" && hosts=$2 && shift 2 ;;
    --quick) level=quick && shift ;;
    --full) level=full && shift ;;
    --suite) needs_value "$@" && suites=$2 && shift 2 ;;
    --case) needs_value "$@" && case=$2 && shift 2 ;;
    --list) list=1 && shift ;;
    --installed) installed=1 && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ $hosts =~ ^[1-3](,[1-3])*$ ]] || die "--hosts wants numbers from 1 to 3 as in 1,2,3"
if [[ -z $suites ]]; then
  suites=programs,ranks
  if [[ $level == full || -n $case ]]; then suites=programs,ranks,network,choices,mpi,slurm; fi
fi
[[ $suites =~ ^(programs|ranks|network|choices|mpi|slurm)(,(programs|ranks|network|choices|mpi|slurm))*$ ]] || die "unknown suite in '$suites', see --help"

# A complete case name begins with the MPI and the suite.
if [[ $case =~ ^([a-z]+(-wheel)?)\ (programs|ranks|network|choices|mpi|slurm)\ (.*)$ ]]; then
  mpi=${BASH_REMATCH[1]} suites=${BASH_REMATCH[3]} case=${BASH_REMATCH[4]} level=full
fi
case $mpi in
  wheels) mpis=("${WHEEL_MPIS[@]}") ;;
  every) mpis=("${ALL_MPIS[@]}" "${WHEEL_MPIS[@]}") ;;
  *) choose_mpis "$mpi" ;;
esac

cd "$ROOT"
OUT=$ROOT/target/regress
mkdir -p "$OUT"
exec 8>"$OUT/.lock"
flock -n 8 || { echo "waiting for another run in $OUT" >&2 && flock 8; }

notes=() logs=() in_cluster=()
if why=$(scripts/dev cluster check); then
  in_cluster=(scripts/dev cluster run --hosts 3 --)
else
  notes+=("No hosts could be made here: $why. Virtual nodes (PORTOLAN_NODE_SIZE) stood in.")
  echo "regress: $why: virtual nodes stand in for hosts" >&2
fi

wants() { [[ ,$suites, == *",$1,"* ]]; }

# Prints the runner's options that select the cases. Open MPI 4 does not support windows over TCP
# (tests/mpi-bugs/win_create_tcp.c).
selection() {
  local flags=(--select "$level" --on-hosts "$hosts")
  if [[ $MPI_NAME == openmpi && ${#in_cluster[@]} -gt 0 ]]; then flags+=(--no-windows); fi
  printf '%s\n' "${flags[@]}"
}

build() {
  scripts/install.sh --mpi "$MPI_NAME" --prefix "$PREFIX" && cargo test --release -p portolan-tests --no-run
}

# Runs a suite, and writes its output, one line per case, to a log and to standard output.
suite() { # name, command ...
  local log=$OUT/$MPI_TAG.$1.log
  logs+=("$MPI_NAME:$1:$log")
  echo "== $MPI_NAME $1"
  # Omit the totals of the suite: the report prints other totals, because it knows the pins.
  "${@:2}" 2>&1 </dev/null 8>&- | tee "$log" | sed -u -E '/^[0-9]+ passed, [0-9]+ failed$/d' || true
}

run_mpi() {
  local dir=$OUT/$MPI_TAG
  mkdir -p "$dir"
  if [[ -z $installed ]]; then
    echo "== $MPI_NAME build"
    if ! build >"$dir/build.log" 2>&1; then
      tail -n 20 "$dir/build.log"
      echo "FAIL build: see ${dir#"$ROOT"/}/build.log" >"$OUT/$MPI_TAG.build.log"
      echo "0 passed, 1 failed" >>"$OUT/$MPI_TAG.build.log"
      logs+=("$MPI_NAME:build:$OUT/$MPI_TAG.build.log")
      return
    fi
  fi
  local runner flags
  runner=$(test_runner) && readarray -t flags < <(selection)
  export PORTOLAN_PREFIX=$PREFIX
  local run=("${in_cluster[@]}" env PORTOLAN_MPIEXEC="${LAUNCH[*]}" "$runner" --suite)
  if wants programs; then
    suite programs "${run[@]}" programs "${flags[@]}" ${case:+"$case"}
  fi
  if wants ranks; then
    local less=()
    if [[ $level == quick ]]; then less=(--quick); fi
    suite ranks "${run[@]}" ranks "${less[@]}" "${flags[@]}" ${case:+"$case"}
    if [[ $level == full && ,$hosts, == *,1,* && ( -z $case || $case != *hosts=* ) ]]; then
      suite ranks-1 env PORTOLAN_MPIEXEC="${LAUNCH[*]}" "$runner" ${case:+"$case"}
    fi
  fi
  if wants network && ((${#in_cluster[@]})); then
    suite network scripts/dev network --mpi "$MPI_NAME" --release ${case:+"$case"}
  fi
  if wants choices && [[ -z $case || $case == choices* ]]; then
    suite choices scripts/bench.py choices --mpi "$MPI_NAME" --installed
  fi
  if wants mpi && ((${#in_cluster[@]})); then
    suite mpi scripts/dev mpi-bugs --mpi "$MPI_NAME" ${case:+"$case"}
  fi
  # Always run all cases of this suite: it takes half a minute. It works only with Debian's MPIs,
  # because Slurm comes from Debian's packages.
  if wants slurm && ((${#in_cluster[@]})) && [[ $MPI_NAME == "$MPI" && ( -z $case || $case == slurm/* ) ]]; then
    suite slurm scripts/dev slurm --mpi "$MPI_NAME"
  fi
}

# Unset the caller's variables, so that they do not affect the tests.
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do
  if [[ $variable != PORTOLAN_MPIRUN_FLAGS ]]; then unset "$variable"; fi
done

for m in "${mpis[@]}"; do
  if ! scripts/setup.sh --quiet --mpi "$m" >"$OUT/setup.log" 2>&1; then
    why=$(tail -n 1 "$OUT/setup.log")
    [[ $m == *-wheel ]] || die "$why"
    echo "skip $m: $why"
    notes+=("$m was skipped: $why")
    continue
  fi
  use_mpi "$m"
  if [[ -n $list ]]; then
    readarray -t flags < <(selection)
    runner=$(test_runner)
    export PORTOLAN_PREFIX=$PREFIX PORTOLAN_MPIEXEC="${LAUNCH[*]}"
    "$runner" --suite programs "${flags[@]}" --list ${case:+"$case"} | sed "s/^/$m programs /"
    "$runner" --suite ranks "${flags[@]}" --list | sed "s/^/$m ranks /"
    if wants network; then "$runner" --suite network --release --list | sed "s/^/$m network /"; fi
    continue
  fi
  run_mpi
done
[[ -z $list ]] || exit 0

echo
code=0
use_mpi "${mpis[0]}"
"$(test_runner)" report --into "$OUT" --pins tests/mpi-bugs/pins.txt --title "Portolan, regression suite, $level" \
  "${notes[@]/#/--note=}" "${logs[@]}" || code=$?
exit "$code"
