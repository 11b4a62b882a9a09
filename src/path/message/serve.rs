//! The target's side: carrying out what other ranks ask, in their order.

use super::wire::{self, Header, Kind};
use super::{Action, CONFIRM_EVERY, Core, Messenger, Waiting};
use crate::atomics::mutex;
use crate::error::{Result, fail};
use crate::layout::{Shape, Side};
use crate::memory::slab::Slab;
use crate::mpi::p2p;
use crate::path::{direct, kernel};
use crate::runtime::Engine;
use std::sync::Arc;

/// Answers from this length on are sent straight from the segment.
const FROM_PLACE: usize = 16 << 10;

impl Messenger {
    /// Carries one request out.
    pub(super) fn serve(
        &self,
        engine: &Engine,
        core: &mut Core,
        source: usize,
        message: &[u8],
    ) -> Result<()> {
        if message.first() == Some(&(Kind::AmNotice as u8)) {
            let (_, record) = wire::AmHeader::split(message)?;
            let (head, rest) = crate::am::wire::split(record)?;
            return engine.am()?.control(engine, source, &head, rest);
        }
        let (header, shape, payload) = wire::decode(message)?;
        let kind = header.kind()?;
        let cost = message.len() as u64;
        match kind {
            Kind::Put | Kind::Accumulate => {
                if payload.len() != shape.bytes() {
                    fail!(
                        Internal,
                        "rank {source} sent {} bytes for {}",
                        payload.len(),
                        shape.bytes()
                    );
                }
                let (slab, start) = self.own(engine, &header, &shape)?;
                // SAFETY: `own` checked the remote extent, the payload has the
                // shape's bytes.
                unsafe {
                    if kind == Kind::Put {
                        let to = slab.my_base().wrapping_add(start);
                        kernel::copy(payload.as_ptr(), to, &shape, true);
                    } else {
                        let scale = header.scale()?;
                        direct::accumulate(slab.my_base(), start, payload.as_ptr(), &shape, scale);
                    }
                }
            }
            Kind::PutBlocks | Kind::AccumulateBlocks => {
                self.store_blocks(engine, &header, payload)?
            }
            Kind::GetBlocks => self.answer_blocks(engine, source, &header, payload)?,
            Kind::PutLater => return self.land(engine, core, source, &header, cost),
            Kind::Get => self.answer_get(engine, source, &header, &shape)?,
            Kind::Rmw => {
                let op = header.rmw()?;
                let address = header.address as usize;
                match engine.memory.registry.in_slice(engine.rank(), address, op.size()) {
                    Ok((slab, offset)) => {
                        // SAFETY: the number lies in our slice.
                        let old = unsafe { direct::rmw(slab.my_base(), offset, op) };
                        self.answer_number(source, header.slot, old)?;
                    }
                    Err(_) => self.refuse(source, header.slot)?,
                }
            }
            Kind::Lock => mutex::serve_lock(engine, source, &header)?,
            Kind::TryLock => {
                let got = mutex::serve_try(engine, source, &header)?;
                self.answer_number(source, header.slot, i64::from(got))?;
            }
            Kind::Unlock => mutex::serve_unlock(engine, source, &header)?,
            Kind::Grant => engine.mutexes.granted(&header),
            Kind::Next => engine.mutexes.next_is(&header, source),
            Kind::Confirm => engine.peer(source).confirm(header.operand[0], header.operand[1]),
            Kind::Fence => {}
            Kind::Am | Kind::AmLong | Kind::AmNotice | Kind::Follows => {
                fail!(Internal, "a request of kind {kind:?} came to the wrong place")
            }
        }
        if kind.is_counted() {
            self.handled(engine, core, source, cost, kind == Kind::Fence)?;
        }
        Ok(())
    }

    /// Stores or accumulates a payload at a list of blocks.
    fn store_blocks(&self, engine: &Engine, header: &Header, body: &[u8]) -> Result<()> {
        let (list, mut payload) = wire::blocks(body, header.operand[2])?;
        let accumulate = header.kind()? == Kind::AccumulateBlocks;
        for block in list {
            let Some((bytes, rest)) = payload.split_at_checked(block.bytes as usize) else {
                fail!(Internal, "a message ends inside the payload of its blocks");
            };
            payload = rest;
            let (slab, offset) = engine.memory.registry.in_slice(
                engine.rank(),
                block.address as usize,
                bytes.len(),
            )?;
            // SAFETY: the block lies in our slice, the payload has its bytes.
            unsafe {
                if accumulate {
                    let scale = header.scale()?;
                    direct::accumulate_row(
                        slab.my_base(),
                        offset,
                        bytes.as_ptr(),
                        bytes.len(),
                        scale,
                    );
                } else {
                    let to = slab.my_base().wrapping_add(offset);
                    kernel::copy_block(bytes.as_ptr(), to, bytes.len());
                }
            }
        }
        Ok(())
    }

