#!/usr/bin/env bash
# Usage: scripts/test-programs.sh --mpi mpich|openmpi [--full | --plan FILE] [FILTER]
#        scripts/test-programs.sh --mpi mpich|openmpi --programs
#
# Builds the programs of tests/c, tests/fortran and tests/ga, and some examples, against
# the library installed in target/MPI/prefix, as users build theirs, and runs each with
# several numbers of ranks and transfer paths. A program passes when it ends with exit code
# 0 and one line `PASS name`; a call that must end the job passes when it does. One line
# a case; the last line is `N passed, N failed`, and the exit code is 0 when none failed.
#
#   --full    each program with every path, node size and number of ranks, not some
#   --plan F  the cases of the file F instead, a line `PROGRAM|RANKS|SETTINGS|ARGUMENTS`
#             each; scripts/regress.sh makes such files
#   --programs  prints the programs that move data between ranks, and stops
#   FILTER    only cases whose line contains FILTER, and only the programs they need
#
# A case that has not ended at its deadline says where each rank stood.
# The programs are left in target/MPI/programs, with the seconds of each case in times.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

mpi='' full=${PORTOLAN_TEST_FULL:-} plan_file='' programs_only='' filter=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --full) full=1 && shift ;;
    --plan) needs_value "$@" && plan_file=$(realpath "$2") && shift 2 ;;
    --programs) programs_only=1 && shift ;;
    -h | --help) usage && exit ;;
    -*) die "unknown option '$1', see --help" ;;
    *) filter=$1 && shift ;;
  esac
done
[[ -n $mpi ]] || die "which MPI? see --help"
use_mpi "$mpi"
cd "$ROOT"
[[ -e $PREFIX/lib/libarmci.so ]] ||
  die "nothing is installed in $PREFIX: scripts/install.sh --mpi $MPI_NAME --prefix $PREFIX"
# The programs see the settings of their case, not the caller's.
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do unset "$variable"; done

LIMIT=90 # seconds for one run
BIN=$CARGO_TARGET_DIR/programs
RUN=programs-$$ # marks our processes
OUT=$BIN/stdout ERR=$BIN/stderr
mkdir -p "$BIN"/{c,ga,fortran,link,cmake,examples}
exec 9>"$BIN/.lock"
flock -n 9 || { echo "waiting for another run in $BIN" >&2 && flock 9; }

