//! The poller of a class reports connections whose descriptors have changed. An idle thread sleeps
//! in it.
//!
//! Events are edge-triggered: the receiver must read or write until nothing is left. The poller's
//! own descriptor becomes readable on an event, so programs can wait for it.

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use parking_lot::Mutex;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

const EVENTS: usize = 256;
const WAKE: Token = Token(usize::MAX);

#[derive(Debug)]
pub(super) struct Poller {
    poll: Mutex<(Poll, Events)>,
    registry: Registry,
    waker: OwnedFd,
    descriptor: RawFd,
}

impl Poller {
    pub fn new() -> io::Result<Poller> {
        use rustix::event::{EventfdFlags, eventfd};
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        registry.register(&mut SourceFd(&waker.as_raw_fd()), WAKE, Interest::READABLE)?;
        let descriptor = poll.as_raw_fd();
        let poll = Mutex::new((poll, Events::with_capacity(EVENTS)));
        Ok(Poller { poll, registry, waker, descriptor })
    }

    pub fn descriptor(&self) -> RawFd {
        self.descriptor
    }

    pub fn waker(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    pub fn watch(&self, descriptor: RawFd, n: u32) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.registry.register(&mut SourceFd(&descriptor), Token(n as usize), interest)
    }

    pub fn forget(&self, descriptor: RawFd) {
        let _ = self.registry.deregister(&mut SourceFd(&descriptor));
    }

    /// Waits for events within `time`, and reports their connections. Returns whether the poller
    /// was woken, or `None`, without waiting, if another thread waits here.
    pub fn wait(&self, time: Duration, mut report: impl FnMut(u32)) -> Option<bool> {
        let mut poll = self.poll.try_lock()?;
        let mut woken = false;
        let (poll, events) = &mut *poll;
        if let Err(error) = poll.poll(events, Some(time)) {
            if error.kind() != io::ErrorKind::Interrupted {
                log::error!("waiting for connections: {error}");
            }
            return Some(false);
        }
        for event in events.iter() {
            match event.token() {
                WAKE => {
                    woken = true;
                    let _ = rustix::io::read(&self.waker, &mut [0; 8]);
                }
                Token(n) => report(n as u32),
            }
        }
        Some(woken)
    }

    /// Ends the wait of a thread, or the next one.
    pub fn wake(&self) {
        wake(self.waker());
    }
}

pub(super) fn wake(waker: BorrowedFd<'_>) {
    // It fails only if the counter is at its limit; the reader is then awake already.
    let _ = rustix::io::write(waker, &1u64.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn it_reports_connections_and_wakes() {
        let poller = Poller::new().unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        poller.watch(theirs.as_raw_fd(), 7).unwrap();
        let mut seen = Vec::new();
        assert_eq!(poller.wait(Duration::ZERO, |n| seen.push(n)), Some(false));
        assert_eq!(seen, [7], "it is writable");
        seen.clear();
        poller.wait(Duration::ZERO, |n| seen.push(n));
        assert_eq!(seen, [], "an event is reported once");
        ours.write_all(b"x").unwrap();
        poller.wait(Duration::from_secs(30), |n| seen.push(n));
        assert_eq!(seen, [7]);
        poller.wake();
        assert_eq!(poller.wait(Duration::from_secs(30), |n| seen.push(n)), Some(true));
        poller.forget(theirs.as_raw_fd());
        ours.write_all(b"x").unwrap();
        poller.wait(Duration::ZERO, |n| seen.push(n));
        assert_eq!(seen, [7]);
    }
}
