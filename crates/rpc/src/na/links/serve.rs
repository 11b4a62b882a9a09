//! Requests for registered memory, and the messages of a connection.
//!
//! A get or put names the peer's memory by its handle number; the owner checks the request against
//! its own record ([`crate::na::service`]). If the system lets the owner access the requester's
//! memory, the request contains addresses there, and the owner copies directly: in its own mapping
//! of the memory, if the requester exports it, and else through the kernel. Otherwise the bytes
//! follow in the request or the reply, without an intermediate copy.

use super::Links;
use super::input::Sink;
use super::link::{Link, Step};
use super::stream::{Read, total};
use crate::failure::{Failure, Result, Status, refuse};
use crate::na::address::Peer;
use crate::na::class::Shared;
use crate::na::memory::{KEY, Mem, Run, decode_key, encode_key, not_registered, pair, to_mapped};
use crate::na::plugin::Chunk;
use crate::na::service::{self, NAMES, Named};
use crate::na::wire::{Head, Kind};
use portolan_base::error::ErrorKind;
use portolan_engine::any_memory::Direction;
use portolan_engine::core::answers::AwaitedAnswer;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::memory::{runs, shm_export};
use portolan_engine::path::{cma, kernel};
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum number of reads of a connection per visit, so that others get their turn.
const READS: usize = 16;
/// Maximum number of runs in a request for a direct copy.
const RUNS: usize = 256;

/// Bit in the tag of a request whose body lists runs of the requester, for a direct copy.
const DIRECT: u32 = 1;
/// Bit in the tag of such a request if these runs are exported. Their key precedes them.
const EXPORTED: u32 = 2;

struct Messages<'a> {
    links: &'a Links,
    class: &'a Shared,
    link: &'a Arc<Link>,
    /// Credits, which are handled without the lock of the input: the messages that they admit may
    /// find the connection broken.
    credits: Vec<Head>,
}

impl Sink for Messages<'_> {
    fn message(&mut self, head: &Head, body: &[u8]) -> std::result::Result<(), String> {
        let Messages { links, class, link, credits } = self;
        let from = Peer::Remote(link.number());
        if !class.may_come(from, head.kind, body.len()) {
            return Err("it sent a message that this protocol does not allow".into());
        }
        // Class numbers are independent in different processes.
        let head = Head { class: class.number, ..*head };
        match head.kind {
            Kind::Get => links.serve(link, &head, Direction::Get, body),
            Kind::Put => links.serve(link, &head, Direction::Put, body),
            Kind::Moved => {
                let awaited = links.awaited(link, &head, body.len())?;
                match Status(head.tag as i32) {
                    Status::SUCCESS => awaited.fill(body),
                    status => {
                        let withdrawn = status == Status::ACCESS;
                        let kind = if withdrawn { ErrorKind::Handle } else { ErrorKind::Address };
                        awaited.fail(kind, format!("the peer refuses: {}", status.meaning()));
                    }
                }
            }
            Kind::Credit => credits.push(head),
            _ => class.arrived(from, &head, Cow::Borrowed(body)),
        }
        Ok(())
    }

    fn reply(&mut self, head: &Head, len: usize) -> std::result::Result<AwaitedAnswer, String> {
        self.links.awaited(self.link, head, len)
    }
}

impl Links {
    pub(super) fn request(
        &self,
        class: u16,
        link: &Arc<Link>,
        chunk: Chunk,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let Chunk { direction, id, offset, local, runs, shm_key } = chunk;
        let direct = link.stream.is_reachable() && runs.len() <= RUNS;
        let mut body = Named { id, offset, len: total(&runs) }.bytes().to_vec();
        let mut tag = 0;
        if direct {
            tag = DIRECT;
            if let Some(key) = &shm_key {
                tag |= EXPORTED;
                body.extend(encode_key(key));
            }
            body.extend_from_slice(runs::as_bytes(&runs));
        }
        let kind = if direction == Direction::Put { Kind::Put } else { Kind::Get };
        let (memory, into) = match direction {
            _ if direct => (None, Vec::new()),
            Direction::Put => {
                (Some((Mem::find(local).ok_or_else(not_registered)?, runs)), Vec::new())
            }
            Direction::Get => (None, runs),
        };
        // SAFETY: the local memory is valid until the counter is done.
        let token = unsafe { self.awaited.begin(link.number() as usize, counter, into) };
        let head = Head { kind, class, tag, word: token };
        let posted = self.post(link, &head, &body, memory);
        if posted.is_err() {
            self.awaited.withdraw(token);
        }
        posted
    }

    /// Returns the request that a message of `len` bytes answers. Fails if the peer was not asked
    /// for it.
    fn awaited(
        &self,
        link: &Link,
        head: &Head,
        len: usize,
    ) -> std::result::Result<AwaitedAnswer, String> {
        let Some(awaited) = self.awaited.take(link.number() as usize, head.word) else {
            return Err("it sent a reply to a request that was not made".into());
        };
        let requested = if head.tag == 0 { total(awaited.runs()) } else { 0 };
        if len != requested {
            let why = format!("it sent {len} bytes, which were not requested");
            awaited.fail(ErrorKind::Mpi, &*why);
            return Err(why);
        }
        Ok(awaited)
    }

