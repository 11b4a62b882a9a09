//! Reads and writes at an I/O rank, chunk by chunk through a buffer of fixed size.
//!
//! A chunk of a write goes from a free slot of the buffer to a transfer that pulls it from the
//! client, then to a thread that writes it to the file; then its slot is free again. A chunk of a
//! read goes in the opposite direction. Calls receive slots in turn, so a long call does not delay
//! short ones, and a call that waits for a slot waits for nothing else.
//!
//! Invariant: each slot is free, used by one transfer, or used by one thread.

use crate::calls::{Move, Outcome};
use crate::files::{Chunk, Slot, Workers};
use portolan::rpc::bulk::{Buffer, Bulk};
use portolan::rpc::{Address, Call, Context, Failure, Status};
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Completion of a step of a chunk.
pub enum Event {
    /// A transfer has ended.
    Moved { job: u64, slot: Slot, result: Result<(), Failure> },
    /// A thread has finished. The result is the number of bytes, or the errno value.
    Filed { job: u64, slot: Slot, result: Result<usize, i32> },
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Errno(i32),
    Status(Status),
}

struct Job {
    id: u64,
    call: Call<Move, Outcome<u64>>,
    client: Address,
    data: Bulk,
    file: Arc<File>,
    offset: u64,
    write: bool,
    /// Number of bytes to move. Smaller than the client's memory if the file ends first.
    total: usize,
    started: usize,
    done: usize,
    flying: usize,
    fault: Option<Fault>,
}

/// Totals for the progress lines.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub calls: usize,
    pub bytes: usize,
}

pub struct Moves {
    context: Context,
    jobs: VecDeque<Job>,
    free: Vec<Slot>,
    workers: Workers,
    events: Sender<Event>,
    next: u64,
    busy_since: Option<Instant>,
    pub tally: Tally,
}

impl Moves {
    pub fn new(
        context: &Context,
        workers: Workers,
        events: Sender<Event>,
        chunk: usize,
        slots: usize,
    ) -> Result<Moves, Failure> {
        let slot = |_| Ok(Slot { buffer: Buffer::zeroed(chunk)?, at: 0, len: 0 });
        Ok(Moves {
            context: context.clone(),
            jobs: VecDeque::new(),
            free: (0..slots).map(slot).collect::<Result<_, Failure>>()?,
            workers,
            events,
            next: 0,
            busy_since: None,
            tally: Tally::default(),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Returns how long there has been work without a break.
    pub fn busy_for(&self) -> Duration {
        self.busy_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns the bytes that the calls in progress still wait for, and the number of these calls.
    pub fn waiting(&self) -> (usize, usize) {
        (self.jobs.iter().map(|job| job.total - job.done.min(job.total)).sum(), self.jobs.len())
    }

    pub fn begin(
        &mut self,
        call: Call<Move, Outcome<u64>>,
        input: Move,
        file: Arc<File>,
        write: bool,
    ) {
        self.next += 1;
        self.busy_since.get_or_insert_with(Instant::now);
        self.jobs.push_back(Job {
            id: self.next,
            client: call.source(),
            call,
            file,
            offset: input.offset,
            write,
            total: input.data.len(),
            data: input.data,
            started: 0,
            done: 0,
            flying: 0,
            fault: None,
        });
    }

    /// Gives free slots to the calls in turn, and answers the calls that are done.
    pub fn advance(&mut self) -> Result<(), Failure> {
        let mut idle = 0;
        while idle < self.jobs.len() {
            let Some(mut job) = self.jobs.pop_front() else { break };
            let more = job.fault.is_none() && job.started < job.total;
            if !more && job.flying == 0 {
                self.answer(job)?;
                idle = 0;
                continue;
            }
            idle += 1;
            if more && let Some(slot) = self.free.pop() {
                self.start(&mut job, slot);
                idle = 0;
            }
            self.jobs.push_back(job);
        }
        if self.jobs.is_empty() {
            self.busy_since = None;
        }
        Ok(())
    }

    fn start(&mut self, job: &mut Job, mut slot: Slot) {
        slot.at = job.started;
        slot.len = slot.buffer.len().min(job.total - job.started);
        job.started += slot.len;
        job.flying += 1;
        if job.write {
            self.transfer(job, slot);
        } else {
            self.file(job, slot);
        }
    }

    fn transfer(&self, job: &Job, slot: Slot) {
        let Slot { buffer, at, len } = slot;
        let (id, events, remote) = (job.id, self.events.clone(), job.data.at(at));
        let ended = move |result, buffer| {
            let _ = events.send(Event::Moved { job: id, slot: Slot { buffer, at, len }, result });
        };
        match job.write {
            true => self.context.pull(&job.client, remote, buffer, len, ended),
            false => self.context.push(&job.client, remote, buffer, len, ended),
        };
    }

    fn file(&mut self, job: &Job, slot: Slot) {
        let offset = job.offset + slot.at as u64;
        let (file, write) = (job.file.clone(), job.write);
        self.workers.give(Chunk { job: job.id, slot, file, offset, write });
    }

    /// Starts the next step of a chunk whose previous step has ended.
    pub fn went_on(&mut self, event: Event) {
        let (Event::Moved { job: id, .. } | Event::Filed { job: id, .. }) = &event;
        let Some(at) = self.jobs.iter().position(|job| job.id == *id) else { return };
        let Some(mut job) = self.jobs.swap_remove_back(at) else { return };
        match event {
            Event::Moved { slot, result: Err(failure), .. } => {
                eprintln!("{failure}");
                self.fail(&mut job, slot, Fault::Status(failure.status()));
            }
            Event::Filed { slot, result: Err(errno), .. } => {
                self.fail(&mut job, slot, Fault::Errno(errno));
            }
            Event::Moved { slot, .. } if job.write => self.file(&job, slot),
            Event::Moved { slot, .. } => self.complete(&mut job, slot),
            Event::Filed { slot, .. } if job.write => self.complete(&mut job, slot),
            Event::Filed { mut slot, result: Ok(bytes), .. } => {
                if bytes < slot.len {
                    job.total = job.total.min(slot.at + bytes);
                    slot.len = bytes;
                }
                match bytes {
                    0 => self.complete(&mut job, slot),
                    _ => self.transfer(&job, slot),
                }
            }
        }
        self.jobs.push_back(job);
    }

    fn complete(&mut self, job: &mut Job, slot: Slot) {
        job.done += slot.len;
        self.tally.bytes += slot.len;
        job.flying -= 1;
        self.free.push(slot);
    }

    fn fail(&mut self, job: &mut Job, slot: Slot, fault: Fault) {
        job.fault.get_or_insert(fault);
        job.flying -= 1;
        self.free.push(slot);
    }

    fn answer(&mut self, job: Job) -> Result<(), Failure> {
        self.tally.calls += 1;
        match job.fault {
            None => job.call.answer(&Ok(job.done as u64)),
            Some(Fault::Errno(errno)) => job.call.answer(&Err(errno)),
            Some(Fault::Status(status)) => {
                job.call.refuse(status);
                Ok(())
            }
        }
    }

    pub fn stop(self) {
        self.workers.stop();
    }
}
