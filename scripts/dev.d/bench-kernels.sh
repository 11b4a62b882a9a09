#!/usr/bin/env bash
# Usage: scripts/dev bench-kernels [--mpi mpich|openmpi|all] [--config C,...] [--only KERNEL,...]
#                                 [--rounds R] [--repeats N] [--more] [--installed]
#                                 [--markdown] [--svg FILE]
#
# Runs the kernels that compare one-sided libraries (benches/kernels, tests/c/kernel_*.c)
# on Portolan and on its peers: MPI's messages, MPI's windows, Debian's ARMCI, and with Open MPI
# also its OpenSHMEM (benches/c/kernels_shmem_*.c). A peer that is not installed is named and left
# out. Each side is a launch of its own, so that no peer pays for Portolan; the sides alternate in
# every round. Prints the median rates, and the median over the rounds of the best peer's rate
# divided by Portolan's. The exit code is 0 if all results are right.
#
#   --mpi M       one MPI, the default is all
#   --config C    node: 2 ranks, bound to cores (the default). node4, node8, node16: as many ranks,
#                 bound to cores. virtual: 4 ranks in virtual nodes of 2. hosts1, hosts2, hosts4: one
#                 rank on each of 1, 2 or 4 hosts of namespaces, over TCP. hosts2x2: 2 ranks on each
#                 of 2 hosts. hosts: all four. Between hosts there are no direct versions, and ratios
#                 are also given of the processor time per rank, because all hosts share the cores
#                 of this machine
#   --only K      only kernels whose names begin with one of these words
#   --rounds R    rounds, 7 by default
#   --repeats N   repetitions of a kernel in a launch, whose median counts, 3 by default
#   --more        keep the values of earlier calls
#   --installed   use the library in target/MPI/prefix as it is, for the kernels in C
#   --markdown    print tables in Markdown
#   --svg FILE    draw the ratios
#   --rounds 0    measure nothing: print and draw earlier values
#
# All values are kept in target/kernels/raw.tsv.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all mpis=() configs=node only='' rounds=7 repeats=3 more='' installed='' show=()
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --config) needs_value "$@" && configs=$2 && shift 2 ;;
    --only) needs_value "$@" && only=$2 && shift 2 ;;
    --rounds) needs_value "$@" && rounds=$2 && shift 2 ;;
    --repeats) needs_value "$@" && repeats=$2 && shift 2 ;;
    --more) more=1 && shift ;;
    --installed) installed=1 && shift ;;
    --markdown) show+=(--markdown) && shift ;;
    --svg) needs_value "$@" && show+=(--svg "$(realpath -m "$2")") && shift 2 ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ $rounds =~ ^[0-9]+$ && $repeats =~ ^[1-9][0-9]*$ ]] || die "--rounds and --repeats want numbers"
configs=${configs//,/ }
configs=${configs/%hosts/hosts1 hosts2 hosts4 hosts2x2}
configs=${configs/hosts /hosts1 hosts2 hosts4 hosts2x2 }
for config in $configs; do
  [[ " node node4 node8 node16 virtual hosts1 hosts2 hosts4 hosts2x2 " == *" $config "* ]] || die "unknown configuration '$config', see --help"
done
choose_mpis "$mpi"
cd "$ROOT"
if [[ $configs == *hosts* ]]; then why=$(scripts/dev cluster check) || die "$why"; fi
for variable in $(compgen -e PORTOLAN_ || true) $(compgen -e ARMCI_ || true); do
  if [[ $variable != PORTOLAN_MPI && $variable != PORTOLAN_MPIRUN_FLAGS ]]; then unset "$variable"; fi
done

out=$ROOT/target/kernels
raw=$out/raw.tsv
mkdir -p "$out"
if [[ -z $more ]] && ((rounds > 0)); then : >"$raw"; fi
RUN_LIMIT=300 # seconds for one launch

# The kernels in C, and their arguments before the repetitions, with the sizes of benches/kernels.
C_KERNELS=(nstream:nstream:4194304 stencil-r1:stencil:2000 stencil-r4:stencil:2000 transpose:transpose:2048
  sync-p2p:sync_p2p:1000 sync-hops:sync_p2p:50 sparse:sparse:9 uts:uts:9)

wanted() { # kernel
  local word
  [[ -n $only ]] || return 0
  for word in ${only//,/ }; do if [[ $1 == "$word"* ]]; then return 0; fi; done
  return 1
}

build() {
  local entry name
  cargo build --release -p portolan-kernels >&2
  if [[ -z $installed ]]; then scripts/install.sh --mpi "$MPI_NAME" --prefix "$PREFIX" >&2; fi
  mkdir -p "$dir"
  for entry in "${C_KERNELS[@]}"; do
    name=${entry#*:} name=${name%:*}
    "$MPICC" -std=c99 -O3 -Wall "-I$PREFIX/include" "tests/c/kernel_$name.c" -o "$dir/$name.ours" \
      "-L$PREFIX/lib" -larmci -lm "-Wl,-rpath,$PREFIX/lib"
    if [[ -n $armci ]]; then
      "$MPICC" -std=c99 -O3 -Wall "tests/c/kernel_$name.c" -o "$dir/$name.debian" "-larmci-$MPI" -lm
    fi
  done
  if [[ -n $shmem ]]; then
    for name in prk bale; do
      oshcc -std=gnu11 -O3 -Wall "benches/c/kernels_shmem_$name.c" -o "$dir/shmem_$name" -lm
    done
  fi
}

# Number of ranks of the configurations on this machine.
declare -A RANKS=([node]=2 [node4]=4 [node8]=8 [node16]=16 [virtual]=4)

launch() { # program and arguments
  local bind=(-bind-to core)
  if [[ $MPI == openmpi ]]; then bind=(--bind-to core); fi
  case $config in
    node*) timeout -k 10 "$RUN_LIMIT" "${LAUNCH[@]}" "${bind[@]}" -n "${RANKS[$config]}" "$@" ;;
    virtual)
      if [[ $MPI == openmpi ]]; then bind=(--bind-to none -x PORTOLAN_NODE_SIZE); else bind=(); fi
      PORTOLAN_NODE_SIZE=2 timeout -k 10 "$RUN_LIMIT" "${LAUNCH[@]}" "${bind[@]}" -n "${RANKS[$config]}" "$@"
      ;;
    hosts1) timeout -k 10 "$RUN_LIMIT" ./mpirun.sh --mpi "$MPI_NAME" --per-host 1 "$@" ;;
    hosts2) timeout -k 10 "$RUN_LIMIT" ./mpirun.sh --mpi "$MPI_NAME" --per-host 1,1 "$@" ;;
    hosts4) timeout -k 10 "$RUN_LIMIT" ./mpirun.sh --mpi "$MPI_NAME" --per-host 1,1,1,1 "$@" ;;
    hosts2x2) timeout -k 10 "$RUN_LIMIT" ./mpirun.sh --mpi "$MPI_NAME" --per-host 2,2 "$@" ;;
  esac </dev/null
}

