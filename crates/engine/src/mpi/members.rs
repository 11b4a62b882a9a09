//! The ranks of the program's communicators, for traces. They are an attribute of the communicator,
//! so MPI drops them with it, and a handle that MPI uses again finds no ranks of an earlier one.

use super::call::call;
use super::comm::{Comm, CommHandle};
use mpi::ffi;
use parking_lot::Mutex;
use portolan_base::digest;
use portolan_base::error::Result;
use std::os::raw::{c_int, c_void};

/// The key of the attribute. Locked while ranks are looked up, because another thread may replace
/// them.
static KEY: Mutex<Option<c_int>> = Mutex::new(None);

#[derive(Debug)]
pub(crate) struct Members {
    /// The key of the engine's group of all ranks, which numbers the ranks.
    world: u64,
    /// 0 for all ranks in their order, otherwise a digest of the ranks.
    pub number: u64,
    /// World ranks. Empty for an intercommunicator, whose peers are in its other group.
    ranks: Vec<Option<u32>>,
}

impl Members {
    /// Passes the ranks of `comm` to `use_them`. `key` is the key of the group of `world`.
    ///
    /// # Safety
    /// `comm` must be live.
    pub(crate) unsafe fn with<R>(
        (world, key): (&Comm, u64),
        comm: CommHandle,
        use_them: impl FnOnce(&Members) -> R,
    ) -> Result<R> {
        let mut attribute = KEY.lock();
        let attribute = match *attribute {
            Some(known) => known,
            None => *attribute.insert(new_key()?),
        };
        let (mut found, mut is_set): (*mut Members, c_int) = (std::ptr::null_mut(), 0);
        // SAFETY: the caller guarantees that `comm` is live. The key is never freed.
        unsafe { call!(MPI_Comm_get_attr(comm, attribute, (&raw mut found).cast(), &mut is_set)) }?;
        // SAFETY: the attribute is a `Members` that `drop_members` has not dropped, because the
        // communicator is live and the lock prevents its replacement.
        if is_set != 0 && unsafe { (*found).world } == key {
            // SAFETY: as above.
            return Ok(use_them(unsafe { &*found }));
        }
        // SAFETY: the caller guarantees that `comm` is live.
        let members = Box::new(unsafe { Members::of(world, key, comm) }?);
        let result = use_them(&members);
        let value = Box::into_raw(members).cast();
        // SAFETY: the caller guarantees that `comm` is live, and MPI now owns the value.
        unsafe { call!(MPI_Comm_set_attr(comm, attribute, value)) }?;
        Ok(result)
    }

    /// # Safety
    /// `comm` must be live.
    unsafe fn of(world: &Comm, key: u64, comm: CommHandle) -> Result<Members> {
        // SAFETY: the caller guarantees that `comm` is live.
        let (size, is_inter) = unsafe { (Comm::size_of(comm)?, Comm::is_inter(comm)?) };
        let mut ranks = vec![None; if is_inter { 0 } else { size }];
        // SAFETY: the caller guarantees that `comm` is live.
        for (rank, place) in unsafe { world.ranks_in(comm) }?.into_iter().enumerate() {
            if let Some(member) = place.and_then(|place| ranks.get_mut(place)) {
                *member = Some(rank as u32);
            }
        }
        let in_order = |(place, rank): (usize, &Option<u32>)| *rank == Some(place as u32);
        let is_world = size == world.size() && ranks.iter().enumerate().all(in_order);
        // A short number, which takes few bytes in each event.
        let number = if is_world { 0 } else { digest::keyed(0, &ranks) >> 40 | 1 };
        Ok(Members { world: key, number, ranks })
    }

    /// The world rank of a rank of the communicator, or `None` for `MPI_PROC_NULL` and others.
    pub(crate) fn world_rank(&self, rank: c_int) -> Option<u32> {
        *self.ranks.get(usize::try_from(rank).ok()?)?
    }
}

fn new_key() -> Result<c_int> {
    let mut key = 0;
    let none = std::ptr::null_mut();
    // SAFETY: the functions match the interface, and `key` is valid.
    unsafe { call!(MPI_Comm_create_keyval(Some(keep), Some(drop_members), &mut key, none)) }?;
    Ok(key)
}

/// A duplicate of a communicator does not get the attribute.
unsafe extern "C" fn keep(
    _: CommHandle,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    is_copied: *mut c_int,
) -> c_int {
    // SAFETY: MPI passes a valid pointer.
    unsafe { *is_copied = 0 };
    ffi::MPI_SUCCESS as c_int
}

unsafe extern "C" fn drop_members(
    _: CommHandle,
    _: c_int,
    value: *mut c_void,
    _: *mut c_void,
) -> c_int {
    // SAFETY: the value is the box that `Members::with` has set, and MPI passes it once.
    drop(unsafe { Box::from_raw(value.cast::<Members>()) });
    ffi::MPI_SUCCESS as c_int
}
