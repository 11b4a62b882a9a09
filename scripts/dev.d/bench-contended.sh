#!/usr/bin/env bash
# Usage: scripts/dev bench-contended [--mpi mpich|openmpi|all] [--runs R] [--ranks N,...]
#                                   [--loops L,...] [--bind yes|no|both] [--seconds S]
#                                   [--only CASE,...] [--installed]
#
# Measures operations in which ranks wait for each other while other work competes for the cores
# (benches/c/contended_bench.c). If Global Arrays are installed, it also measures two programs on
# them, a matrix product and the build of a Fock matrix (benches/c/ga_bench.c). Starts L busy loops
# on each core, runs Portolan, Debian's ARMCI and plain MPI in alternation R times, and prints the
# medians in microseconds and the ratio of Portolan's to the smallest of the others.
#
#   --mpi M      one MPI, the default is all
#   --runs R     number of runs of each program, 7 by default
#   --ranks N    numbers of ranks, 2,4,8 by default
#   --loops L    numbers of busy loops per core, 0,1,2 by default
#   --bind B     whether ranks are bound to cores, both by default; more ranks than cores are not bound
#   --seconds S  duration of each case, 0.3 by default
#   --only C     only these cases
#   --installed  use the library in target/MPI/prefix as it is
#
# A case without an equivalent is compared with the closest operation: `notify`, `message` and
# `null_call` with the round trip of messages. `futex` is the limit: two processes that wake each
# other.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all mpis=() runs=7 ranks=2,4,8 loops=0,1,2 bind=both seconds=0.3 only='' installed=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --runs) needs_value "$@" && runs=$2 && shift 2 ;;
    --ranks) needs_value "$@" && ranks=$2 && shift 2 ;;
    --loops) needs_value "$@" && loops=$2 && shift 2 ;;
    --bind) needs_value "$@" && bind=$2 && shift 2 ;;
    --seconds) needs_value "$@" && seconds=$2 && shift 2 ;;
    --only) needs_value "$@" && only=$2 && shift 2 ;;
    --installed) installed=1 && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ $runs =~ ^[1-9][0-9]*$ ]] || die "--runs wants a number"
case $bind in
  yes | no) binds=("$bind") ;;
  both) binds=(yes no) ;;
  *) die "--bind wants yes, no or both" ;;
esac
choose_mpis "$mpi"

RUN_LIMIT=300 # seconds for one program
busy=()

