//! Copying with the owner's help.
//!
//! The kernel copies memory of another process at about half of the speed of a plain copy,
//! because it looks each page up. A rank that waits has nothing better to do: this rank
//! offers it a long transfer in pieces ([`SplitJob`](super::work_split::SplitJob)), takes them
//! from the front, and the other takes them from the back, and copies the other way round
//! between the same bytes. A rank that does not help, or too late, finds nothing left.
//!
//! Invariants: a transfer is complete when it returns, as without help, so its order among
//! others is the same. A rank that has not begun to help is not waited for. A helper gets its
//! addresses from another rank, so it uses them through the kernel alone, which checks them.

use super::shm_transport::ShmTransport;
use super::wire::{EagerHead, read_pod};
use super::work_split::JOBS;
use super::{Accept, Am, Arrival, Handler, HandlerId};

/// The number of the handler of help, the same on all ranks.
pub(super) const HELP: HandlerId = HandlerId(0);

/// How many handlers active messages have themselves; those of the layers above come after.
pub(crate) const OWN_HANDLERS: u16 = 1;

use crate::error::{Result, fail};
use crate::path::cma::{self, Direction};
use crate::path::ops::Span;
use crate::trace::Cause;
use crate::wait::{self, Boot};
use bytemuck::{Pod, Zeroable};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Shorter transfers are over before help comes, from a rank that polls and from one that
/// must be woken for it.
const LEAST: usize = 192 << 10;
const LEAST_ASLEEP: usize = 1 << 20;
/// Bytes of a job: a helper serves no other rank meanwhile.
const JOB: usize = 1 << 20;
/// Bytes of a piece; less in the middle of a job, where the two meet, and one waits for the
/// other's last piece.
const PIECE: usize = 128 << 10;
const SMALL_PIECE: usize = 64 << 10;

/// What the helper gets; the spans follow, as the origin sees them.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Offer {
    /// Which of the origin's places it has.
    place: u32,
    job: u32,
    /// Whether the origin writes.
    write: u64,
}

/// Spans of at most `most` bytes each; borrowed where they are no longer already.
fn split(spans: &[Span], most: usize) -> Cow<'_, [Span]> {
    if spans.iter().all(|span| span.bytes <= most) {
        return Cow::Borrowed(spans);
    }
    let each = |span: &Span| {
        let Span { local, remote, bytes } = *span;
        (0..bytes).step_by(most).map(move |at| Span {
            local: local + at,
            remote: remote + at,
            bytes: most.min(bytes - at),
        })
    };
    Cow::Owned(spans.iter().flat_map(each).collect())
}

/// Cuts a list where its spans have so many bytes, or more with the last of them: how many,
/// `least` says for a part that begins so far into the whole.
fn cut(spans: &[Span], least: impl Fn(usize) -> usize) -> impl Iterator<Item = &[Span]> {
    let (mut rest, mut at) = (spans, 0);
    std::iter::from_fn(move || {
        let end = at + least(at);
        let enough = |span: &Span| {
            at += span.bytes;
            at >= end
        };
        let n = rest.iter().position(enough).map_or(rest.len(), |last| last + 1);
        let (part, after) = rest.split_at(n);
        rest = after;
        (n > 0).then_some(part)
    })
}

/// The pieces of a job: the same at both ranks.
fn pieces(job: &[Span]) -> SmallVec<[&[Span]; JOB / SMALL_PIECE]> {
    let all: usize = job.iter().map(|span| span.bytes).sum();
    let middle = all / 8 * 3..all / 8 * 5;
    cut(job, |at| if middle.contains(&at) { SMALL_PIECE } else { PIECE }).collect()
}

impl Am {
    /// Moves bytes between this process and that of another rank of the node, with its help
    /// where that is to be had; they are there on return. Waits for no message.
    ///
    /// # Errors
    /// As for [`cma::transfer`].
    ///
    /// # Safety
    /// As for [`cma::transfer`].
    pub(crate) unsafe fn cma_transfer(
        &self,
        node: &ShmTransport,
        index: usize,
        spans: &[Span],
        direction: Direction,
    ) -> Result<()> {
        let (pid, ..) = node.process(index);
        if !self.is_worth_asking(node, index, spans) {
            // SAFETY: passed on from the caller.
            return unsafe { cma::transfer(pid, spans, direction) };
        }
        for job in cut(&split(spans, SMALL_PIECE), |_| JOB) {
            // SAFETY: as above.
            unsafe { self.share(node, (index, pid), job, direction) }?;
        }
        Ok(())
    }

    /// The process of another rank, where this one may reach its memory.
    pub(crate) fn process_within_reach(&self, target: usize) -> Option<u32> {
        let (node, index) = self.within_reach(target)?;
        Some(node.process(index).0)
    }

    /// The node's table of what its ranks expose.
    pub(crate) fn exposures(&self) -> Option<Arc<crate::memory::exposed::Table>> {
        Some(self.started()?.node.as_ref()?.exposures().clone())
    }

    /// The node, and another rank's number on it, where this one may reach its memory.
    pub(crate) fn within_reach(&self, target: usize) -> Option<(&ShmTransport, usize)> {
        let state = self.state().ok()?;
        let node = state.node.as_ref()?;
        let index = node.index_of(target)?;
        state.cma_allowed(self, index).then_some((node, index))
    }

    /// Whether a rank waits now, and the transfer is long enough for help.
    fn is_worth_asking(&self, node: &ShmTransport, index: usize, spans: &[Span]) -> bool {
        let least = if !self.config.cross_help {
            return false;
        } else if node.is_attended(index) {
            LEAST
        } else if node.rests(index) {
            LEAST_ASLEEP
        } else {
            return false;
        };
        spans.iter().map(|span| span.bytes).sum::<usize>() >= least
    }

