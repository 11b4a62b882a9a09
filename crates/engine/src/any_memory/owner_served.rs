//! Memory that its owner reads and writes for other ranks, by active messages. A request lists runs
//! of bytes. A write request or the answer to a read carries the bytes; those of a long single run
//! travel directly between the memories. The owner copies through the kernel ([`crate::path::cma`])
//! or checks its mappings, so a bad address is an error at the origin.

use super::{Direction, Span};
use crate::am::cooperative_copy::OWN_HANDLERS;
use crate::am::state::Asked;
use crate::am::wire::read_pod;
use crate::am::{
    Accept, Am, Arrival, Data, Destination, Handler, HandlerId, Signal, Signals, Then,
};
use crate::core::peer::CompletionCounter;
use crate::error::{Error, ErrorKind, Result, fail};
use crate::layout::array;
use crate::memory::registered::{self, Inside};
use crate::memory::runs::{self, Run, beside};
use crate::path::cma;
use crate::path::kernel;
use bytemuck::{Pod, Zeroable};
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
    name: u64,
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
    name: u64,
    code: u64,
}

/// After the handlers of active messages.
const WRITE: HandlerId = HandlerId(OWN_HANDLERS);
const READ: HandlerId = HandlerId(OWN_HANDLERS + 1);
const ANSWER: HandlerId = HandlerId(OWN_HANDLERS + 2);

impl Am {
    /// Must be called before interfaces register their handlers.
    pub(crate) fn register_accesses(&self) -> Result<()> {
        let handlers = &self.state()?.handlers;
        let ids = [
            handlers.add("portolan::write", Arc::new(Write))?,
            handlers.add("portolan::read", Arc::new(Read))?,
            handlers.add("portolan::answer", Arc::new(Answered))?,
        ];
        if ids != [WRITE, READ, ANSWER] {
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
        let mut rest = spans;
        while let Some(first) = rest.first() {
            if first.bytes >= STRAIGHT {
                let mut done = 0;
                while done < first.bytes {
                    let bytes = (first.bytes - done).min(MAX_RUN);
                    let (local, remote) = (first.local + done, first.remote + done);
                    // SAFETY: the caller guarantees the local bytes until the counter is done.
                    unsafe {
                        self.ask(target, &[Span { local, remote, bytes }], direction, whose)
                    }?;
                    done += bytes;
                }
                rest = &rest[1..];
                continue;
            }
            let (mut n, mut bytes) = (0, 0);
            while n < rest.len() && rest[n].bytes < STRAIGHT && bytes < TOGETHER {
                bytes += rest[n].bytes + size_of::<Run>();
                n += 1;
            }
            // SAFETY: the caller guarantees the local bytes until the counter is done.
            unsafe { self.ask(target, &rest[..n], direction, whose) }?;
            rest = &rest[n..];
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
        let write = direction == Direction::Put;
        let data = if straight && write {
            Data::At(spans[0].local as *const u8, bytes)
        } else if straight {
            Data::NONE
        } else {
            let list = spans.len() * size_of::<Run>();
            let mut data = Vec::with_capacity(list + if write { bytes } else { 0 });
            for span in spans {
                data.extend_from_slice(bytemuck::bytes_of(&span.remote_run()));
            }
            if write {
                for span in spans {
                    let local = span.local as *const u8;
                    // SAFETY: the caller guarantees the local bytes.
                    data.extend(unsafe { array::borrow(local, span.bytes, "a local block") }?);
                }
            }
            Data::Owned(data)
        };
        let asked = Asked { counter: counter.clone(), spans: spans.to_vec(), direction };
        let accesses = &self.state()?.accesses;
        let name = accesses.lock().insert(asked);
        let request = AccessRequest {
            name,
            straight: if straight { spans[0].remote as u64 } else { 0 },
            bytes: bytes as u64,
            runs: spans.len() as u64,
            registered,
        };
        let handler = if write { WRITE } else { READ };
        counter.toward(target);
        counter.begin();
        // SAFETY: the caller keeps data that is not copied valid until the answer ends the counter.
        let sent = unsafe {
            self.send_am(target, handler, bytemuck::bytes_of(&request), data, Signals::default())
        };
        if sent.is_err() {
            accesses.lock().remove(name);
            counter.end();
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
        if !is_mapped(*run, direction == Direction::Put) {
            fail!(Address, "{} bytes at {:#x} are not mapped here", run.len, run.address);
        }
    }
    // SAFETY: the memory is mapped with the required access, and the buffer has the bytes.
    unsafe { kernel::copy_spans(spans, direction) };
    Ok(())
}

/// Returns whether memory of this process is mapped readable, and writable if `write`.
fn is_mapped(run: Run, write: bool) -> bool {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return false };
    let Some(end) = run.end() else { return false };
    let mut at = run.address;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(mode)) = (words.next(), words.next()) else { continue };
        let Some((from, to)) = range.split_once('-') else { continue };
        let parse = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        let (from, to) = (parse(from), parse(to));
        if from <= at && at < to {
            if !mode.starts_with('r') || write && !mode[1..].starts_with('w') {
                return false;
            }
            at = to;
            if at >= end {
                return true;
            }
        }
    }
    false
}

