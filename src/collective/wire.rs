//! The communicator of the groups' own messages.
//!
//! The host program may have the handle of a group's communicator, and send over it what it
//! likes. So messages of the engine's collectives travel over a duplicate of the world's that is
//! handed to nobody. Each group has a tag on it, which its members agree on when they make
//! it: one above all that live groups of any member have. Two more tags are for ranks that make a
//! group, and for [alarms](super::alarm).

use super::alarm::{Alarm, Key, Notice};
use super::call::{Kind, Signature, scope};
use super::circle::{Circle, Running};
use super::slots::Slots;
use super::transfer::REST;
use crate::error::{Result, fail};
use crate::mpi::Comm;
use crate::wait::{Boot, Progress};
use bytemuck::Pod;
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// The largest tag of a group: MPI promises tags up to 32767, and half of them are for long messages.
const LARGEST: u32 = REST as u32 - 3;
/// Alarms that no group of this rank has asked for yet: of groups that it has freed, mostly.
const MOST_NOTICES: usize = 64;

/// The communicator, and the tags of this rank's groups.
#[derive(Debug)]
pub(crate) struct Wire {
    comm: Comm,
    tags: Mutex<BTreeSet<u32>>,
    notices: Mutex<VecDeque<Notice>>,
    /// Why this rank makes no more groups.
    making: OnceLock<String>,
    /// The board of all ranks of the node, and the ranks by place.
    world: OnceLock<(Arc<Slots>, Vec<usize>)>,
}

impl Wire {
    /// The tag of the group of all ranks.
    pub(crate) const WORLD: u32 = 1;
    /// The tag of ranks that make a group.
    const MAKING: i32 = LARGEST as i32 + 1;
    /// The tag of alarms.
    pub(super) const NOTICE: i32 = LARGEST as i32 + 2;

    /// Over a communicator of the world's ranks that nobody else uses.
    pub(crate) fn new(comm: Comm) -> Wire {
        Wire {
            comm,
            tags: Mutex::default(),
            notices: Mutex::default(),
            making: OnceLock::new(),
            world: OnceLock::new(),
        }
    }

    /// What every rank of the world tells, in their order; before there are groups. Collective.
    ///
    /// # Errors
    /// `Mismatch` where another version of the library runs on some rank.
    pub(crate) fn introduce<T: Pod>(&self, own: &T) -> Result<Vec<T>> {
        let ranks: Arc<[usize]> = (0..self.comm.size()).collect();
        let alarm = Alarm::new(None, Key::Group(0), ranks.clone());
        let running = Running {
            progress: &Boot,
            what: &|| format!("the introduction of {} ranks", ranks.len()),
            call: scope(Kind::Start, 0, || Signature::here(Kind::AllGather)),
            alarm: &alarm,
            warns: &|| true,
        };
        let circle = Circle {
            wire: &self.comm,
            tag: 0,
            ranks: &ranks,
            me: self.comm.rank(),
            number: 0,
            running: &running,
        };
        let all = circle.allgather(bytemuck::bytes_of(own), &|_| size_of::<T>())?;
        Ok(all.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect())
    }

    /// What each of the ranks that make a group gives the others, in the order of `ranks`, which are
    /// the world's. The caller's [scope](super::call::scope_of) has the list of ranks. Collective over
    /// the ranks.
    ///
    /// # Errors
    /// `Mismatch` where the lists differ.
    pub(crate) fn agree_on_group<T: Pod, P: Progress + ?Sized>(
        self: &Arc<Wire>,
        ranks: &[usize],
        progress: &P,
        own: &T,
    ) -> Result<Vec<T>> {
        let me = self.comm.rank();
        // In an order that ranks share who gave the same ones in different orders.
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        let others = sorted.iter().copied().filter(|&rank| rank != me).collect();
        let alarm = Alarm::new(Some((self.clone(), others)), Key::Making, ranks.into());
        if let Some(text) = self.making.get() {
            return Err(alarm.raise(text));
        }
        let running = Running {
            progress,
            what: &|| format!("the creation of a group of {} ranks", ranks.len()),
            call: Signature::here(Kind::AllGather),
            alarm: &alarm,
            warns: &|| true,
        };
        let circle = Circle {
            wire: &self.comm,
            tag: Wire::MAKING,
            ranks: &sorted,
            me: sorted.binary_search(&me).unwrap_or(0),
            number: 0,
            running: &running,
        };
        let all = circle.allgather(bytemuck::bytes_of(own), &|_| size_of::<T>());
        if let Some(text) = alarm.text() {
            let _ = self.making.set(text.clone());
        }
        let all = all?;
        let of = |rank: &usize| {
            let at = sorted.binary_search(rank).unwrap_or(0) * size_of::<T>();
            bytemuck::pod_read_unaligned(&all[at..at + size_of::<T>()])
        };
        Ok(ranks.iter().map(of).collect())
    }

    /// The board on which all ranks of the node meet.
    pub(super) fn set_world(&self, slots: Arc<Slots>, ranks: Vec<usize>) {
        let _ = self.world.set((slots, ranks));
    }

    /// What is known of a rank of the node that others miss, for reports.
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

    /// Keeps an alarm for the group that it is of.
    pub(super) fn keep_notice(&self, notice: Notice) {
        let mut notices = self.notices.lock();
        if notices.len() == MOST_NOTICES {
            notices.pop_front();
        }
        notices.push_back(notice);
    }

    /// Takes an alarm out.
    pub(super) fn notice_of(&self, of: impl FnMut(&Notice) -> bool) -> Option<Notice> {
        let mut notices = self.notices.lock();
        let at = notices.iter().position(of)?;
        notices.remove(at)
    }

    pub(crate) fn comm(&self) -> &Comm {
        &self.comm
    }

    /// The lowest tag above those of all live groups of this rank.
    pub(crate) fn next_tag(&self) -> u32 {
        self.tags.lock().last().map_or(1, |last| last + 1)
    }

    /// A group of this rank has the tag from now on.
    ///
    /// # Errors
    /// `State` where there are too many groups.
    pub(crate) fn take_tag(&self, tag: u32) -> Result<()> {
        if tag > LARGEST {
            fail!(State, "there are {tag} groups, and {LARGEST} may be; free some");
        }
        self.tags.lock().insert(tag);
        Ok(())
    }

    /// The group is gone.
    pub(crate) fn give_tag_back(&self, tag: u32) {
        self.tags.lock().remove(&tag);
    }
}
