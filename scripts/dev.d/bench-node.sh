#!/usr/bin/env bash
# Usage: scripts/dev bench-node [--mpi mpich|openmpi|all] [--installed] [arguments of the programs]
#
# Measures on one node, without another library to compare with: columns and accumulates, compared
# with plain C over the same addresses (benches/c/kernels_bench.c, one rank), and the rates of 1, 2
# and 4 threads of a rank (benches/c/threads_bench.c, two ranks). The sources of the programs
# explain the output lines. `--quick` and `--only CASE,...` are options of the programs.
#
#   --mpi M      one MPI, the default is all
#   --installed  use the library in target/MPI/prefix as it is
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all mpis=() installed='' flags=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --installed) installed=1 && shift ;;
    -h | --help) usage && exit ;;
    *) flags+=("$1") && shift ;;
  esac
done
choose_mpis "$mpi"

for m in "${mpis[@]}"; do
  complete_mpi "$m"
  if [[ -z $installed ]]; then "$ROOT/scripts/install.sh" --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  dir=$CARGO_TARGET_DIR/bench-node
  mkdir -p "$dir"
  bind=(-bind-to core)
  if [[ $MPI == openmpi ]]; then bind=(--bind-to core); fi
  for program in kernels threads; do
    libraries=(-larmci)
    # Threads need all cores, so do not bind.
    if [[ $program == threads ]]; then libraries+=(-llapi_r -lpthread) bind=(); fi
    if [[ $program == threads && $MPI == openmpi ]]; then bind=(--bind-to none); fi
    "$MPICC" -std=c99 -O2 -Wall "-I$PREFIX/include" "$ROOT/benches/c/${program}_bench.c" -o "$dir/$program" \
      "-L$PREFIX/lib" "${libraries[@]}" "-Wl,-rpath,$PREFIX/lib"
    ranks=1
    if [[ $program == threads ]]; then ranks=2; fi
    echo "$MPI, ${program}_bench"
    timeout -k 10 300 "${LAUNCH[@]}" "${bind[@]}" -n "$ranks" "$dir/$program" "${flags[@]}" </dev/null
  done
done
