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
use crate::na::memory::{KEY, Run, decode_key, encode_key, pair, to_mapped};
use crate::na::moving::Moving;
use crate::na::plugin::Chunk;
use crate::na::service::{self, NAMES, Named};
use crate::na::wire::{Head, Kind};
use portolan_engine::any_memory::Direction;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::memory::{runs, shm_export};
use portolan_engine::path::{cma, kernel};
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum number of reads of a connection per visit, so that others get their turn.
const READS: usize = 16;
/// Maximum number of runs in a request for a direct copy.
const RUNS: usize = 256;

/// Tag of a request for a direct copy if the memory of the requester is exported. The body then
/// contains the key before the runs.
const EXPORTED: u32 = 1;

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
            Kind::Get => links.read(class, link, &head, body),
            Kind::Put => links.answer(class, link, &head, service::write(body)),
            Kind::GetInto => {
                let copied = links.copy(link, &head, body, Direction::Get);
                links.answer(class, link, &head, copied);
            }
            Kind::PutFrom => {
                let copied = links.copy(link, &head, body, Direction::Put);
                links.answer(class, link, &head, copied);
            }
            Kind::GetData | Kind::PutDone => match links.moving.answered(link.number(), &head) {
                Some(moving) => moving.answered(Status(head.tag as i32), body),
                None => return Err("it sent a reply to a request that was not made".into()),
            },
            Kind::Credit => credits.push(head),
            _ => class.arrived(from, &head, Cow::Borrowed(body)),
        }
        Ok(())
    }

    fn reply(&mut self, head: &Head, len: usize) -> std::result::Result<Moving, String> {
        match self.links.moving.answered(self.link.number(), head) {
            Some(moving) if total(moving.runs()) == len && head.tag == 0 => Ok(moving),
            Some(moving) => {
                let why = format!("it sent {len} bytes, which were not requested");
                moving.fail(&why);
                Err(why)
            }
            None => Err("it sent a reply to a request that was not made".into()),
        }
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
        let Chunk { direction, id, offset, runs, shm_key } = chunk;
        let names = Named { id, offset, len: total(&runs) }.bytes();
        let direct = link.stream.is_reachable() && runs.len() <= RUNS;
        let mut bytes = names.to_vec();
        let (kind, answer) = match direction {
            Direction::Get if direct => (Kind::GetInto, Kind::PutDone),
            Direction::Put if direct => (Kind::PutFrom, Kind::PutDone),
            Direction::Get => (Kind::Get, Kind::GetData),
            Direction::Put => (Kind::Put, Kind::PutDone),
        };
        let mut tag = 0;
        if direct {
            if let Some(key) = &shm_key {
                bytes.extend(encode_key(key));
                tag = EXPORTED;
            }
            bytes.extend_from_slice(runs::as_bytes(&runs));
        }
        let put = if kind == Kind::Put { runs.clone() } else { Vec::new() };
        let into = if kind == Kind::Get { runs } else { Vec::new() };
        let token = self.moving.begin(link.number(), answer, counter, into);
        let head = Head { kind, class, tag, word: token };
        // SAFETY: the local memory of a put is valid until the counter is done: until the peer has
        // answered, after the last byte was written, or the connection was abandoned.
        let posted = unsafe { self.post(link, &head, &bytes, &put, None) };
        if posted.is_err() {
            self.moving.withdraw(token);
        }
        posted
    }

    fn read(&self, class: &Shared, link: &Arc<Link>, to: &Head, body: &[u8]) {
        let (status, guard, runs) = match service::named(body, Direction::Get) {
            Ok((mem, runs)) => (Status::SUCCESS, Some(mem), runs),
            Err(failure) => (failure.status(), None, Vec::new()),
        };
        let head = answer_to(to, Kind::GetData, class, status);
        // SAFETY: the guard keeps the memory registered, and thus valid, until it has been written.
        refused(unsafe { self.post(link, &head, &[], &runs, guard) });
    }

    fn answer(&self, class: &Shared, link: &Arc<Link>, to: &Head, done: Result<()>) {
        let status = done.map_or_else(|failure| failure.status(), |()| Status::SUCCESS);
        let head = answer_to(to, Kind::PutDone, class, status);
        // SAFETY: there are no runs.
        refused(unsafe { self.post(link, &head, &[], &[], None) });
    }

    /// Copies between registered memory and the memory of the peer's process, as a request asks.
    fn copy(&self, link: &Link, head: &Head, body: &[u8], direction: Direction) -> Result<()> {
        let (names, rest) = body.split_at_checked(NAMES).unwrap_or((body, &[]));
        let (key, rest) = match head.tag {
            EXPORTED => (decode_key(rest), rest.get(KEY..).unwrap_or_default()),
            _ => (None, rest),
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

fn answer_to(to: &Head, kind: Kind, class: &Shared, status: Status) -> Head {
    Head { kind, class: class.number, tag: status.0 as u32, word: to.word }
}

fn refused(posted: Result<()>) {
    if let Err(failure) = posted {
        log::debug!("a request of a peer cannot be answered: {failure}");
    }
}
