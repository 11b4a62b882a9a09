//! Messages that the ranks exchange to allocate segments ([`super::allocation`]), and the
//! conclusions from them, which are the same on all ranks.

use super::arena;
use super::segment::rounded;
use crate::collective::group::Group;
use portolan_base::error::{Error, ErrorKind, Result, fail};

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Partition {
    /// Bytes of all segments, each rounded up. The exact length if there is one.
    pub asked: u64,
    /// Number of the arena, [`NEED`], [`FAILED`] or [`REFUSED`].
    pub arena: u64,
    /// Offset of the range in the region. Without a range, the free shared memory in bytes. For
    /// invalid arguments, the code of the error's kind.
    pub place: u64,
    pub capacity: u64,
    /// Digest of the lengths. The length itself if there is one segment.
    pub digest: u64,
    /// The file that a node's leader offers for a new arena.
    pub inode: u64,
    pub device: u32,
    pub pid: u32,
    pub fd: u32,
    /// Number of segments in the low 24 bits, and [`LEADS`] on a node's leader.
    pub count: u32,
}

pub(super) const NEED: u64 = u64::MAX;
pub(super) const FAILED: u64 = u64::MAX - 1;
pub(super) const REFUSED: u64 = u64::MAX - 2;

pub(super) const LEADS: u32 = 1 << 31;
pub(super) const MOST: usize = 1 << 24;

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Made {
    /// 0, [`FAILED`] without enough memory, or [`NEED`] if the node's file cannot be mapped.
    pub verdict: u64,
    pub base: u64,
    pub offset: u64,
    /// Free shared memory in bytes, if there is not enough.
    pub free: u64,
}

impl Partition {
    pub fn count(&self) -> usize {
        (self.count & !LEADS) as usize
    }

    fn is_like(&self, other: &Partition) -> bool {
        let layout = |one: &Partition| (one.arena, one.place, one.asked, one.digest);
        layout(self) == layout(other)
    }
}

#[derive(Default)]
pub(super) struct Survey {
    /// First ranks with invalid arguments, without memory, and with another count than rank 0.
    refused: Option<usize>,
    failed: Option<usize>,
    other_count: Option<usize>,
    /// Whether a rank needs a new arena, and whether a node's leader offers no file.
    pub need: bool,
    pub no_file: bool,
    /// Whether all ranks have the same layout, and whether they request the same lengths.
    pub alike: bool,
    pub same_lengths: bool,
}

impl Survey {
    pub fn of(all: &[Partition]) -> Survey {
        let mut survey = Survey { alike: true, same_lengths: true, ..Survey::default() };
        for (rank, partition) in all.iter().enumerate() {
            match partition.arena {
                REFUSED => survey.refused = survey.refused.or(Some(rank)),
                FAILED => survey.failed = survey.failed.or(Some(rank)),
                NEED => survey.need = true,
                _ => {}
            }
            if partition.count() != all[0].count() {
                survey.other_count = survey.other_count.or(Some(rank));
            }
            survey.no_file |= partition.count & LEADS != 0 && partition.pid == 0;
            survey.alike &= partition.is_like(&all[0]);
            survey.same_lengths &= partition.digest == all[0].digest;
        }
        survey
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    pub(super) fn check(&self, group: &Group, all: &[Partition]) -> Result<()> {
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

/// Returns the length in bytes of a range that holds segments of these lengths.
pub(super) fn stretch_bytes(lens: &[usize]) -> usize {
    let most = usize::MAX - arena::ALIGN;
    lens.iter().fold(0, |sum, &len| sum.saturating_add(rounded(len.min(most))).min(most))
}

pub(super) fn digest(group: &Group, lens: &[usize]) -> u64 {
    if let [len] = lens { *len as u64 } else { group.digest(lens) }
}

pub(super) fn no_memory(world: usize, partition: &Partition, needed: u64) -> Error {
    let limit = match portolan_base::process::longest_file() {
        Some(bytes) => format!(", and the limit of a file's size is {bytes} bytes (ulimit -f)"),
        None => String::new(),
    };
    Error::new(
        ErrorKind::Memory,
        format!(
            "rank {world} asked for {} bytes ({needed} on its node), but only {} are free in the \
             node's shared memory{}; nothing was allocated; make the memory file system of \
             PORTOLAN_SHM_DIR (/dev/shm if it is not set) larger, or name a larger one",
            partition.asked, partition.place, limit
        ),
    )
}

pub(super) fn refused(error: &Error) -> Partition {
    let place = error.kind().code() as u64;
    Partition { arena: REFUSED, place, ..bytemuck::Zeroable::zeroed() }
}
