#!/usr/bin/env bash
# Usage: scripts/dev bench-hosts [--mpi mpich|openmpi|all] [--rounds R] [--quick] [--installed]
#                               [--compute] [--json FILE] [hosts_bench's own arguments]
#
# Compares transfers between two hosts over TCP (namespaces of this machine, scripts/dev cluster)
# with MPI's own messages in the same run (benches/c/hosts_bench.c). Runs the program R times, and
# prints the medians and the requirements. Then multiplies matrices with Global Arrays on two
# hosts, with two and four ranks, and checks the product. The exit code is 0 if all requirements
# are met and the products are correct.
#
#   --mpi M      one MPI, the default is all
#   --rounds R   number of runs, 5 by default
#   --quick      short measurements, for a first impression
#   --installed  use the library in target/MPI/prefix as it is
#   --compute    instead, measure a rank that computes while another host reads and writes its
#                memory (benches/c/compute_bench.c explains its output lines), compared with a
#                program that serves requests in its own thread; R rounds, medians
#   --json FILE  also write medians, ratios and bounds to FILE, as one object per MPI
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all rounds=5 installed='' compute='' json='' flags=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --rounds) needs_value "$@" && rounds=$2 && shift 2 ;;
    --installed) installed=1 && shift ;;
    --compute) compute=1 && shift ;;
    --json) needs_value "$@" && json=$(realpath -m "$2") && shift 2 ;;
    -h | --help) usage && exit ;;
    *) flags+=("$1") && shift ;;
  esac
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds wants a number"
if [[ $mpi == all ]]; then mpis=("${ALL_MPIS[@]}"); else check_mpi "$mpi" && mpis=("$mpi"); fi
cd "$ROOT"
why=$(scripts/dev cluster check) || die "$why"
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do unset "$variable"; done

