#!/usr/bin/env bash
# Usage: scripts/faults.sh [--mpi mpich|openmpi|all] [--quick|--full] [--list] [FILTER]
#
# Runs programs against which something goes wrong: ranks that are killed, leave or hang,
# targets that compute or are stopped, too little memory, few descriptors, floods, bad
# input to every C call. What has to happen in each case is in docs/faults.md.
#
# Each launch gets file systems of its own for /dev/shm and TMPDIR and a process space of its
# own, where the system permits, so that what it leaves is seen exactly: a case passes when
# it ends as it must, in its time, and leaves no process and no file. One line a case; the
# last line is `N passed, N failed`, and the exit code is 0 when none failed.
#
#   --mpi M   one MPI, the default is all
#   --quick   fewer cases, and small floods
#   --full    floods of ten million operations of each kind
#   --list    the cases, without running them
#   FILTER    only cases whose line contains FILTER
#
# It wants the library installed in target/MPI/prefix (scripts/install.sh).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

mpi=all size='' list='' filter=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --quick) size=quick && shift ;;
    --full) size=full && shift ;;
    --list) list=1 && shift ;;
    -h | --help) usage && exit ;;
    -*) die "unknown option '$1', see --help" ;;
    *) filter=$1 && shift ;;
  esac
done
if [[ -n ${PORTOLAN_TEST_QUICK:-} && -z $size ]]; then size=quick; fi
choose_mpis "$mpi"
cd "$ROOT"
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do unset "$variable"; done

passed=0 failed=0 skipped=0
ok() { # case, note
  passed=$((passed + 1))
  echo "ok   $1 ${seconds}s${2:+ ($2)}"
}
bad() { # case, why
  failed=$((failed + 1))
  echo "FAIL $1 ${seconds}s: $2"
  tail -q -n 15 "$dir/err" "$dir/out" | cut -c1-240 | sed 's/^/     | /'
}
skip() { # case, why
  skipped=$((skipped + 1))
  echo "skip $1: $2"
}

# ------------------------------------------------------------------- launching

# Whether this user may have name spaces of its own.
apart=''
if unshare -m -p -f --mount-proc sh -c 'mount -t tmpfs tmpfs /dev/shm' 2>/dev/null; then apart=1; fi
RUN=faults-$$

# What runs inside: $1 is the directory of results, $2 the seconds, $3 the options of /dev/shm.
# Launchers that ended may still be ending their ranks: these get three seconds.
inside() {
  cat <<'SH'
    results=$1 limit=$2 shm=$3 session=$1/session; shift 3
    mkdir -p "$session" && mount -t tmpfs tmpfs "$session" && mount -t tmpfs -o "$shm" tmpfs /dev/shm || exit 120
    export TMPDIR=$session
    timeout -k 5 "$limit" "$@" >"$results/out" 2>"$results/err" </dev/null
    code=$?
    others() { ps -e -o pid= -o stat= -o args= | awk -v me=$$ '$1 != me && $2 !~ /^Z/ && !/ ps -e| awk -v/ && $1 != 1'; }
    # The last look counts: one more could meet its own awk while that is starting.
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do left=$(others); [ -z "$left" ] && break; sleep 0.2; done
    printf '%s' "$left" >"$results/orphans"
    find /dev/shm "$session" ! -type d >"$results/files"
    exit $code
SH
}

