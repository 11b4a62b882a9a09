//! The wait loop of blocking calls.
//!
//! A waiting call polls, and then naps between polls ([`policy`]). Each poll also makes progress
//! for other ranks.
//!
//! A wait for a store of another core in shared memory first reads the location for half a
//! microsecond ([`briefly`]), which is less than it takes to begin and end a wait. If the store may
//! also come from another node, it reads for a tenth of a microsecond.
//!
//! Invariant: nothing in the crate blocks inside MPI while another rank may need this one, and a
//! wait that takes too long reports what it waits for ([`crate::wait::watchdog`]).

use crate::error::{Result, fail};
use crate::trace::{self, Awaited, Cause};
pub use contention::offer_core;
pub use deadline::Deadline;
pub use policy::while_held;
pub use policy::{Backoff, Ends, Naps, Patience, Step};
pub use progress::{Boot, GivenUp, Progress, Unlocked, Waiting};
pub use repeated_wait::RepeatedWait;
use std::time::{Duration, Instant};
use times::INTERRUPT;
use watchdog::{ProgressEvent, Standing};
pub use word::{Word, on_word, while_equal};

mod contention;
mod deadline;
pub mod policy;
mod progress;
mod repeated_wait;
pub mod times;
pub mod watchdog;
mod word;

/// Number of checks in half a microsecond, for a store of a rank of the node.
pub const NEAR: u32 = 40;
/// If the store may also come from another node, by a message that only a poll receives.
pub const ANYWHERE: u32 = 8;

