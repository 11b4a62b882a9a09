#!/usr/bin/env bash
# Usage: scripts/dev suite SUITE [--mpi mpich|openmpi|all] [OPTIONS] [FILTER ...]
#
# Builds the test runner (tests/run), and runs one of its suites with each MPI: ranks, programs,
# faults, network or bugs. All suites except `ranks` and `bugs` need the library installed in
# target/MPI/prefix (scripts/install.sh). The runner runs the cases whose line contains a FILTER.
# The last line is `N passed, N failed`; the exit code is 0 if no case failed.
#
#   --mpi M           one MPI, the default is all
#   --list            lists the cases without running them
#   --exact           a FILTER is the complete name of a case
#   --skip FILTER     leaves out the cases whose line contains FILTER
#   --quick, --full   fewer cases, or all of them
#   --junit FILE      also writes a JUnit report
#   --build           builds the programs that the cases need, without running them
#
# `cargo test --release --test ranks -- --help` lists the options of the regression suite as well.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

(($#)) || { usage && exit 2; }
suite=$1 mpi=all mpis=() arguments=() plain=''
shift
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    -h | --help) usage && exit ;;
    --list) plain=1 && arguments+=("$1") && shift ;;
    *) arguments+=("$1") && shift ;;
  esac
done
if [[ $suite == -h || $suite == --help ]]; then usage && exit; fi
choose_mpis "$mpi"
cd "$ROOT"

sums='' code=0
if ((${#mpis[@]} > 1)); then
  sums=$(mktemp)
  trap 'rm -f "$sums"' EXIT
fi
for m in "${mpis[@]}"; do
  complete_mpi "$m"
  runner=$(test_runner)
  export PORTOLAN_MPIEXEC="${LAUNCH[*]}" PORTOLAN_PREFIX=$PREFIX
  command=("$runner" --suite "$suite" "${arguments[@]}")
  if [[ -z $sums ]]; then exec "${command[@]}"; fi
  # Run it in the background: a shell handles no signals while it waits for a foreground command.
  { "${command[@]}" </dev/null | tee -a "$sums"; } &
  trap 'pkill -TERM -P $! "^ranks" || true; wait || true; exit 143' TERM INT
  wait $! || code=$?
  trap - TERM INT
done
if [[ -z $plain ]]; then
  awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { print p + 0 " passed, " f + 0 " failed" }' "$sums"
fi
exit "$code"
