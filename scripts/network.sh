#!/usr/bin/env bash
# Usage: scripts/network.sh [--mpi mpich|openmpi|all] [--quick | --full] [--list] [FILTER ...]
#
# Late, lossy, slow and cut links between two hosts (tests/run/network.rs).
# The test runner does it, and knows more options: scripts/suite.sh network --help.
exec "$(dirname "${BASH_SOURCE[0]}")/suite.sh" network "$@"
