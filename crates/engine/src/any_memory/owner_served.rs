//! Memory that its owner reads and writes for other ranks, by active messages. A request lists runs
//! of bytes. The request of a put or the answer to a get carries the bytes. A long single run
//! travels directly between the memories. The owner checks the registration that the request names.
//! It copies through the kernel ([`crate::path::cma`]) or checks its mappings, so a bad address is
//! an error at the origin.

use super::{Direction, Span};
use crate::am::wire::read_pod;
use crate::am::{
    Accept, Am, Arrival, Data, Destination, Handler, HandlerId, Signal, Signals, Then,
};
use crate::core::peer::CompletionCounter;
use crate::memory::registered::{self, Inside};
use crate::memory::runs::{self, Run, beside};
use crate::path::cma;
use crate::path::kernel;
use bytemuck::{Pod, Zeroable};
use portolan_base::error::{ErrorKind, Result, fail};
use portolan_base::layout::array;
use std::mem::size_of;
use std::sync::Arc;

/// Minimum length in bytes of a direct run.
const STRAIGHT: usize = 128 << 10;
/// Length in bytes at which a request of several runs is sent.
const TOGETHER: usize = 256 << 10;
/// Maximum length in bytes of a run in one message.
const MAX_RUN: usize = 1 << 30;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct AccessRequest {
    token: u64,
    /// Address of a single direct run, or 0 if the data begins with a list of runs.
    straight: u64,
    bytes: u64,
    runs: u64,
    /// Number of the registration that must contain the runs, or 0 for any memory.
    registered: u64,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct AccessAnswer {
    token: u64,
    /// 0, or the kind of the error, whose text is the data.
    code: u64,
}

const PUT: HandlerId = HandlerId(0);
const GET: HandlerId = HandlerId(1);
const ANSWER: HandlerId = HandlerId(2);

impl Am {
    /// Must be called before interfaces register their handlers.
    pub(crate) fn register_accesses(&self) -> Result<()> {
        let handlers = &self.state()?.handlers;
        let ids = [
            handlers.add("portolan::write", Arc::new(Access(Direction::Put)))?,
            handlers.add("portolan::read", Arc::new(Access(Direction::Get)))?,
            handlers.add("portolan::answer", Arc::new(Answered))?,
        ];
        if ids != [PUT, GET, ANSWER] {
            fail!(Internal, "the handlers for any memory are {ids:?}");
        }
        Ok(())
    }

    /// # Safety
    /// The local bytes must be valid until the counter is done.
    pub(super) unsafe fn ask_owner(
        &self,
        target: usize,
        spans: &[Span],
        direction: Direction,
        whose: (u64, &Arc<CompletionCounter>),
    ) -> Result<()> {
        let spans = runs::split(spans, MAX_RUN);
        let mut rest = &spans[..];
        while !rest.is_empty() {
            let mut bytes = 0;
            let together = |span: &&Span| {
                let joins = span.bytes < STRAIGHT && bytes < TOGETHER;
                bytes += span.bytes + size_of::<Run>();
                joins
            };
            let n = rest.iter().take_while(together).count().max(1);
            let (now, after) = rest.split_at(n);
            // SAFETY: the caller guarantees the local bytes until the counter is done.
            unsafe { self.ask(target, now, direction, whose) }?;
            rest = after;
        }
        Ok(())
    }

    /// # Safety
    /// See [`Am::ask_owner`].
    unsafe fn ask(
        &self,
        target: usize,
        spans: &[Span],
        direction: Direction,
        (registered, counter): (u64, &Arc<CompletionCounter>),
    ) -> Result<()> {
        let bytes = spans.iter().map(|s| s.bytes).sum::<usize>();
        let straight = spans.len() == 1 && bytes >= STRAIGHT;
        let put = direction == Direction::Put;
        let data = if straight && put {
            Data::At(spans[0].local as *const u8, bytes)
        } else if straight {
            Data::NONE
        } else {
            let list = spans.len() * size_of::<Run>();
            let mut data = Vec::with_capacity(list + if put { bytes } else { 0 });
            for span in spans {
                data.extend_from_slice(bytemuck::bytes_of(&span.remote_run()));
            }
            if put {
                for span in spans {
                    let local = span.local as *const u8;
                    // SAFETY: the caller guarantees the local bytes.
                    data.extend(unsafe { array::borrow(local, span.bytes, "a local block") }?);
                }
            }
            Data::Owned(data)
        };
        let into = if put { Vec::new() } else { spans.iter().map(Span::local_run).collect() };
        let asked = &self.state()?.asked;
        counter.toward(target);
        // SAFETY: the caller guarantees the local bytes until the counter is done.
        let token = unsafe { asked.begin(target, counter, into) };
        let request = AccessRequest {
            token,
            straight: if straight { spans[0].remote as u64 } else { 0 },
            bytes: bytes as u64,
            runs: spans.len() as u64,
            registered,
        };
        let handler = if put { PUT } else { GET };
        // SAFETY: the caller keeps data that is not copied valid until the answer ends the counter.
        let sent = unsafe {
            self.send_am(target, handler, bytemuck::bytes_of(&request), data, Signals::default())
        };
        if sent.is_err() {
            asked.withdraw(token);
        }
        sent
    }
}

/// Copies between a buffer and memory of this process that another rank has named.
fn move_own(buffer: *mut u8, runs: &[Run], direction: Direction) -> Result<()> {
    let spans: Vec<Span> = beside(runs.iter().copied(), buffer as usize).collect();
    // SAFETY: the buffer has the bytes of all runs, and the kernel checks the runs.
    match unsafe { cma::transfer(std::process::id(), &spans, direction) } {
        Err(error) if error.kind() == ErrorKind::State => {}
        done => return done,
    }
    // The system does not permit even this, so check the mappings first.
    for run in runs {
        check_mapped(*run, direction)?;
    }
    // SAFETY: the memory is mapped with the required access, and the buffer has the bytes.
    unsafe { kernel::copy_spans(spans, direction) };
    Ok(())
}

/// Fails with `Address` unless memory of this process is mapped readable, and writable for a put.
fn check_mapped(run: Run, direction: Direction) -> Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let allowed = if direction == Direction::Put { "rw" } else { "r" };
    let mut at = run.address;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(mode)) = (words.next(), words.next()) else { continue };
        let Some((from, to)) = range.split_once('-') else { continue };
        let parse = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        let (from, to) = (parse(from), parse(to));
        if mode.starts_with(allowed) && from <= at && at < to {
            at = to;
            if run.end().is_some_and(|end| end <= at) {
                return Ok(());
            }
        }
    }
    fail!(
        Address,
        "{} bytes at {:#x} are not mapped, or not for this access",
        run.len,
        run.address
    );
}

