#!/usr/bin/env bash
# Usage: tests/c/mercury_dynamic.sh PROGRAM LAUNCHER ...
#
# Starts the program several times, each time as a separate job: a server, which publishes its
# address in a file, and clients, which read the file. Open MPI connects such jobs if their
# launchers use the same ompi-server.
#
#   1  two clients at once, with strangers from the beginning (mercury_dynamic_stranger.py)
#   2  a client with another secret, which is refused
#   3  a client that is accepted and then killed
#   4  two more clients, after the strangers have tried everything
#
# The strangers stay until the server closes its port. The test passes if the server, the clients,
# the refused client and the strangers pass, and the server reports the strangers in few lines.
set -euo pipefail

program=$1 launcher=("${@:2}") clients=4
dir=$(mktemp -d)
if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
command -v python3 >/dev/null || { echo "the strangers are written in Python 3, which is missing" >&2 && exit 1; }
ompi-server --no-daemonize -r "$dir/uri" >"$dir/names.log" 2>&1 &
names=$! jobs=()
# shellcheck disable=SC2317 # the trap runs it
end() {
  if ((${#jobs[@]})); then kill "${jobs[@]}" 2>/dev/null || true; fi
  kill "$names" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap end EXIT

await() { # FILE MESSAGE: waits for the file, or fails with the message
  for _ in {1..600}; do
    [[ -e $1 ]] && return
    sleep 0.1
  done
  echo "$2" >&2 && exit 1
}
await "$dir/uri" "ompi-server does not start: $(cat "$dir/names.log")"

(umask 077 && head -c 32 /dev/urandom | base64 >"$dir/secret" && head -c 32 /dev/urandom | base64 >"$dir/other")
export PORTOLAN_RPC_SECRET_FILE=$dir/secret
job=("${launcher[@]}" --ompi-server "file:$dir/uri" -n 1 "$program")

code=0
finish() { # PID ...: waits for the processes
  local process
  for process in "$@"; do wait "$process" || code=1; done
}

"${job[@]}" server "$dir/address" "$clients" 2>"$dir/server.log" &
server=$!
jobs+=("$server")
await "$dir/address" "the server publishes no address"
python3 "${BASH_SOURCE[0]%.sh}_stranger.py" "$dir/address" "$dir/secret" "$dir/begun" "$dir/done" &
stranger=$!
jobs+=("$stranger")
await "$dir/begun" "the strangers do not begin"
begun=$SECONDS
"${job[@]}" client "$dir/address" &
first=$!
"${job[@]}" client "$dir/address" &
finish "$first" "$!"
PORTOLAN_RPC_SECRET_FILE=$dir/other "${job[@]}" refused "$dir/address" || code=1
# The launcher reports at length that the job was killed.
if "${job[@]}" killed "$dir/address" >"$dir/killed.log" 2>&1 || ! grep -aq '^connected$' "$dir/killed.log"; then
  echo "the one to be killed is not let in" >&2 && cat "$dir/killed.log" >&2
  code=1
fi
await "$dir/done" "the strangers do not end"
"${job[@]}" client "$dir/address" &
first=$!
"${job[@]}" client "$dir/address" &
finish "$first" "$!" "$server" "$stranger"
jobs=()

cat "$dir/server.log" >&2
refused=$(sed -n 's/.*refused .*attempt(s).*, \([0-9]*\) in all.*/\1/p' "$dir/server.log" | tail -n 1)
lines=$(grep -ac 'refused .*attempt' "$dir/server.log" || true)
if ((${refused:-0} < 900)); then echo "only ${refused:-0} strangers are counted" >&2 && code=1; fi
if ((lines > SECONDS - begun + 3)); then echo "$lines lines about strangers in $((SECONDS - begun)) s" >&2 && code=1; fi
token=$(sed 's/.*\///' "$dir/address")
if grep -aq "$token" "$dir/server.log"; then echo "the server's log shows the token" >&2 && code=1; fi
exit $code
