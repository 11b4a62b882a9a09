#!/usr/bin/env bash
# Usage: scripts/test.sh [--mpi mpich|openmpi|all] [--full | --release] [FILTER]
#        scripts/test.sh --only quick|rest [--mpi M]
#
# Tests whether Portolan works on this machine. Builds and installs it with each MPI, and runs each
# C, Fortran and Global Arrays program once, the checks in Rust in four configurations, a selection
# of both on several hosts, and the first example. Takes at most 12 minutes with both MPIs on two
# quiet cores, including the build.
#
#   --mpi M    only the MPI M
#   --full     also what a change has to pass: format, lints, unit tests, the simulation,
#              documentation, models of the lock-free parts, Miri if it is installed, faults, more
#              combinations with the first MPI, the Python package, and the README's first command
#              on a bare Debian (scripts/dev fresh)
#   --release  also all combinations, lints, documentation and the examples of the book with each
#              MPI, the tests on several ranks with the checks of a debug build, both README commands on both Debian releases and for a user without root,
#              matrix products with BLAS, the packages, and the book
#   --only P   only a part of --full: `quick` shows a mistake within minutes (format, lints, unit
#              tests and a quarter of the simulation, with one MPI), `rest` runs everything else
#   FILTER     only tests whose name contains FILTER, and no other checks
#
# tests/README.md describes the levels. Each check counts as one test. The output of each is kept in
# target/MPI/logs/. The last line is `N passed, N failed`; the exit code is 0 only if no test
# failed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

mpi=all quick=1 full='' release='' only='' filter=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --full) full=1 && shift ;;
    --release) full=1 release=1 && shift ;;
    --only) needs_value "$@" && only=$2 full=1 && shift 2 ;;
    -h | --help) usage && exit ;;
    -*) die "unknown option '$1', see --help" ;;
    *) filter=$1 && shift ;;
  esac
done
choose_mpis "$mpi"

export CARGO_TERM_COLOR=never
[[ $only =~ ^(quick|rest)?$ ]] || die "--only quick or rest, see --help"
if [[ -n $full ]]; then quick=''; fi
if [[ -n $quick ]]; then export PORTOLAN_TEST_QUICK=1; fi
if [[ -n $release ]]; then export PORTOLAN_TEST_RELEASE=1; fi
# The random tests of services have ten times as many rounds.
if [[ -n $full ]]; then export PORTOLAN_TEST_FULL=1; fi
# The quick part alone uses a profile that builds fast and has the checks of `cargo test`. Before
# the rest, it uses the release profile, to share the rest's build.
profile=release
if [[ $only == quick ]]; then profile=quick; fi
passed=0 failed=0

# Runs a command with its output in a log, and sets $code to its exit code. The command runs in the
# background, because a shell handles no signals while it waits for a foreground command.
logged() { # name, command ...
  printf '%-8s %-12s ' "$MPI_TAG" "$1"
  begin "$@"
  await "$1"
}

# The two halves of `logged`, to run two commands at a time.
begin() { # name, command ...
  local log=$CARGO_TARGET_DIR/logs/$1.log
  mkdir -p "${log%/*}"
  rm -f "$log.end"
  (
    start=$SECONDS code=0
    "${@:2}" >"$log" 2>&1 </dev/null || code=$?
    echo "$code $((SECONDS - start))" >"$log.end"
  ) &
  running=$!
}
await() { # name
  local seconds=0
  log=$CARGO_TARGET_DIR/logs/$1.log code=1
  wait "$running" || true
  if [[ -e $log.end ]]; then read -r code seconds <"$log.end"; fi
  printf '%4d s  ' "$seconds"
}
end_jobs() {
  local job
  for job in $(jobs -p); do pkill -P "$job" || true; kill "$job" 2>/dev/null || true; done
}
trap end_jobs EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

show_log() {
  tail -n 40 "$log" | sed 's/^/    /'
  echo "    (all of it: ${log#"$ROOT"/})"
}