impl AccessRequest {
    /// Enters the registration that the request names, if any. Fails as [`registered::enter`].
    fn enter(&self, direction: Direction, runs: &[Run]) -> Result<Option<Inside>> {
        let inside = || registered::enter(self.registered, direction, runs.iter().copied());
        (self.registered != 0).then(inside).transpose()
    }

    /// Copies the bytes that follow the list of runs to the runs, or returns their bytes.
    fn copy(&self, direction: Direction, message: &[u8]) -> Result<Vec<u8>> {
        let (runs, total, sent) = runs::list(message, self.runs)?;
        let put = direction == Direction::Put;
        if total as u64 != self.bytes || put && sent.len() != total {
            fail!(Internal, "{} of {} bytes for runs of {total}", sent.len(), self.bytes);
        }
        let _inside = self.enter(direction, &runs)?;
        let mut read = vec![0; if put { 0 } else { total }];
        let buffer = if put { sent.as_ptr().cast_mut() } else { read.as_mut_ptr() };
        move_own(buffer, &runs, direction)?;
        Ok(read)
    }
}

type Served<'a> = Result<(Data<'a>, Option<Inside>)>;

/// Sends the bytes of a get, or an error. The guard of borrowed data is dropped when it has left.
fn answer(am: &Am, (origin, token): (usize, u64), served: Served<'_>) {
    let (code, data, inside) = match served {
        Ok((data, inside)) => (0, data, inside),
        Err(error) => {
            (error.kind().code() as u64, Data::Owned(error.detail().to_string().into()), None)
        }
    };
    let answer = AccessAnswer { token, code };
    let origin_signal = match inside {
        Some(inside) => Signal::Call(Box::new(move |_| drop(inside))),
        None => Signal::None,
    };
    let signals = Signals { origin: origin_signal, ..Signals::default() };
    let _own = am.observer().exclude_calls();
    // SAFETY: borrowed data was found mapped. The owner keeps it mapped while other ranks access
    // it, and the withdrawal of registered memory waits for `inside`.
    let sent = unsafe { am.send_am(origin, ANSWER, bytemuck::bytes_of(&answer), data, signals) };
    let Err(error) = sent else { return };
    log::error!("answering rank {origin}: {error:#}");
    if code == 0 {
        // The origin waits, so it gets the reason instead of the bytes.
        self::answer(am, (origin, token), Err(error));
    }
}

