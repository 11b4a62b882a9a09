#!/usr/bin/env bash
# Usage: scripts/dev programs [--mpi mpich|openmpi|all] [--quick | --full] [--list] [FILTER ...]
#
# Tests the programs of tests/c, tests/fortran and tests/ga, and some examples, against the library
# installed in target/MPI/prefix. Each program lists its own test cases (tests/README.md).
# For all options of the test runner, see scripts/dev suite programs --help.
exec "$(dirname "${BASH_SOURCE[0]}")/suite.sh" programs "$@"
