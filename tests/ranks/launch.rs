//! A launch of a single check: its ranks, its environment and its expected outcome.

use portolan_driver::system;

#[derive(Debug)]
pub enum End {
    Well,
    /// Success, with these texts in the output.
    Says(&'static [&'static str]),
    /// Failure, with these texts in the output.
    Fails(&'static [&'static str]),
    /// No end before the deadline, with these texts in the output.
    Hangs(&'static [&'static str]),
}

/// A launch of a single check, which starts the engine or expects that it cannot start.
#[derive(Debug)]
pub struct Alone {
    pub name: &'static str,
    pub label: &'static str,
    pub ranks: usize,
    pub env: &'static [(&'static str, &'static str)],
    pub seconds: u64,
    /// Whether the other MPI's launcher is used.
    pub other_mpi: bool,
    /// Whether the expected output is available on one node only. It names the rank that is missing
    /// at a barrier, which is unknown between nodes because MPI performs that barrier.
    pub one_node: bool,
    /// A shell line around the launcher.
    pub wrap: Option<&'static str>,
    /// Returns why the launch cannot run here, or `None`.
    pub skip: fn() -> Option<String>,
    pub end: End,
    pub run: fn(),
}

fn never() -> Option<String> {
    None
}

pub fn no_other_mpi() -> Option<String> {
    system::other_launcher().is_none().then(|| "only one MPI is installed".into())
}

pub const ALONE_BASE: Alone = Alone {
    name: "",
    label: "",
    ranks: 2,
    env: &[],
    seconds: 60,
    other_mpi: false,
    one_node: false,
    wrap: None,
    skip: never,
    end: End::Well,
    run: crate::lifecycle::start_and_stop,
};

pub const RMA: &[(&str, &str)] = &[("PORTOLAN_PATH", "rma")];
pub const MESSAGE: &[(&str, &str)] = &[("PORTOLAN_PATH", "message")];
