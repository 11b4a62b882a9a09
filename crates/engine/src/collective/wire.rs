//! The communicator of the engine's own collectives. The program may send messages over a group's
//! communicator, so the engine's collectives use a private duplicate of the world communicator.
//! Each group has a tag on it, on which its members agree when they create the group: one above the
//! tags of all live groups of any member. Two more serve the creation of groups and
//! [alarms](super::alarm).

use super::alarm::{Alarm, MAKING, Notice};
use super::call::Signature;
use super::kind::Kind;
use super::message_group::{MessageGroup, Running};
use super::scope::scope;
use super::slots::Slots;
use super::transfer::REST;
use crate::mpi::Comm;
use bytemuck::Pod;
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_base::wait::{Boot, Progress};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Of a group. MPI guarantees tags up to 32767; the upper half is for second messages.
const LARGEST: u32 = REST as u32 - 3;
/// Stored alarms that no group has picked up, mostly of groups that this rank has freed.
const MOST_NOTICES: usize = 64;

#[derive(Debug)]
pub struct Wire {
    comm: Comm,
    tags: Mutex<BTreeSet<u32>>,
    notices: Mutex<VecDeque<Notice>>,
    making: OnceLock<String>,
    world: OnceLock<(Arc<Slots>, Vec<usize>)>,
    /// Key of the digests that ranks compare, the same on all ranks.
    secret: AtomicU64,
}

impl Wire {
    pub const WORLD: u32 = 1;
    const MAKING: i32 = LARGEST as i32 + 1;
    pub(super) const NOTICE: i32 = LARGEST as i32 + 2;

    /// Only the wire may use `comm`, a communicator of all ranks.
    pub fn new(comm: Comm) -> Wire {
        Wire {
            comm,
            tags: Mutex::default(),
            notices: Mutex::default(),
            making: OnceLock::new(),
            world: OnceLock::new(),
            secret: AtomicU64::new(0),
        }
    }

    /// Among all ranks, before any group. Fails with `Mismatch` if library versions differ.
    pub fn introduce<T: Pod>(&self, own: &T) -> Result<Vec<T>> {
        let ranks: Arc<[usize]> = (0..self.comm.size()).collect();
        let alarm = Alarm::new(None, 0, ranks.clone());
        let running = Running {
            progress: &Boot,
            what: &|| format!("the introduction of {} ranks", ranks.len()),
            call: scope(Kind::Start, 0, || Signature::here(Kind::AllGather)),
            alarm: &alarm,
            warns: &|| true,
        };
        self.gather(&running, 0, &ranks, own)
    }

    /// Exchanges a value among world ranks, in ascending order, by a single collective.
    fn gather<T: Pod>(
        &self,
        running: &Running<'_>,
        tag: i32,
        ranks: &[usize],
        own: &T,
    ) -> Result<Vec<T>> {
        let me = ranks.binary_search(&self.comm.rank()).unwrap_or(0);
        let circle = MessageGroup { wire: &self.comm, tag, ranks, me, number: 0, running };
        let all = circle.allgather(bytemuck::bytes_of(own), &|_| size_of::<T>())?;
        Ok(all.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect())
    }

    /// Sets the key of the digests, which rank 0 has drawn and sent in its introduction.
    pub(crate) fn set_secret(&self, secret: u64) {
        self.secret.store(secret, Ordering::Relaxed);
    }

    pub(crate) fn secret(&self) -> u64 {
        self.secret.load(Ordering::Relaxed)
    }

    /// Exchanges a value among the world ranks that create or free a group, in their order. The
    /// caller's [scope](super::scope::scope_of) contains the list of ranks or the group. Collective
    /// over the ranks. Fails with `Mismatch` if the calls differ.
    pub(crate) fn agree_on_group<T: Pod>(
        self: &Arc<Wire>,
        ranks: &[usize],
        progress: &dyn Progress,
        own: &T,
    ) -> Result<Vec<T>> {
        let me = self.comm.rank();
        // The circle must be the same on ranks that passed the list in different orders.
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        let others = sorted.iter().copied().filter(|&rank| rank != me).collect();
        let alarm = Alarm::new(Some((self.clone(), others)), MAKING, ranks.into());
        if let Some(text) = self.making.get() {
            return Err(alarm.raise(text));
        }
        let running = Running {
            progress,
            what: &|| format!("the creation or the free of a group of {} ranks", ranks.len()),
            call: Signature::here(Kind::AllGather).in_scope(self.secret()),
            alarm: &alarm,
            warns: &|| true,
        };
        let all = self.gather(&running, Wire::MAKING, &sorted, own);
        if let Some(text) = alarm.text() {
            let _ = self.making.set(text.clone());
        }
        let all = all?;
        let of = |rank: &usize| all[sorted.binary_search(rank).unwrap_or(0)];
        Ok(ranks.iter().map(of).collect())
    }

    pub(super) fn set_world(&self, slots: Arc<Slots>, ranks: Vec<usize>) {
        let _ = self.world.set((slots, ranks));
    }

    pub(super) fn whereabouts(&self, rank: usize, members: &[usize]) -> Option<String> {
        let (slots, ranks) = self.world.get()?;
        let place = ranks.iter().position(|&other| other == rank)?;
        let call = |step| slots.read_call(place, step).describe(true, members);
        let seen = slots.seen(place).load(Ordering::Acquire);
        Some(if seen != slots.has_done(place) {
            format!("rank {rank} is in {} of all ranks", call(seen))
        } else if seen == 0 {
            format!("rank {rank} has made no collective call of all ranks")
        } else {
            format!(
                "rank {rank} is in no collective call of all ranks; its last one was {}",
                call(seen)
            )
        })
    }

    /// Until its group picks the alarm up. Drops the oldest one if too many are stored.
    pub(super) fn keep_notice(&self, notice: Notice) {
        let mut notices = self.notices.lock();
        if notices.len() == MOST_NOTICES {
            notices.pop_front();
        }
        notices.push_back(notice);
    }

    pub(super) fn notice_of(&self, key: u64) -> Option<Notice> {
        let mut notices = self.notices.lock();
        let at = notices.iter().position(|notice| notice.key == key)?;
        notices.remove(at)
    }

    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    pub(crate) fn next_tag(&self) -> u32 {
        self.tags.lock().last().map_or(1, |last| last + 1)
    }

    /// Fails with `State` if there are too many groups.
    pub(crate) fn take_tag(&self, tag: u32) -> Result<()> {
        if tag > LARGEST {
            fail!(State, "{tag} groups exist, and the maximum is {LARGEST}; free some");
        }
        self.tags.lock().insert(tag);
        Ok(())
    }

    pub(crate) fn give_tag_back(&self, tag: u32) {
        self.tags.lock().remove(&tag);
    }
}
