//! Fetch-and-add, swap, mutexes, and puts with flags.

use crate::bounds::{plain, rma, two_sided};
use crate::lab::{Contender, FLAGS, Lab, Library, Operation, get_or_create};
use crate::plan::{Case, Pattern};
use crate::result::Result;
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};

/// Returns the contenders of an atomic operation: Portolan's `step`, `on_word` of the processor at
/// every origin, and a message with its reply.
fn bounded<'a>(
    lab: &'a Lab<'_>,
    case: Case,
    step: impl FnMut(usize) -> Result<()> + 'a,
    on_word: fn(&AtomicI64),
) -> Vec<Contender<'a>> {
    let mut all = vec![Contender::at_targets(lab, case, 1, step)];
    if lab.bounds.plain {
        let origin = !lab.targets(case.pattern).is_empty();
        let word = AtomicI64::new(0);
        let body = move |n: usize| {
            (0..n).filter(|_| origin).for_each(|_| on_word(black_box(&word)));
            Ok(())
        };
        all.push(plain("atomic", 1, body));
    }
    all.extend(two_sided::round_trips(lab, case, (8, 8), 1));
    all
}

pub(super) fn fadd<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let step = move |target| {
        black_box(lab.words.fetch_add(target, 0, 1)?);
        Ok(())
    };
    let on_word = |word: &AtomicI64| {
        black_box(word.fetch_add(1, Ordering::SeqCst));
    };
    let mut all = bounded(lab, case, step, on_word);
    all.extend(rma::flushed(lab, case, Operation::FetchAdd, 1)?);
    Ok(all)
}

pub(super) fn swap<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let step = move |target| {
        black_box(lab.words.swap(target, 1, 7)?);
        Ok(())
    };
    let on_word = |word: &AtomicI64| {
        black_box(word.swap(7, Ordering::SeqCst));
    };
    Ok(bounded(lab, case, step, on_word))
}

pub(super) fn lock<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let mutexes = get_or_create(&lab.resources.mutexes, || Ok(lab.rt.world().mutexes(1)?))?;
    let step = move |target| Ok(mutexes.lock(target, 0)?.unlock()?);
    let on_word = |word: &AtomicI64| {
        while word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {}
        word.store(0, Ordering::Release);
    };
    // Locking takes a request and a reply. Unlocking needs no reply.
    Ok(bounded(lab, case, step, on_word))
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
    if last == 0 || case.pattern != Pattern::Pair {
        return Ok(Vec::new());
    }
    let mut all = vec![Contender::new("portolan", Library::Portolan, true, 2, body)];
    all.extend(two_sided::round_trips(lab, case, (case.bytes, case.bytes), 2));
    Ok(all)
}
