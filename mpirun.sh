#!/usr/bin/env bash
# Usage: ./mpirun.sh [--mpi mpich|openmpi] -n N [--node-size K] PROGRAM [ARGS]
#        ./mpirun.sh [--mpi mpich|openmpi] -n N [--node-size K] --example NAME [ARGS]
#
# Runs an MPI program on N ranks with Portolan's library in reach, or builds and
# runs an example: examples/NAME.rs, examples/NAME/main.rs or examples/c/NAME.c.
#
#   --mpi M        the MPI to use; the default is $PORTOLAN_MPI, else mpich
#   --node-size K  treat each K ranks as a node of their own that shares no
#                  memory with the others (sets PORTOLAN_NODE_SIZE)
#
# PORTOLAN_MPIRUN_FLAGS holds further flags for the MPI's launcher. All variables
# whose names begin with PORTOLAN_ or ARMCI_ reach every rank. The exit code is
# the launcher's.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/scripts/env.sh"

mpi=${PORTOLAN_MPI:-mpich} ranks='' example=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    -n | -np) needs_value "$@" && ranks=$2 && shift 2 ;;
    --node-size) needs_value "$@" && export PORTOLAN_NODE_SIZE=$2 && shift 2 ;;
    --example) needs_value "$@" && example=$2 && shift 2 ;;
    -h | --help) usage && exit ;;
    --) shift && break ;;
    -*)
      [[ -n $example ]] && break # it belongs to the example
      die "unknown option '$1', see --help"
      ;;
    *) break ;;
  esac
done
[[ $ranks =~ ^[1-9][0-9]*$ ]] || die "-n wants a number of ranks, see --help"
[[ ${PORTOLAN_NODE_SIZE:-1} =~ ^[0-9]+$ ]] || die "--node-size wants a number, see --help"
[[ -n $example || $# -gt 0 ]] || die "no program given, see --help"
use_mpi "$mpi"

# Installs the library where the sources are newer than what is there.
install_if_stale() {
  local stamp=$PREFIX/lib/pkgconfig/portolan.pc
  if [[ ! -e $stamp || -n $(cd "$ROOT" && find Cargo.toml build.rs src include scripts/install.sh \
    -newer "$stamp" -print -quit 2>/dev/null) ]]; then
    "$ROOT/scripts/install.sh" --mpi "$MPI" --prefix "$PREFIX" >&2
  fi
}

build_c_example() { # source, program
  local before=() after=(-larmci)
  if grep -qE '^ *# *include *[<"]ga\.h[>"]' "$1"; then
    # Our directory comes first, so that its libarmci-MPI serves Global Arrays.
    read -ra before <<<"$("$GA_CONFIG" --cppflags)"
    read -ra after <<<"$("$GA_CONFIG" --ldflags --libs --flibs)"
  fi
  mkdir -p "$(dirname "$2")"
  "$MPICC" -O2 -Wall "-I$PREFIX/include" "${before[@]}" "$1" -o "$2" \
    "-L$PREFIX/lib" "${after[@]}" -lm "-Wl,-rpath,$PREFIX/lib"
}

if [[ -n $example ]]; then
  "$ROOT/scripts/setup.sh" --quiet --mpi "$MPI" >&2
  source=$ROOT/examples/c/$example.c
  if [[ -e $ROOT/examples/$example.rs || -e $ROOT/examples/$example/main.rs ]]; then
    (cd "$ROOT" && cargo build --release --example "$example")
    program=$CARGO_TARGET_DIR/release/examples/$example
  elif [[ -e $source ]]; then
    install_if_stale
    program=$CARGO_TARGET_DIR/examples-c/$example
    if [[ ! $program -nt $source || ! $program -nt $PREFIX/lib/pkgconfig/portolan.pc ]]; then
      build_c_example "$source" "$program"
    fi
  else
    die "no example '$example' in examples/ or examples/c/"
  fi
else
  program=$1 && shift
  command -v "$MPIEXEC" >/dev/null || "$ROOT/scripts/setup.sh" --mpi "$MPI" >&2
fi

# A program of another MPI would run as N jobs of one rank each.
linked=$(ldd "$(command -v "$program" || echo "$program")" 2>/dev/null || true)
case $MPI in
  mpich) own='libmpi(ch)?\.so\.12' other='libmpi\.so\.40' other_mpi=openmpi ;;
  openmpi) own='libmpi\.so\.40' other='libmpi(ch)?\.so\.12' other_mpi=mpich ;;
esac
if [[ $linked =~ $other && ! $linked =~ $own ]]; then
  die "$program is built for another MPI, try --mpi $other_mpi"
fi

if [[ -d $PREFIX/lib ]]; then
  export LD_LIBRARY_PATH=$PREFIX/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
if [[ $MPI == openmpi ]]; then
  # On other hosts Open MPI's ranks see of the environment only what is named.
  for variable in LD_LIBRARY_PATH $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do
    if [[ -v $variable ]]; then LAUNCH+=(-x "$variable"); fi
  done
fi
exec "${LAUNCH[@]}" -n "$ranks" "$program" "$@"
