//! Collectives by messages among an ordered set of ranks.
//!
//! They take about as many rounds as the number of ranks has binary digits, whatever MPI is below,
//! and wait in the engine's way: a rank that waits for a message serves others, and sleeps
//! when it takes long. They travel on a communicator that the host program never sees, with one
//! tag for each group; every receive names its source, and MPI keeps the order of messages of a
//! source, so those of consecutive collectives cannot be confused.
//!
//! A message that fails half way ends the job: MPI may still use the memory that it names.

use super::{Element, Operator, reduce};
use crate::error::Result;
use crate::mpi::{Comm, p2p};
use crate::trace::Cause;
use crate::wait::{self, Progress};

/// Ranks that exchange messages, as one of them sees it.
pub(super) struct Circle<'a, P: Progress + ?Sized> {
    pub wire: &'a Comm,
    pub tag: i32,
    /// Their ranks in `wire`.
    pub ranks: &'a [usize],
    /// The caller's place among them.
    pub me: usize,
    pub progress: &'a P,
    /// The collective, for reports.
    pub what: &'a dyn Fn() -> String,
}

fn must<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| {
        log::error!("a message of a collective failed: {error}");
        crate::process::end_job(error.kind().code())
    })
}

impl<P: Progress + ?Sized> Circle<'_, P> {
    fn size(&self) -> usize {
        self.ranks.len()
    }

    /// Sends bytes to one place and receives bytes from another.
    fn exchange(&self, send: Option<(&[u8], usize)>, receive: Option<(&mut [u8], usize)>) {
        let from = receive.as_ref().map(|(_, from)| self.ranks[*from]);
        // SAFETY: both buffers are borrowed until the requests are complete, below.
        let coming = receive.map(|(data, from)| unsafe {
            let from = Some(self.ranks[from]);
            must(p2p::irecv(self.wire, data.as_mut_ptr(), data.len(), from, self.tag))
        });
        // SAFETY: as above.
        let going = send.map(|(data, to)| unsafe {
            must(p2p::isend(self.wire, data.as_ptr(), data.len(), self.ranks[to], self.tag))
        });
        let what = || match from {
            Some(rank) => format!("{}: a message of rank {rank}", (self.what)()),
            None => format!("{}: a message to leave", (self.what)()),
        };
        let mut requests = [coming, going];
        must(wait::until(self.progress, Cause::Collective, &what, || {
            for request in requests.iter_mut().flatten() {
                if !request.test()? {
                    return Ok(false);
                }
            }
            Ok(true)
        }));
    }

    /// Waits until all have called: by dissemination.
    pub(super) fn barrier(&self) {
        let (n, mut step) = (self.size(), 1);
        while step < n {
            let mut token = [0u8];
            let to = (self.me + step) % n;
            self.exchange(Some((&[0], to)), Some((&mut token, (self.me + n - step) % n)));
            step *= 2;
        }
    }

    /// Everyone's bytes, one after the other; `len_of` says how many each has.
    pub(super) fn allgather(&self, own: &[u8], len_of: &dyn Fn(usize) -> usize) -> Vec<u8> {
        let n = self.size();
        // Beginning with the caller's own: where the bytes of each begin.
        let mut at = vec![0; n + 1];
        for i in 0..n {
            at[i + 1] = at[i] + len_of((self.me + i) % n);
        }
        let mut all = vec![0u8; at[n]];
        all[..own.len()].copy_from_slice(own);
        let mut have = 1;
        while have < n {
            let more = have.min(n - have);
            let (here, rest) = all.split_at_mut(at[have]);
            let room = at[have + more] - at[have];
            self.exchange(
                Some((&here[..at[more]], (self.me + n - have) % n)),
                Some((&mut rest[..room], (self.me + have) % n)),
            );
            have += more;
        }
        all.rotate_left(at[(n - self.me) % n]);
        all
    }

    /// Copies the root's bytes to all: along a binomial tree.
    pub(super) fn broadcast(&self, data: &mut [u8], root: usize) {
        let n = self.size();
        let place = (self.me + n - root) % n;
        let rank = |place: usize| (place + root) % n;
        let mut bit = 1;
        while bit < n && place & bit == 0 {
            bit *= 2;
        }
        if bit < n {
            self.exchange(None, Some((data, rank(place - bit))));
        }
        while bit > 1 {
            bit /= 2;
            if place + bit < n {
                self.exchange(Some((data, rank(place + bit))), None);
            }
        }
    }

    /// Combines `data` of all at the root, along a binomial tree; elsewhere it is used up.
    pub(super) fn reduce<T: Element>(&self, data: &mut [T], operator: Operator, root: usize) {
        let n = self.size();
        let place = (self.me + n - root) % n;
        let rank = |place: usize| (place + root) % n;
        let mut theirs = vec![T::zeroed(); data.len()];
        let mut bit = 1;
        while bit < n {
            if place & bit != 0 {
                return self.exchange(Some((bytemuck::cast_slice(data), rank(place - bit))), None);
            }
            if place + bit < n {
                let room = bytemuck::cast_slice_mut(&mut theirs);
                self.exchange(None, Some((room, rank(place + bit))));
                reduce::fold(data, &theirs, operator);
            }
            bit *= 2;
        }
    }

    /// Combines `data` of all, everywhere, by recursive doubling: what is exchanged is combined
    /// in the order of ranks on both sides, so that all get the same bits.
    pub(super) fn all_reduce<T: Element>(&self, data: &mut [T], operator: Operator) {
        let n = self.size();
        let pairs = 1 << n.ilog2();
        // So many ranks too many for pairs: of the first ones, two take part as one.
        let double = n - pairs;
        let mut theirs = vec![T::zeroed(); data.len()];
        if self.me < 2 * double {
            let other = self.me ^ 1;
            if self.me > other {
                self.exchange(Some((bytemuck::cast_slice(data), other)), None);
                return self.exchange(None, Some((bytemuck::cast_slice_mut(data), other)));
            }
            self.exchange(None, Some((bytemuck::cast_slice_mut(&mut theirs), other)));
            reduce::fold(data, &theirs, operator);
        }
        let place = if self.me < 2 * double { self.me / 2 } else { self.me - double };
        let mut bit = 1;
        while bit < pairs {
            let other = place ^ bit;
            let other = if other < double { 2 * other } else { other + double };
            self.exchange(
                Some((bytemuck::cast_slice(data), other)),
                Some((bytemuck::cast_slice_mut(&mut theirs), other)),
            );
            if other < self.me {
                reduce::fold(&mut theirs, data, operator);
                data.copy_from_slice(&theirs);
            } else {
                reduce::fold(data, &theirs, operator);
            }
            bit *= 2;
        }
        if self.me < 2 * double {
            self.exchange(Some((bytemuck::cast_slice(data), self.me + 1)), None);
        }
    }
}
