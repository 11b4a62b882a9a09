//! The paths of one engine, on top of the core layer.

use super::rma::Rma;
use super::two_sided::TwoSided;
use super::{Capabilities, Flush, Path, Transport};
use crate::core::Core;
use crate::error::{Result, fail};
use crate::memory::arena::Arena;
use crate::trace::Cause;
use crate::wait;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

pub type Maker = fn() -> Box<dyn Transport>;

static INSTALLED: OnceLock<Maker> = OnceLock::new();

/// For all engines that start from now on, the same on every rank. Only the first call counts.
pub fn install(maker: Maker) {
    let _ = INSTALLED.set(maker);
}

#[derive(Debug)]
pub struct Paths {
    core: Core,
    two_sided: Option<TwoSided>,
    rma: Rma,
    installed: Option<Box<dyn Transport>>,
}

impl Deref for Paths {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Paths {
    /// `two_sided` is needed if messages serve some of the ranks.
    pub fn new(core: Core, two_sided: Option<TwoSided>) -> Paths {
        let installed = INSTALLED.get().map(|make| make());
        Paths { core, two_sided, rma: Rma::default(), installed }
    }

    pub fn installed_capabilities() -> Capabilities {
        INSTALLED.get().map_or(Capabilities::default(), |make| make().capabilities())
    }

    /// The table of all transports. Fails with `Internal` for a direct or unused path.
    #[inline]
    pub fn transport(&self, path: Path) -> Result<&dyn Transport> {
        match path {
            Path::Rma => Ok(&self.rma),
            Path::Message => Ok(self.two_sided()?),
            Path::Direct => fail!(Internal, "direct access needs no transport"),
            Path::Installed => match &self.installed {
                Some(installed) => Ok(&**installed),
                None => fail!(Internal, "no transport is installed"),
            },
        }
    }

    pub fn flush(&self, path: Path, target: usize) -> Result<()> {
        let transport = self.transport(path)?;
        match transport.begin_flush(self, target, Flush::All)? {
            Some(begun) => transport.end_flush(self, target, begun),
            None => Ok(()),
        }
    }

    pub fn forget_types(&self) {
        self.rma.forget_types();
    }

    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Returns the arena that contains `len` bytes at `address` of this rank, and their offset in
    /// its region. Checks addresses that come from other ranks; fails as
    /// [`crate::memory::registry::Registry::in_region`].
    pub fn own(&self, address: u64, len: usize) -> Result<(Arc<Arena>, usize)> {
        self.memory.registry.in_region(self.rank(), address as usize, len)
    }

    /// Fails with `Internal` if the job uses no messages.
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
        let other = match &self.installed {
            Some(installed) => installed.poll(self)?,
            None => false,
        };
        match &self.two_sided {
            Some(two_sided) => Ok(two_sided.poll(self)? || other),
            None => Ok(other),
        }
    }

    pub(crate) fn has_long_messages(&self) -> bool {
        self.two_sided.as_ref().is_some_and(TwoSided::has_long_messages)
    }

    pub fn outstanding(&self) -> usize {
        self.two_sided.as_ref().map_or(0, TwoSided::outstanding)
    }

    /// Serves all messages still in flight. Collective.
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

    /// Collective. Nothing may be outstanding.
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
        } else if self.memory.policy().installed.contains(Capabilities::TRANSFER) {
            Path::Installed
        } else if self.memory.policy().windows {
            Path::Rma
        } else {
            Path::Message
        }
    }
}

crate::wait::progress_by_deref!(Paths);
