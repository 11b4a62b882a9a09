#!/usr/bin/env bash
# Usage: scripts/dev compare-armci [--mpi mpich|openmpi|all] [--rounds R] [--ranks N]
#                                 [--only CASE,...] [--quick] [--installed] [--json FILE]
#
# Compares Portolan with Debian's ARMCI (libarmci-mpi-dev). Builds the programs of benches/c once
# for each MPI, links each object with both libraries, and runs the two programs in alternation, R
# times. Prints the medians and the requirements for Portolan. The exit code is 0 if all
# requirements are met and every run of Portolan succeeds.
#
#   --mpi M      one MPI, the default is all
#   --rounds R   number of runs of each program, 5 by default
#   --ranks N    2 by default; ranks are bound to cores if there are enough cores
#   --only C     only these cases of armci_bench and ga_bench (armci_bench --list), and idle
#   --quick      short measurements, for a first impression
#   --installed  use the library in target/MPI/prefix as it is
#   --json FILE  write the table as JSON to FILE
#
# All measured values are kept in target/MPI/compare/raw.tsv.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all rounds=5 ranks=2 only='' quick='' installed='' json=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --rounds) needs_value "$@" && rounds=$2 && shift 2 ;;
    --ranks) needs_value "$@" && ranks=$2 && shift 2 ;;
    --only) needs_value "$@" && only=$2 && shift 2 ;;
    --json) needs_value "$@" && json=$2 && shift 2 ;;
    --quick) quick=1 && shift ;;
    --installed) installed=1 && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds wants a number"
if ! [[ $ranks =~ ^[1-9][0-9]*$ ]] || ((ranks < 2)); then die "--ranks wants a number above 1"; fi
choose_mpis "$mpi"

RUN_LIMIT=600 # seconds for one program

# Compiles a program once and links it twice, as NAME.debian and NAME.ours.
link_both() { # name, then the libraries by Debian's names
  local name=$1 libs=("${@:2}")
  "$MPICC" -std=c99 -O2 -Wall -c "$ROOT/benches/c/$name.c" -o "$dir/$name.o"
  "$MPICC" "$dir/$name.o" -o "$dir/$name.debian" "${libs[@]}"
  # Our directory comes first: it contains libraries of the same names.
  "$MPICC" "$dir/$name.o" -o "$dir/$name.ours" "-L$PREFIX/lib" "-Wl,-rpath,$PREFIX/lib" "${libs[@]}"
  [[ $(ldd "$dir/$name.ours") == *libportolan* ]] || die "$name.ours is not linked with Portolan"
  [[ $(ldd "$dir/$name.debian") != *libportolan* ]] || die "$name.debian is linked with Portolan"
}

build() {
  local ga
  read -ra ga <<<"$("$GA_CONFIG" --ldflags) $("$GA_CONFIG" --libs) $("$GA_CONFIG" --flibs)"
  link_both armci_bench "-larmci-$MPI"
  link_both idle "-larmci-$MPI"
  link_both ga_bench "${ga[@]}"
}

# Prints the launcher flags that bind each rank to its own core.
binding() {
  if ((ranks <= $(nproc))); then
    if [[ $MPI == openmpi ]]; then echo "--bind-to core"; else echo "-bind-to core"; fi
  elif [[ $MPI == openmpi ]]; then
    echo "--bind-to none"
  fi
}

# Runs one program, and appends its results to raw.tsv as: MPI, side, round, case, value.
run() { # side, round, tag appended to the names of cases, program, arguments ...
  local side=$1 round=$2 tag=$3 name=$4 code=0 bind
  read -ra bind <<<"$(binding)"
  printf '%s round %s: %s, %s%s\n' "$MPI" "$round" "$name" "$side" "$tag" >&2
  timeout -k 10 "$RUN_LIMIT" "${LAUNCH[@]}" "${bind[@]}" -n "$ranks" "$dir/$name.$side" "${@:5}" \
    >"$dir/out" 2>"$dir/err" </dev/null || code=$?
  awk -F '\t' -v OFS='\t' -v m="$MPI" -v s="$side" -v r="$round" -v tag="$tag" \
    'NF == 2 && $2 ~ /^[0-9.e+-]+$/ { print m, s, r, $1 tag, $2 }' "$dir/out" >>"$dir/raw.tsv"
  if ((code != 0)); then
    echo "$MPI $side $name$tag round $round: exit code $code: $(grep -v '^ *$' "$dir/err" | head -n 1)" >>"$dir/failed"
    tail -n 5 "$dir/err" | sed 's/^/    /' >&2
  fi
}

