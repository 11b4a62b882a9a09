//! The I/O rank: handlers that only queue calls, and a loop that owns all state.
//!
//! A handler puts its call into a channel. [`Server::step`] takes calls and chunks from their
//! channels one after the other, on one thread. So no locks are needed, and a long call does not
//! delay the others.

use crate::Result;
use crate::calls::{Calls, Move, Open, Outcome, Status, name};
use crate::files::{Files, Workers};
use crate::moves::{Event, Moves};
use crate::options::{self, Options};
use portolan::rpc::{Call, Class, Context, Failure, Rpc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Progress is shown if transfers take longer than this.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two progress lines, over all I/O ranks together.
const LINES: Duration = Duration::from_millis(500);

enum Request {
    Open(Call<Open, Outcome<u64>>),
    Move(Call<Move, Outcome<u64>>, bool),
    Stat(Call<String, Outcome<Status>>),
    Close(Call<u64, Outcome<()>>),
    Leave(Call<(), ()>),
    End(Call<(), ()>),
}

/// The number of clients that a server serves.
#[derive(Debug, Clone, Copy)]
pub enum Serves {
    /// This number of ranks; the server ends when all have left.
    Ranks(usize),
    /// Any number of processes, until one of them calls `io.end`, or SIGTERM arrives.
    Anybody,
}

pub struct Server {
    pub calls: Calls,
    rank: usize,
    context: Context,
    requests: Receiver<Request>,
    events: Receiver<Event>,
    files: Files,
    moves: Moves,
    serves: Serves,
    left: usize,
    ended: bool,
    /// Whether SIGTERM has arrived.
    ending: bool,
    refused: usize,
    /// Earliest time of the next progress line. `between` is the interval between lines.
    next_line: Instant,
    between: Duration,
    shown: usize,
}

/// Registers a function whose handler only queues the calls.
fn queue<I, O>(
    class: &Class,
    name: &str,
    requests: &Sender<Request>,
    request: fn(Call<I, O>) -> Request,
) -> std::result::Result<Rpc<I, O>, Failure>
where
    I: Serialize + DeserializeOwned + 'static,
    O: Serialize + DeserializeOwned + 'static,
{
    let requests = requests.clone();
    class.serve(name, move |call| {
        // If the loop has ended, the call is dropped and fails at its client.
        let _ = requests.send(request(call));
        Ok(())
    })
}

impl Server {
    /// Registers the calls, which run in [`Server::step`].
    pub fn new(
        class: &Class,
        context: &Context,
        rank: usize,
        (serves, servers): (Serves, usize),
        options: &Options,
    ) -> Result<Server> {
        let files = Files::below(options, rank)?;
        let (to_loop, requests) = channel();
        let (chunks, events) = channel();
        let calls = Calls {
            open: queue(class, name::OPEN, &to_loop, Request::Open)?,
            write: queue(class, name::WRITE, &to_loop, |call| Request::Move(call, true))?,
            read: queue(class, name::READ, &to_loop, |call| Request::Move(call, false))?,
            stat: queue(class, name::STAT, &to_loop, Request::Stat)?,
            close: queue(class, name::CLOSE, &to_loop, Request::Close)?,
            leave: queue(class, name::LEAVE, &to_loop, Request::Leave)?,
            end: queue(class, name::END, &to_loop, Request::End)?,
        };
        let workers = Workers::start(context, &chunks)?;
        let slots = options.buffer / options.chunk;
        println!(
            "I/O rank {rank}: pid {}, files in {}",
            std::process::id(),
            files.root().display()
        );
        Ok(Server {
            calls,
            rank,
            context: context.clone(),
            requests,
            events,
            files,
            moves: Moves::new(context, workers, chunks, options.chunk, slots)?,
            serves,
            left: 0,
            ended: false,
            ending: false,
            refused: 0,
            next_line: Instant::now(),
            between: LINES * servers as u32,
            shown: 0,
        })
    }

    pub fn is_done(&self) -> bool {
        let over = match self.serves {
            Serves::Ranks(clients) => self.left == clients,
            Serves::Anybody => self.ended || self.ending,
        };
        over && self.moves.is_empty()
    }

    /// Answers a call. A client that was started by hand may be gone, which ends nothing here.
    fn answered(&self, answered: std::result::Result<(), Failure>) -> Result<()> {
        match (answered, self.serves) {
            (Err(failure), Serves::Anybody) => {
                eprintln!("a client is gone: {failure}");
                Ok(())
            }
            (answered, _) => Ok(answered?),
        }
    }

    /// Serves calls. Waits for up to `most` if there is nothing to do.
    pub fn step(&mut self, most: Duration) -> Result<()> {
        self.context.progress(most)?;
        self.context.trigger(64);
        if !self.ending && options::terminated() {
            self.ending = true;
            let (_, calls) = self.moves.waiting();
            println!("I/O rank {}: SIGTERM; {calls} calls are completed first", self.rank);
        }
        while let Ok(request) = self.requests.try_recv() {
            let taken = self.take(request);
            self.answered(taken)?;
        }
        while let Ok(event) = self.events.try_recv() {
            self.moves.went_on(event);
        }
        let advanced = self.moves.advance();
        self.answered(advanced)?;
        self.show();
        Ok(())
    }

    /// Starts a call, or answers it.
    fn take(&mut self, request: Request) -> std::result::Result<(), Failure> {
        let files = &mut self.files;
        match request {
            // A client may always leave, or close a file, even after SIGTERM.
            Request::Leave(call) => {
                self.left += 1;
                call.answer(&())
            }
            Request::End(call) => {
                self.ended = true;
                call.answer(&())
            }
            Request::Close(call) => call.answer(&files.close(call.input()?)),
            Request::Open(call) if self.ending => self.refuse(&call),
            Request::Move(call, _) if self.ending => self.refuse(&call),
            Request::Stat(call) if self.ending => self.refuse(&call),
            Request::Open(call) => {
                let Open { path, create } = call.input()?;
                call.answer(&files.open(&path, create))
            }
            Request::Stat(call) => {
                let found = files.stat(&call.input()?);
                call.answer(&found.map(|(size, mode)| Status { size, mode }))
            }
            Request::Move(call, write) => {
                let input = call.input()?;
                match files.get(input.file) {
                    Ok(file) => self.moves.begin(call, input, file, write),
                    Err(errno) => call.answer(&Err(errno))?,
                }
                Ok(())
            }
        }
    }

    fn refuse<I: DeserializeOwned, T: Serialize>(
        &mut self,
        call: &Call<I, Outcome<T>>,
    ) -> std::result::Result<(), Failure> {
        self.refused += 1;
        call.answer(&Err(libc::ESHUTDOWN))
    }

    /// Prints a progress line at intervals during long transfers.
    fn show(&mut self) {
        let now = Instant::now();
        if now < self.next_line || self.moves.busy_for() < PATIENCE {
            return;
        }
        let (bytes, (left, calls)) = (self.moves.tally.bytes, self.moves.waiting());
        if bytes == self.shown {
            return;
        }
        (self.shown, self.next_line) = (bytes, now + self.between);
        let mib = |bytes: usize| bytes >> 20;
        let rank = self.rank;
        eprintln!(
            "I/O rank {rank}: {} MiB moved, {} MiB left of {calls} calls under way",
            mib(bytes),
            mib(left)
        );
    }

    pub fn close(self) -> Result<()> {
        let Server { rank, moves, refused, .. } = self;
        let (calls, bytes) = (moves.tally.calls, moves.tally.bytes);
        moves.stop();
        let end = match refused {
            0 => String::new(),
            n => format!(", {n} further calls answered with ESHUTDOWN"),
        };
        println!("I/O rank {rank}: {calls} reads and writes of {bytes} bytes{end}");
        Ok(())
    }
}
