//! Owned communicators.

use super::call::{call, count, portolan_shim_comm_null};
use super::{Request, p2p};
use mpi::ffi;
use portolan_base::error::{Result, fail};
use portolan_base::thread::blocked::InMpi;
use std::mem::MaybeUninit;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

pub type CommHandle = ffi::MPI_Comm;

/// [`Comm::free`] frees the communicator. Dropping it does not, because freeing is collective.
#[derive(Debug)]
pub struct Comm {
    raw: ffi::MPI_Comm,
    rank: usize,
    size: usize,
    freed: AtomicBool,
}

// SAFETY: valid in the whole process; shared only at a thread level that allows this.
unsafe impl Send for Comm {}
// SAFETY: a communicator is shared between threads only at a thread level that allows this.
unsafe impl Sync for Comm {}

impl Comm {
    fn adopt(raw: ffi::MPI_Comm) -> Result<Comm> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: `raw` is a live communicator.
        unsafe {
            call!(MPI_Comm_set_errhandler(raw, ffi::RSMPI_ERRORS_RETURN))?;
            call!(MPI_Comm_rank(raw, &mut rank))?;
            call!(MPI_Comm_size(raw, &mut size))?;
        }
        let freed = AtomicBool::new(false);
        Ok(Comm { raw, rank: rank as usize, size: size as usize, freed })
    }

    pub fn world_handle() -> CommHandle {
        // SAFETY: `RSMPI_COMM_WORLD` is a constant.
        unsafe { ffi::RSMPI_COMM_WORLD }
    }

    /// # Safety
    /// `comm` must be live.
    pub unsafe fn size_of(comm: CommHandle) -> Result<usize> {
        let mut size = 0;
        // SAFETY: the caller guarantees that `comm` is live.
        unsafe { call!(MPI_Comm_size(comm, &mut size)) }?;
        Ok(size as usize)
    }

    /// # Safety
    /// `comm` must be live.
    pub unsafe fn place_in(comm: CommHandle) -> Result<(usize, usize)> {
        let mut rank = 0;
        // SAFETY: the caller guarantees that `comm` is live.
        unsafe { call!(MPI_Comm_rank(comm, &mut rank)) }?;
        // SAFETY: the caller guarantees that `comm` is live.
        Ok((rank as usize, unsafe { Comm::size_of(comm) }?))
    }

    /// Returns whether both have the same ranks in the same order. Local.
    ///
    /// # Safety
    /// `other` must be live.
    pub unsafe fn has_ranks_of(&self, other: CommHandle) -> Result<bool> {
        // SAFETY: the caller guarantees that `other` is live.
        let (size, theirs) = unsafe { (Comm::size_of(other)?, self.ranks_in(other)?) };
        if self.size != size {
            return Ok(false);
        }
        Ok(theirs.iter().enumerate().all(|(mine, theirs)| *theirs == Some(mine)))
    }

    /// # Safety
    /// `comm` must be live.
    pub unsafe fn is_inter(comm: CommHandle) -> Result<bool> {
        let mut inter = 0;
        // SAFETY: the caller guarantees that `comm` is live.
        unsafe { call!(MPI_Comm_test_inter(comm, &mut inter)) }?;
        Ok(inter != 0)
    }

    pub fn null_handle() -> CommHandle {
        // SAFETY: the shim returns a constant.
        unsafe { portolan_shim_comm_null() }
    }

    /// Duplicates an intracommunicator. Collective. `wait` waits until its argument returns true.
    ///
    /// # Safety
    /// `parent` must be live.
    pub(crate) unsafe fn dup_of(
        parent: CommHandle,
        wait: impl FnOnce(&mut dyn FnMut() -> Result<bool>) -> Result<()>,
    ) -> Result<Comm> {
        // MPI may write the handle until the request completes, so it must outlive a failed wait.
        let raw = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut request = Request::null();
        // SAFETY: the caller guarantees that `parent` is live, and the leaked `raw` stays valid.
        unsafe {
            call!(MPI_Comm_idup(parent, raw.as_mut_ptr(), &mut request.raw))?;
        }
        wait(&mut || request.test())?;
        // SAFETY: the request is complete, so MPI has written the handle. The box was leaked above.
        unsafe { Comm::adopt(Box::from_raw(raw).assume_init_read()) }
    }

    /// Collective over `members` only. `tag` distinguishes concurrent creations.
    pub fn create_group(&self, members: &[usize], tag: i32) -> Result<Comm> {
        let _inside = InMpi::enter(&"MPI_Comm_create_group", None);
        let ranks: Vec<c_int> = members.iter().map(|&r| r as c_int).collect();
        let mut raw = MaybeUninit::uninit();
        // SAFETY: all handles are live, and the groups are freed before the function returns.
        unsafe {
            let mut all = MaybeUninit::uninit();
            call!(MPI_Comm_group(self.live()?, all.as_mut_ptr()))?;
            let mut all = all.assume_init();
            let mut part = MaybeUninit::uninit();
            let incl =
                call!(MPI_Group_incl(all, count(ranks.len())?, ranks.as_ptr(), part.as_mut_ptr()));
            ffi::MPI_Group_free(&mut all);
            incl?;
            let mut part = part.assume_init();
            let made = call!(MPI_Comm_create_group(self.live()?, part, tag, raw.as_mut_ptr()));
            ffi::MPI_Group_free(&mut part);
            made?;
            Comm::adopt(raw.assume_init())
        }
    }

    /// Collective, and called once, after all requests and uses. Drops messages that no rank has
    /// received, because MPICH aborts since version 4.2 if there are any.
    pub fn free(&self) -> Result<()> {
        let _inside = InMpi::enter(&"MPI_Comm_free", None);
        while let Some(message) = p2p::improbe(self, None, None)? {
            // Leaked, because the bytes of a sender that no longer calls MPI may never arrive.
            let bytes = Box::leak(vec![0u8; message.bytes].into_boxed_slice());
            // SAFETY: the bytes are leaked.
            unsafe { message.start(bytes.as_mut_ptr()) }?;
        }
        let mut raw = self.live()?;
        self.freed.store(true, Ordering::Relaxed);
        // SAFETY: the handle is live, and `freed` makes later calls of `live` fail.
        unsafe { call!(MPI_Comm_free(&mut raw)) }
    }

    /// Fails with `State` after `free`: a program may finalise MPI while objects still use it.
    #[inline]
    pub(super) fn live(&self) -> Result<ffi::MPI_Comm> {
        if self.freed.load(Ordering::Relaxed) {
            fail!(State, "the communicator was freed, as by the end of the runtime");
        }
        Ok(self.raw)
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn handle(&self) -> CommHandle {
        self.raw
    }

    /// Returns the rank in `other` of each rank of `self`, or `None` if it is not a member.
    ///
    /// # Safety
    /// `other` must be live.
    pub unsafe fn ranks_in(&self, other: CommHandle) -> Result<Vec<Option<usize>>> {
        let mine: Vec<c_int> = (0..self.size as c_int).collect();
        let mut theirs: Vec<c_int> = vec![0; self.size];
        // SAFETY: both communicators are live, both arrays have `size` elements. Frees the groups.
        unsafe {
            let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            call!(MPI_Comm_group(self.live()?, a.as_mut_ptr()))?;
            let mut a = a.assume_init();
            call!(MPI_Comm_group(other, b.as_mut_ptr()))?;
            let mut b = b.assume_init();
            let n = self.size as c_int;
            let found =
                call!(MPI_Group_translate_ranks(a, n, mine.as_ptr(), b, theirs.as_mut_ptr()));
            ffi::MPI_Group_free(&mut a);
            ffi::MPI_Group_free(&mut b);
            found?;
        }
        Ok(theirs.into_iter().map(|r| usize::try_from(r).ok()).collect())
    }
}
