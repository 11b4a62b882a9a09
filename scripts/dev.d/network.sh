#!/usr/bin/env bash
# Usage: scripts/dev network [--mpi mpich|openmpi|all] [--quick | --release] [--list] [FILTER ...]
#
# Tests delayed, lossy, slow and cut links between two hosts (tests/run/network.rs).
# scripts/dev suite --help lists the other options.
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
case ${1:-} in -h | --help) usage && exit ;; esac
exec "$ROOT/scripts/dev.d/suite.sh" network "$@"
