#!/usr/bin/env bash
# Usage: ./mpirun.sh [--mpi M] -n N [--node-size K] [--hosts K] PROGRAM [ARGS]
#        ./mpirun.sh [--mpi M] -n N [--node-size K] [--hosts K] --example NAME [ARGS]
#
# Runs an MPI program on N ranks with Portolan's library in reach, or builds and
# runs an example: examples/NAME.rs, examples/NAME/main.rs, examples/c/NAME.c or
# examples/c/NAME.cpp, the last two with further sources NAME_*.c beside them. Where one
# name has several, c/NAME is that in C, and NAME.cpp that in C++.
#
#   --mpi M        the MPI to use: mpich or openmpi, Debian's; system, the mpicc in PATH; or
#                  the path of an mpicc. The default is $PORTOLAN_MPI, else mpich where that
#                  is or can be installed, else system
#   --node-size K  treat each K ranks as a node of their own that shares no
#                  memory with the others (sets PORTOLAN_NODE_SIZE)
#   --hosts K      on K hosts made of namespaces (scripts/cluster.sh), with TCP between
#                  them; where they cannot be made, on K virtual nodes. Within a cluster
#                  its hosts are used. The first hosts get a rank more where it must be.
#   --per-host L   so many ranks on each host, as in 2,1,1; says --hosts by itself
#   --trace        records what the ranks do (PORTOLAN_TRACE), and makes a page of it with
#                  portolan-report when the program has ended. The traces go to the directory
#                  that PORTOLAN_TRACE names, by default to target/trace/PROGRAM
#
# PORTOLAN_MPIRUN_FLAGS holds further flags for the MPI's launcher. All variables
# whose names begin with PORTOLAN_ or ARMCI_ reach every rank. The exit code is
# the launcher's.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/scripts/env.sh"

mpi=$(default_mpi) ranks='' example='' hosts='' per_host='' trace=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    -n | -np) needs_value "$@" && ranks=$2 && shift 2 ;;
    --node-size) needs_value "$@" && export PORTOLAN_NODE_SIZE=$2 && shift 2 ;;
    --hosts) needs_value "$@" && hosts=$2 && shift 2 ;;
    --per-host) needs_value "$@" && per_host=$2 && shift 2 ;;
    --example) needs_value "$@" && example=$2 && shift 2 ;;
    --trace) trace=1 && shift ;;
    -h | --help) usage && exit ;;
    --) shift && break ;;
    -*)
      [[ -n $example ]] && break # it belongs to the example
      die "unknown option '$1', see --help"
      ;;
    *) break ;;
  esac
