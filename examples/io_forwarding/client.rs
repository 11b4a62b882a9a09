//! The compute rank: writes files through the I/O ranks, reads them back and compares them.

use crate::calls::{Calls, Move, Open, Outcome};
use crate::options::{self, Options};
use crate::{Result, files};
use portolan::rpc::bulk::{Bulk, Permission};
use portolan::rpc::checksum::{Checksum, Method};
use portolan::rpc::{Address, Context, Failure, Handle, Rpc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How the work of a client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ended {
    #[default]
    Whole,
    /// SIGTERM arrived, here or at an I/O rank.
    Stopped,
}

/// Times are in seconds.
#[derive(Debug, Default)]
pub struct Report {
    pub ended: Ended,
    pub written: usize,
    pub compared: usize,
    pub differ: usize,
    pub writing: f64,
    pub reading: f64,
    /// The expected errno values that were returned.
    pub errors: Vec<String>,
    pub failures: Vec<String>,
}

/// Makes progress for up to the given time.
pub type Pump<'a> = &'a mut dyn FnMut(Duration) -> Result<()>;

struct Flying {
    number: usize,
    server: Address,
    file: u64,
    data: Bulk,
    handle: Handle<Move, Outcome<u64>>,
}

pub struct Client<'a> {
    rank: usize,
    context: &'a Context,
    calls: &'a Calls,
    servers: Vec<Address>,
    options: &'a Options,
    report: Report,
    digests: Vec<Option<u64>>,
}

/// Splits `total` bytes into segments of `each` bytes.
fn segments(total: usize, each: usize) -> Vec<usize> {
    let mut lengths = vec![each; total / each];
    if !total.is_multiple_of(each) {
        lengths.push(total % each);
    }
    lengths
}

