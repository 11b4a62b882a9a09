//! The origin: requests, flow control and answers.

use super::inbox;
use super::wire::{self, RequestHeader, RequestKind};
use super::{Action, Address, CREDIT_EVERY, MOST_IN_FLIGHT, Number, TwoSided};
use crate::core::peer::{CompletionCounter, Sent};
use crate::core::{count, handler};
use crate::mpi::{Comm, Flavour, Request, p2p};
use crate::path::Path;
use crate::path::Paths;
use crate::path::kernel::{self, Scale};
use crate::path::ops::Transfer;
use portolan_base::config::SplitChoice;
use portolan_base::error::{Error, ErrorKind, Result};
use portolan_base::layout::{Shape, Side};
use portolan_base::mutation::{self, Fault};
use portolan_base::trace::{Awaited, Cause};
use portolan_base::wait::{self, Progress};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Minimum length in bytes of a contiguous put that is received in place.
pub(super) const IN_PLACE: usize = 32 << 10;
pub(super) const MAX_MESSAGE: usize = 1 << 30;
/// A sending thread polls once per this many requests.
const SENDS_PER_POLL: u32 = 16;
/// Maximum number of outstanding parts of one get.
const GET_CHUNKS: usize = 16;
/// Number of parts that one request asks for. Over TCP, each request costs both ranks a system call.
const GET_TOGETHER: usize = 8;

/// Whether a put is received in place. `PORTOLAN_SPLIT` excludes this only with Open MPI: with
/// MPICH, a whole put is as fast.
fn is_in_place(paths: &Paths, shape: &Shape) -> bool {
    let splits = || paths.config.split == SplitChoice::On && Flavour::built() == Flavour::OpenMpi;
    shape.is_contiguous() && shape.bytes() >= IN_PLACE && !splits()
}

/// Fails the operation if the length of the answer is not `expected`.
pub(super) fn answered(counter: &CompletionCounter, got: usize, expected: usize) {
    if got == expected {
        counter.end();
    } else {
        counter.fail(Error::new(
            ErrorKind::Address,
            "the owner refused the request: its memory is not in a live segment",
        ));
    }
}

