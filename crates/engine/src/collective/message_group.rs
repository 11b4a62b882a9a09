//! Collectives by messages among an ordered set of ranks.
//!
//! A collective takes about log2(n) rounds for n ranks. The messages use a communicator that the
//! program never sees, with one tag for each group. Every receive names its source, whose messages
//! MPI keeps in order, so consecutive collectives cannot be confused.
//!
//! **Checks.** Each message has a header with the sender's call ([`super::call`]) and the number of
//! the collective in the circle. A receiver compares both with its own before it uses any byte of
//! the data ([`super::transfer`]), so a result depends only on ranks that made the same call. The
//! first exchange of every collective is with the same neighbours: each rank sends to the rank
//! before it and receives from the rank after it. If any two ranks differ, some pair of neighbours
//! differs, and one of them raises the [alarm](super::alarm), which releases the ranks that wait
//! for messages that never arrive.
//!
//! A failed message ends the job, because MPI may still use its memory.

use super::alarm::Alarm;
use super::call::{self, Call, Signature};
use super::shared_counter::{Checks, SharedCounter, reached};
use super::transfer::{GroupTransfer, Header};
use super::{Operator, Reducible, reduce};
use crate::mpi::Comm;
use portolan_base::error::{Error, Result};
use portolan_base::trace::Cause;
use portolan_base::wait::{self, Ends, Progress, Word};
use std::sync::atomic::Ordering;

pub(super) struct Running<'a> {
    pub progress: &'a dyn Progress,
    pub what: &'a dyn Fn() -> String,
    pub call: Signature,
    pub alarm: &'a Alarm,
    /// Whether the caller is the rank of its node that warns of a long wait.
    pub warns: &'a dyn Fn() -> bool,
}

impl Running<'_> {
    /// Waits until the counter has reached the number. Calls `check_others` at intervals, and
    /// returns its error.
    pub(super) fn wait_for(
        &self,
        counter: SharedCounter<'_>,
        what: &dyn Fn() -> String,
        number: u32,
        check_others: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let ends = if counter.crowded { Ends::Meeting } else { Ends::Woken };
        let mut checks = Checks::default();
        loop {
            let now = counter.number.load(Ordering::Acquire);
            if reached(now, number) {
                return Ok(());
            }
            let word = Word {
                word: counter.number,
                value: now,
                sleepers: Some(counter.sleepers),
                ends,
                warns: self.warns,
            };
            wait::on_word(self.progress, Cause::Collective, what, word, || {
                if counter.number.load(Ordering::Acquire) != now {
                    return Ok(true);
                }
                if checks.due() {
                    check_others()?;
                }
                Ok(false)
            })?;
        }
    }
}

pub(super) struct MessageGroup<'a> {
    pub wire: &'a Comm,
    pub tag: i32,
    pub ranks: &'a [usize],
    pub me: usize,
    pub number: u32,
    pub running: &'a Running<'a>,
}

