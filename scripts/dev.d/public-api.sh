#!/usr/bin/env bash
# Usage: scripts/dev public-api [--mpi M]
#
# Prints the public items of the crate `portolan`, one per line, by cargo-public-api (which needs a
# nightly toolchain). After them come the items of the types that the crate re-exports from internal
# crates of the workspace, under their internal paths. Omits automatic traits that depend on the
# compiler, except Send and Sync. public-api.txt is its output:
#
#   scripts/dev public-api >public-api.txt
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=$(default_mpi)
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
use_mpi "$mpi"
cd "$ROOT"
export CARGO_TERM_COLOR=never PATH=$ROOT/target/tools/bin:$PATH

items() { # package, OPTION ...
  cargo public-api -p "$@" --simplified |
    grep -vE '^impl.* !?core::(marker::(Freeze|Unpin|UnsafeUnpin|StructuralPartialEq)|panic::unwind_safe::[A-Za-z]+) for '
}

# Prints the items of a package whose path is PREFIX, any modules, and one of NAMES, and the
# implementations for them.
items_of() { # package, PREFIX, NAME ...
  local package=$1 path=$2 names
  shift 2
  names=$(IFS='|' && echo "$*")
  path="$path::([a-z_]+::)*($names)"
  items "$package" | grep -E "^(impl(<.*>)? |impl.* for |(#\[[^]]*\] )*pub [a-z ]*)$path([:<( ;]|$)" | awk '!seen[$0]++'
}

items portolan --features array,rpc
items_of portolan-engine portolan_engine::error Error ErrorKind Result
items_of portolan-engine portolan_engine::collective Reducible
items_of portolan-engine portolan_engine::mpi::init ThreadLevel
items_of portolan-compose portolan_compose CompositionKind
items_of portolan-rpc portolan_rpc::hg Call Class Context Handle Listen Rpc BulkOp
items_of portolan-rpc portolan_rpc::na Address OpId Access Run
items_of portolan-rpc portolan_rpc::failure Failure Status
items_of portolan-rpc portolan_rpc::bulk Buffer Bulk BulkOffset
items_of portolan-rpc portolan_rpc::checksum Checksum Method
items_of portolan-rpc portolan_rpc::proc Fault HgString MAX_DEPTH from_slice to_vec
