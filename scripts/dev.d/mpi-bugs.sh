#!/usr/bin/env bash
# Usage: scripts/dev mpi-bugs [--mpi mpich|openmpi|all] [--list] [FILTER ...]
#
# Runs the programs of tests/mpi-bugs. Each shows a fault of an MPI that affects the regression
# suite. Reports for each whether the fault occurs on the MPI that has it (tests/run/bugs.rs).
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
case ${1:-} in -h | --help) usage && exit ;; esac
exec "$ROOT/scripts/dev.d/suite.sh" bugs "$@"
