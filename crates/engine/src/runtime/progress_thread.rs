//! The progress thread, which serves other ranks while this one computes.
//!
//! After an event it keeps polling for some microseconds. Then it naps for increasing times: up to
//! half of `PORTOLAN_IDLE_POLL_US` while other ranks were recently active, later up to the whole.
//! It stands back while a caller waits, and therefore polls. While a caller polls in its own loop,
//! it stands back for [`LINGER`] at a time, and for longer as the loop goes on. It never yields:
//! the core would return only after the time slice of a computing rank.
//!
//! Invariants: an idle thread uses less than 1 % of a core. A request to a computing rank waits no
//! longer than the longest nap.

use crate::am::Am;
use crate::am::poll_state::pause_after;
use crate::am::state::RingState;
use portolan_base::error::{Result, fail};
use portolan_base::thread::{self, Role};
use portolan_base::wait::times::{HELD_UP, LATELY, LINGER, UNDISTURBED};
use portolan_base::wait::watchdog;
use portolan_base::wait::{Backoff, Patience, Step};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Number of polls by callers in the shortest pause of the thread that counts as a polling loop.
const IN_A_LOOP: u32 = 8;

#[derive(Debug)]
pub(crate) struct ProgressThread {
    handle: JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl ProgressThread {
    /// The thread holds a strong reference to the engine until [`ProgressThread::stop`].
    pub fn start(am: &Am) -> Result<ProgressThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, owner) = (stop.clone(), am.owner()?);
        let builder = Builder::new().name("portolan-progress".into());
        let started = thread::spawn(builder, Role::Progress, move || {
            short_slice();
            if let Some(owner) = owner.upgrade() {
                run(owner.am(), &seen);
            }
        });
        match started {
            Ok(handle) => Ok(ProgressThread { handle, stop }),
            Err(error) => fail!(Memory, "cannot start the progress thread: {error}"),
        }
    }

    pub fn stop(self, am: &Am) {
        self.stop.store(true, Ordering::Release);
        self.handle.thread().unpark();
        if let Some(node) = am.started().and_then(|state| state.node.as_ref()) {
            node.wake_own();
        }
        let _ = self.handle.join();
    }
}

/// Requests a short time slice, so that the thread gets the core sooner when it wakes up while
/// another one computes. Kernels before 6.12 ignore this.
fn short_slice() {
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    const SLICE_NS: u64 = 100_000;
    let mut attributes = Attributes {
        size: std::mem::size_of::<Attributes>() as u32,
        policy: 0,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: 0,
        deadline: 0,
        period: 0,
    };
    // SAFETY: both calls affect only this thread, and get a structure with its size.
    unsafe {
        let size = attributes.size;
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) == 0
            && attributes.policy == 0
        {
            attributes.runtime = SLICE_NS;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        }
    }
}

/// MPI may need several calls to deliver a message.
const POLL: usize = 2;

fn check(am: &Am) -> bool {
    (0..POLL).any(|_| match am.poll_by_thread() {
        Ok(busy) => busy,
        Err(error) => error.end_job_in("the progress engine failed"),
    })
}

/// Checks at most four times in the age, because a check takes the lock of each aggregator.
fn flush_aged(am: &Am, looked: &mut Instant) {
    let collects = am.started().is_some_and(|state| !state.collects_nothing());
    if !collects || looked.elapsed() < am.config.aggregate_age / 4 {
        return;
    }
    if let Err(error) = am.flush_hooks(true) {
        error.end_job_in("sending collected messages failed");
    }
    *looked = Instant::now();
}

fn sleep(am: &Am, nap: Duration) {
    watchdog::settle();
    match am.started().and_then(|state| Some((state, state.node.as_ref()?))) {
        Some((state, node)) => {
            // The doorbell covers the rings. MPI and aged items require polling.
            let alone = !am.has_messages() && state.collects_nothing();
            let lingers = state.poll_state.lingers();
            let nap = match (lingers, alone) {
                _ if state.is_held_up() => nap.min(HELD_UP),
                (true, _) => state.poll_state.pause().min(nap),
                (false, true) => UNDISTURBED,
                (false, false) => nap,
            };
            node.sleep(|| match state.rings() {
                _ if lingers || am.waiters().load(Ordering::Relaxed) > 0 => Some(nap),
                RingState::Ready => None,
                // Spinning takes the core from the thread that holds the lock.
                RingState::Busy => Some(nap.min(HELD_UP)),
                RingState::Empty => Some(nap),
            });
            if state.poll_state.lingers() && state.poll_state.check(node, am.waiters()) {
                state.poll_again(am);
            }
        }
        None => std::thread::park_timeout(nap),
    }
}

fn run(am: &Am, stop: &AtomicBool) {
    let longest = am.config.idle_poll;
    let mut backoff = Backoff::new(Patience::of_thread(am.has_messages(), longest));
    let mut last_busy = Instant::now();
    let mut looked = last_busy;
    let mut polled = am.polls().load(Ordering::Relaxed);
    // Turns in succession that found the caller in a polling loop.
    let (mut loops, mut in_a_loop) = (0, IN_A_LOOP);
    while !stop.load(Ordering::Acquire) {
        if am.waiters().load(Ordering::Relaxed) > 0 || am.lingers() {
            sleep(am, longest);
            polled = am.polls().load(Ordering::Relaxed);
            // A caller that waits, or soon will, polls but does not send aged messages.
            flush_aged(am, &mut looked);
        } else if am.polls().load(Ordering::Relaxed).wrapping_sub(polled) >= in_a_loop {
            polled = am.polls().load(Ordering::Relaxed);
            let pause = pause_after(loops).min(longest);
            sleep(am, pause);
            loops += 1;
            in_a_loop = IN_A_LOOP * (pause.as_micros() / LINGER.as_micros()).max(1) as u32;
            flush_aged(am, &mut looked);
        } else if check(am) {
            (loops, in_a_loop) = (0, IN_A_LOOP);
            last_busy = Instant::now();
            backoff.reset();
        } else {
            (loops, in_a_loop) = (0, IN_A_LOOP);
            let idle = last_busy.elapsed();
            let most = if idle < LATELY { longest / 2 } else { longest };
            match backoff.step(idle, most, am.has_long_messages()) {
                Step::Poll | Step::Yield => std::hint::spin_loop(),
                Step::Nap(nap) => {
                    flush_aged(am, &mut looked);
                    sleep(am, nap);
                }
            }
        }
    }
}
