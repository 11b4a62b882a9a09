//! Copies between processes with the help of the memory's owner.
//!
//! The kernel copies memory of another process at about half the speed of a plain copy, because it
//! looks up each page. An owner that waits has time to help. So this rank offers it a long transfer
//! as a job of several parts ([`SplitJob`](super::work_split::SplitJob)). This rank takes parts
//! from the front. The owner takes parts from the back and copies the same bytes from its side. If
//! it does not help in time, this rank copies all parts.
//!
//! Invariants: a transfer is complete on return. This rank does not wait for an owner that has not
//! begun to help. A helper accesses the addresses of another rank only through the kernel, which
//! checks them.

use super::Am;
use super::shm_transport::ShmTransport;
use super::state::AmState;
use super::wire::{RecordHead, RecordKind};
use super::work_split::JOBS;
use crate::memory::runs::{Direction, Span, split};
use crate::path::cma;
use portolan_base::error::{Result, fail};
use portolan_base::trace::{Cause, Served};
use portolan_base::wait::{self, Boot};
use smallvec::SmallVec;
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes worth offering to a rank that polls, and to one that must be woken: help takes time.
const LEAST: usize = 192 << 10;
const LEAST_ASLEEP: usize = 1 << 20;
/// Bytes of a job, limited because a helper serves no other rank meanwhile.
const JOB: usize = 1 << 20;
/// Bytes of a part. In the middle of a job parts have `SMALL_BLOCK` bytes: the two ranks meet
/// there, and one waits for the other's last part.
const PIECE: usize = 128 << 10;
const SMALL_BLOCK: usize = 64 << 10;

/// Partitions spans. A part at byte offset `at` has `least(at)` bytes or more, except the last.
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

fn chunks(job: &[Span]) -> SmallVec<[&[Span]; JOB / SMALL_BLOCK]> {
    let all: usize = job.iter().map(|span| span.bytes).sum();
    let middle = all / 8 * 3..all / 8 * 5;
    cut(job, |at| if middle.contains(&at) { SMALL_BLOCK } else { PIECE }).collect()
}

impl Am {
    /// Copies bytes between this process and another one on the node, which helps with long
    /// transfers while it waits. Complete on return, without a wait for messages. Fails as
    /// [`cma::transfer`].
    ///
    /// # Safety
    /// See [`cma::transfer`].
    pub(crate) unsafe fn cma_transfer(
        &self,
        node: &ShmTransport,
        index: usize,
        spans: &[Span],
        direction: Direction,
    ) -> Result<()> {
        let (pid, ..) = node.process(index);
        if !self.is_worth_asking(node, index, spans) {
            // SAFETY: the caller upholds the contract of `cma::transfer`.
            return unsafe { cma::transfer(pid, spans, direction) };
        }
        for job in cut(&split(spans, SMALL_BLOCK), |_| JOB) {
            // SAFETY: the job is a part of the caller's spans.
            unsafe { self.share(node, (index, pid), job, direction) }?;
        }
        Ok(())
    }

    pub fn process_within_reach(&self, target: usize) -> Option<u32> {
        let (node, index) = self.within_reach(target)?;
        Some(node.process(index).0)
    }

    pub fn registrations(&self) -> Option<Arc<crate::memory::registered::Table>> {
        Some(self.started()?.node.as_ref()?.registrations().clone())
    }

    /// Returns the node index of `target` if its memory is accessible.
    pub(crate) fn within_reach(&self, target: usize) -> Option<(&ShmTransport, usize)> {
        let state = self.started()?;
        let (node, index) = state.on_node(target)?;
        state.cma_allowed(self, index).then_some((node, index))
    }

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

    /// Returns whether `rank`, while it waits, helps to copy memory outside of segments.
    pub fn may_help(&self, rank: usize) -> bool {
        self.config.cross_help && self.process_within_reach(rank).is_some()
    }

    pub fn pieces_by_others(&self) -> u64 {
        self.started().map_or(0, |state| state.helped.load(Ordering::Relaxed))
    }

