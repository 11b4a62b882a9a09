#!/usr/bin/env bash
# Usage: scripts/dev choices [--mpi mpich|openmpi|all] [--starts N] [--installed]
#
# Starts many jobs of two ranks while other work occupies every core, and checks the path between
# nodes that each job chose (portolan-info): on virtual nodes, and on two hosts
# (scripts/dev cluster) if these can be made. All jobs must make the same choice as a job without
# load. Prints one line per case; the last line is `N passed, N failed`.
#
#   --mpi M      one MPI, the default is all
#   --starts N   starts of each case, 100 by default
#   --installed  use the library in target/MPI/prefix as it is
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all starts=100 installed=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --starts) needs_value "$@" && starts=$2 && shift 2 ;;
    --installed) installed=1 && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ $starts =~ ^[1-9][0-9]*$ ]] || die "--starts wants a number"
choose_mpis "$mpi"
cd "$ROOT"
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do
  if [[ $variable != PORTOLAN_MPIRUN_FLAGS ]]; then unset "$variable"; fi
done

load=()
end_load() {
  if ((${#load[@]})); then kill "${load[@]}" 2>/dev/null || true; fi
  load=()
}
trap end_load EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Starts two busy loops per core, so that every rank is preempted repeatedly.
begin_load() {
  local k
  for ((k = 0; k < 2 * $(nproc); k++)); do
    (while :; do :; done) &
    load+=("$!")
  done
}

# Starts a job several times, and prints the path between nodes that each start chose, one per line.
ask() { # starts, mpirun.sh's options ...
  local k
  for ((k = 0; k < $1; k++)); do
    timeout -k 10 120 ./mpirun.sh --mpi "$MPI_NAME" "${@:2}" "$PREFIX/bin/portolan-info" </dev/null 2>/dev/null |
      sed -n 's/^path between nodes *\([^ ]*\).*/\1/p' | grep . || echo "none, the job failed"
  done
}

passed=0 failed=0
one_case() { # name, mpirun.sh's options ...
  local quiet all begun=$SECONDS
  quiet=$(ask 1 "${@:2}")
  begin_load
  all=$(ask "$starts" "${@:2}" | sort | uniq -c | sort -rn | awk '{ n = $1; sub(/^ *[0-9]+ /, ""); printf "%s%s %d of '"$starts"'", (NR > 1 ? ", " : ""), $0, n }')
  end_load
  if [[ $all == "$quiet $starts of $starts" && $quiet != none* ]]; then
    echo "ok   choices, $1: $all $((SECONDS - begun))s"
    passed=$((passed + 1))
  else
    echo "FAIL choices, $1 $((SECONDS - begun))s: without load $quiet, with it $all"
    failed=$((failed + 1))
  fi
}

for m in "${mpis[@]}"; do
  use_mpi "$m"
  echo "== $MPI_NAME" >&2
  if [[ -z $installed ]]; then scripts/install.sh --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  if [[ -n ${CLUSTER_DIR:-} ]]; then # the part that runs inside a cluster
    one_case "two hosts" -n 2 --hosts 2
    continue
  fi
  one_case "virtual nodes" -n 2 --node-size 1
  one_case "virtual nodes of two ranks" -n 4 --node-size 2
  if scripts/dev cluster check >/dev/null; then
    while read -r line; do
      if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) ended=1
      else
        echo "$line"
      fi
    done < <(scripts/dev cluster run --hosts 2 -- scripts/dev choices --mpi "$m" --starts "$starts" --installed </dev/null)
    if [[ -z ${ended:-} ]]; then echo "FAIL choices, two hosts: no result" && failed=$((failed + 1)); fi
    ended=''
  fi
done
echo "$passed passed, $failed failed"
((failed == 0))
