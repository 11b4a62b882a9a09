#!/usr/bin/env bash
# Usage: scripts/deadline.sh SECONDS VARIABLE=VALUE COMMAND [ARGS]
#
# Runs COMMAND with VARIABLE=VALUE in its environment. When it has not ended after SECONDS,
# says where its ranks stand (scripts/where.sh), ends it with every process that has the
# variable, and exits with 124. Otherwise the exit code is COMMAND's.
set -euo pipefail

limit=$1 mark=$2
shift 2
here=$(dirname "${BASH_SOURCE[0]}")

marked() {
  grep -lzsFx "$mark" /proc/[0-9]*/environ | cut -d / -f 3 | grep -vx "$$" || true
}
end_all() { # signal
  local pids
  readarray -t pids < <(marked)
  if ((${#pids[@]})); then kill "-$1" "${pids[@]}" 2>/dev/null || true; fi
}

env "$mark" "$@" <&0 &
command=$!
trap 'end_all TERM; sleep 0.5; end_all KILL; exit 143' TERM
trap 'end_all TERM; sleep 0.5; end_all KILL; exit 130' INT
sleep "$limit" &
clock=$!
code=0 first=
wait -n -p first "$command" "$clock" || code=$?
if [[ $first == "$command" ]]; then
  kill "$clock" 2>/dev/null || true
  exit "$code"
fi
echo "not at its end after $limit seconds" >&2
"$here/where.sh" "$mark" >&2 || true
kill -TERM "$command" 2>/dev/null || true
for ((i = 0; i < 20; i++)); do
  kill -0 "$command" 2>/dev/null || break
  sleep 0.1
done
end_all KILL
exit 124