# Prints each failure with the lines below it, which show the state of the ranks. Prints the end of
# the log if it contains no failure.
show_failures() {
  local failures
  failures=$(awk '
    /^FAIL |^test .* FAILED$/ { on = 1; lines = 0 }
    /^---- .* ----$/ { on = 2; lines = 0 } # of a unit test
    on == 1 && !/^FAIL |^test .* FAILED$|^ / || /^failures:$/ { on = 0 }
    on && ++lines <= 80' "$log")
  if [[ -z $failures ]]; then
    show_log
    return
  fi
  sed 's/^/    /' <<<"$failures"
  echo "    (all of it: ${log#"$ROOT"/})"
}

# Runs a check, which counts as one test. It passes if its command succeeds.
check() { # name, command ...
  logged "$@"
  if ((code == 0)); then
    echo ok
    passed=$((passed + 1))
  else
    echo "FAILED with exit code $code"
    failed=$((failed + 1))
    show_log
    return 1
  fi
}

# Runs a check on a bare system. It is skipped on machines that cannot make one.
bare() { # name, command ...
  logged "$@"
  case $code in
    0) echo ok && passed=$((passed + 1)) ;;
    77) echo "skipped: $(sed -n 's/^fresh: cannot run here: //p' "$log")" ;;
    *) echo "FAILED with exit code $code" && failed=$((failed + 1)) && show_log ;;
  esac
}

# Adds the totals of the test programs. Programs with Rust's own harness end with
# `test result: ok. 5 passed; 0 failed; ...`, all others with `5 passed, 0 failed`.
count_tests() {
  local p f ranks
  read -r p f ranks < <(awk '
    /^test result: / { p += $4; f += $6; ranks++ }
    /^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3; ranks++ }
    END { print p + 0, f + 0, ranks + 0 }' "$log")
  # If a program did not build, or died, it printed no totals.
  if ((f == 0)) && { ((code != 0)) || { [[ -z $filter ]] && ((ranks == 0)); }; }; then f=1; fi
  echo "$p passed, $f failed"
  passed=$((passed + p)) failed=$((failed + f))
  if ((f > 0)); then
    show_failures
  fi
}

# Prints all test targets except those that start ranks. With --only quick, these are the targets of
# the libraries, without the programs and their sources; with --only rest, all others.
unit_targets() {
  local file name
  case $only in
    quick) printf '%s\n' --workspace --exclude portolan-tools --lib ;;
    rest) printf '%s\n' --workspace --bins ;;
    *) printf '%s\n' --workspace --lib --bins ;;
  esac
  for file in tests/*.rs tests/*/main.rs sim; do
    name=${file#tests/} && name=${name%/main.rs} && name=${name%.rs}
    case $only:$name in
      *:build | *:ranks | *:shared_name | rest:layers | rest:sim) ;;
      quick:layers | quick:sim | rest:* | :*) printf '%s\n' --test "$name" ;;
    esac
  done
}

# Does not build the examples, because that takes long; the lints check that they compile.
unit_tests() {
  local code=0 targets
  readarray -t targets < <(unit_targets)
  cargo test --profile "$profile" --no-fail-fast "${targets[@]}" -- ${filter:+"$filter"} || code=$?
  return "$code"
}

# With --only quick, checks only the targets that this part tests. The rest checks all of them.
lints() {
  local targets=(--workspace --all-targets)
  if [[ $only == quick ]]; then readarray -t targets < <(unit_targets); fi
  check clippy cargo clippy --profile "$profile" "${targets[@]}" -- -D warnings || true
}
documentation() {
  RUSTDOCFLAGS=-Dwarnings check doc cargo doc --profile "$profile" --workspace --no-deps || true
}
listings_of_rust() {
  logged doctests cargo test --profile "$profile" --workspace --doc -- ${filter:+"$filter"}
  count_tests
}