    /// Sends the bytes of a list of blocks back, packed.
    fn answer_blocks(
        &self,
        engine: &Engine,
        source: usize,
        header: &Header,
        body: &[u8],
    ) -> Result<()> {
        let (list, _) = wire::blocks(body, header.operand[2])?;
        let total = list.iter().fold(0, |n, b| n + b.bytes as usize);
        let mut buffer = self.buffer(total);
        for block in list {
            let bytes = block.bytes as usize;
            let address = block.address as usize;
            let Ok((slab, offset)) = engine.memory.registry.in_slice(engine.rank(), address, bytes)
            else {
                return self.refuse(source, header.slot);
            };
            let from = slab.my_base().wrapping_add(offset);
            // SAFETY: the block lies in our slice; the buffer has room for the
            // sum of all blocks.
            unsafe {
                let filled = buffer.len();
                kernel::copy_block(from, buffer.as_mut_ptr().add(filled), bytes);
                buffer.set_len(filled + bytes);
            }
        }
        let tag = header.slot as i32;
        // SAFETY: the buffer travels with the action until the send is done.
        let request =
            unsafe { p2p::isend(&self.data, buffer.as_ptr(), buffer.len(), source, tag) }?;
        self.started(request, Action::Sent(buffer))
    }

    /// The slab in which the request's remote extent lies, and the offset of the
    /// shape's start in it.
    fn own(&self, engine: &Engine, header: &Header, shape: &Shape) -> Result<(Arc<Slab>, usize)> {
        let (lo, hi) = shape.extent(Side::Remote);
        let first = (header.address as usize).wrapping_add_signed(lo);
        let len = hi.wrapping_sub(lo) as usize;
        let (slab, offset) = engine.memory.registry.in_slice(engine.rank(), first, len)?;
        Ok((slab, offset.wrapping_sub(lo as usize)))
    }

    /// Bytes follow in a message of their own: they are received into place, and
    /// the origin's later requests wait.
    fn land(
        &self,
        engine: &Engine,
        core: &mut Core,
        source: usize,
        header: &Header,
        cost: u64,
    ) -> Result<()> {
        let bytes = header.operand[0] as usize;
        let address = header.address as usize;
        let (slab, offset) = engine.memory.registry.in_slice(engine.rank(), address, bytes)?;
        let to = slab.my_base().wrapping_add(offset);
        // SAFETY: the bytes lie in our slice, which the action keeps mapped.
        let request =
            unsafe { p2p::irecv(&self.data, to, bytes, Some(source), header.slot as i32) }?;
        let ticket = core.next_ticket;
        core.next_ticket += 1;
        let origin = &mut core.origins[source];
        origin.waiting.push_front(Waiting { ticket, ready: None });
        core.requests.push(request, Action::Landed { source, ticket, _slab: slab, cost });
        Ok(())
    }

    fn answer_get(
        &self,
        engine: &Engine,
        source: usize,
        header: &Header,
        shape: &Shape,
    ) -> Result<()> {
        let Ok((slab, start)) = self.own(engine, header, shape) else {
            return self.refuse(source, header.slot);
        };
        let from = slab.my_base().wrapping_add(start);
        let bytes = shape.bytes();
        let tag = header.slot as i32;
        // SAFETY: `own` checked the extent; the action keeps the slab mapped, or
        // the buffer, until the send is done.
        unsafe {
            if shape.is_contiguous() && bytes >= FROM_PLACE {
                let request = p2p::isend(&self.data, from, bytes, source, tag)?;
                return self.started(request, Action::Left { tally: None, _keep: Some(slab) });
            }
            let mut buffer = self.buffer(bytes);
            kernel::copy(from, buffer.as_mut_ptr(), shape, false);
            buffer.set_len(bytes);
            let request = p2p::isend(&self.data, buffer.as_ptr(), bytes, source, tag)?;
            self.started(request, Action::Sent(buffer))
        }
    }

    fn answer_number(&self, source: usize, slot: u32, value: i64) -> Result<()> {
        let mut buffer = self.buffer(8);
        buffer.extend_from_slice(&value.to_ne_bytes());
        // SAFETY: the buffer travels with the action until the send is done.
        let request = unsafe { p2p::isend(&self.data, buffer.as_ptr(), 8, source, slot as i32) }?;
        self.started(request, Action::Sent(buffer))
    }

    /// An answer without bytes: the origin makes an error of it.
    fn refuse(&self, source: usize, slot: u32) -> Result<()> {
        let buffer = self.buffer(0);
        // SAFETY: as above; no bytes are read.
        let request = unsafe { p2p::isend(&self.data, buffer.as_ptr(), 0, source, slot as i32) }?;
        self.started(request, Action::Sent(buffer))
    }

    /// Counts a handled request and confirms when it is time.
    pub(super) fn handled(
        &self,
        engine: &Engine,
        core: &mut Core,
        source: usize,
        cost: u64,
        now: bool,
    ) -> Result<()> {
        let origin = &mut core.origins[source];
        origin.handled += 1;
        origin.handled_bytes += cost;
        let bytes = origin.handled_bytes - origin.confirmed_bytes;
        if now
            || origin.handled - origin.confirmed >= CONFIRM_EVERY
            || bytes >= engine.config.flight_bytes as u64 / 4
        {
            origin.confirmed = origin.handled;
            origin.confirmed_bytes = origin.handled_bytes;
            let mut header = Header::new(Kind::Confirm, 0);
            header.operand = [origin.handled, origin.handled_bytes, 0];
            self.notice(source, header)?;
        }
        Ok(())
    }
}
