#!/bin/sh
# Usage: unshare -m -p -f --mount-proc scripts/apart.sh RESULTS SHM COMMAND [ARGS]
#
# Runs COMMAND in the new space of processes and mounts, with file systems of its own for
# /dev/shm (of the options SHM) and TMPDIR, and writes into the directory RESULTS which
# processes it has left (orphans) and which files (files). tests/run/faults looks at both.
# The exit code is COMMAND's, or 120 where this cannot be set up.
results=$1 session=$1/session shm=$2
shift 2
mkdir -p "$session" && mount -t tmpfs tmpfs "$session" && mount -t tmpfs -o "$shm" tmpfs /dev/shm || exit 120
export TMPDIR="$session"
"$@"
code=$?
others() {
  ps -e -o pid= -o stat= -o args= | awk -v me=$$ '$1 != me && $2 !~ /^Z/ && !/ ps -e| awk -v|scripts\/apart\.sh/ && $1 != 1'
}
# Launchers that ended may still be ending their ranks: these get three seconds. The last look
# counts: one more could meet its own awk while that is starting.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
  left=$(others)
  [ -z "$left" ] && break
  sleep 0.2
done
printf '%s' "$left" >"$results/orphans"
find /dev/shm "$session" ! -type d >"$results/files"
exit $code
