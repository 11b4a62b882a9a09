//! Two ranks that share a job never do the same piece, and who has the job sees what the
//! other has done.

use loom::cell::UnsafeCell;
use loom::thread::{spawn, yield_now};
use portolan_models::am::work_split::SplitJob;
use portolan_models::sync::check;
use std::sync::Arc;

const PIECES: usize = 3;

/// How often each piece of the jobs was done.
#[derive(Debug, Default)]
struct Shared {
    claims: SplitJob,
    pieces: [UnsafeCell<u32>; PIECES],
}

// SAFETY: the checker sees to it that threads do not use a piece at once.
unsafe impl Sync for Shared {}

impl Shared {
    fn copy(&self, n: u16) {
        // SAFETY: the checker ends the model where somebody else uses it meanwhile.
        self.pieces[usize::from(n)].with_mut(|piece| unsafe { *piece += 1 });
    }

    /// What the rank with the job does; the job comes to the other by `offer`.
    fn share(&self, offer: impl FnOnce(u32)) {
        let job = self.claims.open(PIECES as u16);
        offer(job);
        while let Some(n) = self.claims.pop_front(job) {
            self.copy(n);
        }
        let taken = self.claims.close(job).expect("the job is still in its place");
        if usize::from(taken) < PIECES {
            while self.claims.left(job).is_none() {
                yield_now();
            }
        }
    }

    fn help(&self, job: u32) {
        let Some(mut n) = self.claims.pop_back(job) else { return };
        loop {
            self.copy(n);
            match self.claims.pop_back(job) {
                Some(next) => n = next,
                None => break,
            }
        }
        self.claims.leave(job, true);
    }

    /// Each piece was done so often.
    fn done(&self, times: u32) {
        for piece in &self.pieces {
            // SAFETY: as above: nobody may be at work any more.
            assert_eq!(piece.with(|piece| unsafe { *piece }), times);
        }
    }
}

#[test]
fn each_piece_is_done_once() {
    check(3, || {
        let shared = Arc::new(Shared::default());
        let (helper, mut thread) = (shared.clone(), None);
        shared.share(|job| thread = Some(spawn(move || helper.help(job))));
        shared.done(1);
        thread.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_helper_that_comes_late_takes_nothing_of_another_job() {
    check(3, || {
        let shared = Arc::new(Shared::default());
        let (helper, mut thread) = (shared.clone(), None);
        shared.share(|job| thread = Some(spawn(move || helper.help(job))));
        shared.share(|_| ());
        shared.done(2);
        thread.into_iter().for_each(|thread| thread.join().unwrap());
        shared.done(2);
    });
}
