#!/usr/bin/env bash
# Usage: scripts/dev sanitize [--mpi mpich|openmpi] [--quick] [loom|miri|asan|valgrind|fuzz ...]
#
# Finds memory errors and thread interleavings that lose data or wake-ups:
#
#   loom      the models of the lock-free parts (models/), in every order of their steps
#   miri      the unit tests of modules with unsafe code, except those that call MPI or the kernel,
#             with strict provenance and tree borrows
#   asan      the unit tests, and checks of tests/ranks on two ranks, under AddressSanitizer
#   valgrind  C programs of tests/c on two ranks under memcheck, with the library as it is
#             installed; tests/data/valgrind.supp suppresses its findings in MPI
#   fuzz      the targets of fuzz/: shapes, and everything that is decoded from bytes
#
# Without a name, runs all of them. asan and valgrind must first find a small deliberate fault; the
# models include tests that must fail. Prints one line per case. The last line is
# `N passed, N failed`, and the exit code is 0 if no case failed. A tool that cannot run is skipped,
# with the reason.
#
#   --mpi M     the MPI, the default is mpich
#   --quick     fewer checks and programs, 5 s for each fuzz target instead of 60
#
# The sanitizers are unstable options of rustc; RUSTC_BOOTSTRAP=1 enables them in the stable
# compiler. ThreadSanitizer is not used: the standard library is not built with it, so every test
# and every thread that ends causes false positives, and it supports neither fences nor membarrier.
# Miri needs a nightly toolchain (`rustup toolchain install nightly --component miri,rust-src`).
# valgrind needs the library installed in target/MPI/prefix (scripts/install.sh --debug adds names
# and line numbers).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=mpich quick='' tools=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --quick) quick=1 && shift ;;
    loom | miri | asan | valgrind | fuzz) tools+=("$1") && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
