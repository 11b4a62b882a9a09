//! The communicator of the groups' own messages.
//!
//! The host program may have the handle of a group's communicator, and send over it what it
//! likes. So messages of the engine's collectives travel over a duplicate of the world's that is
//! handed to nobody. Each group has a tag on it, which its members agree on when they make
//! it: one above all that live groups of any member have.

use super::circle::Circle;
use crate::error::{Result, fail};
use crate::mpi::Comm;
use crate::wait::Boot;
use bytemuck::Pod;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// The least that MPI promises as its largest tag.
const LARGEST: u32 = 32767;

/// The communicator, and the tags of this rank's groups.
#[derive(Debug)]
pub(crate) struct Wire {
    comm: Comm,
    tags: Mutex<BTreeSet<u32>>,
}

impl Wire {
    /// Over a communicator of the world's ranks that nobody else uses.
    pub(crate) fn new(comm: Comm) -> Wire {
        Wire { comm, tags: Mutex::default() }
    }

    /// What every rank of the world tells, in their order; before there are groups. Collective.
    pub(crate) fn introduce<T: Pod>(&self, own: &T) -> Vec<T> {
        let ranks: Vec<usize> = (0..self.comm.size()).collect();
        let circle = Circle {
            wire: &self.comm,
            tag: 0,
            ranks: &ranks,
            me: self.comm.rank(),
            progress: &Boot,
            what: &|| format!("the introduction of {} ranks", ranks.len()),
        };
        let all = circle.allgather(bytemuck::bytes_of(own), &|_| size_of::<T>());
        all.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
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
