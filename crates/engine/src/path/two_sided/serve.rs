//! The target: transfers on behalf of other ranks, and the count of handled requests.

use super::service::{Incoming, Served, Service, Services};
use super::wire::{self, RequestHeader, RequestKind};
use super::{Action, Address, CREDIT_EVERY, ServiceState, TwoSided};
use crate::memory::arena::Arena;
use crate::memory::runs::Run;
use crate::mpi::p2p;
use crate::path::Paths;
use crate::path::ops::Rmw;
use crate::path::{kernel, shm_atomics};
use portolan_base::error::{Result, fail};
use portolan_base::layout::{Shape, Side};
use portolan_base::mutation::{self, Fault};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Minimum length in bytes of an answer straight from the segment.
const FROM_PLACE: usize = 16 << 10;

const KINDS: [RequestKind; 10] = [
    RequestKind::Put,
    RequestKind::PutRndv,
    RequestKind::Accumulate,
    RequestKind::Get,
    RequestKind::Rmw,
    RequestKind::PutBlocks,
    RequestKind::AccumulateBlocks,
    RequestKind::GetBlocks,
    RequestKind::FlushReq,
    RequestKind::CreditAck,
];

pub(super) fn services() -> Services {
    static TRANSFERS: Transfers = Transfers;
    let services = Services::default();
    // SAFETY: the service is static.
    unsafe { services.register(&KINDS, &TRANSFERS) };
    services
}

struct Transfers;

impl Service for Transfers {
    fn serve(
        &self,
        paths: &Paths,
        source: usize,
        kind: RequestKind,
        message: &[u8],
    ) -> Result<Served> {
        let (header, shape, payload) = wire::decode(message)?;
        let two_sided = paths.two_sided()?;
        match kind {
            RequestKind::Put | RequestKind::Accumulate => {
                if payload.len() != shape.bytes() {
                    fail!(
                        Internal,
                        "rank {source} sent {} bytes, expected {}",
                        payload.len(),
                        shape.bytes()
                    );
                }
                let (arena, start) = own(paths, &header, &shape)?;
                // SAFETY: `own` checked the remote extent, and the payload has its bytes.
                unsafe {
                    if kind == RequestKind::Put {
                        let to = arena.my_base().wrapping_add(start);
                        kernel::copy(payload.as_ptr(), to, &shape, true);
                    } else {
                        let scale = header.scale()?;
                        shm_atomics::accumulate(
                            arena.my_base(),
                            start,
                            payload.as_ptr(),
                            &shape,
                            &scale,
                        );
                    }
                }
                increment_after(paths, kind, &header)?;
            }
            RequestKind::PutBlocks | RequestKind::AccumulateBlocks => {
                store_blocks(paths, kind, &header, payload)?;
                increment_after(paths, kind, &header)?;
            }
            RequestKind::GetBlocks => two_sided.answer_blocks(paths, source, &header, payload)?,
            RequestKind::PutRndv => return land(paths, &header).map(Served::Data),
            RequestKind::Get => two_sided.answer_get(paths, source, &header, &shape)?,
            RequestKind::Rmw => {
                let op = header.rmw()?;
                match paths.own(header.address, op.size()) {
                    Ok((arena, offset)) => {
                        // SAFETY: `own` has checked that the number lies in this rank's region.
                        let old = unsafe { shm_atomics::rmw(arena.my_base(), offset, op) };
                        two_sided.answer_number(source, header.tag, old)?;
                    }
                    Err(_) => two_sided.refuse(source, header.tag)?,
                }
            }
            // Its flag returns the credits, after all earlier requests.
            RequestKind::FlushReq => {}
            RequestKind::CreditAck => {
                paths.peer(source).confirm(header.operand[0], header.operand[1]);
            }
            kind => fail!(Internal, "a request of kind {kind:?} reached the wrong handler"),
        }
        Ok(Served::Done)
    }
}

/// Finds blocks in the regions of this rank. One lookup serves all blocks if one region contains
/// them.
struct Places<'a> {
    paths: &'a Paths,
    /// The arena, and the address and the offset of the first byte.
    all: Option<(Arc<Arena>, usize, usize)>,
}

impl<'a> Places<'a> {
    fn new(paths: &'a Paths, list: &[Run]) -> Places<'a> {
        let whole = list.iter().try_fold((usize::MAX, 0), |(first, end), block| {
            Some((block.address.min(first), block.end()?.max(end)))
        });
        let found = whole.filter(|_| list.len() > 1).and_then(|(first, end)| {
            let (arena, offset) = paths.own(first as u64, end - first).ok()?;
            Some((arena, first, offset))
        });
        Places { paths, all: found }
    }

    /// Returns the arena and the offset of a block. `other` keeps an arena that was found for this
    /// block alone.
    fn find<'b>(
        &'b self,
        block: &Run,
        other: &'b mut Option<Arc<Arena>>,
    ) -> Result<(&'b Arena, usize)> {
        if let Some((arena, first, offset)) = &self.all {
            return Ok((arena, offset + (block.address - first)));
        }
        let (arena, offset) = self.paths.own(block.address as u64, block.len)?;
        Ok((other.insert(arena), offset))
    }
}

