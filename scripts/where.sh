#!/usr/bin/env bash
# Usage: scripts/where.sh VARIABLE=VALUE
#
# Prints where each rank stands, among the processes that have VARIABLE=VALUE in their
# environment: its host, state, and of each thread what it waits for in the kernel and,
# where gdb is installed, its calls. Ranks that answer SIGUSR1 are asked first: a library
# that does so prints its own account to the rank's standard error.
set -euo pipefail

mark=${1:?VARIABLE=VALUE}

ranks() { # prints: process, rank
  local pid rank
  for pid in $(grep -lzsFx "$mark" /proc/[0-9]*/environ | cut -d / -f 3); do
    rank=$(tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null |
      sed -nE 's/^(PMI_RANK|OMPI_COMM_WORLD_RANK)=([0-9]+)$/\2/p' | head -n 1) || continue
    # The launcher's own processes have no rank; a shell around a rank is not one either.
    [[ -n $rank && $(cat "/proc/$pid/comm" 2>/dev/null) != @(sh|bash|timeout|env) ]] || continue
    echo "$pid $rank"
  done | sort -k 2n
}

# Whether a process has a handler for SIGUSR1, which is signal 10, and so bit 9.
answers() { # process
  local caught
  caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null) || return 1
  [[ -n $caught ]] && ((16#$caught >> 9 & 1))
}

field() { # file, name
  sed -n "s/^$2:[[:space:]]*//p" "$1" 2>/dev/null || true
}

readarray -t found < <(ranks)
if ((${#found[@]} == 0)); then
  echo "no rank is running"
  exit
fi
asked=
for line in "${found[@]}"; do
  read -r pid rank <<<"$line"
  if answers "$pid" && kill -USR1 "$pid" 2>/dev/null; then asked=1; fi
done
if [[ -n $asked ]]; then sleep 1; fi

for line in "${found[@]}"; do
  read -r pid rank <<<"$line"
  [[ -e /proc/$pid ]] || { echo "rank $rank has ended" && continue; }
  host=$(nsenter -t "$pid" -u hostname 2>/dev/null || hostname)
  echo "rank $rank on $host, process $(field "/proc/$pid/status" NSpid | awk '{ print $NF }'):" \
    "$(field "/proc/$pid/status" State), $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c1-150)"
  if command -v gdb >/dev/null; then
    timeout -k 2 20 gdb -nx -batch -p "$pid" -ex 'thread apply all bt 14' 2>/dev/null </dev/null |
      grep -E '^(#|Thread)' | cut -c1-170 | sed 's/^/  /' || true
    continue
  fi
  for task in /proc/"$pid"/task/*; do
    echo "  thread ${task##*/} $(cat "$task/comm" 2>/dev/null): $(field "$task/status" State)," \
      "waits in $(cat "$task/wchan" 2>/dev/null), system call $(cut -d ' ' -f 1 "$task/syscall" 2>/dev/null)"
    sed 's/^/    /' "$task/stack" 2>/dev/null | head -n 6 || true
  done
done
