#!/usr/bin/env bash
# Usage: scripts/dev bench-paths [--mpi mpich|openmpi|all] [--rounds R] [--quick] [--operations]
#                               [--installed]
#
# Checks that PORTOLAN_PATH=auto chooses well between nodes. Runs two programs with the
# communication of Global Arrays (benches/c/paths_bench.c: products of dense matrices by patches,
# and of a sparse one) between virtual nodes of one rank: through windows, through messages, and as
# auto chooses, R times in alternation. Prints the minimum time of each, the choice of auto, and the
# verdict: auto may take 10 % longer than the better of the two paths. The exit code is 0 if it
# never takes longer than that.
#
#   --mpi M       one MPI, the default is all
#   --rounds R    number of runs of each, 5 by default
#   --quick       smaller programs, for a first impression
#   --operations  also single operations of each class, without a verdict
#   --installed   use the library in target/MPI/prefix as it is
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all rounds=5 installed='' flags=() only=(--only 'mult,sparse')
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --rounds) needs_value "$@" && rounds=$2 && shift 2 ;;
    --quick) flags+=(--quick) && shift ;;
    --operations) only=() && shift ;;
    --installed) installed=1 && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds wants a number"
choose_mpis "$mpi"
cd "$ROOT"
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do
  if [[ $variable != PORTOLAN_MPIRUN_FLAGS ]]; then unset "$variable"; fi
done

build() {
  local ga
  read -ra ga <<<"$("$GA_CONFIG" --cflags) $("$GA_CONFIG" --ldflags) $("$GA_CONFIG" --libs) $("$GA_CONFIG" --flibs)"
  # Our directory comes first: it contains libraries of the same names.
  "$MPICC" -std=c99 -O2 -Wall benches/c/paths_bench.c -o "$dir/paths_bench" "-L$PREFIX/lib" "-Wl,-rpath,$PREFIX/lib" "${ga[@]}"
  [[ $(ldd "$dir/paths_bench") == *libportolan* ]] || die "paths_bench is not linked with Portolan"
}

table() {
  sort -k 2,2 -k 1,1 -k 3,3g "$1" | awk -F '\t' '
    !(($2, $1) in least) { least[$2, $1] = $3; if (!($2 in seen)) { seen[$2] = 1; order[++n] = $2 } }
    END {
      printf "%-14s %12s %12s %12s %10s\n", "us", "windows", "messages", "auto", "auto/best"
      for (k = 1; k <= n; k++) {
        c = order[k]; r = least[c, "rma"]; m = least[c, "message"]; a = least[c, "auto"]
        best = r < m ? r : m
        verdict = ""
        if (c == "mult" || c == "sparse") {
          verdict = a <= 1.1 * best ? "  ok" : "  FAIL, at most 1.10"
          if (a > 1.1 * best) short = 1
        }
        printf "%-14s %12.2f %12.2f %12.2f %10.2f%s\n", c, r, m, a, a / best, verdict
      }
      exit short
    }'
}

short=0
for m in "${mpis[@]}"; do
  use_mpi "$m"
  if [[ -z $installed ]]; then scripts/install.sh --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  dir=$CARGO_TARGET_DIR/bench-paths
  mkdir -p "$dir"
  build
  : >"$dir/raw.tsv"
  for ((round = 1; round <= rounds; round++)); do
    printf '%s round %s of %s\n' "$MPI_NAME" "$round" "$rounds" >&2
    for path in rma message auto; do
      PORTOLAN_PATH=$path timeout -k 10 300 ./mpirun.sh --mpi "$MPI_NAME" -n 2 --node-size 1 "$dir/paths_bench" \
        "${only[@]}" "${flags[@]}" </dev/null | sed "s/^/$path\t/" >>"$dir/raw.tsv"
    done
  done
  echo "$MPI_NAME, two virtual nodes of one rank"
  ./mpirun.sh --mpi "$MPI_NAME" -n 2 --node-size 1 "$PREFIX/bin/portolan-info" | sed -n '/^path between\|^  measured between/p'
  table "$dir/raw.tsv" || short=1
done
exit "$short"