if [[ -n ${PORTOLAN_TEST_QUICK:-} ]]; then quick=1; fi
if ((${#tools[@]} == 0)); then tools=(loom miri asan valgrind fuzz); fi
complete_mpi "$mpi"
cd "$ROOT"
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do
  if [[ $variable != PORTOLAN_MPI ]]; then unset "$variable"; fi
done
# UCX and Open MPI patch mmap and similar functions in memory, over the sanitizers' own versions.
export UCX_MEM_EVENTS=no UCX_MEM_MMAP_HOOK_MODE=none OMPI_MCA_memory=^patcher

TARGET=x86_64-unknown-linux-gnu
if command -v rustc >/dev/null; then TARGET=$(rustc -vV | sed -n 's/^host: //p'); fi
WORK=$ROOT/target/sanitize
dir=$WORK/$MPI_TAG log=$WORK/$MPI_TAG/log
mkdir -p "$dir"

passed=0 failed=0
begin() { started=${EPOCHREALTIME/[.,]/}; }
took() { # sets seconds
  local micros=$((${EPOCHREALTIME/[.,]/} - started))
  printf -v seconds '%d.%02d' $((micros / 1000000)) $((micros / 10000 % 100))
}
ok() { # case, note
  took
  passed=$((passed + 1))
  echo "ok   $1 ${seconds}s${2:+ ($2)}"
}
bad() { # case, why, files ...
  took
  failed=$((failed + 1))
  echo "FAIL $1 ${seconds}s: $2"
  tail -q -n 60 "${@:3}" | cut -c1-240 | sed 's/^/     | /'
}
skip() { # case, why
  echo "skip $1: $2"
}

# Counts and prints the test lines of Rust's test harness in the log, one case per test.
tests_of_log() { # tool, exit code
  local line name count=0
  while read -r line; do
    name=${line#test } name=${name%% ... *}
    case $line in
      *'... ok') echo "ok   $1 $name" && passed=$((passed + 1)) && count=$((count + 1)) ;;
      *'... FAILED') echo "FAIL $1 $name" && failed=$((failed + 1)) && count=$((count + 1)) ;;
    esac
  done < <(grep -aE '^test .* \.\.\. (ok|FAILED)' "$log" || true)
  if (($2 != 0)); then
    bad "$1" "exit code $2" "$log"
  elif ((count == 0)); then
    bad "$1" "no test ran" "$log"
  else
    ok "$1" "$count tests"
  fi
}

# Succeeds if rustc supports AddressSanitizer, and if it finds the fault of a program.
finds_a_fault() {
  begin
  cat >"$dir/fault.rs" <<'RUST'
fn main() {
    let gone = std::hint::black_box(Box::new(7)).as_ref() as *const i32;
    // SAFETY: none; this is the fault.
    println!("{}", unsafe { std::ptr::read_volatile(gone) });
}
RUST
  if ! RUSTC_BOOTSTRAP=1 rustc --edition 2024 -g -Zsanitizer=address --target "$TARGET" "$dir/fault.rs" \
    -o "$dir/fault" >"$log" 2>&1; then
    skip asan "this rustc cannot build with -Zsanitizer=address: $(grep -am1 error "$log")"
    return 1
  fi
  if "$dir/fault" >"$log" 2>&1 || ! grep -aq heap-use-after-free "$log"; then
    bad "asan finds a fault" "it does not" "$log"
    return 1
  fi
  ok "asan finds a fault"
}

# ------------------------------------------------------------------------- loom

run_loom() {
  local code=0
  begin
  CARGO_TARGET_DIR=$WORK/models cargo test --release --manifest-path models/Cargo.toml --no-fail-fast \
    >"$log" 2>&1 </dev/null || code=$?
  tests_of_log loom "$code"
}

# ------------------------------------------------------------------------- Miri

# Modules with unsafe code whose tests map files, call the kernel or MPI, or use assembly. The C
# interfaces (portolan-capi) do so everywhere, and the kernels and the tests on ranks need MPI.
NOT_FOR_MIRI=(any_memory atomics::node_queue collective::shared_area futex memory::large_buffer
  memory::registered memory::shm_export thread::stack mpi path::cma na::blocking_wait na::links
  na::memory na::private_file na::wait_descriptor na::zeroed_buffer runtime::oversubscription
  runtime::statistics runtime::trial shm thread topology trace::call_site trace::clock trace::log
  watchdog)

# Modules whose tests run without strict provenance, because they make pointers from addresses of
# other ranks, as the interfaces do, or contend for locks of parking_lot, which does so.
ADDRESSES_FOR_MIRI=(bulk loops sync::append_lists sync::biased_lock sync::brlock
  memory::shared_bytes na::service path::lock_stripe)

# Prints the modules of a crate that have both unsafe code and tests.
unsafe_modules() { # its sources
  local file module
  grep -rlE 'unsafe (\{|fn|impl)' "$1" | xargs grep -l '#\[test\]' | while read -r file; do
    module=${file#"$1/"}
    module=${module%.rs}
    module=${module%/mod}
    echo "${module//\//::}::"
  done
}

run_miri() {
  local code=0 crate module skips=() filters=() packages flags='-Zmiri-tree-borrows -Zmiri-disable-isolation'
  if ! cargo +nightly miri setup >"$log" 2>&1 </dev/null; then
    skip miri "there is no Miri (rustup toolchain install nightly --component miri,rust-src)"
    return
  fi
  for module in "${NOT_FOR_MIRI[@]}" "${ADDRESSES_FOR_MIRI[@]}"; do
    compgen -G "crates/*/src/${module//:://}.rs" >/dev/null || compgen -G "crates/*/src/${module//:://}/mod.rs" >/dev/null ||
      die "there is no module $module to leave out"
    skips+=(--skip "$module::")
  done
  for crate in src crates/{compose,engine,rpc}/src; do
    mapfile -t -O "${#filters[@]}" filters < <(unsafe_modules "$crate")
  done
  packages=(-p portolan -p portolan-compose -p portolan-engine -p portolan-rpc)
  export CARGO_TARGET_DIR=$dir/miri PROPTEST_CASES=4
  begin
  MIRIFLAGS="-Zmiri-strict-provenance $flags" cargo +nightly miri test "${packages[@]}" --lib --no-fail-fast -- \
    "${filters[@]}" "${skips[@]}" >"$log" 2>&1 </dev/null || code=$?
  tests_of_log miri "$code"
  code=0
  begin
  MIRIFLAGS=$flags cargo +nightly miri test -p portolan-engine -p portolan-compose -p portolan-rpc --lib --no-fail-fast -- \
    "${ADDRESSES_FOR_MIRI[@]/%/::}" >"$log" 2>&1 </dev/null || code=$?
  tests_of_log miri-addresses "$code"
  unset PROPTEST_CASES
}

# ------------------------------------------------------------------ AddressSanitizer

run_asan() {
  finds_a_fault || return 0
  local code=0 line check filters=() checks
  export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=$dir/asan
  # Allocations of huge lengths may fail: the tests expect an error. Locals must stay on the real
  # stack, because the library determines how much of the stack is left.
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0
  begin
  cargo test --workspace --lib --target "$TARGET" >"$log" 2>&1 </dev/null || code=$?
  tests_of_log asan "$code"

  # Skip rpc_idle: it measures the processor time of idle ranks, which the sanitizer distorts.
  if [[ -n $quick ]]; then
    checks=(random lookups totals mutexes threads am_sizes am_aggregates compose_damaged compose_random
      rpc_calls rpc_bulk rpc_forgeries typed_values)
    for check in "${checks[@]}"; do filters+=("$check [n=2 default]"); done
  else
    filters=('[n=2 default]' '[n=2 path=message]' '[n=2 path=rma]' '[n=2 node_size=1]')
  fi
  code=0
  begin
  PORTOLAN_MPIEXEC="${LAUNCH[*]}" cargo test --test ranks --target "$TARGET" -- --skip rpc_idle --quick \
    "${filters[@]}" >"$log" 2>&1 </dev/null || code=$?
  while read -r line; do
    case $line in
      ok*) passed=$((passed + 1)) ;;
      FAIL*) failed=$((failed + 1)) ;;
    esac
    echo "$line"
  done < <(sed -nE 's/^(ok  |FAIL|skip) /\1 asan /p; /^     \|/p' "$log")
  if grep -aqE '^[1-9][0-9]* passed, [0-9]+ failed' "$log"; then
    if ((code == 0)); then ok "asan ranks"; else bad "asan ranks" "exit code $code" /dev/null; fi
  else
    bad "asan ranks" "no check ran, exit code $code" "$log"
  fi
  unset RUSTC_BOOTSTRAP RUSTFLAGS ASAN_OPTIONS
}

# --------------------------------------------------------------------------- valgrind

# Runs a program on two ranks under valgrind. Sets code to its exit code, and appends valgrind's
# output to the log.
memcheck() { # program, settings ...
  code=0
  rm -f "$dir"/valgrind.*
  # valgrind does not see writes of another process, and would report the bytes as uninitialised.
  env PORTOLAN_CROSS_HELP=off PORTOLAN_TEST_SECONDS=280 PORTOLAN_TEST_RANKS=2 "${@:2}" timeout -k 5 290 \
    "${LAUNCH[@]}" -n 2 valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
    --show-leak-kinds=definite --num-callers=30 --suppressions=tests/data/valgrind.supp \
    --log-file="$dir/valgrind.%p" "$1" >"$log" 2>&1 </dev/null || code=$?
  cat "$dir"/valgrind.* >>"$log" 2>/dev/null || true
}

compile() { # source, program, library
  "$MPICC" -std=c99 -O1 -g "-I$PREFIX/include" "$1" -o "$2" "-L$PREFIX/lib" "-Wl,-rpath,$PREFIX/lib" \
    "-l$3" -lpthread
}

run_valgrind() {
  local name case library settings programs=(contiguous mutexes lapi_amsend cp_patterns mercury_rpc)
  if ! command -v valgrind >/dev/null; then
    skip valgrind "it is not installed (apt-get install valgrind)"
    return
  elif [[ ! -e $PREFIX/lib/libarmci.so ]]; then
    skip valgrind "nothing is installed in $PREFIX: scripts/install.sh --mpi $MPI_NAME --prefix $PREFIX"
    return
  fi
  begin
  cat >"$dir/fault.c" <<'C'
#include <armci.h>
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  void *pieces[2];
  char *gone = malloc(100);
  MPI_Init(&argc, &argv);
  ARMCI_Init();
  ARMCI_Malloc(pieces, 100);
  free(gone);
  ARMCI_Put(gone, pieces[1], 100, 1);
  ARMCI_Barrier();
  ARMCI_Finalize();
  return MPI_Finalize();
}
C
  compile "$dir/fault.c" "$dir/fault" armci
  memcheck "$dir/fault"
  if ((code == 0)) || ! grep -aq 'Invalid read' "$log"; then
    bad "valgrind finds a fault [$MPI_NAME]" "exit code $code, but the source of a put was freed" "$log"
  else
    ok "valgrind finds a fault [$MPI_NAME]"
  fi

  if [[ -z $quick ]]; then programs+=(strided vector accumulate handles rmw groups lapi_putget x10_copy x10_async mercury_bulk mercury_long); fi
  for name in "${programs[@]}"; do
    library=armci
    case $name in x10_*) library=x10 ;; lapi_*) library=lapi_r ;; cp_*) library=compose ;; mercury_*) library=mercury ;; esac
    compile "tests/c/$name.c" "$dir/$name" "$library"
    for settings in '' PORTOLAN_PATH=message; do
      case="valgrind $name [$MPI_NAME n=2${settings:+ $settings}]"
      if [[ -n $quick && -n $settings ]]; then continue; fi
      begin
      memcheck "$dir/$name" $settings
      if ((code != 0)); then
        bad "$case" "exit code $code" "$log"
      elif ! grep -aq '^PASS' "$log"; then
        bad "$case" "does not say PASS" "$log"
      else
        ok "$case"
      fi
    done
  done
}

