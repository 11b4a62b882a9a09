#!/usr/bin/env bash
# Usage: scripts/test.sh [--mpi mpich|openmpi|all] [--full | --release | --only quick|rest] [FILTER]
#
# Tests whether Portolan works on this machine; --full and --release test a change and a release.
# The driver (tests/driver) does the work. --help describes the options, tests/README.md the levels.
exec "$(dirname "${BASH_SOURCE[0]}")/dev" test "$@"