# Processes that a launch, or any launch of ours, has left. A cluster's hosts have
# processes of their own, which its head sees too.
ours() { # launch, or nothing
  grep -lzsE "^PORTOLAN_TEST_RUN=$RUN-${1:-[0-9]+}\$" /proc/[0-9]*/environ | cut -d / -f 3 || true
}
kill_ours() {
  local pids
  readarray -t pids < <(ours "$@")
  if ((${#pids[@]})); then kill -KILL "${pids[@]}" 2>/dev/null || true; fi
}
trap kill_ours EXIT
trap 'echo interrupted >&2 && exit 130' INT
trap 'echo terminated >&2 && exit 143' TERM

passed=0 failed=0 seconds=''
: >"$BIN/times"

ok() { # case
  passed=$((passed + 1))
  echo "ok   $1 ${seconds}s"
}

bad() { # case, why, files of output ...
  failed=$((failed + 1))
  echo "FAIL $1${seconds:+ ${seconds}s}: $2"
  tail -q -n "${tail_lines:-12}" "${@:3}" | cut -c1-240 | sed 's/^/     | /'
}

# ------------------------------------------------------------------ building

OTHER=openmpi && if [[ $MPI == openmpi ]]; then OTHER=mpich; fi
OTHER_PREFIX=$ROOT/target/$OTHER/prefix
INCLUDE=("-I$PREFIX/include")
LINK=("-L$PREFIX/lib" "-Wl,-rpath,$PREFIX/lib")
C99=("$MPICC" -std=c99 -O1 -g -Wall -Wextra -Werror)
read -ra GA_FLAGS <<<"$("$GA_CONFIG" --cppflags)"
read -ra GA_LIBS <<<"$("$GA_CONFIG" --ldflags) $("$GA_CONFIG" --libs) $("$GA_CONFIG" --flibs)"
read -ra GA_FORTRAN <<<"$("$GA_CONFIG" --fflags)"

# Sets command to what builds a program, and linked to what ldd must then say of it.
how_to_build() { # program
  local name=${1#*/} out=$BIN/$1 link=armci INCLUDE=("${INCLUDE[@]}")
  case $name in x10_*) link=x10 ;; lapi_*) link=lapi_r ;; cp_*) link=compose ;; mercury_*) link=mercury ;; esac
  if [[ $name == mercury2_* ]]; then link=mercury2 INCLUDE=("-I$PREFIX/include/mercury2" "${INCLUDE[@]}"); fi
  linked="libportolan\.so\.0 => $PREFIX/lib/"
  case $1 in
    c/cxx | c/*_cxx) # -Wextra finds fault with the C++ interface of Open MPI's mpi.h
      command=("$MPICXX" -std=c++11 -O1 -g -Wall -Wextra -Werror -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX
        "${INCLUDE[@]}" "tests/c/$name.cpp" -o "$out" "${LINK[@]}" "-l$link") ;;
    c/x10_library)
      command=(build_with_library "tests/c/$name.c" "$out" "${LINK[@]}" "-l$link") ;;
    c/*)
      command=("${C99[@]}" "${INCLUDE[@]}" "tests/c/$name.c" -o "$out" "${LINK[@]}" "-l$link") ;;
    ga/ga_fortran)
      command=("$MPIFORT" -O1 -g -Wall -J "$BIN/ga" "${GA_FLAGS[@]}" "${GA_FORTRAN[@]}" tests/ga/ga_fortran.F90
        -o "$out" "${LINK[@]}" "${GA_LIBS[@]}") ;;
    ga/*)
      command=("$MPICC" -O1 -g -Wall -Wextra -Werror "${INCLUDE[@]}" "${GA_FLAGS[@]}" "tests/ga/$name.c"
        -o "$out" "${LINK[@]}" "${GA_LIBS[@]}") ;;
    fortran/lapi_*)
      command=("$MPIFORT" -O1 -g -Wall -Werror "${INCLUDE[@]}" -J "$BIN/fortran" "tests/fortran/$name.f90"
        -o "$out" "${LINK[@]}" -llapi_r) ;;
    fortran/*)
      command=("$MPIFORT" -O1 -g -Wall -J "$BIN/fortran" "tests/fortran/$name.f90" -o "$out" "${LINK[@]}" -larmci) ;;
    examples/io_forwarding.c)
      command=("$MPICC" -O2 -Wall -Wextra -Werror -pthread "${INCLUDE[@]}" examples/c/io_forwarding*.c -o "$out"
        "${LINK[@]}" -lmercury) ;;
    examples/*) # in Rust
      linked=''
      command=(build_example "$name" "$out") ;;
    link/*.static) # the archive and nothing else
      linked=''
      command=("${C99[@]}" "${INCLUDE[@]}" "tests/c/${name%.*}.c" -o "$out" "-L$PREFIX/lib" "-l:lib$link.a") ;;
    link/*.debian-header) # what was compiled with Debian's armci.h
      mkdir -p "$BIN/debian"
      ln -sf "$PREFIX/include/portolan.h" "$BIN/debian/"
      command=("${C99[@]}" -DDEBIAN_HEADER -DARMCI_SUCCESS=0 "-I$BIN/debian" "tests/c/${name%.*}.c" -o "$out"
        "${LINK[@]}" -larmci) ;;
    link/*.pkg-config) # not even the MPI's compiler
      local flags
      read -ra flags <<<"$(PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig pkg-config --cflags --libs "$link" armci)"
      command=(gcc -std=c99 -O1 -g "tests/c/${name%.*}.c" -o "$out" "${flags[@]}" "-Wl,-rpath,$PREFIX/lib") ;;
    link/*.cmake)
      write_cmake "${name%.*}" "$link"
      command=(cmake_build "$BIN/cmake" "$out") ;;
    link/*.other-library) # our compiler, the other MPI's library
      linked="libportolan\.so\.0 => $OTHER_PREFIX/lib/"
      command=("${C99[@]}" "${INCLUDE[@]}" "tests/c/${name%.*}.c" -o "$out"
        "-L$OTHER_PREFIX/lib" "-Wl,-rpath,$OTHER_PREFIX/lib" -larmci) ;;
  esac
}

# A program and, beside it, the library that it loads: one source.
build_with_library() { # source, program, linker flags ...
  "${C99[@]}" "${INCLUDE[@]}" -DLIBRARY -shared -fPIC "$1" -o "$2.so" &&
    "${C99[@]}" "${INCLUDE[@]}" "$1" -o "$2" "${@:3}"
}

build_example() { # name of a Rust example, program
  cargo build --release --example "$1" && cp "$CARGO_TARGET_DIR/release/examples/$1" "$2"
}

write_cmake() { # name of a C program, its library
  cat >"$BIN/cmake/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.13)
project(program C)
find_package(Portolan 0.1 REQUIRED)
add_executable(program "$ROOT/tests/c/$1.c")
target_link_libraries(program PRIVATE Portolan::$2 Portolan::armci)
CMAKE
}
cmake_build() { # directory, program
  rm -rf "$1/build"
  cmake -S "$1" -B "$1/build" "-DCMAKE_PREFIX_PATH=$PREFIX" && cmake --build "$1/build" && cp "$1/build/program" "$2"
}

# Builds a program; where that fails there is no program, and its log says why.
build() { # program
  local command linked
  how_to_build "$1"
  rm -f "$BIN/$1"
  echo "${command[*]}"
  "${command[@]}" || { rm -f "$BIN/$1" && return 1; }
  if [[ -n $linked ]]; then
    ldd "$BIN/$1" | grep "$linked" && return
  elif ! ldd "$BIN/$1" | grep libportolan; then
    return
  fi
  ldd "$BIN/$1"
  echo "is not linked with our library as it should be"
  rm -f "$BIN/$1"
  return 1
}

build_all() { # programs ..., two at a time
  local p
  for p in "$@"; do
    while (($(jobs -rp | wc -l) >= 2)); do wait -n || true; done
    build "$p" >"$BIN/$p.log" 2>&1 9>&- &
  done
  wait
  for p in "$@"; do
    if [[ ! -x $BIN/$p ]]; then bad "$p" "does not build" "$BIN/$p.log"; fi
  done
}

# ------------------------------------------------------------------- running

# Runs a launcher; its exit code is in $code, and $why says what speaks against the
# launch whatever it was to do. Nothing of it is left running. Its output is in $OUT and
# $ERR: launchers pass the two on in pieces that need not be lines, which in one file
# would get into each other.
runs=0
launch() { # environment assignments ..., launcher ...
  local begin=${EPOCHREALTIME/[.,]/} micros i
  runs=$((runs + 1)) code=0 why=''
  # In the background, because a shell that waits for a command takes no signal.
  env PORTOLAN_WATCHDOG=20 CLUSTER_KEEP=PORTOLAN_TEST_RUN \
    scripts/deadline.sh "$LIMIT" "PORTOLAN_TEST_RUN=$RUN-$runs" env "$@" >"$OUT" 2>"$ERR" </dev/null 9>&- &
  wait $! || code=$?
  free_verdicts "$OUT"
  micros=$((${EPOCHREALTIME/[.,]/} - begin))
  seconds=$(printf '%d.%02d' $((micros / 1000000)) $((micros / 10000 % 100)))
  printf '%s\t%s\n' "$seconds" "$case" >>"$BIN/times"
  files_left
  ((code == 0)) && return
  if ((code == 124)); then why="not at its end after $LIMIT seconds"; fi
  # The launcher of a job that fails may end a little before its ranks do.
  for i in {1..30}; do
    [[ -n $(ours "$runs") ]] || return 0
    sleep 0.1
  done
  kill_ours "$runs"
  why="${why:+$why, and }left processes behind"
}

# What a launch on hosts of a cluster has left there. It is taken away; files of ours speak
# against the launch, those of an MPI only where it ended well.
files_left() {
  [[ -n ${CLUSTER_DIR:-} ]] || return 0
  local left
  left=$(scripts/cluster.sh left)
  [[ -n $left ]] || return 0
  if ((code == 0)) || [[ $left == *[/\ ]portolan* ]]; then why="left files behind: ${left//$'\n'/, }"; fi
  scripts/cluster.sh left --remove
}

FORTRAN='' && if has_fortran; then FORTRAN=1; fi

# Why a program cannot be built on this system; nothing where it can.
lacks() { # program
  case $1 in
    ga/*) if ! has_ga; then echo "no Global Arrays for $MPI_NAME"; fi ;;&
    fortran/* | ga/ga_fortran) if [[ -z $FORTRAN ]]; then echo "no Fortran compiler for $MPI_NAME"; fi ;;
  esac
}

# Cases: a label, what it takes to pass, the program, ranks, settings, arguments.
cases=()
plan() { # pass|abort, program, ranks, settings, argument ...
  local label="$2${5:+ ${*:5}} [n=$3${4:+ $4}]" why
  if [[ $label == *"$filter"* ]]; then
    why=$(lacks "$2")
    if [[ -n $why ]]; then
      echo "skip $label: ${why//$'\n'/, }"
      return
    fi
    cases+=("$label|$1|$2|$3|$4|${*:5}")
  fi
}

run_case() { # a line of cases
  local kind program ranks settings arguments word env=() args launcher=("${LAUNCH[@]}")
  IFS='|' read -r case kind program ranks settings arguments <<<"$1"
  [[ -x $BIN/$program ]] || return 0 # counted when it did not build
  for word in $settings; do
    case $word in
      path=*) env+=("PORTOLAN_PATH=${word#*=}") ;;
      node-size=*) env+=("PORTOLAN_NODE_SIZE=${word#*=}") ;;
      waits=*) env+=("PORTOLAN_MPI_WAITS=${word#*=}") ;;
      thread=*) env+=("PORTOLAN_PROGRESS_THREAD=${word#*=}") ;;
      am=*) env+=("PORTOLAN_AM=${word#*=}") ;;
      route=*) env+=("PORTOLAN_ROUTE_RANKS=${word#*=}") ;;
      cross-memory=*) env+=("PORTOLAN_CROSS_MEMORY=${word#*=}") ;;
      level=single) env+=("PORTOLAN_RAISE_THREAD_LEVEL=0") ;; # most ask for no more themselves
      hosts=*) launcher=("$ROOT/mpirun.sh" --mpi "$MPI_NAME" --per-host "${word#*=}") ;;
    esac
  done
  read -ra args <<<"$arguments"
  launch "PORTOLAN_TEST_RANKS=$ranks" "PORTOLAN_TEST_SECONDS=$((LIMIT + 20))" "${env[@]}" \
    "${launcher[@]}" -n "$ranks" "$BIN/$program" "${args[@]}"
  "judge_$kind"
}

judge_pass() {
  local name=${program#*/}
  if [[ -n $why ]]; then
    tail_lines=$((code == 124 ? 100 : 12)) bad "$case" "$why" "$ERR" "$OUT"
  elif ((code != 0)); then
    bad "$case" "exit code $code" "$ERR" "$OUT"
  elif [[ $(grep -a '^PASS' "$OUT") != "PASS ${name%.*}" ]]; then
    bad "$case" "does not say PASS ${name%.*} once" "$ERR" "$OUT"
  else
    ok "$case"
  fi
}

