#!/usr/bin/env bash
# Usage: scripts/dev faults [--mpi mpich|openmpi|all] [--quick | --release] [--list] [FILTER ...]
#
# Tests faults: ranks that are killed, exit or hang, targets that compute or are stopped, too little
# memory, few descriptors, floods of requests, and invalid input to every C call. docs/faults.md
# lists the expected behaviour; the cases are in tests/run/faults. scripts/dev suite --help lists
# the other options.
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
case ${1:-} in -h | --help) usage && exit ;; esac
exec "$ROOT/scripts/dev.d/suite.sh" faults "$@"
