//! The thread on which completion handlers may block. It starts with the first completion handler
//! that does not run inline, and runs them in order of arrival. They may wait and communicate like
//! the program's threads, but call MPI only at MPI_THREAD_MULTIPLE
//! ([`portolan_base::thread::role`]). If waits need MPI below that level, no thread starts, and
//! the completion handlers run on any thread that makes progress outside of handlers.

use crate::core::handler;
use parking_lot::{Condvar, Mutex};
use portolan_base::error::{Result, fail};
use portolan_base::thread::{self, Role};
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};

struct Queue<J> {
    jobs: VecDeque<J>,
    running: bool,
    ended: bool,
}

pub(crate) struct CompletionThread<J> {
    queue: Arc<(Mutex<Queue<J>>, Condvar)>,
    /// Number of queued jobs that callers run, without those for the thread.
    waiting: AtomicUsize,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<J> Default for CompletionThread<J> {
    fn default() -> Self {
        let queue = Queue { jobs: VecDeque::new(), running: false, ended: false };
        CompletionThread {
            queue: Arc::new((Mutex::new(queue), Condvar::new())),
            waiting: AtomicUsize::new(0),
            thread: Mutex::default(),
        }
    }
}

impl<J> std::fmt::Debug for CompletionThread<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompletionThread")
            .field("waiting", &self.queue.0.lock().jobs.len())
            .finish()
    }
}

impl<J: Send + 'static> CompletionThread<J> {
    /// The job waits for [`CompletionThread::run_next`].
    pub fn push(&self, job: J) {
        self.queue.0.lock().jobs.push_back(job);
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// The thread calls `run` for each job until it returns false.
    pub fn push_to_thread(&self, job: J, run: impl Fn(J) -> bool + Send + 'static) -> Result<()> {
        let (queue, changed) = &*self.queue;
        queue.lock().jobs.push_back(job);
        changed.notify_one();
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.queue.clone();
            let run = move || run_all(&shared, run);
            let builder = Builder::new().name("portolan-later".into());
            *thread = match thread::spawn(builder, Role::Completion, run) {
                Ok(started) => Some(started),
                Err(error) => fail!(Memory, "cannot start the completion thread: {error}"),
            };
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    /// Runs one job, for a queue without a thread. Jobs run one at a time. Returns whether one ran.
    pub(crate) fn run_next(&self, run: impl FnOnce(J)) -> bool {
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

    pub fn take_all(&self) -> VecDeque<J> {
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

fn run_all<J>(shared: &(Mutex<Queue<J>>, Condvar), run: impl Fn(J) -> bool) {
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
        if !run(job) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_job_that_panics_does_not_keep_others_from_running() {
        let jobs = CompletionThread::default();
        for job in 0..2 {
            jobs.push(job);
        }
        let run = |run: fn(i32)| catch_unwind(AssertUnwindSafe(|| jobs.run_next(run)));
        assert!(run(|_| panic!("as a test")).is_err());
        assert!(!handler::is_in_completion());
        assert!(run(drop).is_ok_and(|ran| ran));
        assert!(jobs.is_idle());
    }
}
