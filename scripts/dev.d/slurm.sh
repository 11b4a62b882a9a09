#!/usr/bin/env bash
# Usage: scripts/dev slurm [--mpi mpich|openmpi|all]
#
# Runs the example job examples/slurm/ga_matmul.sbatch under Slurm, on two hosts made of namespaces
# (scripts/dev cluster), each with a slurmd. The job is started by mpiexec inside the allocation, by
# srun with the PMI that the MPI supports, and by srun without a PMI, which must end with a message
# that names the flag. Debian's slurmd, slurmctld, slurm-client and munge are installed if they are
# missing. Their services are neither started nor changed: the daemons of the test use their own
# directory, and their ports are inside the namespaces.
#
# The last line is `N passed, N failed`. The exit code is 0 if no case failed, and 77 if Slurm or
# the hosts are not available.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

LIMIT=120 # seconds for one job
PACKAGES=(slurmd slurmctld slurm-client munge)

skip() {
  echo "skip slurm: $*"
  exit 77
}

# ------------------------------------------------------------ before the hosts are made

install_slurm() {
  if command -v slurmd >/dev/null && command -v slurmctld >/dev/null && command -v munged >/dev/null &&
    command -v sbatch >/dev/null; then
    return
  fi
  command -v apt-get >/dev/null || skip "Slurm is not installed, and there is no apt-get"
  ((EUID == 0)) || skip "Slurm is not installed; as root: apt-get install ${PACKAGES[*]}"
  # The packages start their services unless a policy forbids it.
  local policy=/usr/sbin/policy-rc.d ours=''
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    ours=1
  fi
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0) done_=''
  echo "slurm: installing ${PACKAGES[*]}"
  if "${apt[@]}" install -y --no-install-recommends "${PACKAGES[@]}" >/dev/null 2>&1 ||
    { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${PACKAGES[@]}" >/dev/null; }; then
    done_=1
  fi
  if [[ -n $ours ]]; then rm -f "$policy"; fi
  [[ -n $done_ ]] || skip "could not install ${PACKAGES[*]}"
}

# --------------------------------------------------------------------- on the head

# Writes the configuration of the daemons. Each host has enough processors for its ranks. Each host
# also has its own file system at the cluster's tmp, which PMIx requires.
write_configuration() { # directory
  cat >"$1/slurm.conf" <<CONF
ClusterName=portolan
SlurmctldHost=head
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$1/munge.socket
CredType=cred/munge
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool.%n
TmpFS=$CLUSTER_DIR/tmp
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.%n.pid
SlurmctldLogFile=$1/slurmctld.log
SlurmdLogFile=$1/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
KillWait=2
NodeName=host1 NodeAddr=10.213.0.1 CPUs=4
NodeName=host2 NodeAddr=10.213.0.2 CPUs=4
PartitionName=all Nodes=host[1-2] Default=YES MaxTime=INFINITE State=UP
CONF
  # Nothing here uses cgroups, but slurmd before 23.02 needs a cgroup plugin anyway.
  local plugin=disabled
  if [[ $(slurmd -V) =~ slurm[a-z-]*\ (2[0-2])\. ]]; then plugin=cgroup/v1; fi
  printf 'CgroupPlugin=%s\n' "$plugin" >"$1/cgroup.conf"
}

