//! The paths of one engine, and what stands below them.

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

/// The layer of the paths.
#[derive(Debug)]
pub struct Transport {
    core: Core,
    two_sided: Option<TwoSided>,
    pub(crate) types: TypeCache,
}

impl Deref for Transport {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Transport {
    /// Over these ranks; `two_sided` where some are served by messages.
    pub fn new(core: Core, two_sided: Option<TwoSided>) -> Transport {
        Transport { core, two_sided, types: TypeCache::default() }
    }

    /// The layer below.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Where bytes of this rank lie that another rank asks for: the slab, and the offset in this
    /// rank's slice of it.
    ///
    /// # Errors
    /// `Address` where they are not all in a slice of this rank.
    pub(crate) fn own(&self, address: u64, len: usize) -> Result<(Arc<Slab>, usize)> {
        self.memory.registry.in_slice(self.rank(), address as usize, len)
    }

    /// The message path.
    ///
    /// # Errors
    /// `Internal` in a job without messages.
    #[inline]
    pub(crate) fn two_sided(&self) -> Result<&TwoSided> {
        match &self.two_sided {
            Some(two_sided) => Ok(two_sided),
            None => fail!(Internal, "a message was needed in a job that decided to use none"),
        }
    }

    /// Completes own requests and serves others; true when anything happened.
    #[inline]
    pub(crate) fn poll_messages(&self) -> Result<bool> {
        match &self.two_sided {
            Some(two_sided) => two_sided.poll(self),
            None => Ok(false),
        }
    }

    /// Requests to MPI that are outstanding, for reports.
    pub(crate) fn outstanding(&self) -> usize {
        self.two_sided.as_ref().map_or(0, TwoSided::outstanding)
    }

    /// Takes in what is under way before the communicators go. Collective.
    pub(crate) fn drain_messages(&self) -> Result<()> {
        let Some(two_sided) = &self.two_sided else {
            return Ok(());
        };
        two_sided.await_acks(self)?;
        let comm = self.world().comm()?;
        let mut barrier = comm.ibarrier()?;
        let mut passed = false;
        wait::until(self, Cause::Start, &|| "the last messages of other ranks".into(), || {
            // What was sent before the barrier may still be found after it.
            let idle = !two_sided.poll(self)?;
            let before = passed;
            passed = passed || barrier.test()?;
            Ok(before && idle && two_sided.outstanding() == 0)
        })
    }

    /// Frees what the paths have made of MPI. Collective; nothing may be outstanding.
    pub(crate) fn free(&self) -> Result<()> {
        match &self.two_sided {
            Some(two_sided) => two_sided.free(),
            None => Ok(()),
        }
    }

    /// The path of puts and gets from `origin` to ordinary segments of `target`.
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