/// Asks `checks` times whether another rank has stored, without progress.
#[inline]
pub fn briefly(checks: u32, done: impl Fn() -> bool) -> bool {
    for _ in 0..checks {
        if done() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

/// Waits until `done` returns true, and makes progress meanwhile. The statistics count the wait
/// under `awaited`, and `what` describes it for the watchdog. Returns the first error of `done` or
/// of `progress`, and `State` if the thread must not wait.
pub fn until<P: Progress + ?Sized>(
    progress: &P,
    awaited: impl Into<Awaited>,
    what: &dyn Fn() -> String,
    mut done: impl FnMut() -> Result<bool>,
) -> Result<()> {
    if done()? {
        return Ok(());
    }
    not_yet(progress, &awaited.into(), what, &mut done)
}

/// Waits like [`until`], at most until the deadline, for a caller that waits again. Returns whether
/// `done` returned true. The statistics do not count the wait.
pub fn until_deadline<P: Progress + ?Sized>(
    progress: &P,
    deadline: &mut Deadline,
    what: &dyn Fn() -> String,
    mut done: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    let rests = &mut Rests::default();
    rest_until(progress, Some(deadline), Cause::Other, what, &mut done, rests)
}

fn not_yet<P: Progress + ?Sized>(
    progress: &P,
    awaited: &Awaited,
    what: &dyn Fn() -> String,
    done: &mut dyn FnMut() -> Result<bool>,
) -> Result<()> {
    let Some(observer) = progress.traced_by() else {
        let rests = &mut Rests::default();
        return rest_until(progress, None, awaited.cause, what, done, rests).map(drop);
    };
    let (begun, mut rests) = (observer.begin(), Rests::default());
    let waited = rest_until(progress, None, awaited.cause, what, done, &mut rests);
    if rests.naps > 0 {
        trace::count(&observer.always.naps, rests.naps);
    }
    if begun.is_some() || rests.since.is_some() {
        observer.waited(begun, *awaited, rests.since.map(|since| since.elapsed()));
    }
    waited.map(drop)
}

#[derive(Default)]
struct Rests {
    since: Option<Instant>,
    naps: u64,
}

/// Polls between two looks at the deadline while the thread does not rest.
const CHECKED: u32 = 16;

/// Returns false if the deadline has passed. Takes trait objects, so it is compiled only once for
/// each type of progress.
fn rest_until<P: Progress + ?Sized>(
    progress: &P,
    mut deadline: Option<&mut Deadline>,
    awaited: Cause,
    what: &dyn Fn() -> String,
    done: &mut dyn FnMut() -> Result<bool>,
    rests: &mut Rests,
) -> Result<bool> {
    let _waiting = Waiting::begin(progress)?;
    let patience = progress.patience(Ends::Polled);
    let mut backoff = Backoff::new(patience);
    if patience.naps_first {
        rests.since = Some(Instant::now());
        rests.naps += 1;
        backoff.rest(progress, patience.limit, Duration::MAX);
        if done()? {
            return Ok(true);
        }
    }
    let (mut polls, mut idle_since) = (0u32, None);
    // A transfer is never left, because it uses memory of the caller.
    let may_end = matches!(awaited, Cause::Collective | Cause::Lock | Cause::Notify);
    let mut asked: Option<Instant> = None;
    let mut watch = progress.watch();
    if awaited == Cause::Collective {
        watch = watch.warns();
    }
    loop {
        let busy = progress.poll()?;
        if done()? {
            // Short waits are frequent, and the event that ends one is usually recorded.
            if idle_since.is_some() {
                watchdog::note(ProgressEvent::Waited, usize::MAX);
            }
            return Ok(true);
        }
        if busy {
            watch.progressed();
            idle_since = None;
            backoff.reset();
        }
        // No pause here, which would double the time of a poll.
        let again = busy || backoff.spins();
        let mut left = Duration::MAX;
        if let Some(deadline) = &mut deadline {
            polls = polls.wrapping_add(1);
            if !again || polls.is_multiple_of(CHECKED) {
                left = deadline.left();
                if left.is_zero() {
                    return Ok(false);
                }
            }
        }
        if again {
            continue;
        }
        let now = Instant::now();
        let since = *idle_since.get_or_insert(now);
        rests.since.get_or_insert(now);
        let idle = progress.idle(now - since);
        rests.naps += u64::from(backoff.rest(progress, idle, left));
        if may_end && now - *asked.get_or_insert(now) > INTERRUPT {
            asked = Some(now);
            if crate::process::is_interrupted() {
                fail!(State, "interrupted while waiting for {}", what());
            }
        }
        if let Some((cause, waited)) = watch.check(since, now)
            && (cause != watchdog::ReportCause::Early || progress.may_warn())
        {
            progress.report(&Standing { cause, what: &what(), waited, idle: now - since });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn waits_until_done_and_stops_on_errors() {
        let n = Cell::new(0);
        until(&Boot, Cause::Other, &|| "a count".into(), || {
            n.set(n.get() + 1);
            Ok(n.get() == 100)
        })
        .unwrap();
        assert_eq!(n.get(), 100);
        let failed = until(&Boot, Cause::Other, &String::new, || {
            Err(crate::error::Error::new(crate::error::ErrorKind::Internal, "x"))
        });
        assert!(failed.is_err());
    }

    #[test]
    fn a_deadline_ends_busy_and_idle_waits() {
        struct Busy(bool);
        impl Progress for Busy {
            fn poll(&self) -> Result<bool> {
                Ok(self.0)
            }
        }
        for busy in [true, false] {
            let soon = || Deadline::after(Duration::from_millis(5));
            let until = |done| until_deadline(&Busy(busy), &mut soon(), &String::new, || Ok(done));
            assert!(!until(false).unwrap());
            assert!(until(true).unwrap());
        }
    }

    #[test]
    fn an_interrupt_ends_waits_for_others_and_no_transfers() {
        thread_local! {
            static NOW: Cell<bool> = const { Cell::new(false) };
        }
        crate::process::set_interrupted(|| NOW.get());
        NOW.set(true);
        let ended = until(&Boot, Cause::Collective, &|| "nobody".into(), || Ok(false));
        assert_eq!(ended.unwrap_err().detail(), "interrupted while waiting for nobody");
        let begun = Instant::now();
        let later = || Ok(begun.elapsed() > 3 * INTERRUPT);
        until(&Boot, Cause::Handle, &String::new, later).unwrap();
        NOW.set(false);
        until(&Boot, Cause::Collective, &String::new, later).unwrap();
    }
}
