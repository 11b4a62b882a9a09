//! Short messages that a thread has posted while it held them ([`crate::na::batch`]).
//!
//! They stay in the output of their connections until [`DeferredOutput::transmit`], or until a
//! message that is not held follows. A callback may wait without making progress, so a background
//! thread also transmits held messages every [`TICK`]. It sleeps while no messages are held.
//!
//! Invariant: a connection with held messages is in `links`, or its thread is about to add it. The
//! background thread clears `is_awake` and then reads `any`. A thread that holds a message sets
//! `any` and then reads `is_awake`. These accesses are sequentially consistent, so the background
//! thread finds the message, or the other thread wakes it.

use super::link::Link;
use parking_lot::{Condvar, Mutex};
use portolan_base::process;
use portolan_base::thread::fast_tls;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Longest time that a message is held.
const TICK: Duration = Duration::from_millis(20);
/// Number of ticks without held messages before the thread sleeps.
const QUIET: u32 = 50;

fast_tls! {
    /// The [`DeferredOutput`] whose messages this thread holds, or 0.
    static HOLDING: usize = 0;
}

#[derive(Default)]
pub(super) struct DeferredOutput(Arc<OutputState>);

#[derive(Default)]
struct OutputState {
    links: Mutex<Vec<Arc<Link>>>,
    any: AtomicBool,
    /// Whether messages were held since the last tick.
    used: AtomicBool,
    is_awake: AtomicBool,
    /// Whether the parent of this process owns the messages.
    is_left: AtomicBool,
    thread: Mutex<Thread>,
    change: Condvar,
}

#[derive(Default)]
struct Thread {
    /// The value of [`process::forks`] when the thread was started, plus one.
    started: usize,
    is_over: bool,
}

impl DeferredOutput {
    fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Makes this thread hold its messages, or stop holding them.
    pub fn hold(&self, hold: bool) {
        HOLDING.set(if hold { self.id() } else { 0 });
    }

    pub fn is_holding(&self) -> bool {
        HOLDING.get() == self.id()
    }

    pub fn add(&self, link: &Arc<Link>) {
        let state = &self.0;
        let mut links = state.links.lock();
        if !links.iter().any(|held| Arc::ptr_eq(held, link)) {
            links.push(link.clone());
            drop(links);
            state.used.store(true, SeqCst);
            state.any.store(true, SeqCst);
            if !state.is_awake.load(SeqCst) {
                self.wake();
            }
        }
    }

    #[cold]
    fn wake(&self) {
        let mut thread = self.0.thread.lock();
        self.0.is_awake.store(true, SeqCst);
        let forks = process::forks() + 1;
        if thread.started != forks && !thread.is_over {
            let state = self.0.clone();
            let run = move || {
                process::quiet_signals();
                state.run();
            };
            let started = std::thread::Builder::new().name("portolan-held".into()).spawn(run);
            match started {
                Ok(_) => thread.started = forks,
                Err(error) => log::debug!("held messages have no thread: {error}"),
            }
        }
        self.0.change.notify_one();
    }

    /// Called in a forked child, which lacks the thread.
    pub fn continue_in_child(&self) {
        self.0.is_awake.store(false, SeqCst);
    }

    /// Called in a forked child that ends its copy.
    pub fn leave_to_parent(&self) {
        self.0.is_left.store(true, SeqCst);
    }

    /// Transmits what is held. Calls `failed` with the numbers of connections that have broken.
    pub fn transmit(&self, failed: impl FnMut(u32)) {
        self.0.transmit(failed);
    }
}

impl Drop for DeferredOutput {
    fn drop(&mut self) {
        // In a forked child, the thread does not exist, and may have held the lock.
        if self.0.is_left.load(SeqCst) {
            return;
        }
        self.0.thread.lock().is_over = true;
        self.0.change.notify_one();
    }
}

impl OutputState {
    fn transmit(&self, mut failed: impl FnMut(u32)) {
        if self.any.load(SeqCst) && self.any.swap(false, SeqCst) {
            let links = std::mem::take(&mut *self.links.lock());
            for link in links {
                if link.transmit().is_err() {
                    failed(link.number());
                }
            }
        }
    }

    fn run(&self) {
        let mut quiet = 0;
        let mut thread = self.thread.lock();
        while !thread.is_over {
            if quiet < QUIET {
                self.change.wait_for(&mut thread, TICK);
                quiet = if self.used.swap(false, SeqCst) { 0 } else { quiet + 1 };
            } else {
                self.is_awake.store(false, SeqCst);
                if !self.any.load(SeqCst) && !self.used.load(SeqCst) {
                    self.change.wait(&mut thread);
                }
                self.is_awake.store(true, SeqCst);
                quiet = 0;
            }
            drop(thread);
            // The poller reports broken connections.
            self.transmit(|_| ());
            thread = self.thread.lock();
        }
    }
}
