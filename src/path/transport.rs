//! The paths of one engine, and what stands below them.

use super::Path;
use super::message::Messenger;
use super::rma::TypeCache;
use crate::core::Core;
use crate::error::{Result, fail};
use std::ops::Deref;

/// The layer of the paths.
#[derive(Debug)]
pub struct Transport {
    core: Core,
    messenger: Option<Messenger>,
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
    /// Over these ranks; `messenger` where some are served by messages.
    pub fn new(core: Core, messenger: Option<Messenger>) -> Transport {
        Transport { core, messenger, types: TypeCache::default() }
    }

    /// The layer below.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The message path.
    ///
    /// # Errors
    /// `Internal` in a job without messages.
    #[inline]
    pub(crate) fn messenger(&self) -> Result<&Messenger> {
        match &self.messenger {
            Some(messenger) => Ok(messenger),
            None => fail!(Internal, "a message was needed in a job that decided to use none"),
        }
    }

    /// Completes own requests and serves others; true when anything happened.
    #[inline]
    pub(crate) fn poll_messages(&self) -> Result<bool> {
        match &self.messenger {
            Some(messenger) => messenger.poll(self),
            None => Ok(false),
        }
    }

    /// Requests to MPI that are outstanding, for reports.
    pub(crate) fn outstanding(&self) -> usize {
        self.messenger.as_ref().map_or(0, Messenger::outstanding)
    }

    /// Takes in what is under way before the communicators go. Collective.
    pub(crate) fn drain_messages(&self) -> Result<()> {
        let Some(messenger) = &self.messenger else {
            return Ok(());
        };
        let comm = self.world().comm()?;
        let mut barrier = comm.ibarrier()?;
        loop {
            let busy = messenger.poll(self)?;
            let passed = barrier.test()?;
            if passed && !busy && messenger.outstanding() == 0 {
                return Ok(());
            }
            if !busy {
                std::thread::yield_now();
            }
        }
    }

    /// Frees what the paths have made of MPI. Collective; nothing may be outstanding.
    pub(crate) fn free(&self) -> Result<()> {
        match &self.messenger {
            Some(messenger) => messenger.free(),
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