# A call that must end the job: a code that is not 0, and no way past the call.
judge_abort() {
  if [[ -n $why ]]; then
    bad "$case" "$why" "$ERR" "$OUT"
  elif ((code == 0)); then
    bad "$case" "exit code 0" "$ERR" "$OUT"
  elif ! grep -aqx "EXPECT-ABORT $arguments" "$OUT" || grep -aq '^FAIL' "$OUT"; then
    bad "$case" "the call did not end the job" "$ERR" "$OUT"
  else
    ok "$case"
  fi
}

# An example of I/O forwarding: its files were read back as written, and are gone.
judge_forwarding() {
  judge_end 0 '^io_forwarding: all [0-9]+ digests agree$'
}

# An exit code, a line of the output, and no directory of an I/O rank left.
judge_end() { # code, pattern
  local left
  left=$(sed -n 's/^I\/O rank [0-9]*: pid [0-9]*, files in //p' "$OUT" | while read -r dir; do
    if [[ -e $dir ]]; then echo "$dir"; fi
  done)
  if [[ -n $why ]]; then
    bad "$case" "$why" "$ERR" "$OUT"
  elif ((code != $1)); then
    bad "$case" "exit code $code, expected $1" "$ERR" "$OUT"
  elif ! grep -aqE "$2" "$OUT" || ! grep -aq 'No space left on device' "$OUT"; then
    bad "$case" "does not say '$2', and which errors came" "$ERR" "$OUT"
  elif [[ -n $left ]]; then
    bad "$case" "leaves $left" "$ERR" "$OUT"
  else
    ok "$case"
  fi
}

