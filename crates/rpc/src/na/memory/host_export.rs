//! Whether the memory that this process allocates for others is exported to the host.

use portolan_engine::runtime::admission;
use std::sync::atomic::{AtomicUsize, Ordering};

static CLASSES: AtomicUsize = AtomicUsize::new(0);

/// A class that is reached through shared memory, without a common job.
#[derive(Debug)]
pub struct Neighbours(());

impl Neighbours {
    pub fn new() -> Neighbours {
        CLASSES.fetch_add(1, Ordering::Relaxed);
        Neighbours(())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        CLASSES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns whether other processes reach this one through shared memory: through a class over
/// `na+sm`, or as ranks of the node if cross-memory access is enabled.
pub(super) fn is_lending() -> bool {
    let among_ranks = || {
        let engine = admission::admit_current().ok()?;
        let neighbours = engine.topology.ranks_of(engine.topology.my_node()).len() > 1;
        Some(neighbours && engine.config.cross_memory)
    };
    CLASSES.load(Ordering::Relaxed) > 0 || among_ranks().unwrap_or(false)
}