# Runs the kernels of one side, and keeps the lines of results.
side() { # name
  local entry kernel rest kernels=() words
  case $1 in
    portolan | mpi | window | local)
      read -ra words <<<"${only//,/ }"
      local flags=(--raw --repeats "$repeats" --side "$1")
      # Open MPI's default windows do not work over TCP.
      if [[ $config == hosts* ]]; then flags+=(--without direct) && export OMPI_MCA_osc=pt2pt; fi
      launch "$CARGO_TARGET_DIR/release/kernels" "${flags[@]}" "${words[@]}"
      unset OMPI_MCA_osc
      ;;
    ours | debian)
      for entry in "${C_KERNELS[@]}"; do
        kernel=${entry%%:*} rest=${entry#*:}
        wanted "$kernel" || continue
        case $kernel in stencil-r4) words=(4) ;; sync-hops) words=(hops) ;; *) words=() ;; esac
        launch "$dir/${rest%:*}.$1" "${rest#*:}" "$repeats" "${words[@]}" || echo "$kernel of $1 fails" >&2
      done
      ;;
    shmem)
      for entry in stencil-r1 stencil-r4 transpose sync-p2p sync-hops sparse ptrans isx; do
        if wanted "$entry"; then kernels+=("$entry"); fi
      done
      # Debian's OpenSHMEM crashes at the exit.
      if ((${#kernels[@]})); then launch_shmem prk "${kernels[@]}" || true; fi
      kernels=()
      for entry in histogram gather triangles random-access; do
        if wanted "$entry"; then kernels+=("$entry"); fi
      done
      if ((${#kernels[@]})); then launch_shmem bale "${kernels[@]}" || true; fi
      ;;
  esac 2>>"$out/errors.log" | awk -F '\t' -v OFS='\t' -v m="$MPI_NAME" -v c="$config" -v r="$$-$round" \
    'NF == 9 { print m, c, r, $0 }' >>"$raw" || {
    printf 'the side %s of %s, %s, fails: see %s\n' "$1" "$MPI_NAME" "$config" "$out/errors.log" >&2
    failed=1
  }
}

launch_shmem() { # which program, kernels
  local bind=(--bind-to core)
  if [[ $config == virtual ]]; then bind=(--bind-to none); fi
  timeout -k 10 "$RUN_LIMIT" oshrun "${LAUNCH[@]:1}" "${bind[@]}" -n "${RANKS[$config]}" "$dir/shmem_$1" "$repeats" "${@:2}" </dev/null
}

failed=0
: >"$out/errors.log"
if ((rounds == 0)); then mpis=(); fi
for m in "${mpis[@]}"; do
  complete_mpi "$m"
  dir=$CARGO_TARGET_DIR/bench-kernels shmem='' armci=''
  if [[ $MPI == openmpi ]]; then
    if command -v oshcc >/dev/null; then shmem=1; else echo "no OpenSHMEM: oshcc is not installed" >&2; fi
  fi
  if "$MPICC" -xc /dev/null -shared -o /dev/null "-larmci-$MPI" 2>/dev/null; then
    armci=1
  else
    echo "no other ARMCI: libarmci-mpi-dev is not installed for $MPI_NAME" >&2
  fi
  build
  for config in $configs; do
    sides=(portolan mpi window)
    case $config in
      node* | virtual)
        sides+=(local ours)
        if [[ -n $armci ]]; then sides+=(debian); fi
        if [[ -n $shmem ]]; then sides+=(shmem); fi
        ;;
    esac
    for ((round = 1; round <= rounds; round++)); do
      printf '%s, %s, round %s of %s\n' "$MPI_NAME" "$config" "$round" "$rounds" >&2
      for s in "${sides[@]}"; do side "$s"; done
    done
  done
done
python3 scripts/dev.d/lib/kernels.py "$raw" "${show[@]}" || failed=1
exit "$failed"