# A program that must be refused, with this text among its output.
judge_refused() { # text
  if [[ -n $why ]]; then
    bad "$case" "$why" "$ERR" "$OUT"
  elif ((code == 0)); then
    bad "$case" "exit code 0" "$ERR" "$OUT"
  elif ! grep -aqE "$1" "$OUT"; then
    bad "$case" "does not say '$1'" "$ERR" "$OUT"
  else
    ok "$case"
  fi
}

wanted() { # case
  case=$1
  [[ $case == *"$filter"* ]]
}

OTHER_LAUNCHER="guard/other-launcher [n=2]" OTHER_LIBRARY="guard/other-library [n=2]"

# Started by the other MPI's launcher, a program must not become n jobs of one rank.
run_other_launcher() {
  local other=()
  wanted "$OTHER_LAUNCHER" || return 0
  readarray -t other < <(use_mpi "$OTHER" && printf '%s\n' "${LAUNCH[@]}")
  if ! command -v "${other[0]}" >/dev/null || [[ ! -x $BIN/c/values ]]; then
    echo "skip $case: no ${other[0]}"
    return
  fi
  launch "${other[@]}" -n 2 "$BIN/c/values"
  judge_refused 'was started by the mpiexec of'
}

# Linked with the library for the other MPI, a program must be told so.
run_other_library() {
  wanted "$OTHER_LIBRARY" || return 0
  if [[ ! -e $OTHER_PREFIX/lib/libarmci.so ]]; then
    echo "skip $case: nothing is installed in $OTHER_PREFIX"
    return
  fi
  build_all link/values.other-library
  [[ -x $BIN/link/values.other-library ]] || return 0
  launch "${LAUNCH[@]}" -n 2 "$BIN/link/values.other-library"
  judge_refused 'this library was built for .* but the program runs on'
}

