#!/usr/bin/env bash
# Usage: scripts/dev compare-builds [--mpi M] [--runs R] [--only PROGRAM,...] [--full]
#                                  [--set-a VAR=VALUE] [--set-b VAR=VALUE]... PREFIX_A [PREFIX_B]
#
# Compares two builds of the library, or one build with two settings, to measure the cost of a
# change or the benefit of a mechanism. PREFIX_A and PREFIX_B are prefixes that scripts/install.sh
# installed; without PREFIX_B, both sides use PREFIX_A. The programs are built once. They run on two
# ranks of this node with one library and then the other, R times (5 by default); A and B take
# turns to run first. Prints for each figure the medians of both sides, and the median of the
# ratios B/A of the runs, marked with `<` or `>` if it differs from 1 by more than 3 %. Figures are
# in microseconds, except some of rpc (see benches/c/rpc_bench.c).
#
#   --mpi M      the MPI of both builds, mpich by default
#   --only P     a selection of armci, ga, rpc, x10 and compose
#   --full       use the full measurement times of compare-armci and bench-rpc
#   --set-a V=X  sets a variable for side A; --set-b for side B
#
# All measured values are kept in target/MPI/compare-builds/raw.tsv.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=mpich runs=5 only=armci,ga,rpc,x10,compose quick=--quick set_a=() set_b=() prefixes=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --runs) needs_value "$@" && runs=$2 && shift 2 ;;
    --only) needs_value "$@" && only=$2 && shift 2 ;;
    --set-a) needs_value "$@" && set_a+=("$2") && shift 2 ;;
    --set-b) needs_value "$@" && set_b+=("$2") && shift 2 ;;
    --full) quick='' && shift ;;
    -h | --help) usage && exit ;;
    -*) die "unknown argument '$1', see --help" ;;
    *) prefixes+=("$(realpath "$1")") && shift ;;
  esac
done
[[ $runs =~ ^[1-9][0-9]*$ ]] || die "--runs wants a number"
((${#prefixes[@]} == 1 || ${#prefixes[@]} == 2)) || die "one or two installed builds are to be named, see --help"
a=${prefixes[0]} b=${prefixes[-1]}
check_mpi "$mpi"
complete_mpi "$mpi"
dir=$CARGO_TARGET_DIR/compare-builds
mkdir -p "$dir"
: >"$dir/raw.tsv"

# No rpath: the loader finds the libraries of each side through LD_LIBRARY_PATH at run time.
link() { # program, source, then the libraries to link with
  "$MPICC" -std=c99 -O2 -Wall "-I$a/include" "-I$ROOT/benches/c" "$ROOT/$2" -o "$dir/$1" "-L$a/lib" "${@:3}" -lm
}

build() {
  local ga=()
  case $1 in
    armci) link armci benches/c/armci_bench.c -larmci ;;
    ga)
      read -ra ga <<<"$("$GA_CONFIG" --ldflags) $("$GA_CONFIG" --libs) $("$GA_CONFIG" --flibs)"
      link ga benches/c/ga_bench.c "${ga[@]}"
      ;;
    rpc) link rpc benches/c/rpc_bench.c -lmercury ;;
    x10) link x10 examples/c/x10_random_access.c -lx10 ;;
    compose) link compose benches/c/cp_bench.c -lcompose -larmci ;;
    *) die "unknown program '$1', known are: armci ga rpc x10 compose" ;;
  esac
}

arguments() { # of a program
  case $1 in
    armci) echo "$quick --skip get8_among_10000,busy" ;;
    x10) echo "20" ;;
    *) echo "$quick" ;;
  esac
}

# Runs a program once, and appends its results to raw.tsv as: side, run, figure, value.
run() { # side, run, program
  local prefix=$a settings=("${set_a[@]}") flags bind=()
  if [[ $1 == b ]]; then prefix=$b settings=("${set_b[@]}"); fi
  read -ra flags <<<"$(arguments "$3")"
  if (($(nproc) >= 2)); then
    if [[ $MPI == openmpi ]]; then bind=(--bind-to core); else bind=(-bind-to core); fi
  fi
  if [[ $MPI == openmpi ]]; then bind+=(-x LD_LIBRARY_PATH); fi
  env "${settings[@]}" LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" timeout -k 10 600 \
    "${LAUNCH[@]}" "${bind[@]}" -n 2 "$dir/$3" "${flags[@]}" </dev/null >"$dir/out" 2>"$dir/err" || {
    tail -n 5 "$dir/err" >&2
    die "$3 failed on side $1"
  }
  awk -F '\t' -v OFS='\t' -v s="$1" -v r="$2" -v p="$3" \
    'NF == 2 && $2 ~ /^[0-9.e+-]+$/ { print s, r, p "/" $1, $2 }' "$dir/out" >>"$dir/raw.tsv"
  awk -v OFS='\t' -v s="$1" -v r="$2" '$1 == "GUPS" { print s, r, "x10/update", 1e-3 / $2 }' "$dir/out" >>"$dir/raw.tsv"
}

table() {
  sort -t $'\t' -k 3,3 -k 2,2n "$dir/raw.tsv" | awk -F '\t' '
    function median(v, n,   i, j, t) {
      for (i = 2; i <= n; i++)
        for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
      return n % 2 ? v[(n + 1) / 2] + 0 : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    function put(   i, n, q, r) {
      n = 0
      for (i in x) if ((i in y) && x[i] > 0) q[++n] = y[i] / x[i]
      if (n) {
        r = median(q, n)
        n = 0; for (i in x) q[++n] = x[i]; mx = median(q, n)
        n = 0; for (i in y) q[++n] = y[i]; my = median(q, n)
        printf "%-32s %12.4g %12.4g %8.3f %s\n", name, mx, my, r, (r > 1.03 ? ">" : r < 0.97 ? "<" : "")
      }
      split("", x); split("", y)
    }
    BEGIN { printf "%-32s %12s %12s %8s\n", "figure", "A", "B", "B/A" }
    $3 != name { if (name != "") put(); name = $3 }
    $1 == "a" { x[$2] = $4 }
    $1 == "b" { y[$2] = $4 }
    END { put() }'
}

IFS=, read -ra programs <<<"$only"
for program in "${programs[@]}"; do build "$program"; done
for ((r = 1; r <= runs; r++)); do
  sides=(a b)
  if ((r % 2 == 0)); then sides=(b a); fi
  printf 'run %s of %s\n' "$r" "$runs" >&2
  for program in "${programs[@]}"; do
    for side in "${sides[@]}"; do run "$side" "$r" "$program"; done
  done
done
table
