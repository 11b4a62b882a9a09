#!/usr/bin/env bash
# Usage: scripts/dev bench-services [--mpi M] [--with-mercury PREFIX] [--rounds R] [--quick]
#                                  [--installed] [NETWORK ...]
#
# Measures calls between a server and a client that are started separately
# (benches/c/services_bench.c), over the networks na+sm and tcp, or those given. Prints the median
# of each case over R rounds. `scripts/dev bench-rpc --with-mercury PREFIX` does the same.
#
#   --mpi M                the MPI of the library, the default is the first one; it is not used
#   --with-mercury PREFIX  also the Mercury 2.4 that is installed in PREFIX, in alternation, na+sm
#                          compared with na+sm and tcp with ofi+tcp; prints the ratios and the
#                          requirements, and the exit code is 0 if all of them are met
#   --rounds R             number of rounds, 3 by default
#   --quick                short measurements, for a first impression
#   --installed            use the library in target/MPI/prefix as it is
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=$(default_mpi) other='' rounds=3 quick=() installed='' networks=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --with-mercury) needs_value "$@" && other=$2 && shift 2 ;;
    --rounds) needs_value "$@" && rounds=$2 && shift 2 ;;
    --quick) quick=(--quick) && shift ;;
    --installed) installed=1 && shift ;;
    -h | --help) usage && exit ;;
    -*) die "unknown option '$1', see --help" ;;
    *) networks+=("$1") && shift ;;
  esac
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds wants a number"
((${#networks[@]})) || networks=(na+sm tcp)
complete_mpi "$mpi"
if [[ -z $installed ]]; then "$ROOT/scripts/install.sh" --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi

dir=$CARGO_TARGET_DIR/bench-services
mkdir -p "$dir"
build() { # program, flags of the library
  cc -std=c99 -O2 -Wall -Werror "$ROOT/benches/c/services_bench.c" -o "$dir/$1" "${@:2}"
}
build portolan "-I$PREFIX/include/mercury2" "-L$PREFIX/lib" -lmercury2 "-Wl,-rpath,$PREFIX/lib"
programs=(portolan)
if [[ -n $other ]]; then
  flags=$(PKG_CONFIG_PATH=$other/lib/pkgconfig:$other/lib64/pkgconfig pkg-config --cflags --libs mercury) ||
    die "there is no mercury.pc below $other"
  read -ra flags <<<"$flags"
  build mercury "${flags[@]}" "-Wl,-rpath,$other/lib:$other/lib64"
  programs+=(mercury)
fi

server=''
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true' EXIT
# Measures a program over a network, and appends the cases to a file.
measure() { # program, network, file
  local address=$dir/address
  rm -f "$address"
  timeout 600 "$dir/$1" serve "$2" "$address" &
  server=$!
  for ((i = 0; i < 500; i++)); do
    [[ ! -e $address ]] || break
    if ! kill -0 "$server" 2>/dev/null; then
      echo "$1 does not work over $2 here" >&2
      server=''
      return
    fi
    sleep 0.01
  done
  timeout 300 "$dir/$1" call "$address" "${quick[@]}" >>"$3"
  wait "$server" || true
  server=''
}

# Prints the medians of each program, and the requirements.
table() { # network, files
  awk -F '\t' -v network="$1" '
    FNR == 1 { program = FILENAME; sub(/.*\//, "", program); sub(/\..*/, "", program) }
    { key = program SUBSEP $1; v[key, ++n[key]] = $2; if (!($1 in seen)) { seen[$1] = 1; order[++cases] = $1 } }
    function median(key,  i, j, t, a) {
      for (i = 1; i <= n[key]; i++) a[i] = v[key, i] + 0
      for (i = 2; i <= n[key]; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
      return a[int((n[key] + 1) / 2)]
    }
    function need(name, value, limit, least,  good) {
      good = least ? value >= limit : value <= limit
      printf "%-4s %s %s: %.2f, required %s %.4g\n", good ? "ok" : "FAIL", network, name, value, least ? "at least" : "at most", limit
      if (!good) short = 1
    }
    END {
      for (c = 1; c <= cases; c++) {
        name = order[c]; ours = "portolan" SUBSEP name; theirs = "mercury" SUBSEP name
        if (ours in n) m[name] = median(ours)
        if (theirs in n) r[name] = median(theirs)
        line = sprintf("%-10s %10.3f", name, m[name])
        if (name in r) line = line sprintf(" %10.3f  %.2f", r[name], m[name] / r[name])
        print line
      }
      if ("null_wait" in r) need("null call over Mercury", m["null_wait"] / r["null_wait"], 0.25, 0)
      if ("null_32" in r) need("calls per second over Mercury", m["null_32"] / r["null_32"], 4, 1)
      if ("pull_1m" in r && network == "na+sm") need("pull of 1 MiB over Mercury", m["pull_1m"] / r["pull_1m"], 2, 1)
      if ("socket_1m" in m && "pull_1m" in m) need("pull of 1 MiB over a plain socket", m["pull_1m"] / m["socket_1m"], 0.9, 1)
      exit short
    }' "${@:2}"
}

short=0
for network in "${networks[@]}"; do
  files=()
  for program in "${programs[@]}"; do
    file=$dir/$program.tsv
    : >"$file"
    files+=("$file")
  done
  for ((round = 1; round <= rounds; round++)); do
    printf '%s, round %s of %s\n' "$network" "$round" "$rounds" >&2
    for program in "${programs[@]}"; do
      name=$network
      # Mercury 2.4 has TCP through libfabric only.
      if [[ $program == mercury && $network == tcp ]]; then name=ofi+tcp; fi
      measure "$program" "$name" "$dir/$program.tsv"
    done
    if [[ $network != na+sm ]]; then "$dir/portolan" socket "${quick[@]}" >>"$dir/portolan.tsv"; fi
  done
  echo "$network: microseconds, million calls a second, GiB/s; Portolan${other:+, Mercury, ratio}"
  table "$network" "${files[@]}" || short=1
done
exit "$short"