DYNAMIC="c/mercury_dynamic server, clients and strangers [jobs=7]"

# A server and clients, each a job of its own, that find each other by a file, among strangers.
run_dynamic() {
  wanted "$DYNAMIC" || return 0
  if [[ $MPI != openmpi ]] || ! command -v ompi-server >/dev/null; then
    echo "skip $case: no ompi-server for $MPI"
    return
  fi
  if [[ ! -x $BIN/c/mercury_dynamic ]]; then build_all c/mercury_dynamic; fi
  [[ -x $BIN/c/mercury_dynamic ]] || return 0
  launch "PORTOLAN_TEST_RANKS=1" "PORTOLAN_TEST_SECONDS=$((LIMIT - 10))" \
    tests/c/mercury_dynamic.sh "$BIN/c/mercury_dynamic" "${LAUNCH[@]}"
  if [[ -n $why ]]; then
    bad "$case" "$why" "$ERR" "$OUT"
  elif ((code != 0)); then
    bad "$case" "exit code $code" "$ERR" "$OUT"
  elif (($(grep -ac '^PASS mercury_dynamic$' "$OUT") != 6)); then
    bad "$case" "not all six jobs that end pass" "$ERR" "$OUT"
  elif ! grep -aq '^PASS mercury_dynamic_stranger$' "$OUT"; then
    bad "$case" "the stranger does not pass" "$ERR" "$OUT"
  else
    ok "$case"
  fi
}