# Prints the medians over all rounds, and the requirements that can be computed from them. A ratio
# of two cases is the median of its ratios in each round, because load affects both cases. Also
# writes the results as JSON.
table() { # rows of round, case and value; MPI; file
  sort -t $'\t' -k 2,2 -k 3,3g "$1" | awk -F '\t' -v mpi="$2" -v json="$3" '
    $2 != name { put(); name = $2; n = 0 }
    { v[++n] = $3; of[$1, $2] = $3; rounds[$1] = 1 }
    function middle(v, n) { return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
    function unit(name) { return name ~ /_rate$/ ? "MiB/s" : name ~ /8(_both)?$/ ? "thousand/s" : "us" }
    function put() {
      if (!n) return
      m[name] = middle(v, n)
      printf "%-22s %12.2f %s\n", name, m[name], unit(name)
      medians = medians sprintf("%s\"%s\": %.3f", medians ? ", " : "", name, m[name])
    }
    function judge(what, value, limit, least,  good) {
      good = least ? value >= limit : value <= limit
      printf "%-4s %s: %.2f, required %s %s\n", good ? "ok" : "FAIL", what, value, least ? "at least" : "at most", limit
      ratios = ratios sprintf("%s{\"what\": \"%s\", \"value\": %.3f, \"%s\": %s, \"ok\": %s}", ratios ? ", " : "", what, value, least ? "at_least" : "at_most", limit, good ? "true" : "false")
      if (!good) short = 1
    }
    function need(what, a, b, limit, least,  r, i, j, x, n, v) {
      for (r in rounds) {
        if (!((r, a) in of) || !((r, b) in of)) continue
        x = of[r, a] / of[r, b]
        for (i = n++; i > 0 && v[i] > x; i--) v[i + 1] = v[i]
        v[i + 1] = x
      }
      if (n) judge(what, middle(v, n), limit, least)
    }
    END {
      put()
      need("8 B: put until it arrives over half a round trip of messages", "put_arrives", "pingpong", 1.2, 0)
      need("8 B: put and fence over half a round trip (a round trip is 2)", "put_fence", "pingpong", 2.4, 0)
      need("8 B: get over half a round trip (a round trip is 2)", "get", "pingpong", 2.2, 0)
      need("8 B: rate of puts over messages", "puts8", "sends8", 0.8, 1)
      need("8 B: rate of puts over messages, both directions", "puts8_both", "sends8_both", 0.8, 1)
      need("8 B: rate of gets, 64 under way, over answered messages", "gets8", "asks8", 0.8, 1)
      need("8 B: processor of the owner for a get over that for a received and answered message", "gets8_owner", "asks8_owner", 1.5, 0)
      need("1 MiB: puts over messages", "put_rate", "send_rate", 0.95, 1)
      need("1 MiB: gets over messages", "get_rate", "send_rate", 0.95, 1)
      need("1 MiB: puts over messages, both directions", "put_both_rate", "send_both_rate", 0.95, 1)
      need("1 MiB: gets over messages, both directions", "get_both_rate", "send_both_rate", 0.95, 1)
      need("1 MiB in rows: puts over messages", "put_rows_rate", "send_rows_rate", 0.95, 1)
      need("1 MiB in rows: gets over messages", "get_rows_rate", "send_rows_rate", 0.95, 1)
      if ("small_behind_bulk" in m) judge("8 B: get from a rank that moves bulk, ms", m["small_behind_bulk"] / 1000, 1, 0)
      if (json != "") printf "{\"mpi\": \"%s\", \"medians\": {%s}, \"ratios\": [%s]}\n", mpi, medians, ratios >>json
      exit short
    }'
}

short=0
if [[ -n $json ]]; then : >"$json"; fi
for m in "${mpis[@]}"; do
  complete_mpi "$m"
  if [[ -z $installed ]]; then scripts/install.sh --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  dir=$CARGO_TARGET_DIR/bench-hosts
  mkdir -p "$dir"
  if [[ -n $compute ]]; then
    "$MPICC" -std=gnu99 -O2 -Wall "-I$PREFIX/include" benches/c/compute_bench.c -o "$dir/compute_bench" \
      "-L$PREFIX/lib" -larmci -lpthread "-Wl,-rpath,$PREFIX/lib"
    echo "$MPI_NAME, two hosts, TCP: a rank that computes"
    for ((round = 1; round <= rounds; round++)); do
      timeout -k 10 300 ./mpirun.sh --mpi "$MPI_NAME" --per-host 1,1 "$dir/compute_bench" "${flags[@]}" </dev/null
    done | sort -t $'\t' -k 1,1 -k 2,2g | awk -F '\t' '
      function put() { if (n) printf "%-24s %10.4g\n", name, n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
      $1 != name { put(); name = $1; n = 0 }
      { v[++n] = $2 }
      END { put() }'
    continue
  fi
  "$MPICC" -std=c99 -O2 -Wall "-I$PREFIX/include" benches/c/hosts_bench.c -o "$dir/hosts_bench" \
    "-L$PREFIX/lib" -larmci "-Wl,-rpath,$PREFIX/lib"
  : >"$dir/raw.tsv"
  for ((round = 1; round <= rounds; round++)); do
    printf '%s round %s of %s\n' "$MPI_NAME" "$round" "$rounds" >&2
    timeout -k 10 300 ./mpirun.sh --mpi "$MPI_NAME" --per-host 1,1 "$dir/hosts_bench" "${flags[@]}" </dev/null |
      sed "s/^/$round\t/" >>"$dir/raw.tsv"
  done
  echo "$MPI_NAME, two hosts, TCP"
  table "$dir/raw.tsv" "$MPI_NAME" "$json" || short=1
  if [[ $MPI_NAME == "$MPI" ]]; then
    scripts/dev cluster run --hosts 2 -- scripts/dev programs --mpi "$MPI_NAME" --exact \
      'ga/ga_dgemm [n=2 hosts=1,1]' 'ga/ga_dgemm [n=4 hosts=2,2]' || short=1
  fi
done
exit "$short"
