#!/usr/bin/env bash
# Usage: scripts/dev bench-array [--mpi mpich|openmpi|all] [--rounds R] [--installed] [--blas]
#
# Compares distributed arrays in Rust with Global Arrays' NGA calls from C on the same library:
# patches, lists, creation, ghost cells, matrix products. Runs both programs (benches/array.rs,
# benches/c/ga_array.c) and the examples ga_matmul, halo_compose, heat and jacobi in alternation,
# R times, with 2 ranks. Prints the medians, their ratios, and the requirements. The matrix product
# with tiles from counters is compared with ga_matmul at its best block size. The exit code is 0 if
# all requirements are met.
#
#   --mpi M      one MPI, the default is all
#   --rounds R   number of runs of each program, 5 by default
#   --installed  use the library in target/MPI/prefix and the programs as they are
#   --blas       multiply matrices with the system's CBLAS, as GA does
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all mpis=() rounds=5 installed='' features=portolan/array
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --rounds) needs_value "$@" && rounds=$2 && shift 2 ;;
    --installed) installed=1 && shift ;;
    --blas) features=portolan/blas && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds wants a number"
choose_mpis "$mpi"

build() {
  "$ROOT/scripts/install.sh" --mpi "$MPI_NAME" --prefix "$PREFIX" >&2
  local flags cargo=(cargo build --release --features "$features")
  read -ra flags <<<"$("$GA_CONFIG" --cppflags)"
  local libs
  read -ra libs <<<"-L$PREFIX/lib -Wl,-rpath,$PREFIX/lib $("$GA_CONFIG" --ldflags --libs --flibs | xargs) -lm"
  local source
  for source in benches/c/ga_array examples/c/ga_matmul; do
    "$MPICC" -std=gnu99 -O2 -Wall "${flags[@]}" "$ROOT/$source.c" -o "$dir/${source##*/}" "${libs[@]}"
  done
  (cd "$ROOT" && "${cargo[@]}" --bench array --example halo_compose --example heat --example jacobi)
  local bench
  bench=$(cd "$ROOT" && "${cargo[@]}" --bench array --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"array".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
  cp "$bench" "$dir/array"
  cp "$CARGO_TARGET_DIR"/release/examples/{halo_compose,heat,jacobi} "$dir/"
}

run() { # label, program and its arguments; prints each output line as "label, tab, line"
  local who=$1
  shift
  timeout -k 10 120 "${LAUNCH[@]}" "${bind[@]}" -n 2 "$@" </dev/null | sed "s/^/$who\t/"
}

# Prints "name, tab, label, tab, value" for the results of the examples.
examples() {
  local block
  for block in 32 64 128 256; do run ga "$dir/ga_matmul" 1024 "$block" 3; done |
    sed -nE 's/.*\trun [23]: ([0-9.]+) s.*/\1/p' | sort -g | sed -n '1s/.*/&e9/p' |
    awk '{ print "product 1024 dynamic\tga\t" $1 + 0 }'
  run halo "$dir/halo_compose" 64 2000 | sed -nE 's/.* steps, ([0-9.]+)(µ?m?s) each/\1 \2/p' |
    awk '{ print "ghosts 64\thalo\t" $1 * ($2 == "ms" ? 1e6 : 1e3) }'
  run heat "$dir/heat" 1024 300 | sed -nE 's/.* ([0-9.]+) million cells.*/step 1024\theat\t\1/p'
  run jacobi "$dir/jacobi" 1024 16 300 | sed -nE 's/.*2 dim.* ([0-9.]+) million cells.*/step 1024\tarray\t\1/p'
}

table() {
  sort -t "$(printf '\t')" -k 1,1 -k 2,2 -k 3,3g "$1" | awk -F '\t' '
    { key = $1 FS $2; v[key, ++n[key]] = $3; if (!($1 in seen)) { seen[$1] = 1; order[++names] = $1 } }
    function median(name, who,  k, m) {
      k = name FS who; m = n[k]
      return m ? (m % 2 ? v[k, (m + 1) / 2] : (v[k, m / 2] + v[k, m / 2 + 1]) / 2) : 0
    }
    function need(what, value, limit, least,  good) {
      good = value > 0 && (least ? value >= limit : value <= limit)
      printf "%-4s %-24s %7.2f, required at %s %s\n", good ? "ok" : "FAIL", what, value, least ? "least" : "most", limit
      if (!good) short = 1
    }
    END {
      for (i = 1; i <= names; i++) {
        name = order[i]; a = median(name, "array"); g = median(name, "ga")
        printf "%-22s %14.1f %14.1f %8s\n", name, a, g, g ? sprintf("%.2f", a / g) : ""
      }
      for (i = 1; i <= names; i++) {
        name = order[i]; a = median(name, "array"); g = median(name, "ga")
        if (!g || !a) continue
        if (name ~ /^(put|get|acc|gather|scatter)/) need(name, a / g, 1.0)
        if (name ~ /^create/) need(name, a / g, 0.5)
        if (name ~ /^product/) need(name, a / g, name ~ /dynamic/ ? 1.0 : 1.05)
        if (name ~ /^ghosts/) need(name " over GA", a / g, 0.5)
      }
      need("ghosts over halo_compose", median("ghosts 64", "array") / median("ghosts 64", "halo"), 1.15)
      need("jacobi over heat", median("step 1024", "array") / median("step 1024", "heat"), 0.9, 1)
      exit short
    }'
}

short=0
for m in "${mpis[@]}"; do
  complete_mpi "$m"
  has_ga || die "there are no Global Arrays for $MPI_NAME here"
  dir=$CARGO_TARGET_DIR/bench-array
  mkdir -p "$dir"
  if [[ -z $installed ]]; then build; fi
  bind=(-bind-to core)
  if [[ $MPI == openmpi ]]; then bind=(--bind-to core); fi
  : >"$dir/raw.tsv"
  for ((round = 1; round <= rounds; round++)); do
    printf '%s round %s of %s\n' "$MPI" "$round" "$rounds" >&2
    {
      run array "$dir/array"
      run ga "$dir/ga_array"
    } | awk -F '\t' 'BEGIN { OFS = FS } NF == 3 { print $2, $1, $3 }' >>"$dir/raw.tsv"
    examples >>"$dir/raw.tsv"
  done
  echo "$MPI, 2 ranks: array and GA, nanoseconds (step: million cells a second)"
  table "$dir/raw.tsv" || short=1
done
exit $short