impl MessageGroup<'_> {
    fn size(&self) -> usize {
        self.ranks.len()
    }

    fn start<'b>(
        &self,
        send: Option<(&[u8], usize)>,
        receive: Option<(&'b mut [u8], usize)>,
    ) -> GroupTransfer<'b> {
        GroupTransfer::start(
            (self.wire, self.tag),
            Header::new(self.number, self.running.call),
            send.map(|(data, to)| (data, self.ranks[to])),
            receive.map(|(data, from)| (data, self.ranks[from])),
        )
    }

    fn step(&self, transfer: &mut GroupTransfer<'_>) -> Result<bool> {
        transfer.step((self.wire, self.tag), |header, call, from| self.check(header, call, from))
    }

    #[inline]
    fn pairs(&self, theirs: &Header) -> bool {
        theirs.number == self.number && theirs.signature == self.running.call
    }

    /// Fails with `Mismatch` if the rank `from` made a different call.
    #[inline]
    fn check(&self, theirs: &Header, call: &dyn Fn() -> Call, from: usize) -> Result<()> {
        if self.pairs(theirs) {
            return Ok(());
        }
        Err(self.disagree(theirs, call(), from))
    }

    #[cold]
    fn disagree(&self, theirs: &Header, call: Call, from: usize) -> Error {
        let (me, own) = (self.ranks[self.me], self.running.call);
        let mut calls = [(vec![me], Call::here(own)), (vec![from], call)];
        calls.sort_by_key(|(ranks, _)| ranks[0]);
        let mut text = call::differ(&calls, self.running.alarm.members());
        if theirs.signature == own {
            let (mine, theirs) = (self.number, theirs.number);
            text.push_str(&format!(
                " (for rank {me} it is the exchange number {mine} of the group, for rank {from} \
                 number {theirs}: one of them has made a collective call that the other has not)"
            ));
        }
        self.running.alarm.raise(&text)
    }

    fn finish(
        &self,
        mut transfer: GroupTransfer<'_>,
        beside: Option<&mut GroupTransfer<'_>>,
    ) -> Result<()> {
        let from = transfer.source();
        let what = || match from {
            Some(rank) => format!("{}: a message of rank {rank}", (self.running.what)()),
            None => format!("{}: a message to leave", (self.running.what)()),
        };
        let (mut beside, mut checks) = (beside, Checks::default());
        wait::until(self.running.progress, Cause::Collective, &what, || {
            if let Some(beside) = beside.as_deref_mut() {
                self.step(beside)?;
            }
            let arrived = transfer.step((self.wire, self.tag), |header, call, from| {
                // The neighbour's message may be an earlier one of the same rank: it is compared
                // first, because the report names the first calls that differ. MPI may complete the
                // later message first, but the earlier one is on the way.
                if !self.pairs(header)
                    && let Some(beside) = beside.as_deref_mut()
                {
                    self.step(beside)?;
                    while beside.source() == Some(from) {
                        std::hint::spin_loop();
                        self.step(beside)?;
                    }
                }
                self.check(header, call, from)
            })?;
            if arrived {
                return Ok(true);
            }
            if checks.due() {
                self.running.alarm.check_others()?;
            }
            Ok(false)
        })
    }

    fn exchange(
        &self,
        send: Option<(&[u8], usize)>,
        receive: Option<(&mut [u8], usize)>,
        beside: Option<&mut GroupTransfer<'_>>,
    ) -> Result<()> {
        let transfer = self.start(send, receive);
        self.finish(transfer, beside)
    }

    /// Starts the exchange with the neighbours, if the collective's own first exchange is another.
    fn greet(&self) -> Option<GroupTransfer<'static>> {
        let n = self.size();
        let (before, behind) = ((self.me + n - 1) % n, (self.me + 1) % n);
        (n > 1).then(|| self.start(Some((&[], before)), Some((&mut [], behind))))
    }

    /// By the dissemination algorithm.
    pub(super) fn barrier(&self) -> Result<()> {
        let (n, mut step) = (self.size(), 1);
        while step < n {
            let to = (self.me + n - step) % n;
            self.exchange(Some((&[], to)), Some((&mut [], (self.me + step) % n)), None)?;
            step *= 2;
        }
        Ok(())
    }

    /// Returns the concatenated bytes of all members. `len_of` returns a member's number of bytes.
    pub(super) fn allgather(&self, own: &[u8], len_of: &dyn Fn(usize) -> usize) -> Result<Vec<u8>> {
        let n = self.size();
        // Offsets in `all`, which starts with the caller's own bytes.
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
                None,
            )?;
            have += more;
        }
        all.rotate_left(at[(n - self.me) % n]);
        Ok(all)
    }

    /// Along a binomial tree.
    pub(super) fn broadcast(&self, data: &mut [u8], root: usize) -> Result<()> {
        let n = self.size();
        let place = (self.me + n - root) % n;
        let rank = |place: usize| (place + root) % n;
        let mut greeting = self.greet();
        let mut bit = 1;
        while bit < n && place & bit == 0 {
            bit *= 2;
        }
        if bit < n {
            self.exchange(None, Some((data, rank(place - bit))), greeting.as_mut())?;
        }
        while bit > 1 {
            bit /= 2;
            if place + bit < n {
                self.exchange(Some((data, rank(place + bit))), None, greeting.as_mut())?;
            }
        }
        greeting.map_or(Ok(()), |greeting| self.finish(greeting, None))
    }

    /// Along a binomial tree. On members other than the root, `data` is unspecified afterwards.
    pub(super) fn reduce<T: Reducible>(
        &self,
        data: &mut [T],
        operator: Operator,
        root: usize,
    ) -> Result<()> {
        let n = self.size();
        let place = (self.me + n - root) % n;
        let rank = |place: usize| (place + root) % n;
        let mut greeting = self.greet();
        let mut theirs = vec![T::zeroed(); data.len()];
        let mut bit = 1;
        while bit < n {
            if place & bit != 0 {
                let send = Some((bytemuck::cast_slice(data), rank(place - bit)));
                self.exchange(send, None, greeting.as_mut())?;
                break;
            }
            if place + bit < n {
                let room = Some((bytemuck::cast_slice_mut(&mut theirs), rank(place + bit)));
                self.exchange(None, room, greeting.as_mut())?;
                reduce::fold(data, &theirs, operator);
            }
            bit *= 2;
        }
        greeting.map_or(Ok(()), |greeting| self.finish(greeting, None))
    }

    /// By recursive doubling, combined in rank order, so all members get the same bits.
    pub(super) fn all_reduce<T: Reducible>(
        &self,
        data: &mut [T],
        operator: Operator,
    ) -> Result<()> {
        let n = self.size();
        // With two members the first exchange is between the neighbours anyway.
        let mut greeting = if n > 2 { self.greet() } else { None };
        let pairs = 1 << n.ilog2();
        // The first `2 * double` members form pairs, each acting as one member.
        let double = n - pairs;
        let mut theirs = vec![T::zeroed(); data.len()];
        let second = self.me < 2 * double && self.me % 2 == 1;
        if second {
            let other = self.me - 1;
            self.exchange(Some((bytemuck::cast_slice(data), other)), None, greeting.as_mut())?;
            let room = Some((bytemuck::cast_slice_mut(data), other));
            self.exchange(None, room, greeting.as_mut())?;
        } else {
            if self.me < 2 * double {
                let room = Some((bytemuck::cast_slice_mut(&mut theirs), self.me + 1));
                self.exchange(None, room, greeting.as_mut())?;
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
                    greeting.as_mut(),
                )?;
                if other < self.me {
                    reduce::fold(&mut theirs, data, operator);
                    data.copy_from_slice(&theirs);
                } else {
                    reduce::fold(data, &theirs, operator);
                }
                bit *= 2;
            }
            if self.me < 2 * double {
                let send = Some((bytemuck::cast_slice(data), self.me + 1));
                self.exchange(send, None, greeting.as_mut())?;
            }
        }
        greeting.map_or(Ok(()), |greeting| self.finish(greeting, None))
    }
}
