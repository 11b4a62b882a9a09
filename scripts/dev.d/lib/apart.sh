#!/bin/sh
# Usage: unshare -m -p -f --mount-proc scripts/dev.d/lib/apart.sh RESULTS SHM COMMAND [ARGS]
#
# Runs COMMAND in the new process and mount namespaces, with separate file systems for /dev/shm
# (mounted with the options SHM) and TMPDIR. Then lists the processes that COMMAND left behind in
# RESULTS/orphans, and the files in RESULTS/files. tests/driver/src/faults checks both lists. The exit
# code is COMMAND's, or 120 if the file systems cannot be set up.
case ${1:-} in -h | --help) exec awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0" ;; esac
results=$1 session=$1/session shm=$2
shift 2
mkdir -p "$session" && mount -t tmpfs tmpfs "$session" && mount -t tmpfs -o "$shm" tmpfs /dev/shm || exit 120
export TMPDIR="$session"
"$@"
code=$?
others() {
  ps -e -o pid= -o stat= -o args= | awk -v me=$$ '$1 != me && $2 !~ /^Z/ && !/ ps -e| awk -v|scripts\/dev.d\/lib\/apart\.sh/ && $1 != 1'
}
# A launcher that has ended may still be terminating its ranks: allow them three seconds. Use the
# result of the last check: another one could list its own awk while that is starting.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
  left=$(others)
  [ -z "$left" ] && break
  sleep 0.2
done
printf '%s' "$left" >"$results/orphans"
find /dev/shm "$session" ! -type d >"$results/files"
exit $code