start_daemons() { # directory
  local host
  mkdir -p "$1/state" "$1/spool.host1" "$1/spool.host2"
  (umask 077 && head -c 1024 /dev/urandom >"$1/munge.key")
  write_configuration "$1"
  # A single munged serves all hosts: its socket is a file, and the hosts share all files.
  munged --foreground --force "--socket=$1/munge.socket" "--key-file=$1/munge.key" \
    "--pid-file=$1/munged.pid" "--log-file=$1/munged.log" "--seed-file=$1/munged.seed" >/dev/null 2>&1 &
  await 10 test -S "$1/munge.socket" || true
  export SLURM_CONF=$1/slurm.conf
  slurmctld -D -f "$SLURM_CONF" >"$1/slurmctld.out" 2>&1 &
  for host in host1 host2; do
    "$CLUSTER_DIR/agent" "$host" "SLURM_CONF='$SLURM_CONF' exec slurmd -D -N $host -f '$SLURM_CONF'" >"$1/slurmd.$host.out" 2>&1 &
  done
  hosts_are_idle() { [[ $(sinfo --noheader --format=%T 2>/dev/null) == idle ]]; }
  await 30 hosts_are_idle && return
  tail -n 5 "$1"/*.log "$1"/*.out
  die "Slurm's daemons do not come up"
}

# Runs the example with a launcher. Its output must match the pattern. The job must succeed; with
# srun without a PMI, it must fail.
job() { # name, pattern, launcher ...
  local out=$dir/$1.out begin=$SECONDS number='' state='' wanted=COMPLETED
  if [[ $1 == srun-none-* ]]; then wanted=FAILED; fi
  if number=$(sbatch --parsable "--chdir=$ROOT" "--output=$out" \
    "$ROOT/examples/slurm/ga_matmul.sbatch" "$PROGRAM" "${@:3}" 2>"$dir/$1.sbatch"); then
    while ((SECONDS - begin < LIMIT)); do
      state=$(scontrol show job "$number" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p')
      case $state in PENDING | CONFIGURING | RUNNING | COMPLETING) sleep 0.5 ;; *) break ;; esac
    done
  fi
  if [[ $state == "$wanted" ]] && grep -aqE "$2" "$out" 2>/dev/null; then
    passed=$((passed + 1))
    echo "ok   slurm/$1 $((SECONDS - begin))s"
  else
    failed=$((failed + 1))
    echo "FAIL slurm/$1 $((SECONDS - begin))s: ${state:-not submitted}, expected $wanted and a line '$2'"
    tail -q -n 20 "$dir/$1.sbatch" "$out" "$dir"/slurmd.*.log 2>/dev/null | cut -c1-240 | sed 's/^/     | /'
    if [[ -n $number ]]; then scancel "$number" 2>/dev/null || true; fi
  fi
}

inside() { # MPI
  use_mpi "$1"
  dir=$(mktemp -d "${TMPDIR:-/tmp}/portolan-slurm.XXXXXX")
  trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$dir"' EXIT
  start_daemons "$dir"
  PROGRAM=$CARGO_TARGET_DIR/examples-c/ga_matmul
  local pmi=pmi2 unconnected='start them with srun --mpi=pmi2' passed=0 failed=0
  if [[ $MPI == openmpi ]]; then
    pmi=pmix unconnected="start them with srun --mpi=pmix|use SLURM's PMIx support" # ours or MPI's
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # the user of the test may be root
  fi
  local shim
  shim=$(finalize_shim)
  if [[ -n $shim ]]; then export LD_PRELOAD=$shim; fi # jobs inherit the environment of sbatch
  job "mpiexec-$MPI" '^ga_matmul: ok' "$MPIEXEC"
  job "srun-$MPI" '^ga_matmul: ok' srun "--mpi=$pmi"
  job "srun-none-$MPI" "$unconnected" srun --mpi=none
  echo "$passed passed, $failed failed"
  ((failed == 0))
}

main() {
  local mpi=all m passed=0 failed=0 p f line
  if [[ ${1:-} == __inside ]]; then
    inside "$2"
    exit
  fi
  while (($#)); do
    case $1 in
      --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
      -h | --help) usage && exit ;;
      *) die "unknown argument '$1', see --help" ;;
    esac
  done
  choose_mpis "$mpi"
  install_slurm
  local why
  why=$("$ROOT/scripts/dev" cluster check) || skip "$why"
  for m in "${mpis[@]}"; do
    "$ROOT/mpirun.sh" --mpi "$m" -n 1 --example ga_matmul >/dev/null
    p=0 f=1
    while IFS= read -r line; do
      if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]}
      else
        printf '%s\n' "$line"
      fi
    done < <("$ROOT/scripts/dev" cluster run --hosts 2 -- "${BASH_SOURCE[0]}" __inside "$m")
    passed=$((passed + p)) failed=$((failed + f))
  done
  echo "$passed passed, $failed failed"
  ((failed == 0))
}
main "$@"