    /// Offers a job to the other rank, and copies the parts that the other does not take.
    ///
    /// # Safety
    /// See [`cma::transfer`].
    unsafe fn share(
        &self,
        node: &ShmTransport,
        (index, pid): (usize, u32),
        spans: &[Span],
        direction: Direction,
    ) -> Result<()> {
        let list = bytemuck::cast_slice(spans);
        let state = self.state()?;
        let places = state.places.iter().enumerate();
        let mut free = places.filter_map(|(n, place)| Some((n, place.try_lock()?)));
        let free = if list.len() <= node.eager_limit() { free.next() } else { None };
        let Some((place, _taken)) = free else {
            // SAFETY: the caller upholds the contract of `cma::transfer`.
            return unsafe { cma::transfer(pid, spans, direction) };
        };
        let claims = node.split_job(node.me(), place);
        let chunks = chunks(spans);
        let job = claims.open(chunks.len() as u16); // lossless: a job has fewer than 20 parts
        let mut done = Ok(());
        // If the ring is full, copy alone. The caller may hold locks, so do not wait.
        let offer = RecordHead {
            len: place as u64,
            header: job,
            token: u64::from(direction == Direction::Put),
            ..RecordHead::new(RecordKind::HelpOffer)
        };
        node.try_send(index, &[bytemuck::bytes_of(&offer), list])?;
        while done.is_ok()
            && let Some(n) = claims.pop_front(job)
        {
            // SAFETY: the part belongs to the caller's spans.
            done = unsafe { cma::transfer(pid, chunks[usize::from(n)], direction) };
        }
        let taken = claims.close(job).map_or(chunks.len(), usize::from);
        if taken == chunks.len() {
            return done;
        }
        // The helper only finishes its current part, without progress of this rank.
        let what =
            || format!("rank {} to finish the copies that it has begun", node.rank_of(index));
        wait::until(&Boot, Cause::Other, &what, || Ok(claims.left(job).is_some()))?;
        state.helped.fetch_add((chunks.len() - taken) as u64, Ordering::Relaxed);
        if claims.left(job) == Some(false) {
            for chunk in &chunks[taken..] {
                // SAFETY: the part belongs to the caller's spans.
                unsafe { cma::transfer(pid, chunk, direction) }?;
            }
        }
        done
    }
}

impl AmState {
    /// Copies parts of a job that `origin` offers.
    pub(super) fn help(
        &self,
        am: &Am,
        origin: usize,
        offer: &RecordHead,
        list: &[u8],
    ) -> Result<()> {
        let (place, job) = (offer.len as usize, offer.header);
        let node = self.node.as_ref().filter(|_| place < JOBS);
        let claims = node.and_then(|node| Some(node.split_job(node.index_of(origin)?, place)));
        let Some(claims) = claims else {
            fail!(Internal, "rank {origin} sent an invalid offer of a shared copy: {offer:?}");
        };
        // The system may permit access in only one of the two directions.
        let Some(pid) = am.process_within_reach(origin) else { return Ok(()) };
        let Some(mut n) = claims.pop_back(job) else { return Ok(()) };
        let traced = am.begin_to_serve();
        let list = list.chunks_exact(size_of::<Span>());
        let spans: Vec<Span> =
            list.map(|span| bytemuck::pod_read_unaligned::<Span>(span).turned()).collect();
        let chunks = chunks(&spans);
        let direction = if offer.token != 0 { Direction::Get } else { Direction::Put };
        let mut well = true;
        while well {
            // SAFETY: these are the spans of the origin's transfer with both sides exchanged. Its
            // caller vouches for both, and the kernel checks that the memory is mapped.
            well = chunks.get(usize::from(n)).is_some_and(|chunk| unsafe {
                cma::transfer_checked(pid, chunk, direction).is_ok()
            });
            match claims.pop_back(job) {
                Some(next) => n = next,
                None => break,
            }
        }
        claims.leave(job, well);
        if let Some(traced) = traced {
            traced.end(Served::Handler, Some(origin), size_of_val(&spans[..]), None);
        }
        Ok(())
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
