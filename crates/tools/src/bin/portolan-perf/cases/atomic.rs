//! Fetch-and-add, swap, mutexes, and puts with flags.

use super::transfer::ours;
use crate::Result;
use crate::bounds::rma::{self, Operation};
use crate::bounds::{plain, two_sided};
use crate::measure::{By, Contender, FLAGS, Lab};
use crate::plan::Case;
use portolan::MutexSet;
use std::cell::{Cell, OnceCell};
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};

/// A mutex on each rank, created when a test first needs it.
pub(super) type Started<'rt> = OnceCell<MutexSet<'rt>>;

pub(super) fn free(started: Started<'_>) -> Result<()> {
    Ok(started.into_inner().map_or(Ok(()), MutexSet::free)?)
}

/// Returns a contender that runs an atomic operation of the processor at every origin.
fn atomics<'a>(lab: &'a Lab<'_>, case: Case, step: fn(&AtomicI64)) -> Contender<'a> {
    let origin = !lab.targets(case.pattern).is_empty();
    let word = AtomicI64::new(0);
    let body = move |n: usize| {
        (0..n).filter(|_| origin).for_each(|_| step(black_box(&word)));
        Ok(())
    };
    plain("atomic", 1, Box::new(body))
}

pub(super) fn fadd<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let targets = lab.targets(case.pattern);
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            black_box(lab.words.fetch_add(targets[turn % targets.len()], 0, 1)?);
        }
        Ok(())
    };
    let mut all = vec![ours(1, Box::new(body))];
    if lab.bounds.plain {
        let step = |word: &AtomicI64| {
            black_box(word.fetch_add(1, Ordering::SeqCst));
        };
        all.push(atomics(lab, case, step));
    }
    if lab.bounds.two_sided && lab.size() > 1 {
        all.push(two_sided::round_trips(lab, case, (8, 8), 1.0));
    }
    if lab.bounds.rma {
        all.push(rma::flushed(lab, case, Operation::FetchAdd, 1)?);
    }
    Ok(all)
}

pub(super) fn swap<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let targets = lab.targets(case.pattern);
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            black_box(lab.words.swap(targets[turn % targets.len()], 1, turn as i64)?);
        }
        Ok(())
    };
    let mut all = vec![ours(1, Box::new(body))];
    if lab.bounds.plain {
        let step = |word: &AtomicI64| {
            black_box(word.swap(7, Ordering::SeqCst));
        };
        all.push(atomics(lab, case, step));
    }
    if lab.bounds.two_sided && lab.size() > 1 {
        all.push(two_sided::round_trips(lab, case, (8, 8), 1.0));
    }
    Ok(all)
}

pub(super) fn lock<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let targets = lab.targets(case.pattern);
    if lab.services.mutexes.get().is_none() {
        let _ = lab.services.mutexes.set(lab.rt.world().mutexes(1)?);
    }
    let mutexes = lab.services.mutexes.get().expect("set above");
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            mutexes.lock(targets[turn % targets.len()], 0)?.unlock()?;
        }
        Ok(())
    };
    let mut all = vec![ours(1, Box::new(body))];
    if lab.bounds.plain {
        let step = |word: &AtomicI64| {
            while word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {}
            word.store(0, Ordering::Release);
        };
        all.push(atomics(lab, case, step));
    }
    if lab.bounds.two_sided && lab.size() > 1 {
        // Locking takes a request and a reply. Unlocking needs no reply.
        all.push(two_sided::round_trips(lab, case, (8, 8), 1.0));
    }
    Ok(all)
}

/// Rank 0 and the last rank exchange puts with flags. Each flag gets a new value, because a wait
/// ends only when the flag has exactly the expected value.
pub(super) fn notify<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let (me, last) = (lab.me(), lab.size() - 1);
    let from = vec![1u8; case.bytes];
    // Continue with the value at which earlier rounds and sizes stopped. It is stored in a flag of
    // this rank that no other rank sets.
    let kept = FLAGS - 1;
    let value = Cell::new(0);
    let (mine, theirs) = if me == 0 { (0, 16) } else { (16, 0) };
    let body = move |n: usize| -> Result<()> {
        if me != 0 && me != last {
            return Ok(());
        }
        value.set(lab.flags.local().read(kept));
        let partner = if me == 0 { last } else { 0 };
        for _ in 0..n {
            value.set(value.get().wrapping_add(1));
            if me == 0 {
                lab.data.put_notify(partner, 0, &from, &lab.flags, theirs, value.get())?;
                lab.flags.wait_notify(mine, value.get())?;
            } else {
                lab.flags.wait_notify(mine, value.get())?;
                lab.data.put_notify(partner, 0, &from, &lab.flags, theirs, value.get())?;
            }
        }
        lab.flags.local().write(kept, value.get());
        Ok(())
    };
    if last == 0 || case.pattern != crate::plan::Pattern::Pair {
        return Ok(Vec::new());
    }
    let body = Box::new(body);
    let mut all =
        vec![Contender { name: "portolan", by: By::Portolan, both: true, body, ops: 2.0 }];
    if lab.bounds.two_sided {
        all.push(two_sided::round_trips(lab, case, (case.bytes, case.bytes), 2.0));
    }
    Ok(all)
}
