#!/usr/bin/env bash
# Usage: scripts/dev programs [--mpi mpich|openmpi|all] [--quick | --release] [--list] [FILTER ...]
#
# Tests the programs of tests/c, tests/fortran and tests/ga, and some examples, against the library
# installed in target/MPI/prefix. Each program lists its own test cases (tests/README.md).
# scripts/dev suite --help lists the other options.
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
case ${1:-} in -h | --help) usage && exit ;; esac
exec "$ROOT/scripts/dev.d/suite.sh" programs "$@"