# Tests products of distributed arrays with the system's CBLAS, in a separate build of the library.
products_by_blas() {
  if ! echo 'void cblas_dgemm(void); int main(void) { cblas_dgemm(); }' |
    "$MPICC" -xc - -o /dev/null -l"${PORTOLAN_BLAS:-blas}" 2>/dev/null; then
    echo "skip blas: there is no library ${PORTOLAN_BLAS:-blas} with the calls of CBLAS"
    return
  fi
  logged blas cargo test --release --features portolan-tests/blas --test ranks -- array_product
  count_tests
}

# Lints connections with TLS, and tests them, in a separate build of the crate.
connections_with_tls() {
  check clippy-tls cargo clippy --profile "$profile" -p portolan-rpc --all-targets --features tls -- -D warnings || true
  logged tls cargo test --profile "$profile" -p portolan-rpc --features tls --lib -- na::links
  count_tests
}

test_quickly() {
  use_mpi "${mpis[0]}"
  if [[ -z $filter ]]; then
    check fmt cargo fmt --all --check -- --color never || true
    lints
  fi
  # The first seeds of the simulation find most mistakes, so the quick part alone runs only those.
  if [[ $only == quick ]]; then export PORTOLAN_TEST_QUICK=1; fi
  logged unit unit_tests
  count_tests
}

# Runs the examples that the book shows.
shown_examples() {
  local name
  for name in hello hello_put histogram heat; do
    timeout 300 ./mpirun.sh --mpi "$MPI_NAME" -n 2 --example "$name" || return
  done
  # The examples of distributed arrays, with race detection.
  for name in jacobi matmul conjugate_gradients scf_like histogram_nd fft_transpose; do
    PORTOLAN_CHECK=1 timeout 300 ./mpirun.sh --mpi "$MPI_NAME" -n 3 --example "$name" || return
  done
}

test_with() { # MPI
  use_mpi "$1"
  export PORTOLAN_MPIEXEC="${LAUNCH[*]}" PORTOLAN_PREFIX=$PREFIX
  check install scripts/install.sh --mpi "$MPI_NAME" --prefix "$PREFIX" || return 0
  if [[ -z $quick$filter ]]; then
    if [[ $only == rest && $MPI_NAME == "${mpis[0]}" || -n $release && $MPI_NAME != "${mpis[0]}" ]]; then lints; fi
    if [[ -n $release || $MPI_NAME == "${mpis[0]}" ]]; then documentation; fi
    # docs/environment.md must be equal to the output of the program.
    check environment diff docs/environment.md <("$PREFIX/bin/portolan-info" --markdown) || true
  fi
  # Unit tests do not start MPI, so one MPI suffices unless --release is given.
  if [[ -n $release && $MPI_NAME != "${mpis[0]}" || $only == rest && $MPI_NAME == "${mpis[0]}" ]]; then
    logged unit unit_tests
    count_tests
  fi
  if [[ -n $release || -n $full && $MPI_NAME == "${mpis[0]}" ]]; then listings_of_rust; fi
  if [[ -z $quick$filter && $MPI_NAME == "${mpis[0]}" ]]; then
    logged models cargo test --release --manifest-path models/Cargo.toml
    count_tests
    logged miri scripts/dev sanitize --mpi "$MPI_NAME" miri
    count_tests
    sed -n 's/^skip /    skipped: /p' "$log"
    connections_with_tls
  fi
  # The second MPI runs each program once and the checks in four configurations, as on a user's
  # machine.
  local less=()
  if [[ -z $release && $MPI_NAME != "${mpis[0]}" ]]; then less=(env PORTOLAN_TEST_QUICK=1); fi
  logged ranks "${less[@]}" cargo test --release --test ranks ${full:+--test shared_name} -- ${filter:+"$filter"}
  count_tests
  # The library with the checks of a debug build, as Rust programs usually build it.
  if [[ -n $release && $MPI_NAME == "${mpis[0]}" ]]; then
    logged ranks-dev env PORTOLAN_TEST_RELEASE= PORTOLAN_TEST_QUICK=1 \
      cargo test --profile quick --test ranks -- ${filter:+"$filter"}
    count_tests
  fi
  logged programs "${less[@]}" scripts/dev programs --mpi "$MPI_NAME" ${filter:+"$filter"}
  count_tests
  # The tests of faults mostly wait, so run those on hosts at the same time.
  local faults=''
  if [[ -z $quick$filter ]]; then begin faults scripts/dev faults --mpi "$MPI_NAME" --quick && faults=$running; fi
  logged hosts scripts/dev regress --mpi "$MPI_NAME" --quick --installed ${filter:+--suite programs,ranks --case "$filter"}
  count_tests
  if [[ -n $faults ]]; then
    printf '%-8s %-12s ' "$MPI_TAG" faults
    running=$faults
    await faults
    count_tests
  fi
  if [[ -z $filter ]]; then
    local example=ga_matmul
    if ! has_ga; then
      echo "skip example ga_matmul: no Global Arrays for $MPI_NAME"
      example=heat
    fi
    check example timeout 600 ./mpirun.sh --mpi "$MPI_NAME" -n 4 --example "$example" || true
    if [[ -n $release || -n $full && $MPI_NAME == "${mpis[0]}" ]]; then check listings shown_examples || true; fi
    if [[ -n $release ]]; then products_by_blas; fi
  fi
}

