//! The paths of one engine, on top of the core layer.

use super::Path;
use super::rma::TypeCache;
use super::two_sided::TwoSided;
use crate::core::Core;
use crate::error::{Result, fail};
use crate::memory::slab::Slab;
use crate::trace::Cause;
use crate::wait;
use std::ops::Deref;
use std::sync::Arc;

/// The transport layer.
#[derive(Debug)]
pub struct Transport {
    core: Core,
    two_sided: Option<TwoSided>,
    pub types: TypeCache,
}

impl Deref for Transport {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Transport {
    /// Creates the layer. `two_sided` is needed if messages serve some of the ranks.
    pub fn new(core: Core, two_sided: Option<TwoSided>) -> Transport {
        Transport { core, two_sided, types: TypeCache::default() }
    }

    /// Returns the layer below.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Returns the arena that contains `len` bytes at `address` of this rank, and their offset in
    /// this rank's region of it. Checks addresses that come from other ranks.
    ///
    /// # Errors
    /// Returns `Address` if the bytes do not all lie in one region of this rank, and `Argument` if
    /// the address is null.
    pub fn own(&self, address: u64, len: usize) -> Result<(Arc<Slab>, usize)> {
        self.memory.registry.in_slice(self.rank(), address as usize, len)
    }

    /// Returns the message path.
    ///
    /// # Errors
    /// Returns `Internal` if the job uses no messages.
    #[inline]
    pub fn two_sided(&self) -> Result<&TwoSided> {
        match &self.two_sided {
            Some(two_sided) => Ok(two_sided),
            None => {
                fail!(Internal, "a message is needed in a job that was started without messages")
            }
        }
    }

    /// Completes own requests and serves other ranks. Returns whether anything happened.
    #[inline]
    pub(crate) fn poll_messages(&self) -> Result<bool> {
        match &self.two_sided {
            Some(two_sided) => two_sided.poll(self),
            None => Ok(false),
        }
    }

    /// Returns the number of outstanding MPI requests, for reports.
    pub fn outstanding(&self) -> usize {
        self.two_sided.as_ref().map_or(0, TwoSided::outstanding)
    }

    /// Receives and serves all messages still in flight, before the communicators are freed.
    /// Collective.
    pub(crate) fn drain_messages(&self) -> Result<()> {
        let Some(two_sided) = &self.two_sided else {
            return Ok(());
        };
        two_sided.await_acks(self)?;
        let comm = self.world().comm()?;
        let mut barrier = comm.ibarrier()?;
        let mut passed = false;
        wait::until(self, Cause::Start, &|| "the last messages of other ranks".into(), || {
            // A message sent before the barrier may become visible only after it.
            let idle = !two_sided.poll(self)?;
            let before = passed;
            passed = passed || barrier.test()?;
            Ok(before && idle && two_sided.outstanding() == 0)
        })
    }

    /// Frees the MPI objects of the paths. Collective. Nothing may be outstanding.
    pub fn free(&self) -> Result<()> {
        match &self.two_sided {
            Some(two_sided) => two_sided.free(),
            None => Ok(()),
        }
    }

    /// Returns the path of puts and gets from `origin` to ordinary segments of `target`.
    pub fn path_between(&self, origin: usize, target: usize) -> Path {
        if self.reaches_directly(target, origin) {
            Path::Direct
        } else if self.memory.policy().windows {
            Path::Rma
        } else {
            Path::Message
        }
    }
}

crate::wait::progress_by_deref!(Transport);
