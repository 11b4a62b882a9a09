#!/usr/bin/env bash
# Usage: scripts/test-programs.sh --mpi mpich|openmpi [--quick] [FILTER]
#
# Builds the C, C++, Fortran and Global Arrays programs under tests/ against the
# library installed in target/MPI/prefix, as users build theirs, and runs each on
# several ranks and transfer paths under a deadline. One line a case; the last
# line is `N passed, N failed`.
#
#   --quick   fewer rank counts and paths
#   FILTER    only cases whose line contains FILTER
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

mpi='' quick=${PORTOLAN_TEST_QUICK:-} filter=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --quick) quick=1 && shift ;;
    -h | --help) usage && exit ;;
    -*) die "unknown option '$1', see --help" ;;
    *) filter=$1 && shift ;;
  esac
done
[[ -n $mpi ]] || die "which MPI? see --help"
use_mpi "$mpi"
cd "$ROOT"
BIN=$CARGO_TARGET_DIR/programs
LIMIT=90 # seconds for one run
mkdir -p "$BIN"
passed=0 failed=0

read -ra GA_FLAGS <<<"$("$GA_CONFIG" --cppflags 2>/dev/null || true)"
read -ra GA_LIBS <<<"$("$GA_CONFIG" --ldflags) $("$GA_CONFIG" --libs) $("$GA_CONFIG" --flibs)"
read -ra GA_FORTRAN <<<"$("$GA_CONFIG" --fflags)"
LINK=("-L$PREFIX/lib" "-Wl,-rpath,$PREFIX/lib")
WARN=(-std=c99 -O1 -g -Wall -Wextra)

ok() { passed=$((passed + 1)) && echo "ok   $1"; }
bad() { # case, why, output
  failed=$((failed + 1))
  echo "FAIL $1: $2"
  tail -n 12 "$3" | cut -c1-240 | sed 's/^/     | /'
}
wanted() { [[ -z $filter || $1 == *"$filter"* ]]; }

