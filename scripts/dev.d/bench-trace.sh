#!/usr/bin/env bash
# Usage: scripts/dev bench-trace [--mpi M] [--runs R] [--only CASE,...] [--base PREFIX] [--path P]
#                               [PREFIX]
#
# Measures the overhead of statistics and traces. Runs benches/c/armci_bench.c on two ranks of this
# node without either, with PORTOLAN_STATS=1, and with PORTOLAN_TRACE, in alternation, R times (5 by
# default). Prints for each figure the medians in nanoseconds per call, and the medians of the time
# that statistics and traces added in each run. PREFIX is an installed build, by default
# target/MPI/prefix.
#
#   --mpi M      mpich by default
#   --only C     cases of armci_bench; by default put8, get8, acc8, put8_fence, fetch_add,
#                lock_unlock and barrier
#   --base P     another installed build to compare with: shows the overhead of the code while
#                statistics and traces are off
#   --path P     PORTOLAN_PATH
#
# All measured values are kept in target/MPI/bench-trace/raw.tsv.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=mpich runs=5 only=put8,get8,acc8,put8_fence,fetch_add,lock_unlock,barrier base='' path='' prefix=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --runs) needs_value "$@" && runs=$2 && shift 2 ;;
    --only) needs_value "$@" && only=$2 && shift 2 ;;
    --base) needs_value "$@" && base=$(realpath "$2") && shift 2 ;;
    --path) needs_value "$@" && path=$2 && shift 2 ;;
    -h | --help) usage && exit ;;
    -*) die "unknown argument '$1', see --help" ;;
    *) prefix=$(realpath "$1") && shift ;;
  esac
done
[[ $runs =~ ^[1-9][0-9]*$ ]] || die "--runs wants a number"
check_mpi "$mpi"
complete_mpi "$mpi"
prefix=${prefix:-$PREFIX}
dir=$CARGO_TARGET_DIR/bench-trace
mkdir -p "$dir"
: >"$dir/raw.tsv"
# No rpath: the loader finds the library of each side through LD_LIBRARY_PATH at run time.
"$MPICC" -std=c99 -O2 -Wall "-I$prefix/include" "-I$ROOT/benches/c" "$ROOT/benches/c/armci_bench.c" \
  -o "$dir/armci" "-L$prefix/lib" -larmci -lm

bind=()
if (($(nproc) >= 2)); then
  if [[ $MPI == openmpi ]]; then bind=(--bind-to core); else bind=(-bind-to core); fi
fi
run() { # side, run
  local library=$prefix settings=()
  case $1 in
    base) library=$base ;;
    stats) settings=(PORTOLAN_STATS=1) ;;
    trace) settings=("PORTOLAN_TRACE=$dir/trace") ;;
  esac
  if [[ -n $path ]]; then settings+=("PORTOLAN_PATH=$path"); fi
  local export_path=()
  if [[ $MPI == openmpi ]]; then export_path=(-x LD_LIBRARY_PATH); fi
  env "${settings[@]}" LD_LIBRARY_PATH="$library/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" timeout -k 10 600 \
    "${LAUNCH[@]}" "${bind[@]}" "${export_path[@]}" -n 2 "$dir/armci" --quick --only "$only" \
    </dev/null >"$dir/out" 2>"$dir/err" || {
    tail -n 5 "$dir/err" >&2
    die "armci_bench failed with $1"
  }
  rm -rf "$dir/trace"
  awk -F '\t' -v OFS='\t' -v s="$1" -v r="$2" 'NF == 2 && $2 ~ /^[0-9.e+-]+$/ { print s, r, $1, 1000 * $2 }' \
    "$dir/out" >>"$dir/raw.tsv"
}

sides=(off stats trace)
if [[ -n $base ]]; then sides=(base "${sides[@]}"); fi
for ((r = 1; r <= runs; r++)); do
  printf 'run %s of %s\n' "$r" "$runs" >&2
  for ((n = 0; n < ${#sides[@]}; n++)); do run "${sides[(n + r) % ${#sides[@]}]}" "$r"; done
done

sort -t $'\t' -k 3,3 -k 2,2n "$dir/raw.tsv" | awk -F '\t' '
  function median(v, n,   i, j, t) {
    for (i = 2; i <= n; i++)
      for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
  }
  function of(side,   n, r, v) {
    for (r in seen) if ((side, r) in x) v[++n] = x[side, r]
    return n ? sprintf("%.1f", median(v, n)) : "-"
  }
  function more(side, than,   n, r, v) {
    for (r in seen) if ((side, r) in x && (than, r) in x) v[++n] = x[side, r] - x[than, r]
    return n ? sprintf("%+.1f", median(v, n)) : "-"
  }
  function put() {
    printf "%-16s %10s %10s %10s %10s %12s %12s %12s\n", name, of("base"), of("off"), of("stats"), of("trace"),
      more("off", "base"), more("stats", "off"), more("trace", "off")
    split("", x); split("", seen)
  }
  BEGIN {
    printf "%-16s %10s %10s %10s %10s %12s %12s %12s\n", "ns a call", "base", "off", "stats", "trace",
      "off - base", "stats - off", "trace - off"
  }
  $3 != name { if (name != "") put(); name = $3 }
  { x[$1, $2] = $4; seen[$2] = 1 }
  END { if (name != "") put() }'
