#!/usr/bin/env bash
# Usage: scripts/dev faults [--mpi mpich|openmpi|all] [--quick | --full] [--list] [FILTER ...]
#
# Tests faults: ranks that are killed, exit or hang, targets that compute or are stopped, too little
# memory, few descriptors, floods of requests, and invalid input to every C call. docs/faults.md
# lists the expected behaviour; the cases are in tests/run/faults. For all options of the test
# runner, see scripts/dev suite faults --help.
exec "$(dirname "${BASH_SOURCE[0]}")/suite.sh" faults "$@"
