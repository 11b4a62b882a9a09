//! Forked children.
//!
//! A child has a copy of each class of its parent: descriptors that share sockets and the poller
//! with the parent, mappings of the same rings, and locks that threads of the parent may have held.
//! While the parent lives, it uses the connections, and the copy is idle: progress finds nothing,
//! and messages are refused. Once the parent has ended, the child goes on in its place, as after
//! `daemon`. The end of an idle copy closes the child's descriptors and nothing else.
//!
//! Invariant: only the process that owns the connections of a class reads, writes, watches or ends
//! them.

use super::Links;
use crate::failure::{Result, refuse};
use crate::na::address::Peer;
use crate::na::class::Shared;
use parking_lot::Mutex;
use portolan_base::process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, getpid, getppid, pidfd_open};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Time that the first call of a child waits for the end of the parent, which ends at once in
/// `daemon`.
const FIRST: Duration = Duration::from_millis(100);

/// The process that owns the connections of a class.
pub(super) struct Owner {
    /// The value of [`process::forks`] in that process.
    forks: AtomicUsize,
    /// Only children lock it.
    process: Mutex<Process>,
    has_waited: AtomicBool,
}

struct Process {
    id: rustix::process::Pid,
    /// Readable once the process has ended. `None` if the kernel has no such descriptors.
    descriptor: Option<OwnedFd>,
}

impl Process {
    fn this() -> Process {
        let id = getpid();
        Process { id, descriptor: pidfd_open(id, PidfdFlags::empty()).ok() }
    }

    /// Waits for at most `time` until the process has ended. Returns whether it has.
    fn ends_within(&self, time: Duration) -> bool {
        let Some(descriptor) = &self.descriptor else {
            std::thread::sleep(time.min(Duration::from_millis(10)));
            return getppid() != Some(self.id);
        };
        let time = Timespec::try_from(time).ok();
        poll(&mut [PollFd::new(descriptor, PollFlags::IN)], time.as_ref()) == Ok(1)
    }
}

impl Owner {
    pub fn this_process() -> Owner {
        Owner {
            forks: AtomicUsize::new(process::forks()),
            process: Mutex::new(Process::this()),
            has_waited: AtomicBool::new(false),
        }
    }

    #[inline]
    pub fn is_here(&self) -> bool {
        self.forks.load(Ordering::Relaxed) == process::forks()
    }

    /// Called in a child. Returns whether the owner has ended, and waits for it for at most `nap`.
    pub fn ends_within(&self, nap: Duration) -> bool {
        self.process.lock().ends_within(nap)
    }
}

impl Links {
    /// Returns whether this process may use the connections. A child whose parent has ended starts
    /// to go on in its place.
    #[inline]
    pub(super) fn is_ours(&self, class: &Shared) -> Result<bool> {
        if self.owner.is_here() { Ok(true) } else { self.goes_on(class) }
    }

    /// Like [`Links::is_ours`], but fails with `BUSY`.
    #[inline]
    pub(super) fn check_ours(&self, class: &Shared) -> Result<()> {
        if !self.is_ours(class)? {
            refuse!(
                BUSY,
                "this process was forked by one that still uses the class; a child goes on with it \
                 when its parent has ended, or needs a class of its own"
            );
        }
        Ok(())
    }

    #[cold]
    fn goes_on(&self, class: &Shared) -> Result<bool> {
        let Owner { forks, process, has_waited } = &self.owner;
        let mut process = process.lock();
        if self.owner.is_here() {
            return Ok(true);
        }
        let time = if has_waited.swap(true, Ordering::Relaxed) { Duration::ZERO } else { FIRST };
        if !process.ends_within(time) {
            return Ok(false);
        }
        *process = Process::this();
        has_waited.store(false, Ordering::Relaxed);
        forks.store(process::forks(), Ordering::Relaxed);
        drop(process);
        self.held.continue_in_child();
        // The connecting threads exist only in the parent.
        let closed = self.dialling.lock().close();
        for (n, kept) in closed {
            kept.into_iter().for_each(|kept| kept.fail("the process was forked"));
            class.lost(Peer::Remote(n));
        }
        let (tcp, sm) = (&self.networks.tcp, &self.networks.sm);
        let reopened = tcp.as_ref().map_or(Ok(()), |tcp| tcp.listening().reopen());
        let reopened =
            reopened.and_then(|()| sm.as_ref().map_or(Ok(()), |sm| sm.listening().reopen()));
        match reopened {
            Ok(()) => Ok(true),
            Err(error) => refuse!(NOMEM, "connections are not accepted after a fork: {error}"),
        }
    }

    /// Ends an idle copy of a class. Waits for no lock, because a thread of the parent may have
    /// held it.
    pub(super) fn leave_to_parent(&self) {
        self.held.leave_to_parent();
        self.networks.tcp.iter().for_each(|tcp| tcp.listening().leave_to_parent());
        self.networks.sm.iter().for_each(|sm| sm.listening().leave_to_parent());
        self.peers().forget_all();
    }
}