# ------------------------------------------------------------------------------- fuzz

# The flags that cargo-fuzz uses; it can run the same targets (RUSTC_BOOTSTRAP=1 cargo fuzz run).
COVERAGE=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1)

run_fuzz() {
  local time=60 name corpus runs
  if [[ -n $quick ]]; then time=5; fi
  begin
  if ! command -v c++ >/dev/null; then
    skip fuzz "libFuzzer wants a C++ compiler"
    return
  fi
  RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address --cfg fuzzing ${COVERAGE[*]}" CARGO_TARGET_DIR=$dir/fuzz \
    cargo build --release --bins --target "$TARGET" --manifest-path fuzz/Cargo.toml >"$log" 2>&1 </dev/null || {
    bad "fuzz builds" "it does not" "$log"
    return
  }
  for name in fuzz/fuzz_targets/*.rs; do
    name=${name##*/} name=${name%.rs} corpus=$WORK/corpus/$name
    mkdir -p "$corpus" "$WORK/artifacts"
    begin
    if ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 timeout -k 5 $((time + 60)) \
      "$dir/fuzz/$TARGET/release/$name" "-max_total_time=$time" -timeout=10 -rss_limit_mb=2048 -max_len=600 \
      -print_final_stats=1 "-artifact_prefix=$WORK/artifacts/$name-" "$corpus" >"$log" 2>&1 </dev/null; then
      runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
      ok "fuzz $name" "$runs inputs"
    else
      cp "$log" "$WORK/artifacts/$name.log"
      bad "fuzz $name" "see $WORK/artifacts/$name.log" "$log"
    fi
  done
}

for tool in "${tools[@]}"; do "run_$tool"; done
echo "$passed passed, $failed failed"
((failed == 0))
