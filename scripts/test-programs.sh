#!/usr/bin/env bash
# Usage: scripts/test-programs.sh [--mpi mpich|openmpi|all] [--quick | --full] [--list] [FILTER ...]
#
# The programs of tests/c, tests/fortran and tests/ga, which say themselves by which cases they
# are tested (tests/README.md), and some examples, against the library installed in
# target/MPI/prefix.
# The test runner does it, and knows more options: scripts/suite.sh programs --help.
exec "$(dirname "${BASH_SOURCE[0]}")/suite.sh" programs "$@"