/// Enters the registration that a request names, if any. Fails as [`registered::enter`].
fn enter(request: &AccessRequest, write: bool, runs: &[Run]) -> Result<Option<Inside>> {
    let inside = || registered::enter(request.registered, write, runs.iter().copied());
    (request.registered != 0).then(inside).transpose()
}

fn answer(am: &Am, origin: usize, name: u64, result: Result<()>, data: Data<'_>) {
    answer_from(am, (origin, name), result, data, None);
}

fn answer_from(
    am: &Am,
    (origin, name): (usize, u64),
    result: Result<()>,
    data: Data<'_>,
    inside: Option<Inside>,
) {
    let code = result.err().map_or(0, |error| error.kind().code() as u64);
    let answer = AccessAnswer { name, code };
    let data = if code == 0 { data } else { Data::NONE };
    let header = bytemuck::bytes_of(&answer);
    let origin_signal = match inside {
        Some(inside) => Signal::Call(Box::new(move |_| drop(inside))),
        None => Signal::None,
    };
    let signals = Signals { origin: origin_signal, ..Signals::default() };
    let _own = am.observer().exclude_calls();
    // SAFETY: borrowed data was found mapped. The owner keeps it mapped while other ranks access
    // it, and the withdrawal of registered memory waits for `inside`.
    let sent = unsafe { am.send_am(origin, ANSWER, header, data, signals) };
    let Err(error) = sent else { return };
    log::error!("answering rank {origin}: {error:#}");
    if code == 0 {
        // The origin waits, so it gets the reason instead of the bytes.
        answer_from(am, (origin, name), Err(error), Data::NONE, None);
    }
}

struct Write;

impl Handler for Write {
    fn arrive(&self, _: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let request: AccessRequest = read_pod(message.header)?;
        let origin = message.origin;
        if request.straight != 0 {
            let run = Run { address: request.straight as usize, len: message.len };
            let entered = enter(&request, true, &[run]).and_then(|inside| {
                if !is_mapped(run, true) {
                    fail!(Address, "{} bytes at {:#x} cannot be written", run.len, run.address);
                }
                Ok(inside)
            });
            let inside = match entered {
                Ok(inside) => inside,
                Err(error) => {
                    let refused = move |am: &Am, _| {
                        answer(am, origin, request.name, Err(error), Data::NONE);
                    };
                    let then = Then::Inline(Box::new(refused));
                    return Ok(Accept { to: Destination::Taken, then });
                }
            };
            let done = move |am: &Am, _| {
                drop(inside);
                answer(am, origin, request.name, Ok(()), Data::NONE);
            };
            let to = Destination::At(run.address as *mut u8);
            return Ok(Accept { to, then: Then::Inline(Box::new(done)) });
        }
        let store = move |am: &Am, data: Vec<u8>| {
            let listed = runs::list(&data, request.runs);
            let stored = listed.and_then(|(runs, total, bytes)| {
                if bytes.len() != total {
                    fail!(Internal, "{} bytes for runs of {total}", bytes.len());
                }
                let _inside = enter(&request, true, &runs)?;
                move_own(bytes.as_ptr().cast_mut(), &runs, Direction::Put)
            });
            answer(am, origin, request.name, stored, Data::NONE);
        };
        Ok(Accept { to: Destination::Buffer, then: Then::Inline(Box::new(store)) })
    }
}