pub(super) fn number_arrived(number: &Number, buffer: &[u8], got: usize) {
    if let Some(bytes) = buffer.first_chunk::<8>() {
        number.value.store(i64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    answered(&number.counter, got, 8);
}

/// # Safety
/// The buffer must have the bytes of the shape, and `to` must be valid for writes of the extent.
pub(super) unsafe fn spread(buffer: &[u8], to: Address, shape: &Shape) {
    let packed = shape.packed_remote();
    // SAFETY: the caller guarantees the buffer and the local extent.
    unsafe { kernel::copy(buffer.as_ptr(), to.0, &packed, false) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Now,
    /// Wait for a confirmation on demand: the unconfirmed requests are too few to be confirmed by
    /// themselves, but too long for this one in addition.
    WhenAsked,
    /// Wait until the target has confirmed more.
    Later,
}

impl TwoSided {
    /// Waits for flow control, except in a handler, which must not wait.
    pub fn request(&self, paths: &Paths, target: usize, mut buffer: Vec<u8>) -> Result<Sent> {
        let peer = paths.peer(target);
        let cost = buffer.len() as u64;
        let weight = RequestKind::of(&buffer)?.weight();
        let flight = paths.config.flight_bytes as u64;
        let in_handler = handler::running().is_some();
        let at_once = in_handler && !mutation::is(Fault::HandlerWaits);
        // A thread that sends many requests polls for the replies itself, and the progress thread
        // stands back meanwhile, because both would contend for MPI's lock.
        if count(paths.polls()).is_multiple_of(SENDS_PER_POLL) && !in_handler {
            self.poll(paths)?;
        }
        // Count whose confirmation fulfils the last demand.
        let mut asked = 0;
        let room = |sent: &Sent, asked: u64| {
            let in_flight = peer.in_flight(sent);
            let count = sent.count.saturating_sub(peer.confirmed());
            if in_flight == 0 || (in_flight + cost <= flight && count < MOST_IN_FLIGHT) {
                Room::Now
            } else if in_flight < flight / 4
                && count < CREDIT_EVERY
                && peer.confirmed() >= asked
                && !mutation::is(Fault::NeverAsked)
            {
                Room::WhenAsked
            } else {
                Room::Later
            }
        };
        loop {
            {
                let mut sent = peer.sent.lock();
                let room = room(&sent, asked);
                if at_once || room == Room::Now {
                    if sent.count(cost, weight) {
                        wire::ask_for_ack(&mut buffer);
                    }
                    paths.peers().mark_pending(target, Path::Message.pending_bit());
                    self.send(target, buffer)?;
                    return Ok(*sent);
                }
                if room == Room::WhenAsked {
                    drop(sent);
                    asked = self.ask_for_ack(paths, target)?;
                }
            }
            wait::until(
                paths,
                Awaited::of(Cause::Credit, target),
                &|| {
                    format!(
                        "space for a request to rank {target}, which has not yet handled earlier ones"
                    )
                },
                || {
                    let sent = *peer.sent.lock();
                    Ok(room(&sent, asked) != Room::Later)
                },
            )?;
        }
    }

    /// Never waits. Only for answers and notices, which counted requests bound.
    pub fn send(&self, target: usize, buffer: Vec<u8>) -> Result<()> {
        if buffer.len() <= inbox::SMALL {
            return self.send_buffer(&self.requests, target, 0, buffer);
        }
        let mut header = RequestHeader::new(RequestKind::Announce, 0);
        header.tag = self.tag() + 1;
        header.operand[0] = buffer.len() as u64;
        self.notice(target, header)?;
        self.send_buffer(&self.data, target, header.tag, buffer)
    }

    #[inline(always)] // saves 29 instructions of a put
    pub(super) fn send_buffer(
        &self,
        comm: &Comm,
        target: usize,
        tag: u32,
        buffer: Vec<u8>,
    ) -> Result<()> {
        let (at, bytes) = (buffer.as_ptr(), buffer.len());
        // SAFETY: the action owns the buffer until the send has completed.
        let request = unsafe { p2p::isend(comm, at, bytes, target, tag as i32) }?;
        self.started(request, Action::Sent(buffer))
    }

    /// Receives an answer or a request of `bytes` bytes. The action of the request must own the
    /// buffer until it is complete.
    #[inline]
    pub(super) fn receive(
        &self,
        source: usize,
        tag: u32,
        bytes: usize,
    ) -> Result<(Request, Vec<u8>)> {
        let mut buffer = self.buffers.take_filled(bytes);
        // SAFETY: the caller keeps the buffer, whose bytes do not move, until then.
        let request = unsafe {
            p2p::irecv(&self.data, buffer.as_mut_ptr(), bytes, Some(source), tag as i32)
        }?;
        Ok((request, buffer))
    }

    /// Returns a request without payload.
    fn head(&self, header: RequestHeader) -> Vec<u8> {
        let mut buffer = self.buffer(wire::MAX_HEAD);
        wire::encode(header, &Shape::contiguous(0), &mut buffer);
        buffer
    }

    pub fn notice(&self, target: usize, header: RequestHeader) -> Result<()> {
        self.send(target, self.head(header))
    }

    /// Sends a counted request without payload.
    pub fn command(&self, paths: &Paths, target: usize, header: RequestHeader) -> Result<Sent> {
        self.request(paths, target, self.head(header))
    }

    /// Puts along a shape. The source may be reused when `counter` is done.
    ///
    /// # Safety
    /// Until then, the local extent must be valid for reads and unchanged. The remote extent must lie
    /// in a segment of the target.
    pub unsafe fn put(
        &self,
        paths: &Paths,
        transfer: &Transfer<'_>,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let &Transfer { target, remote, local, shape, .. } = transfer;
        let in_place = is_in_place(paths, shape);
        let max = if in_place { MAX_MESSAGE } else { paths.config.chunk_bytes };
        shape.split(max, 1, &mut |l, r, chunk| {
            let from = local.wrapping_offset(l);
            let to = remote.wrapping_add_signed(r);
            if in_place {
                // SAFETY: the caller keeps the local extent valid until the counter is done.
                unsafe { self.put_in_place(paths, target, to, from, chunk.bytes(), counter) }
            } else {
                let header = RequestHeader::new(RequestKind::Put, to);
                // SAFETY: the part lies in the local extent, which the caller guarantees.
                unsafe { self.send_packed(paths, target, header, from, chunk) }
            }
        })
    }

    /// Puts along a shape, after which the target increments the number at `then`. Returns false,
    /// and sends nothing, unless both fit into one message.
    ///
    /// # Safety
    /// The local extent must be valid for reads. The remote extent must lie in a segment of the
    /// target.
    pub(super) unsafe fn put_and_increment(
        &self,
        paths: &Paths,
        transfer: &Transfer<'_>,
        then: usize,
    ) -> Result<bool> {
        let &Transfer { target, remote, local, shape, .. } = transfer;
        if is_in_place(paths, shape) || shape.bytes() > paths.config.chunk_bytes {
            return Ok(false);
        }
        let header = RequestHeader::new(RequestKind::Put, remote).then_increment(Some(then));
        // SAFETY: the caller guarantees the local extent.
        unsafe { self.send_packed(paths, target, header, local, shape) }?;
        Ok(true)
    }

    /// # Safety
    /// See [`TwoSided::put`], for `bytes` contiguous bytes.
    unsafe fn put_in_place(
        &self,
        paths: &Paths,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let mut header = RequestHeader::new(RequestKind::PutRndv, remote);
        header.tag = self.tag() + 1;
        header.operand[0] = bytes as u64;
        self.command(paths, target, header)?;
        counter.begin();
        // SAFETY: the caller keeps the source valid until the counter is done.
        let request = unsafe { p2p::isend(&self.data, local, bytes, target, header.tag as i32) }?;
        self.started(request, Action::Left { counter: Some(counter.clone()), _keep: None })
    }

    /// The source may be reused on return.
    ///
    /// # Safety
    /// The local extent must be valid for reads.
    pub unsafe fn accumulate(
        &self,
        paths: &Paths,
        transfer: &Transfer<'_>,
        scale: Scale,
    ) -> Result<()> {
        let &Transfer { target, remote, local, shape, .. } = transfer;
        shape.split(paths.config.chunk_bytes, scale.element(), &mut |l, r, chunk| {
            let header = RequestHeader::new(RequestKind::Accumulate, remote.wrapping_add_signed(r));
            let from = local.wrapping_offset(l);
            // SAFETY: the part lies in the local extent, which the caller guarantees.
            unsafe { self.send_packed(paths, target, header.with_scale(scale), from, chunk) }
        })
    }

    /// # Safety
    /// `local` must be valid for reads of the local extent.
    unsafe fn send_packed(
        &self,
        paths: &Paths,
        target: usize,
        header: RequestHeader,
        local: *const u8,
        shape: &Shape,
    ) -> Result<()> {
        let bytes = shape.bytes();
        let mut buffer = self.buffer(wire::head_len(shape) + bytes);
        wire::encode(header, shape, &mut buffer);
        let head = buffer.len();
        // SAFETY: the copy writes the `bytes` bytes after the header, for which the buffer has
        // capacity. The caller guarantees the source.
        unsafe {
            kernel::pack(local, buffer.as_mut_ptr().add(head), shape);
            buffer.set_len(head + bytes);
        }
        self.request(paths, target, buffer)?;
        Ok(())
    }

    /// Gets along a shape. The bytes have arrived when `counter` is done. A request asks for several
    /// parts. Each is a message, and all have one tag, because MPI keeps their order.
    ///
    /// # Safety
    /// Until then, the local extent must be valid for writes and must not be read.
    pub unsafe fn get(
        &self,
        paths: &Paths,
        transfer: &Transfer<'_>,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let &Transfer { target, remote, local, shape, .. } = transfer;
        let is_whole = shape.is_contiguous() && paths.config.split != SplitChoice::On;
        let part = if is_whole { MAX_MESSAGE } else { paths.config.chunk_bytes };
        let is_short = shape.bytes() <= part;
        let parts = if is_short || !shape.splits_alike_packed() { 1 } else { GET_TOGETHER };
        shape.split(part.saturating_mul(parts), 1, &mut |l, r, whole| {
            let fits = || counter.outstanding() + parts <= GET_CHUNKS;
            if whole.bytes() < shape.bytes() && !fits() {
                let what = || format!("chunks of a get from rank {target}");
                wait::until(paths, Awaited::of(Cause::Answer, target), &what, || Ok(fits()))?;
            }
            let mut header = RequestHeader::new(RequestKind::Get, remote.wrapping_add_signed(r));
            header.tag = self.tag();
            header.operand[0] = part as u64;
            whole.split(part, 1, &mut |in_whole, _, chunk| {
                let to = local.wrapping_offset(l + in_whole);
                // SAFETY: the caller keeps the destination valid until the counter is done.
                unsafe { self.receive_chunk(target, header.tag, to, chunk, counter) }
            })?;
            let mut buffer = self.buffer(wire::MAX_HEAD);
            wire::encode(header, whole, &mut buffer);
            self.request(paths, target, buffer)?;
            Ok(())
        })
    }

    /// # Safety
    /// Until `counter` is done, the destination must be valid for writes and must not be read.
    unsafe fn receive_chunk(
        &self,
        target: usize,
        tag: u32,
        to: *mut u8,
        chunk: &Shape,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let (bytes, counter) = (chunk.bytes(), counter.clone());
        counter.begin();
        if chunk.is_contiguous_on(Side::Local) {
            // SAFETY: the caller keeps the destination valid until the counter is done.
            let request = unsafe { p2p::irecv(&self.data, to, bytes, Some(target), tag as i32) }?;
            return self.started(request, Action::Answer { counter, bytes });
        }
        let (request, buffer) = self.receive(target, tag, bytes)?;
        let (to, shape) = (Address(to), chunk.clone());
        self.started(request, Action::Spread { counter, buffer, to, shape })
    }

    /// Sends a request, and waits for a number as the answer.
    pub fn ask(&self, paths: &Paths, target: usize, mut header: RequestHeader) -> Result<i64> {
        // Before the request changes anything at the target.
        paths.may_wait()?;
        let number = Arc::new(Number::default());
        header.tag = self.tag();
        number.counter.begin();
        let (request, buffer) = self.receive(target, header.tag, 8)?;
        self.started(request, Action::Value { number: number.clone(), buffer })?;
        let sent = self.command(paths, target, header)?;
        let what = || format!("an answer of rank {target}");
        wait::until(paths, Awaited::of(Cause::Answer, target), &what, || number.counter.check())?;
        paths.peer(target).answered(sent);
        Ok(number.value.load(Ordering::Relaxed))
    }

    /// Makes `target` confirm everything sent so far, and returns the count to wait for. Sends
    /// nothing if everything is confirmed or the last request asks for it.
    pub(super) fn ask_for_ack(&self, paths: &Paths, target: usize) -> Result<u64> {
        let peer = paths.peer(target);
        let sent = *peer.sent.lock();
        if peer.confirmed() >= sent.count || sent.is_asked() {
            return Ok(sent.count);
        }
        let flush = RequestHeader::new(RequestKind::FlushReq, 0);
        Ok(self.command(paths, target, flush)?.count)
    }

    /// Waits for acknowledgements that are still in flight although answers have confirmed the same
    /// requests: none may arrive at a rank that has left. Those of a target arrive in order, so a
    /// last one is requested from each.
    pub(crate) fn await_acks(&self, paths: &Paths) -> Result<()> {
        let flush = RequestHeader::new(RequestKind::FlushReq, 0);
        let mut asked = Vec::new();
        for target in 0..paths.size() {
            if paths.peer(target).sent.lock().answered {
                asked.push((target, self.command(paths, target, flush)?.count));
            }
        }
        asked.into_iter().try_for_each(|(target, count)| self.confirmed(paths, target, count))
    }

    pub fn confirmed(&self, paths: &Paths, target: usize, count: u64) -> Result<()> {
        let peer = paths.peer(target);
        wait::until(
            paths,
            Awaited::of(Cause::Fence, target),
            &|| format!("rank {target} to confirm {count} requests ({} so far)", peer.confirmed()),
            || Ok(peer.confirmed() >= count),
        )
    }
}
