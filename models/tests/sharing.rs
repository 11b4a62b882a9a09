//! Two ranks that split a job never do the same part, and the owner of the job sees the parts that
//! the other rank has done.

use loom::cell::UnsafeCell;
use loom::thread::{spawn, yield_now};
use portolan_models::am::work_split::SplitJob;
use portolan_models::sync::check;
use std::sync::Arc;

const PIECES: usize = 3;

/// Number of times that each part of the jobs was done.
#[derive(Debug, Default)]
struct Shared {
    claims: SplitJob,
    pieces: [UnsafeCell<u32>; PIECES],
}

// SAFETY: the checker ends the model if threads access a part at the same time.
unsafe impl Sync for Shared {}

impl Shared {
    fn copy(&self, n: u16) {
        // SAFETY: the checker ends the model if another thread accesses the part at the same time.
        self.pieces[usize::from(n)].with_mut(|piece| unsafe { *piece += 1 });
    }

    /// Runs the owner of a job. `offer` passes the job to the other rank.
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

    /// Checks that each part was done `times` times.
    fn done(&self, times: u32) {
        for piece in &self.pieces {
            // SAFETY: all parts are done, so no rank accesses them; the checker ends the model
            // otherwise.
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