/// Serves puts or gets.
struct Access(Direction);

impl Handler for Access {
    fn arrive(&self, _: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let request: AccessRequest = read_pod(message.header)?;
        let (direction, whom) = (self.0, (message.origin, request.token));
        if request.straight == 0 {
            let copy = move |am: &Am, message: Vec<u8>| {
                let copied = request.copy(direction, &message);
                answer(am, whom, copied.map(|bytes| (Data::Owned(bytes), None)));
            };
            return Ok(Accept { to: Destination::Buffer, then: Then::Inline(Box::new(copy)) });
        }
        let put = direction == Direction::Put;
        let len = if put { message.len } else { request.bytes as usize };
        let run = Run { address: request.straight as usize, len };
        let entered = request.enter(direction, &[run]);
        let entered = entered.and_then(|inside| check_mapped(run, direction).map(|()| inside));
        let to = match entered {
            Ok(_) if put => Destination::At(run.address as *mut u8),
            _ => Destination::Taken,
        };
        let done = move |am: &Am, _| {
            let data = if put { Data::NONE } else { Data::At(run.address as *const u8, len) };
            answer(am, whom, entered.map(|inside| (data, inside)));
        };
        Ok(Accept { to, then: Then::Inline(Box::new(done)) })
    }
}

struct Answered;

impl Handler for Answered {
    fn arrive(&self, am: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let answer: AccessAnswer = read_pod(message.header)?;
        let origin = message.origin;
        let Some(awaited) = am.state()?.asked.take(origin, answer.token) else {
            fail!(Internal, "rank {origin} sent a reply to a request that this rank did not make");
        };
        if answer.code == 0
            && let [only] = *awaited.runs()
            && only.len == message.len
        {
            let done = move |_: &Am, _| awaited.end();
            let to = Destination::At(only.address as *mut u8);
            return Ok(Accept { to, then: Then::Inline(Box::new(done)) });
        }
        let complete = move |_: &Am, data: Vec<u8>| match answer.code {
            0 => awaited.fill(&data),
            code => awaited.fail(
                ErrorKind::from_code(code as i32),
                format!("rank {origin} refuses access: {}", String::from_utf8_lossy(&data)),
            ),
        };
        Ok(Accept { to: Destination::Buffer, then: Then::Inline(Box::new(complete)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_is_known() {
        let mut here = [0u8; 100];
        let address = here.as_mut_ptr() as usize;
        let mapped =
            |address, len, direction| check_mapped(Run { address, len }, direction).is_ok();
        assert!(mapped(address, 100, Direction::Put));
        assert!(!mapped(8, 8, Direction::Get));
        assert!(!mapped(usize::MAX - 3, 8, Direction::Get));
        let text = "constant".as_ptr() as usize;
        assert!(mapped(text, 8, Direction::Get));
        assert!(!mapped(text, 8, Direction::Put));
    }

    #[test]
    fn own_memory_moves_both_ways() {
        let mut there = [1u8, 2, 3, 4, 5, 6, 7, 8];
        let base = there.as_mut_ptr() as usize;
        let list = [Run { address: base + 4, len: 4 }, Run { address: base, len: 2 }];
        let mut buffer = [0u8; 6];
        move_own(buffer.as_mut_ptr(), &list, Direction::Get).unwrap();
        assert_eq!(buffer, [5, 6, 7, 8, 1, 2]);
        buffer = [9; 6];
        move_own(buffer.as_mut_ptr(), &list, Direction::Put).unwrap();
        assert_eq!(there, [9, 9, 3, 4, 9, 9, 9, 9]);
        let bad = [Run { address: 16, len: 4 }];
        assert!(move_own(buffer.as_mut_ptr(), &bad, Direction::Get).is_err());
    }
}
