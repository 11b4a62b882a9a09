#!/usr/bin/env bash
# Usage: tests/c/mercury_dynamic.sh PROGRAM LAUNCHER ...
#
# Starts the program three times, each as a job of its own: a server, which publishes its
# address in a file, and two clients, which read it there. Open MPI connects such jobs where
# their launchers are given the same ompi-server. Passes when all three do.
set -euo pipefail

program=$1 launcher=("${@:2}") clients=2
dir=$(mktemp -d)
flags=()
if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
ompi-server --no-daemonize -r "$dir/uri" >"$dir/server.log" 2>&1 &
names=$!
trap 'kill "$names" 2>/dev/null; wait "$names" 2>/dev/null; rm -rf "$dir"' EXIT
for _ in {1..100}; do
  [[ -s $dir/uri ]] && break
  sleep 0.1
done
[[ -s $dir/uri ]] || { cat "$dir/server.log" >&2 && echo "ompi-server does not start" >&2 && exit 1; }

flags=(--ompi-server "file:$dir/uri" -n 1)
jobs=()
"${launcher[@]}" "${flags[@]}" "$program" server "$dir/address" "$clients" &
jobs+=($!)
for ((n = 0; n < clients; n++)); do
  "${launcher[@]}" "${flags[@]}" "$program" client "$dir/address" &
  jobs+=($!)
done
code=0
for job in "${jobs[@]}"; do wait "$job" || code=1; done
exit $code
