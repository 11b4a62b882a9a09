//! File descriptors that become readable when a context has work.
//!
//! A program arms the descriptor ([`Descriptors::arm`]), checks for work once more, and then waits
//! in its own `poll`. A thread that brings work notifies the class, which signals the armed
//! descriptors. A signal disarms, so a busy context costs one system call per wait.
//!
//! Invariant: the arming thread bears the fence, as in [`super::eventcount`]. Either its check
//! after [`Descriptors::arm`] sees the work, or the notifying thread sees the armed descriptor.

use crate::failure::{Failure, Result, Status};
use parking_lot::Mutex;
use portolan_base::sync::membarrier;
use rustix::event::{EventfdFlags, epoll, eventfd};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

#[derive(Debug)]
pub struct Descriptor {
    /// An `eventfd`, which notifications signal.
    event: File,
    /// An `epoll` over `event` and the descriptor of the network, if the network has one.
    both: Option<OwnedFd>,
    armed: AtomicBool,
}

impl Descriptor {
    /// `network` must be open.
    fn new(network: Option<RawFd>) -> Result<Descriptor> {
        let failed = |what: &str, error| Failure::new(Status::NODEV, format!("{what}: {error}"));
        let unmade = |error| failed("no descriptor can be made", error);
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(unmade)?;
        let mut both = None;
        if let Some(network) = network {
            // SAFETY: the descriptor is open during this call.
            let network = unsafe { BorrowedFd::borrow_raw(network) };
            let all = both.insert(epoll::create(epoll::CreateFlags::CLOEXEC).map_err(unmade)?);
            for fd in [event.as_fd(), network] {
                epoll::add(&*all, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
                    .map_err(|error| failed("the network's descriptor cannot be watched", error))?;
            }
        }
        Ok(Descriptor { event: File::from(event), both, armed: AtomicBool::new(false) })
    }

    pub fn fd(&self) -> RawFd {
        self.both.as_ref().map_or(self.event.as_raw_fd(), AsRawFd::as_raw_fd)
    }

    pub fn signal(&self) {
        // The write fails only if the counter is full, and then the descriptor is readable.
        let _ = (&self.event).write(&1u64.to_ne_bytes());
    }

    fn drain(&self) {
        let mut count = [0; 8];
        let _ = (&self.event).read(&mut count);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    all: Mutex<Vec<Weak<Descriptor>>>,
    armed: AtomicUsize,
}

impl Descriptors {
    /// Creates a readable descriptor, which also becomes readable with the network's, if any.
    pub(crate) fn add(&self, network: Option<RawFd>) -> Result<Arc<Descriptor>> {
        let descriptor = Arc::new(Descriptor::new(network)?);
        descriptor.signal();
        let mut all = self.all.lock();
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&descriptor));
        Ok(descriptor)
    }

    /// Makes a descriptor unreadable until the next notification. The caller then checks for work,
    /// and signals the descriptor if there is any.
    pub(crate) fn arm(&self, descriptor: &Descriptor) {
        descriptor.drain();
        if !descriptor.armed.swap(true, Ordering::SeqCst) {
            self.armed.fetch_add(1, Ordering::SeqCst);
        }
        membarrier::heavy();
    }

    /// Ends the use of a descriptor. Otherwise an armed one would count until the class ends.
    pub(crate) fn disarm(&self, descriptor: &Descriptor) {
        if descriptor.armed.swap(false, Ordering::SeqCst) {
            self.armed.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Signals the armed descriptors. Runs after the light side of the fence.
    #[inline]
    pub(crate) fn notify(&self) {
        if self.armed.load(Ordering::Relaxed) > 0 {
            self.signal_armed();
        }
    }

    #[cold]
    fn signal_armed(&self) {
        for descriptor in self.all.lock().iter().filter_map(Weak::upgrade) {
            if descriptor.armed.swap(false, Ordering::SeqCst) {
                self.armed.fetch_sub(1, Ordering::SeqCst);
                descriptor.signal();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(descriptor: &Descriptor) -> bool {
        let mut poll = libc::pollfd { fd: descriptor.fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` is one live element.
        unsafe { libc::poll(&mut poll, 1, 0) == 1 }
    }

    #[test]
    fn a_notification_signals_the_armed_descriptors_once() {
        let all = Descriptors::default();
        let (one, two) = (all.add(None).unwrap(), all.add(None).unwrap());
        assert!(is_readable(&one) && is_readable(&two));
        all.arm(&one);
        all.arm(&one);
        assert!(!is_readable(&one) && is_readable(&two));
        all.notify();
        all.notify();
        assert!(is_readable(&one));
        assert_eq!(all.armed.load(Ordering::Relaxed), 0);
        one.drain();
        all.notify();
        assert!(!is_readable(&one), "it was not armed");
        drop(two);
        all.arm(&one);
        std::thread::scope(|scope| {
            scope.spawn(|| all.notify());
            let mut poll = libc::pollfd { fd: one.fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: `poll` is one live element.
            assert_eq!(unsafe { libc::poll(&mut poll, 1, 30_000) }, 1);
        });
    }

    #[test]
    fn an_armed_descriptor_that_goes_does_not_count() {
        let class = crate::na::Class::new("self", false).unwrap();
        let armed =
            |class: &crate::na::Class| class.wake_source.descriptors.armed.load(Ordering::Relaxed);
        let context = class.context().unwrap();
        context.wait_descriptor().unwrap().expect("the network wakes its threads");
        assert!(context.arm(|| false));
        assert_eq!(armed(&class), 1);
        drop(context);
        assert_eq!(armed(&class), 0);
        class.finalize().unwrap();
    }

    #[test]
    fn an_event_of_the_network_makes_the_descriptor_readable() {
        let all = Descriptors::default();
        let network = Descriptor::new(None).unwrap();
        let descriptor = all.add(Some(network.fd())).unwrap();
        all.arm(&descriptor);
        assert!(!is_readable(&descriptor));
        network.signal();
        assert!(is_readable(&descriptor));
        network.drain();
        assert!(!is_readable(&descriptor));
        all.notify();
        assert!(is_readable(&descriptor));
    }
}