    /// Whether a rank copies memory outside of segments together with this one, when it
    /// waits.
    pub fn may_help(&self, rank: usize) -> bool {
        self.config.cross_help && self.process_within_reach(rank).is_some()
    }

    /// How many pieces of transfers other ranks have copied for this one.
    pub fn pieces_by_others(&self) -> u64 {
        self.started().map_or(0, |state| state.places.helped.load(Ordering::Relaxed))
    }

    /// Offers a job to the other, and does what it does not take.
    ///
    /// # Safety
    /// As for [`cma::transfer`].
    unsafe fn share(
        &self,
        node: &ShmTransport,
        (index, pid): (usize, u32),
        spans: &[Span],
        direction: Direction,
    ) -> Result<()> {
        let list = bytemuck::cast_slice(spans);
        let places = &self.state()?.places;
        let place = places.take().filter(|_| list.len() <= node.eager_limit());
        let Some(place) = place else {
            // SAFETY: passed on from the caller.
            return unsafe { cma::transfer(pid, spans, direction) };
        };
        let claims = node.split_job(node.me(), place.number as usize);
        let pieces = pieces(spans);
        let job = claims.open(pieces.len() as u16); // a job has few
        let write = u64::from(direction == Direction::Write);
        let offer = Offer { place: place.number, job, write };
        let header = bytemuck::bytes_of(&offer);
        let mut done = Ok(());
        // Where there is no room, this rank goes alone: it may have locks, and does not wait.
        let head = EagerHead::message(HELP, header.len(), list.len(), 0);
        node.try_send(index, &[head.bytes(), header, list], true)?;
        while done.is_ok()
            && let Some(n) = claims.pop_front(job)
        {
            // SAFETY: as above.
            done = unsafe { cma::transfer(pid, pieces[usize::from(n)], direction) };
        }
        let taken = claims.close(job).map_or(pieces.len(), usize::from);
        if taken == pieces.len() {
            return done;
        }
        // What is left is the copy of one piece, which needs nothing of this rank.
        let what = || format!("rank {} to copy what it has begun", node.rank_of(index));
        wait::until(&Boot, Cause::Other, &what, || Ok(claims.left(job).is_some()))?;
        places.helped.fetch_add((pieces.len() - taken) as u64, Ordering::Relaxed);
        if claims.left(job) == Some(false) {
            for piece in &pieces[taken..] {
                // SAFETY: as above.
                unsafe { cma::transfer(pid, piece, direction) }?;
            }
        }
        done
    }
}

/// Takes pieces of a job that another rank offers.
pub(super) struct Help;

impl Handler for Help {
    fn arrive(&self, am: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let offer: Offer = read_pod(message.header)?;
        let origin = message.origin;
        let place = offer.place as usize;
        let node = am.state()?.node.as_ref().filter(|_| place < JOBS);
        let claims = node.and_then(|node| Some(node.split_job(node.index_of(origin)?, place)));
        let (Some(claims), Some(list)) = (claims, message.data) else {
            fail!(Internal, "rank {origin} offers a job in a wrong way: {offer:?}");
        };
        // The system may forbid this way what it allows the other way.
        let Some(pid) = am.process_within_reach(origin) else { return Ok(Accept::DONE) };
        let Some(mut n) = claims.pop_back(offer.job) else { return Ok(Accept::DONE) };
        let list = list.chunks_exact(size_of::<Span>());
        let job: Vec<Span> =
            list.map(|span| bytemuck::pod_read_unaligned::<Span>(span).turned()).collect();
        let pieces = pieces(&job);
        let direction = if offer.write != 0 { Direction::Read } else { Direction::Write };
        let mut well = true;
        while well {
            // SAFETY: the caller of the transfer vouches for both sides, and it is the same.
            well = pieces.get(usize::from(n)).is_some_and(|piece| unsafe {
                cma::transfer_checked(pid, piece, direction).is_ok()
            });
            match claims.pop_back(offer.job) {
                Some(next) => n = next,
                None => break,
            }
        }
        claims.leave(offer.job, well);
        Ok(Accept::DONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_in_order() {
        let bytes = [5, 0, 100, 1, 1, 64, 7];
        let span = |(n, &bytes)| Span { local: n * 1000, remote: n * 5000, bytes };
        let spans: Vec<Span> = bytes.iter().enumerate().map(span).collect();
        let each = |span: &Span| {
            let (local, remote) = (span.local, span.remote);
            (0..span.bytes).map(move |n| (local + n, remote + n))
        };
        let whole: Vec<_> = spans.iter().flat_map(each).collect();
        for most in [1, 3, 63, 64, 100, 1000] {
            let short = split(&spans, most);
            assert!(short.iter().all(|span| span.bytes <= most), "{most}");
            for least in [1, 2, 64, 177, 178, 1000] {
                let parts: Vec<&[Span]> = cut(&short, |_| least).collect();
                let len = |part: &&[Span]| part.iter().map(|span| span.bytes).sum::<usize>();
                let (last, others) = parts.split_last().unwrap();
                let fits = |part| (least..least + most).contains(&len(part));
                assert!(others.iter().all(fits) && len(last) < least + most, "{most} {least}");
                let again: Vec<_> = parts.into_iter().flatten().flat_map(each).collect();
                assert_eq!(whole, again, "{most} {least}");
            }
        }
        assert_eq!(cut(&[], |_| 10).count(), 0);
    }
}
