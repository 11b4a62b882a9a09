//! The launch of benchmarks under the MPI launcher, and the rows of their tables.

use portolan_engine::mpi::Flavour;
use std::process::Command;

/// Returns whether this process is one of the launched ranks.
pub fn launched() -> bool {
    ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].iter().any(|name| std::env::var(name).is_ok())
}

/// Starts this program again on two ranks that are bound to cores. Returns whether it succeeded.
pub fn launch(settings: &[(&str, &str)]) -> bool {
    let me = std::env::current_exe().expect("the path of this program");
    let (launcher, flags): (_, &[&str]) = match Flavour::built() {
        Flavour::Mpich | Flavour::Other => ("mpiexec.mpich", &["-bind-to", "core"]),
        Flavour::OpenMpi => {
            ("mpirun.openmpi", &["--allow-run-as-root", "--oversubscribe", "--bind-to", "core"])
        }
    };
    let launcher = std::env::var("MPIEXEC").unwrap_or_else(|_| launcher.into());
    let mut command = Command::new(launcher);
    command.args(flags).args(["-n", "2"]).arg(&me).args(std::env::args().skip(1));
    match command.envs(settings.iter().copied()).status() {
        Ok(status) if status.success() => true,
        other => {
            eprintln!("the launch with {settings:?} failed: {other:?}");
            false
        }
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub struct Row<'a> {
    pub what: &'a str,
    pub value: f64,
    pub unit: &'a str,
    /// The reference and its value.
    pub beside: &'a str,
    pub ratio: f64,
    pub wanted: &'a str,
    pub ok: bool,
}

impl Row<'_> {
    /// Prints the row. `which` is the measured variant.
    pub fn print(&self, which: &str) {
        let verdict = if self.ok { "ok" } else { "SHORT" };
        let Row { what, value, unit, beside, ratio, wanted, .. } = self;
        println!(
            "{which:6} {what:32} {value:10.3} {unit:9} {beside:28} {ratio:8.3}  {wanted:12} {verdict}"
        );
    }
}