# Processes and files that a launch without name spaces has left.
ours() {
  grep -lzsE "^PORTOLAN_TEST_RUN=$RUN\$" /proc/[0-9]*/environ | cut -d / -f 3 || true
}
kill_ours() {
  local pids
  readarray -t pids < <(ours)
  if ((${#pids[@]})); then kill -KILL "${pids[@]}" 2>/dev/null || true; fi
}
trap kill_ours EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

shm='' # options of the file system on /dev/shm
launch() { # seconds, environment assignments ..., launcher ...
  local limit=$1 begin=${EPOCHREALTIME/[.,]/} micros i
  shift
  rm -rf "$dir"/{out,err,orphans,files}
  : >"$dir/orphans" && : >"$dir/files"
  code=0
  if [[ -n $apart ]]; then
    env PORTOLAN_TEST_RUN="$RUN" unshare -m -p -f --mount-proc \
      sh -c "$(inside)" faults "$dir" "$limit" "${shm:-size=50%}" env "$@" 9>&- &
  else
    env PORTOLAN_TEST_RUN="$RUN" timeout -k 5 "$limit" env "$@" >"$dir/out" 2>"$dir/err" </dev/null 9>&- &
  fi
  wait $! || code=$?
  free_verdicts "$dir/out"
  micros=$((${EPOCHREALTIME/[.,]/} - begin))
  printf -v seconds '%d.%02d' $((micros / 1000000)) $((micros / 10000 % 100))
  late='' && if ((micros >= limit * 1000000)); then late=1; fi
  if [[ -z $apart ]]; then
    for i in {1..15}; do [[ -n $(ours) ]] || break; sleep 0.2; done
    ours >"$dir/orphans"
    kill_ours
    find /dev/shm -name 'portolan.*' -user "$(id -u)" >"$dir/files" 2>/dev/null || true
  fi
}

# What speaks against any launch.
trouble() {
  if [[ -n $late ]]; then
    echo "not at its end after its time"
  elif ((code == 120)); then
    echo "could not be set up"
  elif [[ -s $dir/orphans ]]; then
    echo "left processes behind: $(head -n 3 "$dir/orphans" | tr '\n' ';')"
  elif [[ -s $dir/files ]]; then
    echo "left files behind: $(head -n 5 "$dir/files" | tr '\n' ' ')"
  fi
}

# ------------------------------------------------------------------------ cases

# Kinds: pass (PASS, status 0), end (status not 0 after EXPECT-END),
# abort (status not 0 after EXPECT-ABORT, and a message that names the call). Texts that
# must be in the output follow, separated by ~.
run_case() { # kind, seconds, program, ranks, settings, arguments, texts
  local kind=$1 limit=$2 program=$3 ranks=$4 settings=$5 arguments=$6 texts=$7
  local label="$program${arguments:+ $arguments} [$MPI n=$ranks${settings:+ $settings}]" word env=() args why text note pinned=''
  [[ $label == *"$filter"* ]] || return 0
  if [[ -n $list ]]; then echo "$label"; return; fi
  shm='' seconds=0
  for word in $settings; do
    case $word in
      path=*) env+=("PORTOLAN_PATH=${word#*=}") ;;
      node-size=*) env+=("PORTOLAN_NODE_SIZE=${word#*=}") ;;
      am=*) env+=("PORTOLAN_AM=${word#*=}") ;;
      watchdog=*) env+=("PORTOLAN_WATCHDOG=${word#*=}") ;;
      abort=*) env+=("PORTOLAN_WATCHDOG_ABORT=${word#*=}") ;;
      shm=*) shm=size=${word#*=} ;;
    esac
  done
  if [[ -n $shm && -z $apart ]]; then skip "$label" "mounting a file system is not permitted"; return; fi
  read -ra args <<<"$arguments"
  launch "$limit" "PORTOLAN_TEST_RANKS=$ranks" "PORTOLAN_TEST_SECONDS=$limit" "${env[@]}" \
    "${LAUNCH[@]}" -n "$ranks" "$bin/$program" "${args[@]}"
  why=$(trouble)
  case $kind in
    pass)
      if ((code != 0)); then why="exit code $code${why:+, and $why}"; fi
      if [[ -z $why && $(grep -ac '^PASS' "$dir/out") != 1 ]]; then why="does not say PASS once"; fi
      ;;
    end)
      if ((code == 0)) && [[ -n $forgets ]]; then
        pinned="the launcher's exit code 0: tests/mpi-bugs/killed_rank.c"
      elif ((code == 0)); then
        why="exit code 0${why:+, and $why}"
      fi
      if ! grep -aqx "EXPECT-END ${args[0]}" "$dir/out" || grep -aq '^FAIL' "$dir/out"; then
        why="did not get there, or went on${why:+, and $why}"
      fi
      ;;
    abort)
      if ((code == 0)); then why="exit code 0${why:+, and $why}"; fi
      if ! grep -aqx "EXPECT-ABORT ${args[0]}" "$dir/out" || grep -aq '^FAIL' "$dir/out"; then
        why="the call did not end the job${why:+, and $why}"
      fi
      ;;
  esac
  IFS='~' read -ra words <<<"$texts"
  for text in "${words[@]}"; do
    if [[ -z $why ]] && ! grep -aqE -- "$text" "$dir/out" "$dir/err"; then why="does not say '$text'"; fi
  done
  note=$(grep -aE '^rank [0-9]+: ' "$dir/out" | head -n 1 || true)
  if [[ -n $pinned ]]; then note+="${note:+; }pinned, $pinned"; fi
  if [[ -z $why ]]; then ok "$label" "$note"; else bad "$label" "$why"; fi
}

