#!/usr/bin/env bash
# Usage: scripts/bench-hosts.sh [--mpi mpich|openmpi|all] [--rounds R] [--quick] [--installed]
#                               [hosts_bench's own arguments]
#
# Measures transfers between two hosts over TCP (namespaces of this machine,
# scripts/cluster.sh) beside MPI's own messages in the same run (benches/c/hosts_bench.c):
# runs it R times, prints the medians, and what is required of them. Then multiplies
# matrices by Global Arrays on two hosts, two and four ranks, with a check of the product.
# The exit code is 0 when no requirement falls short and the products are right.
#
#   --mpi M      one MPI, the default is all
#   --rounds R   how often the program runs, 5 by default
#   --quick      short measurements, for a first look
#   --installed  take the library in target/MPI/prefix as it is
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

mpi=all rounds=5 installed='' flags=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --rounds) needs_value "$@" && rounds=$2 && shift 2 ;;
    --installed) installed=1 && shift ;;
    -h | --help) usage && exit ;;
    *) flags+=("$1") && shift ;;
  esac
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds wants a number"
if [[ $mpi == all ]]; then mpis=("${ALL_MPIS[@]}"); else check_mpi "$mpi" && mpis=("$mpi"); fi
cd "$ROOT"
why=$(scripts/cluster.sh check) || die "$why"
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do unset "$variable"; done

# Medians of all rounds, and the requirements that can be computed from them.
table() {
  sort -k 1,1 -k 2,2g "$1" | awk -F '\t' '
    $1 != name { put(); name = $1; n = 0 }
    { v[++n] = $2 }
    function put() { if (n) { m[name] = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2; printf "%-22s %12.2f %s\n", name, m[name], name ~ /_rate$/ ? "MiB/s" : "us" } }
    function need(what, a, b, limit, least,  value, good) {
      if (!(a in m) || !(b in m)) return
      value = m[a] / m[b]
      good = least ? value >= limit : value <= limit
      printf "%-4s %s: %.2f, required %s %s\n", good ? "ok" : "FAIL", what, value, least ? "at least" : "at most", limit
      if (!good) short = 1
    }
    END {
      put()
      need("8 B: put until it arrives over half a round trip of messages", "put_arrives", "pingpong", 1.5, 0)
      need("8 B: put and fence over half a round trip (a round trip is 2)", "put_fence", "pingpong", 3, 0)
      need("8 B: get over half a round trip (a round trip is 2)", "get", "pingpong", 3, 0)
      need("1 MiB: puts over messages", "put_rate", "send_rate", 0.8, 1)
      need("1 MiB: gets over messages", "get_rate", "send_rate", 0.8, 1)
      exit short
    }'
}

short=0
for m in "${mpis[@]}"; do
  complete_mpi "$m"
  if [[ -z $installed ]]; then scripts/install.sh --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  dir=$CARGO_TARGET_DIR/bench-hosts
  mkdir -p "$dir"
  "$MPICC" -std=c99 -O2 -Wall "-I$PREFIX/include" benches/c/hosts_bench.c -o "$dir/hosts_bench" \
    "-L$PREFIX/lib" -larmci "-Wl,-rpath,$PREFIX/lib"
  : >"$dir/raw.tsv"
  for ((round = 1; round <= rounds; round++)); do
    printf '%s round %s of %s\n' "$MPI_NAME" "$round" "$rounds" >&2
    timeout -k 10 300 ./mpirun.sh --mpi "$MPI_NAME" --per-host 1,1 "$dir/hosts_bench" "${flags[@]}" </dev/null >>"$dir/raw.tsv"
  done
  echo "$MPI_NAME, two hosts, TCP"
  table "$dir/raw.tsv" || short=1
  if [[ $MPI_NAME == "$MPI" ]]; then
    scripts/cluster.sh run --hosts 2 -- scripts/test-programs.sh --mpi "$MPI_NAME" --exact \
      'ga/ga_dgemm [n=2 hosts=1,1]' 'ga/ga_dgemm [n=4 hosts=2,2]' || short=1
  fi
done
exit "$short"
