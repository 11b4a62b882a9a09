//! The thread on which completion handlers may block. It starts with the first completion handler
//! that does not run inline, and runs them in order of arrival. They may wait and communicate like
//! the program's threads, but call MPI only at MPI_THREAD_MULTIPLE
//! ([`handler::on_completion_thread`]). If waits need MPI below that level, no thread starts, and
//! the completion handlers run on any thread that makes progress outside of handlers.

use super::{Am, Owner};
use crate::core::handler;
use crate::error::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

pub type Job = Box<dyn FnOnce(&Am) + Send>;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    running: bool,
    ended: bool,
}

#[derive(Default)]
pub(crate) struct CompletionThread {
    queue: Arc<(Mutex<Queue>, Condvar)>,
    /// Number of queued jobs that callers run, without those for the thread.
    waiting: AtomicUsize,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for CompletionThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Later").field("waiting", &self.queue.0.lock().jobs.len()).finish()
    }
}

impl CompletionThread {
    /// Without `owner`, who starts the thread, the job waits for [`CompletionThread::run_here`].
    pub fn push(&self, job: Job, owner: Option<Weak<dyn Owner>>) -> Result<()> {
        let (queue, changed) = &*self.queue;
        queue.lock().jobs.push_back(job);
        changed.notify_one();
        let Some(owner) = owner else {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.queue.clone();
            let started = std::thread::Builder::new()
                .name("portolan-later".into())
                .spawn(move || run(&shared, &owner));
            *thread = Some(started.map_err(|e| {
                Error::new(ErrorKind::Memory, format!("cannot start the completion thread: {e}"))
            })?);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    /// Runs one job, for a queue without a thread. Jobs run one at a time. Returns whether one ran.
    pub(crate) fn run_here(&self, am: &Am) -> bool {
        self.run_next(|job| job(am))
    }

    fn run_next(&self, run: impl FnOnce(Job)) -> bool {
        if self.is_idle() {
            return false;
        }
        let (queue, _) = &*self.queue;
        let job = {
            let mut queue = queue.lock();
            if queue.running {
                return false;
            }
            let job = queue.jobs.pop_front();
            queue.running = job.is_some();
            job
        };
        let Some(job) = job else { return false };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let ended = handler::in_completion(|| run(job));
        queue.lock().running = false;
        ended.unwrap_or_else(|panic| resume_unwind(panic));
        true
    }

    pub fn take_all(&self) -> VecDeque<Job> {
        let jobs = std::mem::take(&mut self.queue.0.lock().jobs);
        self.waiting.fetch_sub(jobs.len(), Ordering::Relaxed);
        jobs
    }

    pub fn stop(&self) {
        let (queue, changed) = &*self.queue;
        queue.lock().ended = true;
        changed.notify_all();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            log::error!("the completion thread panicked");
        }
    }
}

fn run(shared: &(Mutex<Queue>, Condvar), owner: &Weak<dyn Owner>) {
    crate::process::quiet_signals();
    handler::become_completion_thread();
    let (queue, changed) = shared;
    loop {
        let job = {
            let mut queue = queue.lock();
            loop {
                if let Some(job) = queue.jobs.pop_front() {
                    break job;
                }
                if queue.ended {
                    return;
                }
                changed.wait(&mut queue);
            }
        };
        let Some(owner) = owner.upgrade() else { return };
        let ended = handler::in_completion(|| job(owner.am()));
        ended.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_job_that_panics_does_not_keep_others_from_running() {
        let jobs = CompletionThread::default();
        for _ in 0..2 {
            jobs.push(Box::new(|_| {}), None).unwrap();
        }
        let run = |run: fn(Job)| catch_unwind(AssertUnwindSafe(|| jobs.run_next(run)));
        assert!(run(|_| panic!("as a test")).is_err());
        assert!(!handler::is_in_completion());
        assert!(run(drop).is_ok_and(|ran| ran));
        assert!(jobs.is_idle());
    }
}
