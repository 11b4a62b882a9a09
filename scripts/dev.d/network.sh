#!/usr/bin/env bash
# Usage: scripts/dev network [--mpi mpich|openmpi|all] [--quick | --full] [--list] [FILTER ...]
#
# Tests delayed, lossy, slow and cut links between two hosts (tests/run/network.rs).
# For all options of the test runner, see scripts/dev suite network --help.
exec "$(dirname "${BASH_SOURCE[0]}")/suite.sh" network "$@"