compare() {
  local flags=() round order side
  if [[ -n $quick ]]; then flags+=(--quick); fi
  if [[ -n $only ]]; then flags+=(--only "$only"); fi
  for ((round = 1; round <= rounds; round++)); do
    order=(debian ours)
    if ((round % 2 == 0)); then order=(ours debian); fi
    for side in "${order[@]}"; do
      if [[ $side == debian ]]; then
        # Debian's ARMCI makes a window per segment, and MPICH supports only about 2,000 windows.
        run debian "$round" '' armci_bench "${flags[@]}" --skip get8_among_10000
      else
        run ours "$round" '' armci_bench "${flags[@]}"
      fi
    done
    for side in "${order[@]}"; do
      run "$side" "$round" '' ga_bench "${flags[@]}"
    done
    if [[ -z $only || ,$only, == *,busy,* ]]; then
      PORTOLAN_NODE_SIZE=1 PORTOLAN_PATH=message run ours "$round" _message armci_bench --only busy
    fi
    if [[ -z $only || ,$only, == *,idle,* ]]; then
      PORTOLAN_NODE_SIZE=1 run ours "$round" '' idle 5
    fi
  done
}

# Prints the requirements. The kinds:
#   faster        Debian's time divided by ours, at least the figure
#   of            our time divided by our time of another case, at most the figure
#   below, above  our value itself, compared with the figure
#   best          our time divided by Debian's best time on the compared MPIs, at most the figure
#   show          no requirement
# Columns: kind, case, other case, figure on MPICH, figure on Open MPI.
requirements() {
  cat <<'TABLE'
faster put8 - 20 3
faster get8 - 20 3
faster acc8 - 20 3
faster put8_fence - 20 3
faster fetch_add - 20 3
show nbput8_wait - - -
faster aggregate_put8 - - 5
show get8_among_1 - - -
faster get8_among_1000 - 50 50
of get8_among_1000 get8_among_1 1.5 1.5
of get8_among_10000 get8_among_1 1.5 1.5
of put_64K memcpy_put_64K 1.15 1.15
of get_64K memcpy_get_64K 1.15 1.15
of put_512K memcpy_put_512K 1.15 1.15
of get_512K memcpy_get_512K 1.15 1.15
of put_1M memcpy_put_1M 1.15 1.15
of get_1M memcpy_get_1M 1.15 1.15
of put_8M memcpy_put_8M 1.15 1.15
of get_8M memcpy_get_8M 1.15 1.15
of put_block64x64 loop_put_block64x64 1.25 1.25
of get_block64x64 loop_get_block64x64 1.25 1.25
of put_column1024 loop_put_column1024 1.25 1.25
of get_column1024 loop_get_column1024 1.25 1.25
of put_cube32 loop_put_cube32 1.25 1.25
of get_cube32 loop_get_cube32 1.25 1.25
of acc_4K loopO2_acc_4K 1.4 1.4
of acc_4K loopO3_acc_4K 1.4 1.4
of acc_1M loopO2_acc_1M 1.4 1.4
of acc_1M loopO3_acc_1M 1.4 1.4
of acc_int_4K loopO2_acc_int_4K - -
of acc_int_4K loopO3_acc_int_4K - -
faster lock_unlock - 15 15
faster fetch_add_contended - 1 1
above fetch_add_contended_share - 0.5 0.5
faster lock_contended - 1 1
above lock_contended_share - 0.5 0.5
faster alloc_free_64K - 1 1
show barrier - - -
show allreduce8 - - -
below busy_worst - 1000 1000
below busy_worst_message - 5000 5000
below idle_percent - 1 1
best ga_matmul - 0.8 0.8
show ga_matmul_compute - - -
best ga_200_arrays - 0.8 0.8
TABLE
}