fn store_blocks(
    paths: &Paths,
    kind: RequestKind,
    header: &RequestHeader,
    body: &[u8],
) -> Result<()> {
    let (list, total, mut payload) = wire::blocks(header, body)?;
    if payload.len() != total {
        fail!(Internal, "{} bytes came for blocks of {total}", payload.len());
    }
    let accumulate = kind == RequestKind::AccumulateBlocks;
    let places = Places::new(paths, &list);
    for block in &list {
        let (bytes, rest) = payload.split_at(block.len);
        payload = rest;
        // A later block may be a flag, which must not be visible before the earlier blocks.
        fence(Ordering::Release);
        let mut other = None;
        let (arena, offset) = places.find(block, &mut other)?;
        // SAFETY: the block lies in this rank's region, and the payload has its bytes.
        unsafe {
            if accumulate {
                let scale = header.scale()?;
                shm_atomics::accumulate_row(
                    arena.my_base(),
                    offset,
                    bytes.as_ptr(),
                    bytes.len(),
                    &scale,
                );
            } else {
                let to = arena.my_base().wrapping_add(offset);
                kernel::copy_block(bytes.as_ptr(), to, bytes.len());
            }
        }
    }
    Ok(())
}

/// Increments the number that a put names, after its bytes.
fn increment_after(paths: &Paths, kind: RequestKind, header: &RequestHeader) -> Result<()> {
    let is_put = matches!(kind, RequestKind::Put | RequestKind::PutBlocks);
    if is_put && header.operand[0] != 0 {
        let (arena, offset) = paths.own(header.operand[0], 4)?;
        // SAFETY: `own` has checked that the number lies in this rank's region.
        unsafe { shm_atomics::rmw(arena.my_base(), offset, Rmw::add::<i32>(1)) };
    }
    Ok(())
}

/// Returns the arena with the remote extent, and the offset of the shape's start in the region.
fn own(paths: &Paths, header: &RequestHeader, shape: &Shape) -> Result<(Arc<Arena>, usize)> {
    let (lo, hi) = shape.extent(Side::Remote);
    let first = header.address.wrapping_add_signed(lo as i64);
    let (arena, offset) = paths.own(first, hi.wrapping_sub(lo) as usize)?;
    Ok((arena, offset.wrapping_sub(lo as usize)))
}

/// Returns the destination of a put whose bytes follow. Later requests of the origin wait for them.
fn land(paths: &Paths, header: &RequestHeader) -> Result<Incoming> {
    let len = header.operand[0] as usize;
    let (arena, offset) = paths.own(header.address, len)?;
    let to = Address(arena.my_base().wrapping_add(offset));
    // The parcel keeps the region mapped.
    Ok(Incoming { to, len, tag: header.tag, parcel: Box::new(arena) })
}

impl TwoSided {
    fn answer_blocks(
        &self,
        paths: &Paths,
        source: usize,
        header: &RequestHeader,
        body: &[u8],
    ) -> Result<()> {
        let (list, total, _) = wire::blocks(header, body)?;
        let places = Places::new(paths, &list);
        let mut buffer = self.buffer(total);
        for block in &list {
            let mut other = None;
            let Ok((arena, offset)) = places.find(block, &mut other) else {
                return self.refuse(source, header.tag);
            };
            let from = arena.my_base().wrapping_add(offset);
            // SAFETY: the block lies in this rank's region, and the buffer has capacity for all.
            unsafe {
                let filled = buffer.len();
                kernel::copy_block(from, buffer.as_mut_ptr().add(filled), block.len);
                buffer.set_len(filled + block.len);
            }
        }
        self.send_buffer(&self.data, source, header.tag, buffer)
    }

    fn answer_get(
        &self,
        paths: &Paths,
        source: usize,
        header: &RequestHeader,
        shape: &Shape,
    ) -> Result<()> {
        let own = own(paths, header, shape);
        shape.split(header.operand[0] as usize, 1, &mut |_, r, part| {
            let Ok((arena, start)) = &own else {
                return self.refuse(source, header.tag);
            };
            let from = arena.my_base().wrapping_add(*start).wrapping_offset(r);
            let bytes = part.bytes();
            if part.is_contiguous() && bytes >= FROM_PLACE {
                let (tag, keep) = (header.tag as i32, Some(arena.clone()));
                // SAFETY: `own` checked the extent. The action keeps the arena until sent.
                let request = unsafe { p2p::isend(&self.data, from, bytes, source, tag) }?;
                return self.started(request, Action::Left { counter: None, _keep: keep });
            }
            let mut buffer = self.buffer(bytes);
            // SAFETY: `own` checked the extent, and the buffer has capacity for its bytes.
            unsafe {
                kernel::copy(from, buffer.as_mut_ptr(), part, false);
                buffer.set_len(bytes);
            }
            self.send_buffer(&self.data, source, header.tag, buffer)
        })
    }

    pub(crate) fn answer_number(&self, source: usize, tag: u32, value: i64) -> Result<()> {
        let mut buffer = self.buffer(8);
        buffer.extend_from_slice(&value.to_ne_bytes());
        self.send_buffer(&self.data, source, tag, buffer)
    }

    /// Sends an empty answer, which the origin reports as an error.
    fn refuse(&self, source: usize, tag: u32) -> Result<()> {
        self.send_buffer(&self.data, source, tag, self.buffer(0))
    }

    /// Confirms all handled requests if `now`, or if enough are unconfirmed.
    pub(super) fn handled(
        &self,
        paths: &Paths,
        serving: &mut ServiceState,
        source: usize,
        cost: u64,
        now: bool,
    ) -> Result<()> {
        paths.note_served();
        let origin = &mut serving.origins[source];
        origin.handled += 1;
        origin.handled_bytes += cost;
        let bytes = origin.handled_bytes - origin.confirmed_bytes;
        if now
            || origin.handled - origin.confirmed >= CREDIT_EVERY
            || bytes >= paths.config.flight_bytes as u64 / 4 && !mutation::is(Fault::CreditByCount)
        {
            origin.confirmed = origin.handled;
            origin.confirmed_bytes = origin.handled_bytes;
            let mut header = RequestHeader::new(RequestKind::CreditAck, 0);
            header.operand = [origin.handled, origin.handled_bytes, 0];
            self.notice(source, header)?;
        }
        Ok(())
    }
}