stop_loops() {
  if ((${#busy[@]})); then kill "${busy[@]}" 2>/dev/null || true; fi
  busy=()
}
trap stop_loops EXIT

# Starts so many busy loops on each core that this process may use. They end by themselves if this
# script is killed.
start_loops() { # loops per core
  local core n
  for core in $(taskset -cp $$ | sed 's/.*: //' | awk -v RS=, -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }'); do
    for ((n = 0; n < $1; n++)); do
      taskset -c "$core" timeout 3600 bash -c 'while :; do :; done' &
      busy+=($!)
    done
  done
}

build() {
  local source=$ROOT/benches/c/contended_bench.c flags=(-std=c99 -O2 -Wall)
  "$MPICC" "${flags[@]}" "-I$PREFIX/include" "$source" -o "$dir/ours" "-L$PREFIX/lib" \
    "-Wl,-rpath,$PREFIX/lib" -larmci -llapi_r -lmercury -lpthread
  "$MPICC" "${flags[@]}" -DPEER=1 "$source" -o "$dir/debian" "-larmci-$MPI"
  "$MPICC" "${flags[@]}" -DPEER=2 "$source" -o "$dir/mpi"
  has_ga || return 0
  local ga
  read -ra ga <<<"$("$GA_CONFIG" --ldflags) $("$GA_CONFIG" --libs) $("$GA_CONFIG" --flibs)"
  "$MPICC" "${flags[@]}" -c "$ROOT/benches/c/ga_bench.c" -o "$dir/ga.o"
  "$MPICC" "$dir/ga.o" -o "$dir/ga-debian" "${ga[@]}" -lm
  "$MPICC" "$dir/ga.o" -o "$dir/ga-ours" "-L$PREFIX/lib" "-Wl,-rpath,$PREFIX/lib" "${ga[@]}" -lm
  [[ $(ldd "$dir/ga-ours") == *libportolan* ]] || die "ga-ours is not linked with Portolan"
  [[ $(ldd "$dir/ga-debian") != *libportolan* ]] || die "ga-debian is linked with Portolan"
}

binding() { # ranks, yes|no
  local to=none
  if [[ $2 == yes ]]; then to=core; fi
  if [[ $MPI == openmpi ]]; then echo "--bind-to $to"; else echo "-bind-to $to"; fi
}

run() { # side, ranks, loops, bound
  local selected=()
  if [[ -n $only ]]; then selected=(--only "$only"); fi
  launch "$@" "$1" --seconds "$seconds" "${selected[@]}"
  if [[ $1 == mpi ]] || ! has_ga; then return; fi
  if [[ -z $only ]]; then selected=(--only ga_matmul,scf_like); fi
  if [[ -z $only || $only == *ga_matmul* || $only == *scf_like* ]]; then
    launch "$@" "ga-$1" --quick "${selected[@]}"
  fi
}

# Appends the results of a program to raw.tsv as: MPI, ranks, loops, bound, side, case, value.
launch() { # side, ranks, loops, bound, program, its arguments
  local flags code=0
  read -ra flags <<<"$(binding "$2" "$4")"
  timeout -k 10 "$RUN_LIMIT" "${LAUNCH[@]}" "${flags[@]}" -n "$2" "$dir/$5" "${@:6}" \
    >"$dir/out" 2>"$dir/err" </dev/null || code=$?
  awk -F '\t' -v OFS='\t' -v m="$MPI" -v n="$2" -v l="$3" -v b="$4" -v s="$1" \
    'NF == 2 { print m, n, l, b, s, $1, $2 }' "$dir/out" >>"$dir/raw.tsv"
  if ((code != 0)); then
    echo "$MPI, $5, $2 ranks, $3 loops per core: exit code $code" >&2
    tail -n 3 "$dir/err" | sed 's/^/    /' >&2
  fi
}

# Prints the medians. `other` is the smaller one of the case's own peers, else of the message's
# round trip.
table() {
  sort -t $'\t' -k 1,6 -k 7,7g "$1" | awk -F '\t' '
    function flush() { if (n) m[key] = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
    { k = $1 SUBSEP $2 SUBSEP $3 SUBSEP $4 SUBSEP $5 SUBSEP $6 }
    k != key { flush(); key = k; n = 0 }
    !(($1, $2, $3, $4) in places) { places[$1, $2, $3, $4]; order[++count] = $1 SUBSEP $2 SUBSEP $3 SUBSEP $4 }
    { v[++n] = $7 }
    END {
      flush()
      cases = split("barrier allreduce8 round_trip notify message null_call lock fetch_add ga_matmul scf_like", name, " ")
      printf "%-8s %5s %5s %5s  %-10s %10s %10s %10s %10s %7s\n", "MPI", "ranks", "loops", "bound", "case", "Portolan", "Debian", "MPI", "futex", "ratio"
      for (p = 1; p <= count; p++) {
        split(order[p], at, SUBSEP)
        for (c = 1; c <= cases; c++) {
          ours = m[order[p], "ours", name[c]]
          if (ours == "") continue
          alike = name[c] ~ /notify|message|null_call/ ? "round_trip" : name[c]
          debian = m[order[p], "debian", alike]; plain = m[order[p], "mpi", alike]
          best = debian == "" || (plain != "" && plain + 0 < debian + 0) ? plain : debian
          printf "%-8s %5d %5d %5s  %-10s %10.2f %10s %10s %10s %7s\n", at[1], at[2], at[3], at[4], name[c], ours,
            text(debian), text(plain), text(m[order[p], "mpi", "futex"]), best == "" ? "-" : sprintf("%.2f", ours / best)
        }
      }
    }
    function text(x) { return x == "" ? "-" : sprintf("%.2f", x) }'
}

for m in "${mpis[@]}"; do
  complete_mpi "$m"
  if [[ -z $installed ]]; then "$ROOT/scripts/install.sh" --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  dir=$CARGO_TARGET_DIR/bench-contended
  mkdir -p "$dir"
  rm -f "$dir/raw.tsv"
  build
  for n in ${ranks//,/ }; do
    for l in ${loops//,/ }; do
      for b in "${binds[@]}"; do
        if [[ $b == yes ]] && ((n > $(nproc))); then continue; fi
        start_loops "$l"
        for ((r = 0; r < runs; r++)); do
          for side in ours debian mpi; do run "$side" "$n" "$l" "$b"; done
        done
        stop_loops
      done
    done
  done
  table "$dir/raw.tsv"
done
