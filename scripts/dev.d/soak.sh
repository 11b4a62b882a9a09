#!/usr/bin/env bash
# Usage: scripts/dev soak [--mpi mpich|openmpi|all] [--seconds S] [--full]
#
# Runs random operations on all ranks for a long time in one job, and compares the results with a
# model: transfers of every kind, atomics, mutexes, groups, collectives, active messages,
# compositions. A run passes if all results match and resource use does not grow: memory, mapped
# memory, descriptors, threads, files. For each MPI, three launches share the time: 3 ranks that
# share memory, 3 ranks that send messages, and 4 ranks on two virtual nodes. A failure prints its
# seed; set PORTOLAN_TEST_SEED to repeat it. The last line is `N passed, N failed`.
#
#   --mpi M       one MPI, the default is all
#   --seconds S   time for each MPI, 180 by default
#   --full        one hour for each MPI
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all seconds=180 mpis=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --seconds) needs_value "$@" && seconds=$2 && shift 2 ;;
    --full) seconds=3600 && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ $seconds =~ ^[1-9][0-9]*$ ]] || die "--seconds wants a number"
choose_mpis "$mpi"
cd "$ROOT"

LAUNCHES=(soak soak_message soak_nodes)
passed=0 failed=0
for m in "${mpis[@]}"; do
  complete_mpi "$m"
  export PORTOLAN_MPIEXEC="${LAUNCH[*]}" PORTOLAN_SOAK_SECONDS=$((seconds / ${#LAUNCHES[@]} + 1))
  log=$CARGO_TARGET_DIR/soak.log
  code=0
  cargo test --release --test ranks -- --exact "${LAUNCHES[@]}" >"$log" 2>&1 </dev/null || code=$?
  grep -aE '^(ok|FAIL|skip|     \|) ' "$log" | sed "s/^\(ok  \|FAIL\) /\1 $MPI /" || true
  read -r p f < <(awk '/^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 } END { print p + 0, f + 0 }' "$log")
  # If the program did not build, or died, it printed no totals.
  if ((p + f != ${#LAUNCHES[@]})); then
    echo "FAIL $MPI soak: $((p + f)) of ${#LAUNCHES[@]} launches were made, see ${log#"$ROOT"/}"
    tail -n 20 "$log" | sed 's/^/     | /'
    f=$((f + 1))
  elif ((code != 0 && f == 0)); then
    f=1
  fi
  passed=$((passed + p)) failed=$((failed + f))
done
echo "$passed passed, $failed failed"
((failed == 0))
