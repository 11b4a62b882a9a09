#!/usr/bin/env bash
# Usage: scripts/sanitize.sh [--mpi mpich|openmpi|all] [--only valgrind|miri] [--quick|--full]
#
# Looks for wrong uses of memory: C programs under valgrind, alone and on two ranks, with
# the MPI's own findings suppressed (tests/valgrind.supp); and the unit tests of the parts
# that call nothing foreign under Miri, those of the lock-free parts with several orders of
# threads and weak memory. A tool that is not there is skipped, with a line that says how to
# get it. One line a case; the last line is `N passed, N failed`.
#
#   --mpi M     the MPI for valgrind, the default is all
#   --only T    one tool
#   --quick     fewer programs and orders
#   --full      more of both
#
# It wants the library installed in target/MPI/prefix (scripts/install.sh).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

mpi=all only='' size='' mpis=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --only) needs_value "$@" && only=$2 && shift 2 ;;
    --quick) size=quick && shift ;;
    --full) size=full && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ -z $only || $only == valgrind || $only == miri ]] || die "--only wants valgrind or miri"
choose_mpis "$mpi"
cd "$ROOT"
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do unset "$variable"; done

passed=0 failed=0
verdict() { # case, exit code, log
  if (($2 == 0)); then
    passed=$((passed + 1))
    echo "ok   $1"
  else
    failed=$((failed + 1))
    echo "FAIL $1: exit code $2"
    tail -n 30 "$3" | cut -c1-240 | sed 's/^/     | /'
  fi
}

# --------------------------------------------------------------------- valgrind

valgrind_case() { # program, ranks, settings ...
  local name=$1 ranks=$2 code=0 case="valgrind $1 [$MPI n=$2${3:+ ${*:3}}]"
  rm -f "$dir"/valgrind.*
  env PORTOLAN_TEST_SECONDS=280 PORTOLAN_TEST_RANKS="$ranks" "${@:3}" timeout -k 5 290 \
    "${LAUNCH[@]}" -n "$ranks" valgrind -q --error-exitcode=99 --leak-check=full \
    --errors-for-leak-kinds=definite --show-leak-kinds=definite --num-callers=30 \
    --suppressions=tests/valgrind.supp --log-file="$dir/valgrind.%p" "$dir/$name" \
    >"$dir/out" 2>&1 </dev/null || code=$?
  cat "$dir"/valgrind.* >>"$dir/out" 2>/dev/null || true
  if ((code == 0)) && ! grep -aq '^PASS' "$dir/out"; then code=98; fi
  verdict "$case" "$code" "$dir/out"
}

run_valgrind() {
  local name programs=(contiguous strided vector accumulate handles mutexes)
  if [[ $size == quick ]]; then programs=(contiguous handles); fi
  if [[ $size == full ]]; then programs+=(groups messages rmw values flags domains); fi
  dir=$CARGO_TARGET_DIR/sanitize
  mkdir -p "$dir"
  for name in "${programs[@]}"; do
    "$MPICC" -std=c99 -O1 -g "-I$PREFIX/include" "tests/c/$name.c" -o "$dir/$name" \
      "-L$PREFIX/lib" "-Wl,-rpath,$PREFIX/lib" -larmci
    valgrind_case "$name" 1
    valgrind_case "$name" 2
    if [[ $size != quick ]]; then valgrind_case "$name" 2 PORTOLAN_PATH=message; fi
  done
}

# ------------------------------------------------------------------------- Miri

# Parts that call nothing foreign, and the lock-free ones.
PURE=(layout:: memory::index memory::cut path::message::wire am::wire peer:: watchdog::tests
  watchdog::stack atomics::mutex::state)
LOCK_FREE=(memory::read_mostly memory::asymmetric am::ring collective::board)

run_miri() {
  local filter seed seeds=4 code log=target/miri/log flags=-Zmiri-disable-isolation
  if [[ $size == quick ]]; then seeds=1; fi
  if [[ $size == full ]]; then seeds=32; fi
  mkdir -p target/miri
  use_mpi "${mpis[0]}"
  for filter in "${PURE[@]}"; do
    code=0
    MIRIFLAGS=$flags CARGO_TARGET_DIR=$ROOT/target/miri timeout 600 \
      cargo +nightly miri test --lib -- "$filter" >"$log" 2>&1 </dev/null || code=$?
    verdict "miri $filter" "$code" "$log"
  done
  for filter in "${LOCK_FREE[@]}"; do
    for ((seed = 0; seed < seeds; seed++)); do
      code=0
      MIRIFLAGS="$flags -Zmiri-seed=$seed" CARGO_TARGET_DIR=$ROOT/target/miri timeout 600 \
        cargo +nightly miri test --lib -- "$filter" >"$log" 2>&1 </dev/null || code=$?
      verdict "miri $filter seed $seed" "$code" "$log"
    done
  done
}

if [[ -z $only || $only == valgrind ]]; then
  if command -v valgrind >/dev/null; then
    for m in "${mpis[@]}"; do
      use_mpi "$m"
      [[ -e $PREFIX/lib/libarmci.so ]] ||
        die "nothing is installed in $PREFIX: scripts/install.sh --mpi $MPI --prefix $PREFIX"
      run_valgrind
    done
  else
    echo "skip valgrind: it is not installed (apt-get install valgrind)"
  fi
fi
if [[ -z $only || $only == miri ]]; then
  if cargo +nightly miri --version >/dev/null 2>&1; then
    run_miri
  else
    echo "skip miri: it is not installed (rustup toolchain install nightly --component miri,rust-src)"
  fi
fi
echo "$passed passed, $failed failed"
((failed == 0))