# Prints the table of one MPI from the raw values of all MPIs, and writes JSON rows to a file.
table() { # files of raw values ...
  requirements | awk -v mpi="$MPI" -v json="$dir/rows.json" '
    function median(list,   v, n, i, j, t) {
      n = split(list, v, " ")
      if (!n) return ""
      for (i = 2; i <= n; i++)
        for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
      return n % 2 ? v[(n + 1) / 2] + 0 : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    function of_rounds(a, b,   r, list) {        # median of the ratios in each round
      for (r = 1; r <= last; r++)
        if (value[mpi, "ours", a, r] != "" && value[mpi, "ours", b, r] > 0)
          list = list " " value[mpi, "ours", a, r] / value[mpi, "ours", b, r]
      return median(list)
    }
    function show(x) {
      if (x == "") return "-"
      return sprintf(x >= 1000 ? "%.0f" : x >= 10 ? "%.1f" : "%.3f", x)
    }
    function quote(x) { return x == "" || x == "-" ? "null" : x ~ /^[0-9.e+-]+$/ ? x + 0 : "\"" x "\"" }
    FILENAME != "-" {
      n = split($0, f, "\t")
      if (n == 5) {
        values[f[1], f[2], f[4]] = values[f[1], f[2], f[4]] " " f[5]
        value[f[1], f[2], f[4], f[3]] = f[5]
        if (f[3] > last) last = f[3]
        mpis[f[1]]
      }
      next
    }
    FNR == 1 {
      printf "\n%s\n%-26s %11s %11s %9s  %-20s %10s %9s  %-12s %s\n", mpi, "case (microseconds)",
        "Debian", "ours", "Debian/", "beside", "its time", "ours/it", "required", ""
    }
    {
      kind = $1; name = $2; other = $3; figure = mpi == "mpich" ? $4 : $5
      debian = median(values[mpi, "debian", name]); ours = median(values[mpi, "ours", name])
      beside = other == "-" ? "" : median(values[mpi, "ours", other])
      if (debian == "" && ours == "") next
      label = other == "-" ? "" : other
      faster = debian != "" && ours > 0 ? debian / ours : ""
      ratio = ""; got = ""; sign = ""
      if (kind == "faster") { got = faster; sign = ">= " }
      if (kind == "of") { got = ratio = of_rounds(name, other); sign = "<= " }
      if (kind == "below") { got = ours; sign = "< " }
      if (kind == "above") { got = ours; sign = ">= " }
      if (kind == "best") {
        for (m in mpis) {
          d = median(values[m, "debian", name])
          if (d != "" && (beside == "" || d < beside)) { beside = d; label = "Debian on " m }
        }
        if (beside > 0 && ours != "") got = ratio = ours / beside
        sign = "<= "
      }
      required = figure == "-" || sign == "" ? "" : sign figure
      verdict = ""
      if (required != "") {
        if (got == "") verdict = "?"
        else if (sign == ">= ") verdict = got >= figure ? "ok" : "SHORT"
        else if (sign == "< ") verdict = got < figure ? "ok" : "SHORT"
        else verdict = got <= figure ? "ok" : "SHORT"
        count[verdict]++
      }
      printf "%-26s %11s %11s %9s  %-20s %10s %9s  %-12s %s\n", name, show(debian), show(ours), show(faster),
        label, show(beside), show(ratio), required, verdict
      printf "{\"mpi\":%s,\"case\":%s,\"debian\":%s,\"ours\":%s,\"debian_over_ours\":%s,\"beside\":%s,\"beside_value\":%s,\"ours_over_beside\":%s,\"required\":%s,\"verdict\":%s}\n",
        quote(mpi), quote(name), quote(debian), quote(ours), quote(faster), quote(label), quote(beside), quote(ratio),
        quote(required), quote(verdict) >json
    }
    END {
      printf "%s: %d ok, %d SHORT, %d not measured\n", mpi, count["ok"], count["SHORT"], count["?"]
      exit count["SHORT"] > 0
    }' "$@" -
}

cd "$ROOT"
files=() short=0
for m in "${mpis[@]}"; do
  complete_mpi "$m"
  ls /usr/lib/*/"libarmci-$MPI.a" >/dev/null 2>&1 || die "no libarmci-$MPI.a: install libarmci-mpi-dev and libglobalarrays-dev"
  if [[ -z $installed ]]; then scripts/install.sh --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  dir=$CARGO_TARGET_DIR/compare
  mkdir -p "$dir"
  : >"$dir/raw.tsv"
  : >"$dir/failed"
  : >"$dir/rows.json"
  build
  compare
  files+=("$dir/raw.tsv")
done
for m in "${mpis[@]}"; do
  complete_mpi "$m"
  dir=$CARGO_TARGET_DIR/compare
  table "${files[@]}" || short=1
  if [[ -s $dir/failed ]]; then
    echo "runs that failed:"
    sed 's/^/  /' "$dir/failed"
    if grep -q " ours " "$dir/failed"; then short=1; fi
  fi
done
if [[ -n $json ]]; then
  for m in "${mpis[@]}"; do cat "target/$m/compare/rows.json"; done |
    awk 'BEGIN { print "[" } { printf "%s  %s", sep, $0; sep = ",\n" } END { print "\n]" }' >"$json"
fi
exit "$short"