TERMINATED=(examples/io_forwarding examples/io_forwarding.c)

# Sends SIGTERM to the first I/O rank when it has written some files.
terminate_server() {
  local pid='' dir='' i
  for i in {1..600}; do
    read -r pid dir < <(sed -n 's/^I\/O rank 0: pid \([0-9]*\), files in /\1 /p' "$OUT" 2>/dev/null) || true
    if [[ -n $dir && -e $dir/rank-1-file-3 ]]; then
      kill -TERM "$pid"
      return
    fi
    sleep 0.05
  done
}

# An I/O rank under SIGTERM completes what it has begun, and the job ends in order.
run_terminated() { # program
  local helper
  wanted "$1 SIGTERM to the server [n=2]" || return 0
  [[ -x $BIN/$1 ]] || return 0
  : >"$OUT"
  terminate_server 9>&- &
  helper=$!
  launch "${LAUNCH[@]}" -n 2 "$BIN/$1" --size 16M --files 80 --window 4
  kill "$helper" 2>/dev/null || true
  wait "$helper" || true
  if [[ -z $why ]] && ! grep -aqE '^I/O rank 0: SIGTERM; [0-9]+ calls are completed first$' "$OUT"; then
    why="SIGTERM is not told"
  fi
  judge_end 3 '^io_forwarding: ended early by SIGTERM: [0-9]+ of 80 files written whole, 0 compared, none differs$'
}

# -------------------------------------------------------------------- matrix

COMPOSE=(cp_patterns cp_random cp_store cp_errors)
ALL=(abi symbols cxx contiguous strided vector accumulate rmw values flags handles mutexes memory
  groups messages reductions domains notify stride_info part lifecycle peer_faults errors interpose "${COMPOSE[@]}")
MOVING=(contiguous strided vector accumulate rmw values flags handles mutexes memory groups
  notify part peer_faults errors)
X10=(x10_copy x10_vector x10_strided x10_values x10_switches x10_async x10_aggregate x10_lock
  x10_environment x10_lifecycle x10_library x10_symbols x10_cxx x10_names x10_then_lapi lapi_then_x10
  x10_then_lapi_cxx lapi_then_x10_cxx)
LAPI=(lapi_abi lapi_example lapi_amsend lapi_counters lapi_handlers lapi_putget lapi_invalid
  lapi_environment lapi_polling lapi_conduit lapi_gups lapi_interpose lapi_cxx
  lapi_util lapi_status lapi_multicast lapi_server lapi_x10_runtime)
LAPI_MOVING=(lapi_example lapi_amsend lapi_counters lapi_handlers lapi_putget lapi_invalid lapi_environment
  lapi_polling lapi_conduit lapi_gups lapi_util lapi_status lapi_multicast lapi_server lapi_x10_runtime)
ALONE=(mercury_checksum mercury_proc mercury_macros mercury_cxx mercury_symbols mercury2_symbols
  mercury2_proc mercury2_cxx) # they do not communicate
MERCURY=(mercury_na mercury_mem mercury_withdrawn mercury_rpc mercury_today mercury_lifetime mercury_nesting
  mercury_long mercury_bulk mercury_errors mercury_stubs
  mercury2_rpc mercury2_bulk mercury2_core mercury2_example mercury2_invalid)
