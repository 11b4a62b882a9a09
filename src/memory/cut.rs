//! What the ranks tell each other when they allocate ([`super::allocation`]), and what follows
//! from it: the same on all ranks, for all look at the same.

use super::segment::rounded;
use super::slab;
use crate::error::{Error, ErrorKind, Result, fail};
use crate::group::Group;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What a rank sends to the others about its stretch.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Cut {
    /// Bytes of all segments; the exact length where it is one.
    pub asked: u64,
    /// Slab number in the group, [`NEED`], [`FAILED`] or [`REFUSED`].
    pub slab: u64,
    /// Offset in the slice. Bytes free, where there is no stretch; the code of the error's class, where
    /// the rank's arguments were bad.
    pub place: u64,
    /// Length of the rank's slice, should there be a new slab.
    pub capacity: u64,
    /// Of the lengths of all segments; the length where it is one.
    pub digest: u64,
    /// The file that a rank offers, if it is its node's leader and needs a slab.
    pub inode: u64,
    pub device: u32,
    pub pid: u32,
    pub fd: u32,
    /// How many segments; 24 bits, and a bit that says that the rank is its node's leader.
    pub count: u32,
}

pub(super) const NEED: u64 = u64::MAX;
pub(super) const FAILED: u64 = u64::MAX - 1;
/// The rank's arguments were bad.
pub(super) const REFUSED: u64 = u64::MAX - 2;

pub(super) const LEADS: u32 = 1 << 31;
/// Most segments that are allocated together.
pub(super) const MOST: usize = 1 << 24;

/// What a rank sends to the others about its slice of a new slab.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Made {
    /// 0, [`FAILED`] for want of memory, or [`NEED`] where the node's file cannot be mapped.
    pub verdict: u64,
    pub base: u64,
    /// Of the stretch, where the rank needed one.
    pub offset: u64,
    /// Bytes free, where memory is wanting.
    pub free: u64,
}

impl Cut {
    pub(super) fn count(&self) -> usize {
        (self.count & !LEADS) as usize
    }

    /// Whether two ranks have cut the same bytes of their slices, for segments of the same lengths.
    fn is_like(&self, other: &Cut) -> bool {
        (self.slab, self.place, self.asked) == (other.slab, other.place, other.asked)
            && self.asks_like(other)
    }

    fn asks_like(&self, other: &Cut) -> bool {
        self.digest == other.digest
    }
}

/// What the ranks have told, after one look at each.
#[derive(Default)]
pub(super) struct Survey {
    /// The first rank whose arguments are bad, that has no memory, and that asks for another
    /// number of segments than rank 0.
    refused: Option<usize>,
    failed: Option<usize>,
    other_count: Option<usize>,
    /// A rank needs a new slab, and the leader of a node offers no file for it.
    pub need: bool,
    pub no_file: bool,
    /// All have cut alike, or ask for the same lengths at least.
    pub alike: bool,
    pub same_lengths: bool,
}

impl Survey {
    pub(super) fn of(all: &[Cut]) -> Survey {
        let mut survey = Survey { alike: true, same_lengths: true, ..Survey::default() };
        for (rank, cut) in all.iter().enumerate() {
            match cut.slab {
                REFUSED => survey.refused = survey.refused.or(Some(rank)),
                FAILED => survey.failed = survey.failed.or(Some(rank)),
                NEED => survey.need = true,
                _ => {}
            }
            if cut.count() != all[0].count() {
                survey.other_count = survey.other_count.or(Some(rank));
            }
            survey.no_file |= cut.count & LEADS != 0 && cut.pid == 0;
            survey.alike &= cut.is_like(&all[0]);
            survey.same_lengths &= cut.asks_like(&all[0]);
        }
        survey
    }

    /// # Errors
    /// That of the first rank that has told one, the same on all ranks.
    pub(super) fn check(&self, group: &Group, all: &[Cut]) -> Result<()> {
        let world = |rank: usize| group.members()[rank];
        if let Some(rank) = self.refused {
            let kind = ErrorKind::from_code(all[rank].place as i32);
            let world = world(rank);
            let text = format!("rank {world} gave bad arguments; nothing was allocated");
            return Err(Error::new(kind, text));
        }
        if let Some(rank) = self.failed {
            return Err(no_memory(world(rank), &all[rank], all[rank].asked));
        }
        if let Some(rank) = self.other_count {
            fail!(
                Argument,
                "rank {} asks for {} segments at once and rank {} for {}; nothing was allocated",
                world(0),
                all[0].count(),
                world(rank),
                all[rank].count()
            );
        }
        Ok(())
    }
}

/// Bytes of a stretch that holds segments of these lengths.
pub(super) fn stretch_bytes(lens: &[usize]) -> usize {
    let most = usize::MAX - slab::ALIGN;
    lens.iter().fold(0, |sum, &len| sum.saturating_add(rounded(len.min(most))).min(most))
}

pub(super) fn digest(lens: &[usize]) -> u64 {
    if let [len] = lens {
        return *len as u64;
    }
    let mut hasher = DefaultHasher::new();
    lens.hash(&mut hasher);
    hasher.finish()
}

pub(super) fn no_memory(world: usize, cut: &Cut, needed: u64) -> Error {
    let limit = match crate::process::longest_file() {
        Some(bytes) => format!(", and a file has at most {bytes} bytes here (ulimit -f)"),
        None => String::new(),
    };
    Error::new(
        ErrorKind::Memory,
        format!(
            "rank {world} asked for {} bytes ({needed} on its node), but only {} are free in \
             shared memory{}; nothing was allocated",
            cut.asked, cut.place, limit
        ),
    )
}

pub(super) fn refused(error: &Error) -> Cut {
    let place = error.kind().code() as u64;
    Cut { slab: REFUSED, place, ..bytemuck::Zeroable::zeroed() }
}