fn words(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

impl<'a> Client<'a> {
    pub fn new(
        rank: usize,
        context: &'a Context,
        calls: &'a Calls,
        servers: Vec<Address>,
        options: &'a Options,
    ) -> Client<'a> {
        let digests = vec![None; options.files];
        let report = Report::default();
        Client { rank, context, calls, servers, options, report, digests }
    }

    pub fn run(mut self, pump: Pump<'_>) -> Result<Report> {
        self.errors(pump)?;
        let begun = Instant::now();
        self.all_files(pump, true)?;
        self.report.writing = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        self.all_files(pump, false)?;
        self.report.reading = begun.elapsed().as_secs_f64();
        for server in self.servers.clone() {
            self.call(pump, &server, &self.calls.leave, &())?;
        }
        Ok(self.report)
    }

    fn call<I: Serialize, O: DeserializeOwned>(
        &self,
        pump: Pump<'_>,
        server: &Address,
        rpc: &Rpc<I, O>,
        input: &I,
    ) -> Result<O> {
        let handle = self.context.handle(server, rpc);
        handle.start(input)?;
        while !handle.is_done() {
            pump(Duration::from_millis(20))?;
        }
        Ok(handle.output()?)
    }

    /// Returns the name of a file and its I/O rank. The I/O ranks take files round-robin.
    fn place(&self, number: usize) -> (String, Address) {
        let at = self.rank + number;
        (format!("rank-{}-file-{number}", self.rank), self.servers[at % self.servers.len()])
    }

    /// Returns the value of a successful call. Otherwise records the failure and returns `None`.
    fn good<T>(&mut self, what: &str, outcome: Outcome<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(libc::ESHUTDOWN) => {
                self.report.ended = Ended::Stopped;
                None
            }
            Err(errno) => {
                self.report.failures.push(format!("{what}: {}", words(errno)));
                None
            }
        }
    }

    fn stopped(&mut self) -> bool {
        if options::terminated() {
            self.report.ended = Ended::Stopped;
        }
        self.report.ended == Ended::Stopped
    }

    /// Checks that errors of the file system are reported and that nothing hangs.
    fn errors(&mut self, pump: Pump<'_>) -> Result<()> {
        let open = |path: &str, create| Open { path: path.into(), create };
        for server in self.servers.clone() {
            let missing = self.call(pump, &server, &self.calls.open, &open("missing", false))?;
            self.expect("opening a missing file", missing.map(drop), libc::ENOENT);
            let outside = self.call(pump, &server, &self.calls.open, &open("../x", true))?;
            self.expect("opening a file outside", outside.map(drop), libc::EACCES);
            let data = Bulk::allocate(&segments(100_000, 4096), Permission::ReadOnly)?;
            let request = Move { file: 0, offset: 0, data: data.clone() };
            let closed = self.call(pump, &server, &self.calls.read, &request)?;
            self.expect("reading a file that is not open", closed.map(drop), libc::EBADF);
            let full = self.call(pump, &server, &self.calls.open, &open(files::FULL, true))?;
            let Some(file) = self.good("opening the full device", full) else { continue };
            let request = Move { file, offset: 0, data };
            let written = self.call(pump, &server, &self.calls.write, &request)?;
            self.expect("writing to a full device", written.map(drop), libc::ENOSPC);
            let closed = self.call(pump, &server, &self.calls.close, &file)?;
            self.good("closing the full device", closed);
        }
        Ok(())
    }

    fn expect(&mut self, what: &str, outcome: Outcome<()>, errno: i32) {
        match outcome {
            Err(libc::ESHUTDOWN) => self.report.ended = Ended::Stopped,
            Err(came) if came == errno => {
                let text = words(errno);
                if !self.report.errors.contains(&text) {
                    self.report.errors.push(text);
                }
            }
            other => {
                let came = other.map_err(words);
                self.report.failures.push(format!("{what} gives {came:?}, not {}", words(errno)));
            }
        }
    }

    /// Writes or reads all files, several at a time.
    fn all_files(&mut self, pump: Pump<'_>, write: bool) -> Result<()> {
        let mut flying = VecDeque::new();
        for number in 0..self.options.files {
            if self.stopped() {
                break;
            }
            // Files that were not written are not read.
            if !write && self.digests[number].is_none() {
                continue;
            }
            if flying.len() == self.options.window
                && let Some(oldest) = flying.pop_front()
            {
                self.finish(pump, oldest, write)?;
            }
            if let Some(begun) = self.begin(pump, number, write)? {
                flying.push_back(begun);
            }
        }
        for rest in flying {
            self.finish(pump, rest, write)?;
        }
        Ok(())
    }

    fn begin(&mut self, pump: Pump<'_>, number: usize, write: bool) -> Result<Option<Flying>> {
        let (path, server) = self.place(number);
        let (size, each) = (self.options.size, self.options.segment);
        let (data, rpc) = if write {
            let data = Bulk::allocate(&segments(size, each), Permission::ReadOnly)?;
            self.digests[number] = Some(fill(&data, (self.rank + 1) << 20 | number)?);
            (data, &self.calls.write)
        } else {
            // The segments may differ from those of the memory that was written.
            let data = Bulk::allocate(&segments(size, each + each / 2 + 1), Permission::WriteOnly)?;
            (data, &self.calls.read)
        };
        let open = Open { path: path.clone(), create: write };
        let opened = self.call(pump, &server, &self.calls.open, &open)?;
        let Some(file) = self.good(&format!("opening {path}"), opened) else {
            self.digests[number] = None;
            return Ok(None);
        };
        let handle = self.context.handle(&server, rpc);
        handle.start(&Move { file, offset: 0, data: data.clone() })?;
        Ok(Some(Flying { number, server, file, data, handle }))
    }

    fn finish(&mut self, pump: Pump<'_>, flying: Flying, write: bool) -> Result<()> {
        let Flying { number, server, file, data, handle } = flying;
        while !handle.is_done() {
            pump(Duration::from_millis(20))?;
        }
        let (path, _) = self.place(number);
        let what = if write { "writing" } else { "reading" };
        let outcome = handle.output()?;
        let closed = self.call(pump, &server, &self.calls.close, &file)?;
        self.good(&format!("closing {path}"), closed);
        let Some(bytes) = self.good(&format!("{what} {path}"), outcome) else {
            self.digests[number] = None;
            return Ok(());
        };
        if bytes != self.options.size as u64 {
            let wanted = self.options.size;
            self.report.failures.push(format!("{what} {path}: {bytes} bytes of {wanted}"));
            self.digests[number] = None;
        } else if write {
            self.report.written += 1;
            let status = self.call(pump, &server, &self.calls.stat, &path)?;
            if let Some(status) = self.good(&format!("looking at {path}"), status)
                && status.size != bytes
            {
                let found = status.size;
                self.report.failures.push(format!("{path} has {found} bytes, not {bytes}"));
            }
        } else {
            self.report.compared += 1;
            if Some(digest(&data)?) != self.digests[number] {
                self.report.differ += 1;
                self.report.failures.push(format!("{path} is not as it was written"));
            }
        }
        Ok(())
    }
}

/// Fills the memory with numbers that occur in no other file, and returns their digest.
fn fill(data: &Bulk, seed: usize) -> Result<u64> {
    let mut sum = Checksum::new(Method::Crc64);
    let mut x = seed as u64 | 1;
    over(data, |at, part| {
        for bytes in part.chunks_mut(8) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            bytes.copy_from_slice(&x.to_le_bytes()[..bytes.len()]);
        }
        sum.update(part);
        data.write(at, part)
    })?;
    Ok(sum.value())
}

fn digest(data: &Bulk) -> Result<u64> {
    let mut sum = Checksum::new(Method::Crc64);
    over(data, |at, part| {
        data.read(at, part)?;
        sum.update(part);
        Ok(())
    })?;
    Ok(sum.value())
}

/// Calls `body` with consecutive parts of the memory.
fn over(
    data: &Bulk,
    mut body: impl FnMut(usize, &mut [u8]) -> std::result::Result<(), Failure>,
) -> Result<()> {
    let mut part = vec![0; 64 << 10];
    for at in (0..data.len()).step_by(part.len()) {
        let len = part.len().min(data.len() - at);
        body(at, &mut part[..len])?;
    }
    Ok(())
}