done
if [[ -n $per_host ]]; then
  [[ $per_host =~ ^[0-9]+(,[0-9]+)*$ ]] || die "--per-host wants numbers as in 2,1,1, see --help"
  IFS=, read -ra on_host <<<"$per_host"
  total=0
  for count in "${on_host[@]}"; do total=$((total + count)); done
  ranks=${ranks:-$total} hosts=${hosts:-${#on_host[@]}}
  ((total == ranks)) || die "--per-host $per_host is $total ranks, not $ranks"
  ((hosts == ${#on_host[@]})) || die "--per-host $per_host is for ${#on_host[@]} hosts, not $hosts"
fi
[[ $ranks =~ ^[1-9][0-9]*$ ]] || die "-n wants a number of ranks, see --help"
[[ ${hosts:-1} =~ ^[1-9][0-9]*$ ]] || die "--hosts wants a number, see --help"
[[ ${PORTOLAN_NODE_SIZE:-1} =~ ^[0-9]+$ ]] || die "--node-size wants a number, see --help"
[[ -n $example || $# -gt 0 ]] || die "no program given, see --help"
check_mpi "$mpi"
# The system is complete before anything is chosen by looking at it.
if [[ -n $example ]]; then
  complete_mpi "$mpi"
else
  use_mpi "$mpi"
  command -v "$MPIEXEC" >/dev/null || complete_mpi "$mpi"
fi

# Installs the library where the sources are newer than what is there.
install_if_stale() {
  local stamp=$PREFIX/lib/pkgconfig/portolan.pc
  if [[ ! -e $stamp || -n $(cd "$ROOT" && find Cargo.toml crates include scripts/install.sh \
    -newer "$stamp" -print -quit 2>/dev/null) ]]; then
    "$ROOT/scripts/install.sh" --mpi "$MPI_NAME" --prefix "$PREFIX" >&2
  fi
}

# The files of a C or C++ example beside its main source.
parts_of() { # main source
  local file
  for file in "${1%.*}"_*."${1##*.}" "${1%.*}.h"; do
    if [[ -e $file ]]; then echo "$file"; fi
  done
}

build_c_example() { # main source, program
  local files=("$1") sources=() file compiler=("$MPICC") before=() after=()
  while read -r file; do files+=("$file"); done < <(parts_of "$1")
  for file in "${files[@]}"; do
    if [[ $file != *.h ]]; then sources+=("$file"); fi
  done
  includes() { # pattern of a header
    grep -qE "^ *# *include *[<\"]($1)[>\"]" "${files[@]}"
  }
  if [[ $1 == *.cpp ]]; then compiler=("$MPICXX" -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX); fi
  if includes 'ga\.h'; then
    has_ga || die "there are no Global Arrays for $MPI_NAME here, which '$example' needs: try --example heat"
    # Our directory comes first, so that its libarmci-MPI serves Global Arrays.
    read -ra before <<<"$("$GA_CONFIG" --cppflags)"
    read -ra after <<<"$("$GA_CONFIG" --ldflags --libs --flibs)"
  else
    # Each interface by its own name.
    if includes 'mercury\w*\.h'; then after+=(-lmercury); fi
    if includes 'na\.h'; then after+=(-lna); fi
    if includes 'x10/\w+\.h'; then after+=(-lx10); fi
    if includes 'lapif?\.h'; then after+=(-llapi_r); fi
    if includes 'cp\.h'; then after+=(-lcompose); fi
    if includes 'armcix?\.h' || ((${#after[@]} == 0)); then after+=(-larmci); fi
  fi
  mkdir -p "$(dirname "$2")"
  "${compiler[@]}" -O2 -Wall -pthread "-I$PREFIX/include" "${before[@]}" "${sources[@]}" -o "$2" \
    "-L$PREFIX/lib" "${after[@]}" -lm "-Wl,-rpath,$PREFIX/lib"
}

# Whether a program is older than one of the files that it is made of.
is_stale() { # program, files ...
  local file
  for file in "${@:2}"; do
    if [[ ! $1 -nt $file ]]; then return 0; fi
  done
  return 1
}

if [[ -n $example ]]; then
  source=''
  for file in "$ROOT/examples/c/${example#c/}"{,.c,.cpp}; do
    if [[ -z $source && -f $file ]]; then source=$file; fi
  done
  if [[ -e $ROOT/examples/$example.rs || -e $ROOT/examples/$example/main.rs ]]; then
    (cd "$ROOT" && cargo build --release --example "$example")
    program=$CARGO_TARGET_DIR/release/examples/$example
  elif [[ -n $source ]]; then
    install_if_stale
    program=$CARGO_TARGET_DIR/examples-c/${example#c/}
    readarray -t parts < <(parts_of "$source")
    if is_stale "$program" "$source" "${parts[@]}" "$PREFIX/lib/pkgconfig/portolan.pc"; then
      build_c_example "$source" "$program"
    fi
  else
    die "no example '$example' in examples/ or examples/c/"
  fi
else
  program=$1 && shift
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

# Goes on as a command; with --trace it comes back, and shows what was recorded.
run() {
  if [[ -z $trace ]]; then exec "$@"; fi
  local code=0
  "$@" || code=$?
  "$PREFIX/bin/portolan-report" "$PORTOLAN_TRACE" >&2 || true # which says where the page is
  exit "$code"
}
if [[ -n $trace ]]; then
  install_if_stale
  export PORTOLAN_TRACE=${PORTOLAN_TRACE:-$ROOT/target/trace/$(basename "$program")}
  mkdir -p "$PORTOLAN_TRACE"
  PORTOLAN_TRACE=$(cd "$PORTOLAN_TRACE" && pwd)
  rm -f "$PORTOLAN_TRACE"/rank-*.ptrace
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

# On hosts of a cluster: in one that we are in, else in one made for this run.
if [[ -n $hosts ]]; then
  if [[ ! -v on_host ]]; then
    for ((k = 0; k < hosts; k++)); do on_host+=($((ranks / hosts + (k < ranks % hosts ? 1 : 0)))); done
  fi
  if [[ -z ${CLUSTER_DIR:-} ]]; then
    if why=$("$ROOT/scripts/cluster.sh" check); then
      run "$ROOT/scripts/cluster.sh" run --hosts "$hosts" -- "$ROOT/mpirun.sh" --mpi "$MPI_NAME" -n "$ranks" \
        --per-host "$(IFS=, && echo "${on_host[*]}")" -- "$program" "$@"
    fi
    most=0
    for count in "${on_host[@]}"; do if ((count > most)); then most=$count; fi; done
    echo "mpirun.sh: $why: virtual nodes of $most ranks instead of hosts" >&2
    export PORTOLAN_NODE_SIZE=$most
    if [[ $MPI == openmpi ]]; then LAUNCH+=(-x PORTOLAN_NODE_SIZE); fi
  else
    use_hosts "${on_host[@]}"
  fi
fi
run "${LAUNCH[@]}" -n "$ranks" "$program" "$@"
