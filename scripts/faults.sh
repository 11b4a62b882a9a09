#!/usr/bin/env bash
# Usage: scripts/faults.sh [--mpi mpich|openmpi|all] [--quick | --full] [--list] [FILTER ...]
#
# Programs against which something goes wrong: ranks that are killed, leave or hang, targets that
# compute or are stopped, too little memory, few descriptors, floods, bad input to every C call.
# What has to happen in each case is in docs/faults.md, the cases in tests/run/faults.
# The test runner does it, and knows more options: scripts/suite.sh faults --help.
exec "$(dirname "${BASH_SOURCE[0]}")/suite.sh" faults "$@"
