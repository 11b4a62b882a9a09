#!/usr/bin/env bash
# Usage: scripts/dev bench-compose [--mpi mpich|openmpi|all] [--rounds R] [--ranks N]
#                                 [--quick] [--installed] [cp_bench's own arguments]
#
# Compares compose/perform with the same exchange through ARMCI puts, through MPI derived datatypes
# with Isend and Irecv, and through MPI_Neighbor_alltoallw (benches/c/cp_bench.c). Runs the program
# R times, and prints the medians and the requirements for one node. The exit code is 0 if all
# requirements are met.
#
#   --mpi M      one MPI, the default is all
#   --rounds R   number of runs, 5 by default
#   --ranks N    2 by default; ranks are bound to cores if there are enough cores
#   --quick      short measurements, for a first impression
#   --installed  use the library in target/MPI/prefix as it is
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all mpis=() rounds=5 ranks=2 installed='' flags=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --rounds) needs_value "$@" && rounds=$2 && shift 2 ;;
    --ranks) needs_value "$@" && ranks=$2 && shift 2 ;;
    --installed) installed=1 && shift ;;
    -h | --help) usage && exit ;;
    *) flags+=("$1") && shift ;;
  esac
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds wants a number"
[[ $ranks =~ ^[1-9][0-9]*$ ]] || die "--ranks wants a number"
choose_mpis "$mpi"

# Prints the launcher flags that bind each rank to its own core.
binding() {
  if ((ranks <= $(nproc))); then
    if [[ $MPI == openmpi ]]; then echo "--bind-to core"; else echo "-bind-to core"; fi
  elif [[ $MPI == openmpi ]]; then
    echo "--bind-to none"
  fi
}

# Prints the medians over all rounds, and the requirements that can be computed from them.
table() {
  sort -k 1,1 -k 2,2g "$1" | awk -F '\t' '
    $1 != name { put(); name = $1; n = 0 }
    { v[++n] = $2 }
    function put() { if (n) { m[name] = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2; printf "%-22s %12.2f\n", name, m[name] } }
    function need(what, value, limit, least,  good) {
      good = least ? value >= limit : value <= limit
      printf "%-4s %s: %.2f, required %s %s\n", good ? "ok" : "FAIL", what, value, least ? "at least" : "at most", limit
      if (!good) short = 1
    }
    END {
      put()
      if ("halo_cp" in m && "halo_isend" in m) need("halo: Isend over compose", m["halo_isend"] / m["halo_cp"], 2, 1)
      if ("halo_cp" in m && "halo_alltoallw" in m) need("halo: Neighbor_alltoallw over compose", m["halo_alltoallw"] / m["halo_cp"], 2, 1)
      if ("halo_cp_perform" in m && "halo_puts_calls" in m) need("halo: PutS calls over perform", m["halo_puts_calls"] / m["halo_cp_perform"], 1, 1)
      if ("blocks26_cp" in m && "blocks26_copies" in m) need("26 blocks: ns beyond the copies", m["blocks26_cp"] - m["blocks26_copies"], 300, 0)
      if ("map_million" in m) need("map a million pairs: seconds", m["map_million"] / 1e6, 1, 0)
      if ("map_million_kib" in m) need("map a million pairs: KiB", m["map_million_kib"], 131072, 0)
      exit short
    }'
}

short=0
for m in "${mpis[@]}"; do
  complete_mpi "$m"
  if [[ -z $installed ]]; then "$ROOT/scripts/install.sh" --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  dir=$CARGO_TARGET_DIR/bench-compose
  mkdir -p "$dir"
  "$MPICC" -std=c99 -O2 -Wall "-I$PREFIX/include" "$ROOT/benches/c/cp_bench.c" -o "$dir/cp_bench" \
    "-L$PREFIX/lib" -lcompose "-Wl,-rpath,$PREFIX/lib"
  : >"$dir/raw.tsv"
  read -ra bind <<<"$(binding)"
  for ((round = 1; round <= rounds; round++)); do
    printf '%s round %s of %s\n' "$MPI" "$round" "$rounds" >&2
    timeout -k 10 300 "${LAUNCH[@]}" "${bind[@]}" -n "$ranks" "$dir/cp_bench" "${flags[@]}" </dev/null >>"$dir/raw.tsv"
  done
  echo "$MPI, $ranks ranks, microseconds (blocks26: nanoseconds)"
  table "$dir/raw.tsv" || short=1
done
exit "$short"
