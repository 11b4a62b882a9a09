#!/usr/bin/env bash
# Usage: scripts/dev bench-rpc [--mpi mpich|openmpi|all] [--rounds R] [--quick] [--installed]
#                             [rpc_bench's own arguments]
#        scripts/dev bench-rpc --idle [--mpi M]
#        scripts/dev bench-rpc --with-mercury PREFIX [options of bench-services]
#
# Compares remote procedure calls through Mercury's C interface with MPI's own messages and memcpy
# (benches/c/rpc_bench.c), with one client and one server on a node, without and with checksums.
# Runs the program R times for each, and prints the medians and the requirements. The exit code is
# 0 if all requirements are met. `cargo bench --bench rpc` measures the Rust interface.
#
#   --mpi M      one MPI, the default is all
#   --rounds R   number of runs, 3 by default
#   --quick      short measurements, for a first impression
#   --installed  use the library in target/MPI/prefix as it is
#   --with-mercury PREFIX  compare calls between separate processes with the Mercury 2.4 in PREFIX:
#                runs scripts/dev bench-services
#   --idle       measure what an idle server over TCP costs, without and with 10,000 connections:
#                at most 0.1 % and 1 % of a core, and 64 MiB
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

for word in "$@"; do
  if [[ $word == --with-mercury ]]; then exec "${BASH_SOURCE[0]%/*}/bench-services.sh" "$@"; fi
done

mpi=all mpis=() rounds=3 installed='' idle='' flags=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --rounds) needs_value "$@" && rounds=$2 && shift 2 ;;
    --installed) installed=1 && shift ;;
    --idle) idle=1 && shift ;;
    -h | --help) usage && exit ;;
    *) flags+=("$1") && shift ;;
  esac
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds wants a number"
choose_mpis "$mpi"

if [[ -n $idle ]]; then
  complete_mpi "${mpis[0]}"
  cd "$ROOT"
  exec cargo test --release -p portolan-tests --test services -- \
    --ignored --exact idle::measure_10_000_idle_connections --nocapture
fi

# Prints the launcher flags that bind each rank to its own core.
binding() {
  if (($(nproc) >= 2)); then
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
    function put() { if (n) { m[name] = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2; printf "%-16s %12.3f\n", name, m[name] } }
    function need(what, value, limit, least,  good) {
      good = least ? value >= limit : value <= limit
      printf "%-4s %s: %.2f, required %s %.4g\n", good ? "ok" : "FAIL", what, value, least ? "at least" : "at most", limit
      if (!good) short = 1
    }
    function has(a, b) { return a in m && b in m }
    function larger(a, b) { return a > b ? a : b }
    END {
      put()
      if (has("null_poll", "mpi_round_trip")) need("null call over MPI round trip", m["null_poll"] / m["mpi_round_trip"], 1.3, 0)
      if (has("null_wait", "null_poll")) need("null call, the server waits: us", m["null_wait"], larger(5, 4 * m["null_poll"]), 0)
      if (has("null_64", "mpi_64")) need("64 calls under way: million a second", m["null_64"], larger(1.2, m["mpi_64"] / 2), 1)
      if (has("in_4k", "mpi_4k")) need("input of 4 KiB over MPI", m["in_4k"] / m["mpi_4k"], 2, 0)
      if (has("in_4k", "fresh_4k")) need("input of 4 KiB over MPI, which sends what was just written", m["in_4k"] / m["fresh_4k"], 2, 0)
      if (has("in_64k", "mpi_64k")) need("input of 64 KiB over MPI", m["in_64k"] / m["mpi_64k"], 2, 0)
      if (has("in_64k", "fresh_64k")) need("input of 64 KiB over MPI, which sends what was just written", m["in_64k"] / m["fresh_64k"], 2, 0)
      if (has("in_1m", "fresh_1m")) need("input of 1 MiB over MPI, which sends what was just written", m["in_1m"] / m["fresh_1m"], 2, 0)
      if (has("pull_1m", "memcpy_1m")) need("pull of 1 MiB over memcpy", m["pull_1m"] / m["memcpy_1m"], 0.85, 1)
      if (has("pull_16m", "memcpy_16m")) need("pull of 16 MiB over memcpy", m["pull_16m"] / m["memcpy_16m"], 0.85, 1)
      if (has("pull_1024", "pull_1m")) need("1,024 segments over contiguous", m["pull_1024"] / m["pull_1m"], 0.5, 1)
      if (has("user_1m", "memcpy_1m")) need("1 MiB of memory of the program over memcpy", m["user_1m"] / m["memcpy_1m"], 0.85, 1)
      if (has("kernel_1m", "memcpy_1m")) printf "     the kernel alone reaches %.2f of memcpy at 1 MiB\n", m["kernel_1m"] / m["memcpy_1m"]
      if (has("user_16m", "memcpy_16m")) need("16 MiB of memory of the program over memcpy", m["user_16m"] / m["memcpy_16m"], 0.85, 1)
      if (has("user_1024", "user_1m")) need("1,024 segments of it over contiguous", m["user_1024"] / m["user_1m"], 0.5, 1)
      if (has("make_1m", "calloc_1m")) need("1 MiB of bulk memory made, written and freed over calloc", m["make_1m"] / m["calloc_1m"], 1.5, 0)
      if ("idle_percent" in m) need("idle server: percent of a core", m["idle_percent"], 0.5, 0)
      if ("idle_wake" in m) need("call to an idle server: us", m["idle_wake"], 100, 0)
      exit short
    }'
}

short=0
for m in "${mpis[@]}"; do
  complete_mpi "$m"
  if [[ -z $installed ]]; then "$ROOT/scripts/install.sh" --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  dir=$CARGO_TARGET_DIR/bench-rpc
  mkdir -p "$dir"
  "$MPICC" -std=c99 -O2 -Wall "-I$PREFIX/include" "$ROOT/benches/c/rpc_bench.c" -o "$dir/rpc_bench" \
    "-L$PREFIX/lib" -lmercury "-Wl,-rpath,$PREFIX/lib"
  read -ra bind <<<"$(binding)"
  if [[ $MPI == openmpi ]]; then bind+=(-x PORTOLAN_RPC_CHECKSUM); fi
  for checksum in none crc64; do
    export PORTOLAN_RPC_CHECKSUM=$checksum
    : >"$dir/$checksum.tsv"
    for ((round = 1; round <= rounds; round++)); do
      printf '%s, checksum %s, round %s of %s\n' "$MPI" "$checksum" "$round" "$rounds" >&2
      timeout -k 10 300 "${LAUNCH[@]}" "${bind[@]}" -n 2 "$dir/rpc_bench" "${flags[@]}" </dev/null >>"$dir/$checksum.tsv"
    done
    echo "$MPI, checksum $checksum: microseconds, million calls a second, GB/s"
    table "$dir/$checksum.tsv" || short=1
  done
done
exit "$short"