# ---------------------------------------------------------------- building
build() { # name, command ...
  local name=$1
  shift
  if ! "$@" >"$BIN/$name.log" 2>&1; then bad "build/$name" "does not build" "$BIN/$name.log"; fi
}
build_all() {
  local f n
  for f in tests/c/*.c; do
    n=$(basename "$f" .c)
    build "$n" "$MPICC" "${WARN[@]}" "-I$PREFIX/include" "$f" -o "$BIN/$n" "${LINK[@]}" -larmci -lm
  done
  build cxx "$MPICXX" -std=c++11 -Wall -Wextra "-I$PREFIX/include" tests/c/cxx.cpp -o "$BIN/cxx" "${LINK[@]}" -larmci
  # The archive, with nothing else on the line: weak names must let a program's
  # own win.
  for n in interpose contiguous; do
    build "$n.static" "$MPICC" "${WARN[@]}" "-I$PREFIX/include" "tests/c/$n.c" -o "$BIN/$n.static" \
      "-L$PREFIX/lib" -l:libarmci.a -lm
  done
  build fortran "$MPIFORT" -O1 tests/fortran/armci_fortran.f90 -J "$BIN" -o "$BIN/fortran" "${LINK[@]}" -larmci
  for f in tests/ga/*.c; do
    n=$(basename "$f" .c)
    build "$n" "$MPICC" -O2 "-I$PREFIX/include" "${GA_FLAGS[@]}" "$f" -o "$BIN/$n" "${LINK[@]}" "${GA_LIBS[@]}" -lm
  done
  build ga_fortran "$MPIFORT" -O1 "${GA_FLAGS[@]}" "${GA_FORTRAN[@]}" tests/ga/ga_fortran.F90 -J "$BIN" \
    -o "$BIN/ga_fortran" "${LINK[@]}" "${GA_LIBS[@]}"
  if command -v pkg-config >/dev/null; then
    # shellcheck disable=SC2046
    PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig build values.pc "$MPICC" tests/c/values.c -o "$BIN/values.pc" \
      $(PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig pkg-config --cflags --libs armci) "-Wl,-rpath,$PREFIX/lib" -lm
  fi
}

# ----------------------------------------------------------------- running
# Runs a program and leaves its output in $out and its code in $code. The
# launcher gets a process group of its own, which goes as a whole.
launch() { # ranks, environment, program, argument ...
  local n=$1 env=$2
  shift 2
  out=$BIN/out.txt code=0
  # shellcheck disable=SC2086
  PORTOLAN_TEST_RANKS=$n PORTOLAN_TEST_SECONDS=$((LIMIT - 10)) env $env \
    timeout -k 5 "$LIMIT" "${LAUNCH[@]}" -n "$n" "$@" >"$out" 2>&1 </dev/null || code=$?
}
# A program passes when it ends well and says so, once.
run() { # ranks, environment, program, argument ...
  local n=$1 env=$2 name=$3
  shift 3
  local case="$name${*:+ $*} [n=$n${env:+ $env}]"
  wanted "$case" || return 0
  if [[ ! -x $BIN/$name ]]; then return 0; fi # its build has failed and counts
  launch "$n" "$env" "$BIN/$name" "$@"
  if ((code != 0)); then
    bad "$case" "exit code $code" "$out"
  elif (($(grep -c '^PASS ' "$out") != 1)); then
    bad "$case" "does not say PASS once" "$out"
  else
    ok "$case"
  fi
}
# A call that must end the job: a code that is not zero, and no way past it.
run_abort() { # name of the case
  local case="errors $1 [n=2]"
  wanted "$case" || return 0
  launch 2 "" "$BIN/errors" "$1"
  if ((code == 0 || code == 124)); then
    bad "$case" "exit code $code" "$out"
  elif ! grep -q "EXPECT-ABORT $1" "$out" || grep -q '^FAIL' "$out"; then
    bad "$case" "the call did not end the job" "$out"
  else
    ok "$case"
  fi
}
# A program under the other MPI's launcher must not become n jobs of one rank.
run_guard() {
  local case="guard: started by the other MPI's launcher" other
  wanted "$case" || return 0
  if [[ $MPI == mpich ]]; then other=(mpirun.openmpi --oversubscribe --allow-run-as-root); else other=(mpiexec.mpich); fi
  command -v "${other[0]}" >/dev/null || return 0
  out=$BIN/out.txt code=0
  timeout 30 "${other[@]}" -n 2 "$BIN/values" >"$out" 2>&1 </dev/null || code=$?
  if ((code != 0)) && grep -q 'was started by the mpiexec of' "$out"; then ok "$case"; else bad "$case" "exit code $code" "$out"; fi
}

C=(abi symbols cxx contiguous strided vector accumulate rmw values flags handles mutexes memory groups
  messages reductions domains lifecycle peer_faults errors interpose)
MOVE=(contiguous strided vector accumulate rmw values flags handles mutexes memory groups peer_faults errors)
GA=()
for f in tests/ga/*.c; do GA+=("$(basename "$f" .c)"); done
GA+=(ga_fortran)
PATHS=(PORTOLAN_PATH=message PORTOLAN_PATH=rma PORTOLAN_NODE_SIZE=1)

build_all
counts=(1 2 3 4)
if [[ -n $quick ]]; then counts=(2 3); fi
for n in "${counts[@]}"; do
  for p in "${C[@]}"; do run "$n" "" "$p"; done
done
for p in "${MOVE[@]}"; do
  for e in "${PATHS[@]}"; do run 3 "$e" "$p"; done
  run 4 PORTOLAN_NODE_SIZE=2 "$p"
done
for p in "${GA[@]}"; do
  run 4 "" "$p"
  run 4 PORTOLAN_NODE_SIZE=2 "$p"
  if [[ -z $quick ]]; then
    run 2 "" "$p"
    run 2 PORTOLAN_PATH=message "$p"
  fi
done
for p in ga_patches ga_acc ga_dgemm; do run 2 PORTOLAN_PATH=rma "$p"; done
for p in interpose.static contiguous.static values.pc fortran; do run 2 "" "$p"; done
run 2 PORTOLAN_NODE_SIZE=1 fortran
for a in alone before after; do run 2 "" lifecycle "$a"; done
run 2 "" memory 2500
i=0
if [[ -x $BIN/errors ]]; then
  for c in $("$BIN/errors" list); do
    if [[ -z $quick ]] || ((i++ % 3 == 0)); then run_abort "$c"; fi
  done
fi
run_guard
echo "$passed passed, $failed failed"
((failed == 0))
