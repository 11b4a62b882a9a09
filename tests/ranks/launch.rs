//! A launch of a single check: its ranks and its environment, and how it has to end.

use crate::run::system;

/// How a launch has to end.
#[derive(Debug)]
pub enum End {
    /// With success.
    Well,
    /// With success, and these texts in the output.
    Says(&'static [&'static str]),
    /// With failure, and these texts in the output.
    Fails(&'static [&'static str]),
    /// Not at all before its deadline, with these texts in the output.
    Hangs(&'static [&'static str]),
}

/// A launch of its own: the check starts the engine, or expects that it cannot.
#[derive(Debug)]
pub struct Alone {
    /// Its name.
    pub name: &'static str,
    /// What is printed about its configuration.
    pub label: &'static str,
    /// The number of ranks.
    pub ranks: usize,
    /// The environment.
    pub env: &'static [(&'static str, &'static str)],
    /// Deadline in seconds.
    pub seconds: u64,
    /// Whether it belongs to a quick run.
    pub quick: bool,
    /// Whether the other MPI's launcher is used.
    pub other_mpi: bool,
    /// What it has to say is known on one node only: who is missing at a barrier, which
    /// between nodes is MPI's.
    pub one_node: bool,
    /// A shell line around the launcher.
    pub wrap: Option<&'static str>,
    /// Why it cannot run here.
    pub skip: fn() -> Option<String>,
    /// How it has to end.
    pub end: End,
    /// What each rank does.
    pub run: fn(),
}

fn never() -> Option<String> {
    None
}

/// Why the other MPI's launcher cannot be used here.
pub fn no_other_mpi() -> Option<String> {
    system::other_launcher().is_none().then(|| "only one MPI is installed".into())
}

/// What most launches have.
pub const ALONE_BASE: Alone = Alone {
    name: "",
    label: "",
    ranks: 2,
    env: &[],
    seconds: 60,
    quick: true,
    other_mpi: false,
    one_node: false,
    wrap: None,
    skip: never,
    end: End::Well,
    run: crate::lifecycle::start_and_stop,
};

/// The transfer paths of some.
pub const RMA: &[(&str, &str)] = &[("PORTOLAN_PATH", "rma")];
pub const MESSAGE: &[(&str, &str)] = &[("PORTOLAN_PATH", "message")];