GA=(ga_fortran)
for f in tests/ga/*.c; do GA+=("$(basename "$f" .c)"); done
GA_SOME=(ga_acc ga_copy ga_dgemm ga_elem ga_groups ga_nonblocking ga_patches ga_read_inc ga_scatter)

# The default run takes one of several cases of a program, another one for the next
# program; the full run takes every case.
turn=0
one_of() { # program, "ranks settings" ...
  local chosen=("${@:2}") case ranks settings
  turn=$((turn + 1))
  if [[ -z $full ]]; then chosen=("${chosen[turn % ($# - 1)]}"); fi
  for case in "${chosen[@]}"; do
    read -r ranks settings <<<"$case"
    plan pass "$1" "$ranks" "$settings"
  done
}

plan_all() {
  local p n
  for p in "${ALONE[@]}"; do plan pass "c/$p" 1 ''; done
  plan pass c/mercury_dynamic 1 ''
  for p in "${MERCURY[@]}"; do
    plan pass "c/$p" 2 ''
    one_of "c/$p" '4 node-size=2' '3 node-size=1' '3 cross-memory=off'
    if [[ -n $full ]]; then
      for n in 1 3 4; do plan pass "c/$p" "$n" ''; done
      plan pass "c/$p" 2 path=message
      plan pass "c/$p" 2 am=mpi
      plan pass "c/$p" 2 'thread=0 node-size=1'
    fi
  done
  plan pass link/mercury_rpc.static 2 ''
  plan pass link/mercury2_example.static 2 ''
  for n in 2 3; do plan pass c/mpi_waits "$n" 'thread=0 node-size=1'; done
  plan pass c/mpi_waits 2 'level=single node-size=1'
  one_of c/mpi_waits 2 '4 node-size=2' '3 path=rma' '3 node-size=1 waits=0'
  for p in "${ALL[@]}"; do
    one_of "c/$p" 2 1 3
    if [[ -n $full ]]; then plan pass "c/$p" 4 ''; fi
  done
  for p in "${MOVING[@]}" "${COMPOSE[@]}"; do
    if [[ -n $full ]]; then
      plan pass "c/$p" 2 path=message
      plan pass "c/$p" 2 path=rma
      plan pass "c/$p" 2 node-size=1
      plan pass "c/$p" 3 node-size=2
    fi
    one_of "c/$p" '3 path=message' '3 path=rma' '3 node-size=1'
    plan pass "c/$p" 4 node-size=2
  done
  # An interface before the program's own MPI_Init.
  for p in armci x10 lapi compose na hg; do
    plan pass c/init_first 2 '' "$p" early
    plan pass c/init_first 2 '' "$p" late
    if [[ -n $full ]]; then
      for n in early late; do plan pass c/init_first 3 node-size=1 "$p" "$n"; done
      plan pass c/init_first 1 '' "$p" late
    fi
  done
  plan pass link/init_first.static 2 '' lapi late
  plan pass fortran/lapi_first 2 ''
  for p in "${X10[@]}"; do
    one_of "c/$p" 2 3 1 '3 cross-memory=off'
    plan pass "c/$p" 3 node-size=2
    if [[ -n $full ]]; then
      plan pass "c/$p" 4 ''
      plan pass "c/$p" 2 am=mpi
      plan pass "c/$p" 3 'thread=0 node-size=1'
      plan pass "c/$p" 2 path=rma
    fi
  done
  plan pass c/x10_aggregate 4 'node-size=2 route=1'
  plan pass c/x10_aggregate 3 'node-size=1 route=1'
  for p in alone after; do plan pass c/x10_lifecycle 2 '' "$p"; done
  for p in index library; do plan abort c/x10_library 2 '' "$p"; done
  plan pass link/x10_async.static 2 ''
  for p in "${LAPI[@]}"; do
    one_of "c/$p" 2 3 1
    if [[ -n $full ]]; then plan pass "c/$p" 4 ''; fi
  done
  for p in "${LAPI_MOVING[@]}"; do
    one_of "c/$p" '2 node-size=1' '2 cross-memory=off' '3 am=mpi' '4 node-size=2'
  done
  for p in lapi_amsend lapi_counters lapi_handlers; do
    plan pass "c/$p" 3 '' polling
    if [[ -n $full ]]; then plan pass "c/$p" 3 node-size=1 polling; fi
  done
  plan pass c/lapi_polling 3 'thread=0 node-size=1'
  plan pass fortran/lapi_fortran 1 ''
  plan pass fortran/lapi_fortran 3 ''
  plan pass fortran/lapi_fortran 2 node-size=1
  plan pass link/lapi_interpose.static 2 ''
  for p in "${GA[@]}"; do
    if [[ -n $full ]]; then plan pass "ga/$p" 2 ''; fi
    one_of "ga/$p" '4 node-size=2' 4
  done
  for p in "${GA_SOME[@]}"; do
    one_of "ga/$p" '2 path=message' '2 path=rma' '4 node-size=2'
  done
  for p in alone before after messages; do plan pass c/lifecycle 2 '' "$p"; done
  plan pass c/memory 2 '' 2500
  plan pass c/traffic 2 node-size=1
  for p in io_forwarding io_forwarding.c; do
    for n in 2 4; do plan forwarding "examples/$p" "$n" '' --size 3M --files 3 --segment 10000; done
    plan forwarding "examples/$p" 4 node-size=1 --size 3M --files 3 --io-ranks 2
    if [[ -n $full ]]; then
      plan forwarding "examples/$p" 1 '' --size 3M --chunk 100K --buffer 300K
      plan forwarding "examples/$p" 3 am=mpi --size 3M --segment 3M --window 5
    fi
  done
  for n in 1 3; do # stored by one launch, loaded by the next one
    for p in write read; do plan pass c/cp_store "$n" '' "$p"; done
  done
  plan pass link/cp_errors.static 2 ''
  plan pass fortran/armci_fortran 3 ''
  plan pass fortran/armci_fortran 2 node-size=1
  plan pass fortran/mpi_f08 2 ''
  plan pass link/interpose.static 2 ''
  plan pass link/contiguous.static 2 ''
  if [[ -e /usr/include/armci.h ]]; then plan pass link/abi.debian-header 2 ''; else echo "skip link/abi.debian-header: no Debian's armci.h"; fi
  if command -v pkg-config >/dev/null; then
    plan pass link/values.pkg-config 2 ''
    plan pass link/mercury2_example.pkg-config 2 ''
  else echo "skip link/values.pkg-config: no pkg-config"; fi
  if command -v cmake >/dev/null; then plan pass link/values.cmake 2 ''; else echo "skip link/values.cmake: no cmake"; fi
}

# Every case in turn, or every third.
plan_aborts() {
  local program name i=0
  for program in errors lapi_errors; do
    [[ -x $BIN/c/$program ]] || continue
    for name in $("$BIN/c/$program" list); do
      if [[ -n $full ]] || ((i++ % 3 == 0)); then plan abort "c/$program" 2 '' "$name"; fi
    done
  done
}

# A file of cases instead of the table.
plan_from() { # file
  local program ranks settings arguments
  while IFS='|' read -r program ranks settings arguments; do
    read -ra arguments <<<"$arguments"
    plan pass "$program" "$ranks" "$settings" "${arguments[@]}"
  done <"$1"
}

if [[ -n $programs_only ]]; then
  printf 'c/%s\n' "${ALL[@]}" traffic "${X10[@]}" "${LAPI[@]}" "${MERCURY[@]}"
  if [[ -n $FORTRAN ]]; then printf 'fortran/%s\n' armci_fortran lapi_fortran mpi_f08; fi
  if has_ga; then
    for p in "${GA[@]}"; do if [[ -z $(lacks "ga/$p") ]]; then echo "ga/$p"; fi; done
  fi
  exit
fi
if [[ -n $plan_file ]]; then plan_from "$plan_file"; else plan_all; fi
programs=()
if [[ -z $plan_file ]]; then programs+=(c/errors c/lapi_errors); fi # they name the cases of abort
for line in "${cases[@]}"; do
  IFS='|' read -r _ _ program _ <<<"$line"
  programs+=("$program")
done
if [[ -z $plan_file ]]; then
  if wanted "$OTHER_LAUNCHER"; then programs+=(c/values); fi
  for p in "${TERMINATED[@]}"; do
    if wanted "$p SIGTERM to the server [n=2]"; then programs+=("$p"); fi
  done
fi
readarray -t programs < <(printf '%s\n' "${programs[@]}" | sort -u)
build_all "${programs[@]}"
if [[ -z $plan_file ]]; then plan_aborts; fi
for line in "${cases[@]}"; do run_case "$line"; done
if [[ -z $plan_file ]]; then
  run_dynamic
  for p in "${TERMINATED[@]}"; do run_terminated "$p"; done
  run_other_launcher
  run_other_library
fi
echo "$passed passed, $failed failed"
((failed == 0))