# Builds the pages of docs/ as a book. The unit tests check links and listings, so mdBook is built
# from crates.io, while the tests run, only for a release.
BOOK_TOOL=$ROOT/target/tools/bin/mdbook mdbook=''
begin_book() {
  if command -v mdbook >/dev/null; then
    BOOK_TOOL=mdbook
  elif [[ -n $release && ! -x $BOOK_TOOL ]]; then
    begin mdbook nice cargo install --debug --locked --root target/tools --target-dir target/tools/build \
      --no-default-features --features search --version '^0.5' mdbook
    mdbook=$running
  fi
}
check_book() {
  if [[ -n $mdbook ]]; then
    printf '%-8s %-12s ' "$MPI_TAG" mdbook
    running=$mdbook
    await mdbook
    rm -rf target/tools/build
    if ((code != 0)); then
      echo "skipped, and with it the book: mdBook could not be built"
      show_log
      return
    fi
    echo ok
    passed=$((passed + 1))
  fi
  if [[ $BOOK_TOOL == mdbook || -x $BOOK_TOOL ]]; then check book "$BOOK_TOOL" build docs || true; fi
}

cd "$ROOT"
scripts/setup.sh --mpi "$mpi" ${full:+--cmake} ${release:+--tests}
if [[ -n $full && $only != rest ]]; then
  test_quickly
  if [[ -z $only ]]; then echo "so far $passed passed, $failed failed"; fi
fi
if [[ $only != quick ]]; then
  if [[ -z $quick$filter ]]; then use_mpi "${mpis[0]}" && begin_book; fi
  for m in "${mpis[@]}"; do
    test_with "$m"
  done
fi
if [[ -z $quick$filter && $only != quick ]]; then
  use_mpi "${mpis[0]}"
  logged python scripts/dev python --mpi "$mpi"
  sed -n 's/^skip /    skipped: /p' "$log"
  count_tests
fi
if [[ -z $quick$filter && $only != quick ]]; then
  use_mpi "${mpis[0]}"
  check_book
  bare fresh scripts/dev fresh
  if [[ -n $release ]]; then
    bare fresh-two scripts/dev fresh --command two
    bare trixie scripts/dev fresh --release trixie
    bare trixie-two scripts/dev fresh --release trixie --command two
    bare user scripts/dev fresh --user
    bare user-two scripts/dev fresh --user --command two
    bare packages scripts/dev package-test
  fi
fi
echo "$passed passed, $failed failed"
((failed == 0))