    /// Serves a request, and answers with the bytes of a get unless they were copied directly.
    fn serve(&self, link: &Arc<Link>, head: &Head, direction: Direction, body: &[u8]) {
        let served = match direction {
            _ if head.tag & DIRECT != 0 => self.copy(link, head, body, direction).map(|()| None),
            Direction::Put => service::write(body).map(|()| None),
            Direction::Get => service::named(body, direction).map(Some),
        };
        let status = served.as_ref().map_or_else(Failure::status, |_| Status::SUCCESS);
        let head = Head { kind: Kind::Moved, tag: status.0 as u32, ..*head };
        if let Err(failure) = self.post(link, &head, &[], served.unwrap_or_default()) {
            log::debug!("a request of a peer cannot be answered: {failure}");
        }
    }

    /// Copies between registered memory and the memory of the peer's process, as a request asks.
    fn copy(&self, link: &Link, head: &Head, body: &[u8], direction: Direction) -> Result<()> {
        let (names, rest) = body.split_at_checked(NAMES).unwrap_or((body, &[]));
        let (key, rest) = match head.tag & EXPORTED {
            0 => (None, rest),
            _ => (decode_key(rest), rest.get(KEY..).unwrap_or_default()),
        };
        let there = runs::list(rest, (rest.len() / size_of::<Run>()) as u64);
        let (mem, here) = service::named(names, direction)?;
        let there = match there {
            Ok((there, all, [])) if there.len() <= RUNS && all == total(&here) => there,
            _ => refuse!(PROTOCOL_ERROR, "the addresses of a request do not fit its length"),
        };
        let spans = pair(here.into_iter(), there.into_iter());
        let mapped = key.filter(|key| link.stream.process() == Some(key.pid));
        let mapped = mapped.and_then(|key| shm_export::borrow(&key));
        let in_mapping = mapped.as_deref().and_then(|mapped| to_mapped(mapped, &spans));
        let mut copied = None;
        link.stream.copy_for_peer(&mut || {
            if let Some(spans) = &in_mapping {
                // SAFETY: the guard `mem` keeps the local memory registered, and thus valid. The
                // spans lie within `mapped`.
                unsafe { kernel::copy_spans(spans.iter().copied(), direction.turned()) };
                copied = Some(Ok(()));
            } else if let Some(process) = link.stream.accessible() {
                // SAFETY: the guard `mem` keeps the local memory registered, and thus valid. The
                // kernel checks the peer's addresses.
                copied = Some(unsafe { cma::transfer(process, &spans, direction.turned()) });
            }
        });
        drop(mem);
        let Some(copied) = copied else {
            refuse!(PROTOCOL_ERROR, "this process cannot access the memory of the peer");
        };
        copied.map_err(|error| Failure::new(Status::FAULT, error.detail()))
    }

    /// Writes what waits and handles what has arrived. The error says why the connection has ended.
    pub(super) fn step(
        &self,
        class: &Shared,
        link: &Arc<Link>,
        buffer: &mut [u8],
    ) -> std::result::Result<Step, String> {
        let busy = link.flush()?;
        if link.take_behind_change() {
            class.fell_behind(Peer::Remote(link.number()));
        }
        let mut messages = Messages { links: self, class, link, credits: Vec::new() };
        let step = messages.read(buffer, busy)?;
        for credit in messages.credits {
            class.arrived(Peer::Remote(link.number()), &credit, Cow::Borrowed(&[]));
        }
        Ok(step)
    }
}

impl Messages<'_> {
    /// Handles what has arrived. `busy` says whether the step has done anything before.
    fn read(&mut self, buffer: &mut [u8], mut busy: bool) -> std::result::Result<Step, String> {
        let link = self.link;
        let mut input = link.input.lock();
        for _ in 0..READS {
            let into = [Run { address: buffer.as_mut_ptr() as usize, len: buffer.len() }];
            let direct = input.direct();
            let parts = direct.as_ref().map_or(&into[..], |direct| direct.runs());
            // SAFETY: the destination of a direct body is valid until its last byte has arrived.
            // Other bytes go to the caller's buffer.
            let come = unsafe { link.stream.read(parts) };
            match come.map_err(|error| error.to_string())? {
                Read::Nothing => return Ok(Step { busy, again: false }),
                Read::End => return Err("the peer has ended the connection".into()),
                Read::Bytes(n) => match input.direct() {
                    Some(direct) => {
                        direct.advance(n);
                        input.settle();
                    }
                    None => input.feed(&buffer[..n], self)?,
                },
            }
            busy = true;
        }
        Ok(Step { busy, again: true })
    }
}