struct Read;

impl Handler for Read {
    fn arrive(&self, _: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let request: AccessRequest = read_pod(message.header)?;
        let origin = message.origin;
        let load = move |am: &Am, list: Vec<u8>| {
            let whole = Run { address: request.straight as usize, len: request.bytes as usize };
            let mut data = Vec::new();
            let mut entered = Ok(None);
            if request.straight != 0 {
                entered = enter(&request, false, &[whole]);
                if let Ok(inside) = &mut entered
                    && is_mapped(whole, false)
                {
                    let data = Data::At(whole.address as *const u8, whole.len);
                    let whom = (origin, request.name);
                    return answer_from(am, whom, Ok(()), data, inside.take());
                }
            }
            let loaded = (|| {
                entered?;
                if request.straight != 0 {
                    fail!(Address, "{} bytes at {:#x} are not mapped", whole.len, whole.address);
                }
                let (runs, total, _) = runs::list(&list, request.runs)?;
                if total != whole.len {
                    fail!(Internal, "runs of {total} bytes, not {}", whole.len);
                }
                let _inside = enter(&request, false, &runs)?;
                data.resize(total, 0);
                move_own(data.as_mut_ptr(), &runs, Direction::Get)
            })();
            answer(am, origin, request.name, loaded, Data::Owned(data));
        };
        Ok(Accept { to: Destination::Buffer, then: Then::Inline(Box::new(load)) })
    }
}

struct Answered;

impl Handler for Answered {
    fn arrive(&self, am: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let answer: AccessAnswer = read_pod(message.header)?;
        let asked = am.state()?.accesses.lock().remove(answer.name);
        let Some(Asked { counter, spans, direction }) = asked else {
            fail!(
                Internal,
                "rank {} sent a reply to a request that this rank did not make",
                message.origin
            );
        };
        if answer.code != 0 {
            let kind = ErrorKind::from_code(answer.code as i32);
            let first = spans.first().map_or(0, |s| s.remote);
            let text = format!(
                "rank {} cannot access its own memory: {} ranges, the first at {first:#x}",
                message.origin,
                spans.len()
            );
            counter.fail(Error::new(kind, text));
            return Ok(Accept::DONE);
        }
        if direction == Direction::Put {
            counter.end();
            return Ok(Accept::DONE);
        }
        if message.len != spans.iter().map(|s| s.bytes).sum::<usize>() {
            fail!(
                Internal,
                "rank {} replied with a wrong length of {} bytes",
                message.origin,
                message.len
            );
        }
        if let [only] = spans[..] {
            let done = move |_: &Am, _| counter.end();
            let to = Destination::At(only.local as *mut u8);
            return Ok(Accept { to, then: Then::Inline(Box::new(done)) });
        }
        let scatter = move |_: &Am, data: Vec<u8>| {
            let runs = spans.into_iter().map(|span| span.turned().remote_run());
            // SAFETY: the caller that asked keeps its memory valid until the counter is done.
            unsafe { kernel::copy_spans(beside(runs, data.as_ptr() as usize), Direction::Put) };
            counter.end();
        };
        Ok(Accept { to: Destination::Buffer, then: Then::Inline(Box::new(scatter)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_is_known() {
        let mut here = [0u8; 100];
        let address = here.as_mut_ptr() as usize;
        let mapped = |address, len, write| is_mapped(Run { address, len }, write);
        assert!(mapped(address, 100, true));
        assert!(!mapped(8, 8, false));
        assert!(!mapped(usize::MAX - 3, 8, false));
        let text = "constant".as_ptr() as usize;
        assert!(mapped(text, 8, false));
        assert!(!mapped(text, 8, true));
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