# The tables of bad input: program, library, page that the program prints.
INVALID=(
  "invalid armci errors"
  "x10_invalid x10 errors-x10"
  "lapi_invalid lapi_r errors-lapi"
  "cp_invalid compose errors-compose"
  "mercury_invalid mercury errors-mercury"
)

build() {
  local name link _
  while read -r name link _; do
    "$MPICC" -std=c99 -O1 -g -Wall -Wextra -Werror "-I$PREFIX/include" "tests/c/$name.c" -o "$bin/$name" \
      "-L$PREFIX/lib" "-Wl,-rpath,$PREFIX/lib" "-l$link" -lpthread 9>&- || die "tests/c/$name.c does not build"
  done < <(printf '%s\n' "faults armci" "${INVALID[@]}")
}

killed_and_gone() {
  local place name places=('' node-size=1)
  if [[ -z $size || $size == full ]]; then places+=(path=rma path=message); fi
  for place in "${places[@]}"; do
    for name in kill-holder kill-fence kill-collective exit-status; do
      run_case end 15 faults 3 "$place" "$name" ''
    done
    run_case end 15 faults 3 "$place" exit-early '\[2\] this rank leaves with status 0'
    run_case end 15 faults 2 "$place" "kill-allocate 20" ''
    if [[ $size != quick ]]; then
      for name in 0 7 53 131 211; do run_case end 15 faults 3 "$place" "kill-allocate $name" ''; done
    fi
  done
  run_case end 15 faults 2 '' exit-all 'leaves with status 0'
}

slow_targets() {
  local place computes=10 stops=5
  if [[ $size == quick ]]; then computes=2 stops=2; fi
  for place in '' path=message; do
    run_case pass 30 faults 3 "$place" "slow-target $computes" ''
    run_case pass 30 faults 3 "$place" "stopped-target $stops" ''
  done
  run_case pass 30 faults 3 node-size=1 "stopped-target $stops" ''
}

too_little() {
  local place
  for place in '' path=message; do
    run_case pass 20 faults 2 "$place shm=64m" 'small-shm 64' ''
    run_case pass 20 faults 3 "$place" no-memory ''
    run_case pass 60 faults 2 "$place" 'few-descriptors 1000' 'segments of 64 KiB'
  done
}

floods() {
  local count=1000000 place limit=180
  if [[ $size == quick ]]; then count=50000; fi
  if [[ $size == full ]]; then count=10000000 limit=1500; fi
  run_case pass "$limit" faults 3 '' "flood $count" ''
  run_case pass "$limit" faults 3 'node-size=1 path=message' "flood $count" ''
  if [[ $size != quick ]]; then run_case pass "$limit" faults 3 am=mpi "flood $count" ''; fi
}

