//! The three ways to a target's memory, and the choice between them.
//!
//! * [`shm_atomics`]: load and store through the node's shared mapping. Complete when
//!   it returns; needs nothing of the target.
//! * [`rma`]: MPI's one-sided calls on the slab's window.
//! * [`two_sided`]: a request to the target, whose progress engine carries it out.
//!
//! The choice is made for each operation from what the slab offers: a slice
//! that is mapped here goes direct (one's own always is), else through the window
//! where there is one, else by message. Which slabs are mapped and windowed follows
//! `PORTOLAN_PATH` ([`crate::memory::slab::Policy`]). Atomic operations go where
//! the slab's atomicity domain says, so that all ranks use one mechanism:
//! direct or message in the native domain, the window in MPI's. An accumulate on elements
//! that are not aligned goes direct or by message in either.
//!
//! **Order** (invariant 1). Direct operations are done when they return.
//! Messages to one target are handled in order. Window operations that overlap
//! unfinished ones of another kind flush first. Before an operation takes
//! another path to a target than unfinished ones did, those are completed
//! ([`crate::peer`]).

pub(crate) mod cma;
pub(crate) mod kernel;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the fault is of x86"))]
mod long_copy;
pub(crate) mod ops;
pub(crate) mod rma;
pub(crate) mod shm_atomics;
pub(crate) mod stripe;
mod transport;
pub(crate) mod two_sided;

pub(crate) use transport::Transport;

use crate::memory::slab::{Domain, Slab};

/// A transfer path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Load and store in shared memory.
    Direct,
    /// MPI windows.
    Rma,
    /// Messages to the owner.
    Message,
}

impl Path {
    /// The name, as `PORTOLAN_PATH` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Path::Direct => "direct",
            Path::Rma => "rma",
            Path::Message => "message",
        }
    }
}

/// The path of puts and gets to a slice that is mapped at `slice` here.
#[inline]
pub(crate) fn for_transfer(slab: &Slab, slice: *mut u8) -> Path {
    if !slice.is_null() {
        Path::Direct
    } else if slab.window().is_some() {
        Path::Rma
    } else {
        Path::Message
    }
}

/// The path of read-modify-writes, and of accumulates on aligned elements.
#[inline]
pub(crate) fn for_atomics(slab: &Slab, slice: *mut u8) -> Path {
    for_accumulate(slab, slice, true)
}

/// The path of accumulates. Elements that are not aligned are no business of MPI's, whose
/// accumulates may use instructions that fault on them or are not atomic: they are in the
/// native domain of every slab (see [`crate::atomics`]).
#[inline]
pub(crate) fn for_accumulate(slab: &Slab, slice: *mut u8, aligned: bool) -> Path {
    match slab.domain() {
        Domain::Mpi if aligned => Path::Rma,
        _ if !slice.is_null() => Path::Direct,
        _ => Path::Message,
    }
}
