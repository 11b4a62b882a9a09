//! Detection of ranks that a launcher started, but that this MPI does not see as one job. If MPI
//! and the launcher speak different protocols (PMI, PMIx), nothing fails: each process becomes a
//! job of one rank, and N processes compute the same thing. The environment variables of the
//! launcher reveal this.

use super::Flavour;

/// Variables that launchers set for each rank: PMI, Open MPI, PMIx and Slurm.
const OF_A_RANK: [&str; 5] =
    ["PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"];

/// Returns whether a launcher has started this process. Must be called before MPI starts, because
/// Open MPI sets some of the variables itself.
pub fn is_there() -> bool {
    OF_A_RANK.iter().any(|name| std::env::var_os(name).is_some())
}

/// Why a process with one rank should have more. `number` reads from the environment.
pub(super) fn stray(built: Flavour, number: impl Fn(&str) -> Option<i64>) -> Option<String> {
    // If this MPI's own launcher has set its variable `own`, a job of one rank is intended.
    let (own, other, other_name, flag) = match built {
        Flavour::Mpich => ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "Open MPI", "pmi2"),
        Flavour::OpenMpi => ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPICH", "pmix"),
        Flavour::Other => return None,
    };
    if number(own).is_some() {
        return None;
    }
    let name = built.name();
    if let Some(n) = number("SLURM_STEP_NUM_TASKS").filter(|&n| n > 1)
        && number("SLURM_PROCID").is_some()
    {
        return Some(format!(
            "srun started {n} tasks without passing {name} the information that they form one job, \
             so each became a job of one rank; start them with srun --mpi={flag} (srun --mpi=list \
             prints the types that this Slurm supports) or with the mpiexec of {name}. If jobs of \
             one rank are intended, set PORTOLAN_LAUNCHER_CHECK=0"
        ));
    }
    let n = number(other).filter(|&n| n > 1)?;
    Some(format!(
        "a program for {name} was started by the mpiexec of {other_name}, which made {n} jobs of \
         one rank; start it with the mpiexec of {name}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(built: Flavour, set: &[(&str, i64)]) -> Option<String> {
        stray(built, |name| set.iter().find(|(n, _)| *n == name).map(|&(_, value)| value))
    }

    #[test]
    fn the_other_launcher_is_found() {
        let said = with(Flavour::Mpich, &[("OMPI_COMM_WORLD_SIZE", 4)]).expect("4 jobs");
        assert!(said.contains("was started by the mpiexec of Open MPI"), "{said}");
        let said = with(Flavour::OpenMpi, &[("PMI_SIZE", 2)]).expect("2 jobs");
        assert!(said.contains("was started by the mpiexec of MPICH"), "{said}");
        assert_eq!(with(Flavour::Mpich, &[("OMPI_COMM_WORLD_SIZE", 1)]), None);
        assert_eq!(with(Flavour::Mpich, &[]), None);
    }

    #[test]
    fn srun_without_a_protocol_is_found() {
        let step = [("SLURM_STEP_NUM_TASKS", 4), ("SLURM_PROCID", 2)];
        let said = with(Flavour::Mpich, &step).expect("4 jobs");
        assert!(said.contains("srun --mpi=pmi2"), "{said}");
        let said = with(Flavour::OpenMpi, &step).expect("4 jobs");
        assert!(said.contains("srun --mpi=pmix"), "{said}");
        // Open MPI does not speak this protocol.
        let pmi2 = [("SLURM_STEP_NUM_TASKS", 4), ("SLURM_PROCID", 2), ("PMI_SIZE", 4)];
        let said = with(Flavour::OpenMpi, &pmi2).expect("4 jobs");
        assert!(said.contains("srun --mpi=pmix"), "{said}");
    }

    #[test]
    fn a_job_of_one_rank_is_legal() {
        // `mpiexec -n 1` in an allocation: srun has started its helpers on two nodes.
        let hydra = [("SLURM_STEP_NUM_TASKS", 2), ("SLURM_PROCID", 0), ("PMI_SIZE", 1)];
        assert_eq!(with(Flavour::Mpich, &hydra), None);
        assert_eq!(with(Flavour::Mpich, &[("SLURM_STEP_NUM_TASKS", 1), ("SLURM_PROCID", 0)]), None);
        // The batch script is not a step of several tasks.
        assert_eq!(with(Flavour::OpenMpi, &[("SLURM_PROCID", 0)]), None);
        // A rank of a job under this MPI's own launcher.
        assert_eq!(with(Flavour::Mpich, &[("PMI_SIZE", 4), ("OMPI_COMM_WORLD_SIZE", 4)]), None);
    }
}
