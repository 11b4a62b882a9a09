#!/usr/bin/env bash
# Usage: ./mpirun.sh [--mpi M] -n N [--node-size K] [--hosts K] PROGRAM [ARGS]
#        ./mpirun.sh [--mpi M] -n N [--node-size K] [--hosts K] --example NAME [ARGS]
#
# Runs an MPI program on N ranks, with Portolan's library on the library path. Or builds and runs
# an example: examples/NAME.rs, examples/NAME/main.rs, examples/c/NAME.c or examples/c/NAME.cpp.
# C and C++ examples may have more sources next to them, NAME_*.c or NAME_*.cpp. If several
# examples share a name, c/NAME selects the one in C, and NAME.cpp the one in C++.
#
#   --mpi M        the MPI to use: mpich or openmpi (Debian's), system (the mpicc in PATH), or
#                  the path of an mpicc. The default is $PORTOLAN_MPI; if that is not set, mpich
#                  if it is or can be installed, and otherwise system
#   --node-size K  treat each group of K ranks as a separate node that shares no memory with
#                  the others (sets PORTOLAN_NODE_SIZE)
#   --hosts K      run on K hosts made of namespaces (scripts/dev cluster), with TCP between
#                  them, or on virtual nodes if such hosts cannot be made. Inside a cluster, use
#                  its hosts. If K does not divide N, the first hosts get one rank more.
#   --per-host L   the number of ranks on each host, for example 2,1,1; implies --hosts
#   --trace        trace the ranks (PORTOLAN_TRACE), and make a page of the trace with
#                  portolan-report when the program has ended. The traces go to the directory
#                  that PORTOLAN_TRACE names, by default target/trace/PROGRAM
#
# PORTOLAN_MPIRUN_FLAGS contains additional flags for the MPI's launcher. All variables whose
# names begin with PORTOLAN_, ARMCI_ or X10_ reach every rank. The exit code is the launcher's.
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
      [[ -n $example ]] && break # an option of the example
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
# Install missing packages first: the choices below depend on what is installed.
if [[ -n $example ]]; then
  complete_mpi "$mpi"
else
  use_mpi "$mpi"
  command -v "$MPIEXEC" >/dev/null || complete_mpi "$mpi"
fi

# Installs the library if the sources are newer than the installed files.
install_if_stale() {
  local stamp=$PREFIX/lib/pkgconfig/portolan.pc
  if [[ ! -e $stamp || -n $(cd "$ROOT" && find Cargo.toml build.rs src crates include scripts/install.sh \
    -newer "$stamp" -print -quit 2>/dev/null) ]]; then
    "$ROOT/scripts/install.sh" --mpi "$MPI_NAME" --prefix "$PREFIX" >&2
  fi
}

# Prints the other files of a C or C++ example: its parts and its header.
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
    # Our directory comes first, so that Global Arrays links with our libarmci-MPI.
    read -ra before <<<"$("$GA_CONFIG" --cppflags)"
    read -ra after <<<"$("$GA_CONFIG" --ldflags --libs --flibs)"
  else
    # Link each interface by its own library name.
    if includes 'mercury\w*\.h'; then compiler+=("-I$PREFIX/include/mercury2") after+=(-lmercury2); fi
    if includes 'x10/\w+\.h'; then after+=(-lx10); fi
    if includes 'lapif?\.h'; then after+=(-llapi_r); fi
    if includes 'cp\.h'; then after+=(-lcompose); fi
    if includes 'armcix?\.h' || ((${#after[@]} == 0)); then after+=(-larmci); fi
  fi
  mkdir -p "$(dirname "$2")"
  "${compiler[@]}" -O2 -g -Wall -pthread "-I$PREFIX/include" "${before[@]}" "${sources[@]}" -o "$2" \
    "-L$PREFIX/lib" "${after[@]}" -lm "-Wl,-rpath,$PREFIX/lib"
}

# Succeeds if a program is older than one of its source files.
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
    # Built together with the packages that scripts/install.sh builds, so that cargo resolves the
    # same features of the crates below `portolan` and compiles them once.
    share_crates
    (cd "$ROOT" && cargo build --release -p portolan -p portolan-capi -p portolan-tools --example "$example")
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

# With another MPI's launcher, the program would run as N jobs of one rank each.
linked=$(ldd "$(command -v "$program" || echo "$program")" 2>/dev/null || true)
case $MPI in
  mpich) own='libmpi(ch)?\.so\.12' other='libmpi\.so\.40' other_mpi=openmpi ;;
  openmpi) own='libmpi\.so\.40' other='libmpi(ch)?\.so\.12' other_mpi=mpich ;;
esac
if [[ $linked =~ $other && ! $linked =~ $own ]]; then
  die "$program is built for another MPI, try --mpi $other_mpi"
fi

# Replaces this shell with the command. With --trace, it waits for the command instead, and then
# runs portolan-report.
run() {
  if [[ -z $trace ]]; then exec "$@"; fi
  local code=0
  "$@" || code=$?
  "$PREFIX/bin/portolan-report" "$PORTOLAN_TRACE" >&2 || true # prints the path of the page
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
  # Open MPI passes only the variables named with -x to ranks on other hosts.
  for variable in LD_LIBRARY_PATH $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true) \
    $(compgen -e X10_ || true); do
    if [[ -v $variable ]]; then LAUNCH+=(-x "$variable"); fi
  done
fi

# With --hosts: use the cluster that this runs in, or make one for this run.
if [[ -n $hosts ]]; then
  if [[ ! -v on_host ]]; then
    for ((k = 0; k < hosts; k++)); do on_host+=($((ranks / hosts + (k < ranks % hosts ? 1 : 0)))); done
  fi
  if [[ -z ${CLUSTER_DIR:-} ]]; then
    if why=$("$ROOT/scripts/dev" cluster check); then
      run "$ROOT/scripts/dev" cluster run --hosts "$hosts" -- "$ROOT/mpirun.sh" --mpi "$MPI_NAME" -n "$ranks" \
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

# If a library is missing on a host, the loader ends the ranks there without naming the host, and
# MPICH's launcher then waits forever. So ask the hosts first.
several_hosts='host|machinefile|(^| )-f '
if [[ -n $hosts || ${PORTOLAN_MPIRUN_FLAGS:-} =~ $several_hosts || ${SLURM_JOB_NUM_NODES:-1} != 1 ]]; then
  # shellcheck disable=SC2016 # the hosts expand it
  missing=$("${LAUNCH[@]}" -n "$ranks" sh -c \
    'ldd "$0" 2>/dev/null | sed -n "s/^[[:space:]]*\(.*\) => not found.*/host $(uname -n) has no \1/p"' \
    "$(command -v "$program" || echo "$program")" </dev/null 2>/dev/null | grep '^host ' | sort -u) || true
  [[ -z $missing ]] || die "$program: ${missing//$'\n'/, }: the loader searches ${LD_LIBRARY_PATH:-only its default directories}"
fi
run "${LAUNCH[@]}" -n "$ranks" "$program" "$@"
