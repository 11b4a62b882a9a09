//! The permissions of a rank's threads: to run, to call MPI, to serve other ranks.

use super::Core;
use crate::mpi::init::ThreadLevel;
use portolan_base::thread::this_thread;
use std::sync::atomic::Ordering;

impl Core {
    /// Threads of the engine may run: they may call MPI or do not have to, and it is not ending.
    #[inline]
    pub fn may_use_threads(&self) -> bool {
        let allowed = self.level == ThreadLevel::Multiple || !self.messages;
        allowed && !self.alone.load(Ordering::Relaxed)
    }

    pub(crate) fn end_threads(&self) {
        self.alone.store(true, Ordering::Relaxed);
    }

    /// The engine has stopped. Code that still refers to it must not wait any more.
    pub(crate) fn set_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Below `MPI_THREAD_MULTIPLE`, only the thread that started the engine may.
    #[inline]
    pub(crate) fn may_call_mpi(&self) -> bool {
        self.level == ThreadLevel::Multiple || self.home == this_thread()
    }

    #[inline]
    pub fn may_use_messages(&self) -> bool {
        !self.messages || self.may_call_mpi()
    }

    pub fn has_thread(&self) -> bool {
        self.is_watched()
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// With a progress thread, some calls no longer serve other ranks.
    pub(crate) fn set_watched(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
        if watched {
            self.threadless.store(false, Ordering::Relaxed);
        }
    }
}
