#!/usr/bin/env bash
# Usage: scripts/dev bench-scale [--mpi mpich|openmpi|all] [--ranks N,...] [--nodes K,...]
#                               [--more] [--quick] [--installed] [scale_bench's own arguments]
#
# Measures how costs grow with the number of ranks (benches/c/scale_bench.c), on one node and on
# virtual nodes, compared with MPI's own collectives in the same run. Prints a table with the bound
# of each figure that has one. Writes to target/scale/: all values (raw.tsv), the same values as
# JSON (scale.json), tables for docs/scale-measured.md (tables.md), and the plot of the growth
# (scale-measured.svg). The exit code is 0 if no figure exceeds its bound.
#
#   --mpi M      one MPI, the default is all
#   --ranks N    numbers of ranks, 2,4,16,64 by default; 128 and 256 take minutes
#   --nodes K    ranks per node: 0 is one node for all; the default is 0,4
#   --more       keep the values of earlier calls; values that are measured again replace them
#   --quick      short measurements, for a first impression
#   --installed  use the library in target/MPI/prefix as it is
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all mpis=() ranks=2,4,16,64 nodes=0,4 more='' installed='' flags=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --ranks) needs_value "$@" && ranks=$2 && shift 2 ;;
    --nodes) needs_value "$@" && nodes=$2 && shift 2 ;;
    --more) more=1 && shift ;;
    --installed) installed=1 && shift ;;
    -h | --help) usage && exit ;;
    *) flags+=("$1") && shift ;;
  esac
done
[[ $ranks,$nodes =~ ^[0-9]+(,[0-9]+)*$ ]] || die "--ranks and --nodes want numbers"
choose_mpis "$mpi"
cd "$ROOT"
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do
  if [[ $variable != PORTOLAN_MPIRUN_FLAGS ]]; then unset "$variable"; fi
done

out=$ROOT/target/scale
mkdir -p "$out"
if [[ -z $more ]]; then : >"$out/raw.tsv"; fi

for m in "${mpis[@]}"; do
  complete_mpi "$m"
  if [[ -z $installed ]]; then scripts/install.sh --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  dir=$CARGO_TARGET_DIR/bench-scale
  mkdir -p "$dir"
  "$MPICC" -std=c99 -O2 -Wall "-I$PREFIX/include" benches/c/scale_bench.c -o "$dir/scale_bench" \
    "-L$PREFIX/lib" -larmci "-Wl,-rpath,$PREFIX/lib"
  pass=()
  if [[ $MPI == openmpi ]]; then pass=(--bind-to none -x PORTOLAN_NODE_SIZE); fi
  for k in ${nodes//,/ }; do
    for n in ${ranks//,/ }; do
      printf '%s, %s ranks, nodes of %s\n' "$MPI_NAME" "$n" "${k/#0/all}" >&2
      PORTOLAN_NODE_SIZE=$k timeout -k 10 900 "${LAUNCH[@]}" "${pass[@]}" -n "$n" \
        "$dir/scale_bench" "${flags[@]}" </dev/null |
        awk -F '\t' -v OFS='\t' -v m="$MPI_NAME" -v k="$k" -v n="$n" \
          'NF == 2 && $2 ~ /^[0-9.e+-]+$/ { print m, k, n, $1, $2 }' >>"$out/raw.tsv"
    done
  done
done
python3 scripts/dev.d/lib/scale.py "$out/raw.tsv" --json "$out/scale.json" --markdown "$out/tables.md" \
  --svg "$out/scale-measured.svg"
