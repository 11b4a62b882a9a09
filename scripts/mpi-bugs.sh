#!/usr/bin/env bash
# Usage: scripts/mpi-bugs.sh [--mpi mpich|openmpi|all] [--list] [FILTER ...]
#
# Runs the programs of tests/mpi-bugs, each a fault of an MPI that the regression suite meets, on
# the MPI that has it, and says of each whether the fault shows (tests/run/bugs.rs).
exec "$(dirname "${BASH_SOURCE[0]}")/suite.sh" bugs "$@"
