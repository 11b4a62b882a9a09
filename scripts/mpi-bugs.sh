#!/usr/bin/env bash
# Usage: scripts/mpi-bugs.sh [--mpi mpich|openmpi|all|intel-wheel...] [FILTER]
#
# Runs the programs of tests/mpi-bugs, each a fault of an MPI that the regression suite
# meets, on the MPI that has it, and says of each whether the fault shows. A case passes
# when the program ends as one of the two is expected to: another end is news, and fails.
# The last line is `N passed, N failed`.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

mpi=all filter=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    -h | --help) usage && exit ;;
    -*) die "unknown option '$1', see --help" ;;
    *) filter=$1 && shift ;;
  esac
done
if [[ $mpi == all ]]; then mpis=("${ALL_MPIS[@]}"); else check_mpi "$mpi" && mpis=("$mpi"); fi
cd "$ROOT"

# Program, MPI, ranks, hosts, runs, what a sound MPI prints, what the fault looks like. The
# patterns are of standard output, then standard error, then a line `exit code N`; a sound run
# ends with 0 where the pattern does not say otherwise.
BUGS=(
  'compare_and_swap|openmpi|2||3|compare-and-swap works|signal 11|signal 6'
  'rget_derived|mpich|3||3|^0 of|^[1-9][0-9]* of'
  'win_create_tcp|openmpi|2|1,1|1|windows work|MPI_ERR_WIN'
  'test_unexpected|mpich|2|1,1|1|all messages came|only [0-9]+ of'
  'finalize_hang|mpich|3|2,1|4|all is done but MPI_Finalize|not at its end after'
  'killed_rank|mpich|2||20|^exit code [1-9]|^exit code 0$'
  'mixed_streams|openmpi|1||20|^result$|..result$'
  'open_port|intel-wheel|1||1|ports work|SIGNAL: 11'
)
LIMIT=10 # seconds for a run

passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
clusters=
if scripts/cluster.sh check >/dev/null; then clusters=1; fi

for m in "${mpis[@]}"; do
  complete_mpi "$m"
  for line in "${BUGS[@]}"; do
    IFS='|' read -r program has ranks hosts runs sound fault <<<"$line"
    [[ $has == "$MPI" || $has == "$MPI_NAME" ]] || continue
    case="$program [n=$ranks${hosts:+ hosts=$hosts}]"
    [[ $case == *"$filter"* ]] || continue
    if [[ -n $hosts && -z $clusters ]]; then
      echo "skip $case: no hosts can be made here"
      continue
    fi
    begin=$SECONDS shows=0 strange=''
    if ! "$MPICC" -O1 -Wall "tests/mpi-bugs/$program.c" -o "$work/$program" -lpthread >"$work/output" 2>&1; then
      strange="does not build"
    fi
    launcher=("${LAUNCH[@]}")
    # As the MPI is, without what mpirun.sh does about its faults.
    if [[ -n $hosts ]]; then launcher=(env PORTOLAN_MPI_AS_IT_IS=1 ./mpirun.sh --mpi "$m" --per-host "$hosts"); fi
    for ((run = 0; run < runs && ${#strange} == 0; run++)); do
      code=0
      scripts/deadline.sh "$LIMIT" "PORTOLAN_TEST_RUN=bugs-$$-$run" "${launcher[@]}" -n "$ranks" \
        "$work/$program" >"$work/output" 2>"$work/errors" </dev/null || code=$?
      { cat "$work/errors" && echo "exit code $code"; } >>"$work/output"
      if grep -aqE "$fault" "$work/output"; then
        shows=$((shows + 1))
      elif ((code == 124)) || [[ $code != 0 && $sound != '^exit code '* ]] || ! grep -aqE "$sound" "$work/output"; then
        strange="exit code $code, and neither the sound output nor the fault's"
      fi
    done
    if [[ -n $strange ]]; then
      failed=$((failed + 1))
      echo "FAIL $case $((SECONDS - begin))s: $strange"
      tail -n 20 "$work/output" | cut -c1-200 | sed 's/^/     | /'
    else
      passed=$((passed + 1))
      echo "ok   $case, the fault shows in $shows of $runs runs $((SECONDS - begin))s"
    fi
  done
done
echo "$passed passed, $failed failed"
((failed == 0))