# The watchdog names the call and the peer within its time, and then ends the job.
hangs() {
  local w='watchdog=1 abort=2'
  local ends='the job ends, as PORTOLAN_WATCHDOG_ABORT asks'
  run_case end 15 faults 2 "$w" hang-barrier "ARMCI_Barrier has waited 1\.[0-9] s for a barrier .* without rank 1~last progress~pending: ~called by hang_barrier~ARMCI_Barrier: no progress for .*$ends"
  run_case end 15 faults 2 "$w" hang-lock "ARMCI_Lock has waited 1\.[0-9] s for mutex 0 of rank 0, which rank 1 holds~called by hang_lock~ARMCI_Lock: no progress"
  run_case end 15 faults 2 "$w" hang-receive "armci_msg_rcv has waited 1\.[0-9] s for a message of rank 1 with tag 77~armci_msg_rcv: no progress for .*$ends"
  run_case end 15 faults 2 "$w path=message" hang-fence "ARMCI_Fence has waited 1\.[0-9] s for rank 1 to confirm~towards rank 1: [0-9]+ requests~ARMCI_Fence: no progress for .* rank 1 .*$ends"
  run_case end 15 faults 2 "$w path=message" hang-barrier "ARMCI_Barrier has waited 1\.[0-9] s for a barrier of 2 ranks~$ends"
  # From MPICH 4.2 on, windows on one machine complete without their target.
  local info
  info=$(PORTOLAN_NODE_SIZE=1 "${LAUNCH[@]}" -n 2 "$PREFIX/bin/portolan-info" </dev/null)
  if [[ $MPI == mpich && $info == *'windows wait for their target'* ]]; then
    run_case end 15 faults 2 "$w path=rma" hang-fence "a call has been 1\.[0-9] s in MPI_Win_flush towards rank 1~no progress for .* MPI_Win_flush towards rank 1.*$ends"
  elif [[ $MPI == mpich ]]; then
    echo "skip faults hang-fence [$MPI_NAME n=2 path=rma]: windows complete without their target"
  fi
  run_case pass 15 faults 2 '' asked '\[1\] waits in no call of the library \(asked by SIGUSR1\)~\[0\] ARMCI_Barrier has waited .* without rank 1 \(asked by SIGUSR1\)'
  run_case pass 15 faults 3 node-size=1 asked '\[2\] waits in no call of the library~\[0\] ARMCI_Barrier has waited .*asked by SIGUSR1'
  run_case pass 15 faults 2 '' own-handler ''
}

bad_input() {
  local name call program link page label i=0 n
  for n in 1 2 3; do
    if [[ $size != quick || $n == 2 ]]; then run_case pass 30 invalid "$n" '' '' ''; fi
  done
  run_case pass 30 invalid 3 node-size=1 '' ''
  run_case pass 30 invalid 2 path=message '' ''
  run_case pass 30 invalid 3 path=rma '' ''
  while read -r name call; do
    if [[ $size != quick ]] || ((i++ % 4 == 0)); then
      # With ARMCI_Error the program itself speaks.
      if [[ $call == ARMCI_Error ]]; then call='ARMCI error'; fi
      run_case abort 15 invalid 2 '' "$name" "(^|\\] )$call: "
    fi
  done < <("$bin/invalid" list)
  for program in x10_invalid lapi_invalid cp_invalid mercury_invalid; do
    run_case pass 30 "$program" 2 '' '' ''
    if [[ $size != quick ]]; then run_case pass 30 "$program" 3 node-size=1 '' ''; fi
    if [[ $size == full ]]; then
      run_case pass 30 "$program" 1 '' '' ''
      run_case pass 30 "$program" 3 node-size=2 '' ''
      run_case pass 30 "$program" 2 am=mpi '' ''
    fi
  done
  seconds=0
  while read -r program link page; do
    label="docs/$page.md is what $program prints [$MPI]"
    if [[ $label != *"$filter"* || -n $list ]]; then continue; fi
    if diff -u "docs/$page.md" <("$bin/$program" markdown) >"$dir/out" 2>"$dir/err"; then
      ok "$label"
    else
      bad "$label" "it is not"
    fi
  done < <(printf '%s\n' "${INVALID[@]}")
}

for m in "${mpis[@]}"; do
  complete_mpi "$m"
  [[ -e $PREFIX/lib/libarmci.so ]] ||
    die "nothing is installed in $PREFIX: scripts/install.sh --mpi $MPI --prefix $PREFIX"
  dir=$CARGO_TARGET_DIR/faults bin=$CARGO_TARGET_DIR/faults/bin
  mkdir -p "$bin"
  exec 9>"$dir/.lock"
  flock -n 9 || { echo "waiting for another run in $dir" >&2 && flock 9; }
  build
  forgets='' # exit codes, at times: tests/mpi-bugs/killed_rank.c
  if [[ $MPI == mpich && $("$MPIEXEC" --version) =~ Version:\ +4\.2\. ]]; then forgets=1; fi
  if [[ -z $apart ]]; then echo "note: no name spaces here; files of the MPI itself are not looked for"; fi
  killed_and_gone
  slow_targets
  too_little
  hangs
  bad_input
  floods
done
if [[ -n $list ]]; then exit; fi
if ((skipped)); then echo "$skipped skipped"; fi
echo "$passed passed, $failed failed"
((failed == 0))
