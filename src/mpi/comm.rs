//! Owned communicators and their collectives.
//!
//! All collectives are started non-blocking and return a [`Request`]: the
//! engine waits for them in its own loop, which makes progress for other ranks
//! and gives up the core when nothing happens, as MPI's blocking calls do not.

use super::call::{check, count, portolan_shim_comm_null, portolan_shim_in_place};
use super::{Datatype, ReduceOp, Request};
use crate::error::{Result, fail};
use crate::trace::Cause;
use crate::wait::{self, Boot};
use crate::watchdog::{Call, Inside};
use mpi::ffi;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// The MPI handle of a communicator, in the layout of C's `MPI_Comm`.
pub(crate) type CommHandle = ffi::MPI_Comm;

/// A communicator that this crate made and frees by [`Comm::free`]. Dropping
/// it frees nothing, because freeing is collective.
#[derive(Debug)]
pub struct Comm {
    raw: ffi::MPI_Comm,
    rank: usize,
    size: usize,
    freed: AtomicBool,
}

// SAFETY: communicators are process-wide; see the module's note on threads.
unsafe impl Send for Comm {}
// SAFETY: as above.
unsafe impl Sync for Comm {}

impl Comm {
    /// Takes a handle that this crate made, and has its errors returned.
    fn adopt(raw: ffi::MPI_Comm) -> Result<Comm> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: `raw` is a live communicator.
        unsafe {
            check(
                ffi::MPI_Comm_set_errhandler(raw, ffi::RSMPI_ERRORS_RETURN),
                "MPI_Comm_set_errhandler",
            )?;
            check(ffi::MPI_Comm_rank(raw, &mut rank), "MPI_Comm_rank")?;
            check(ffi::MPI_Comm_size(raw, &mut size), "MPI_Comm_size")?;
        }
        let freed = AtomicBool::new(false);
        Ok(Comm { raw, rank: rank as usize, size: size as usize, freed })
    }

    /// `MPI_COMM_WORLD`'s handle.
    pub fn world_handle() -> CommHandle {
        // SAFETY: a constant of the bindings.
        unsafe { ffi::RSMPI_COMM_WORLD }
    }

    /// The number of ranks of a communicator of the host program.
    ///
    /// # Safety
    /// `comm` must be live.
    pub unsafe fn size_of(comm: CommHandle) -> Result<usize> {
        let mut size = 0;
        // SAFETY: the caller vouches for `comm`.
        check(unsafe { ffi::MPI_Comm_size(comm, &mut size) }, "MPI_Comm_size")?;
        Ok(size as usize)
    }

    /// The caller's rank in a communicator of the host program, and its size.
    ///
    /// # Safety
    /// `comm` must be live.
    pub unsafe fn place_in(comm: CommHandle) -> Result<(usize, usize)> {
        let mut rank = 0;
        // SAFETY: the caller vouches for `comm`.
        check(unsafe { ffi::MPI_Comm_rank(comm, &mut rank) }, "MPI_Comm_rank")?;
        // SAFETY: as above.
        Ok((rank as usize, unsafe { Comm::size_of(comm) }?))
    }

    /// Whether two communicators have the same ranks in the same order. Local.
    ///
    /// # Safety
    /// `other` must be a live communicator.
    pub unsafe fn has_ranks_of(&self, other: CommHandle) -> Result<bool> {
        // SAFETY: the caller vouches for `other`.
        let (size, theirs) = unsafe { (Comm::size_of(other)?, self.ranks_in(other)?) };
        if self.size != size {
            return Ok(false);
        }
        Ok(theirs.iter().enumerate().all(|(mine, theirs)| *theirs == Some(mine)))
    }

    /// Whether a communicator of the host program is one between two groups.
    ///
    /// # Safety
    /// `comm` must be live.
    pub unsafe fn is_inter(comm: CommHandle) -> Result<bool> {
        let mut inter = 0;
        // SAFETY: the caller vouches for `comm`.
        check(unsafe { ffi::MPI_Comm_test_inter(comm, &mut inter) }, "MPI_Comm_test_inter")?;
        Ok(inter != 0)
    }

    /// `MPI_COMM_NULL`.
    pub fn null_handle() -> CommHandle {
        // SAFETY: the shim returns a constant.
        unsafe { portolan_shim_comm_null() }
    }

    /// A duplicate of a communicator of one group. Collective; waits in the engine's way, where
    /// `MPI_Comm_dup` would keep the core from the ranks that it waits for.
    ///
    /// # Safety
    /// `parent` must be a live communicator.
    pub unsafe fn dup_of(parent: CommHandle) -> Result<Comm> {
        // MPI may write to it until the request is done, so it outlives a wait that fails.
        let raw = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut request = Request::null();
        // SAFETY: the caller vouches for `parent`; `raw` stays in its place.
        unsafe {
            check(ffi::MPI_Comm_idup(parent, raw.as_mut_ptr(), &mut request.raw), "MPI_Comm_idup")?;
        }
        wait::until(&Boot, Cause::Start, &|| "a duplicate of a communicator".into(), || {
            request.test()
        })?;
        // SAFETY: MPI has written the handle, and writes no more; the box is the one above.
        unsafe { Comm::adopt(Box::from_raw(raw).assume_init_read()) }
    }

    /// A duplicate of a communicator between two groups, made inside MPI. Collective.
    ///
    /// # Safety
    /// `parent` must be a live communicator.
    pub(super) unsafe fn dup_inter(parent: CommHandle) -> Result<Comm> {
        let _inside = Inside::enter(Call::CommDup, None);
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the caller vouches for `parent`.
        unsafe {
            check(ffi::MPI_Comm_dup(parent, raw.as_mut_ptr()), "MPI_Comm_dup")?;
            Comm::adopt(raw.assume_init())
        }
    }

    /// A duplicate. Collective.
    pub fn dup(&self) -> Result<Comm> {
        // SAFETY: the handle is live.
        unsafe { Comm::dup_of(self.live()?) }
    }

    /// A communicator of the ranks `members` (ranks of `self`, in this order).
    /// Collective over the members only. `tag` keeps concurrent creations apart.
    pub fn create_group(&self, members: &[usize], tag: i32) -> Result<Comm> {
        let _inside = Inside::enter(Call::CommCreate, None);
        let ranks: Vec<c_int> = members.iter().map(|&r| r as c_int).collect();
        let mut raw = MaybeUninit::uninit();
        // SAFETY: all handles are live; the group is freed before returning.
        unsafe {
            let mut all = MaybeUninit::uninit();
            check(ffi::MPI_Comm_group(self.live()?, all.as_mut_ptr()), "MPI_Comm_group")?;
            let mut all = all.assume_init();
            let mut part = MaybeUninit::uninit();
            let incl = check(
                ffi::MPI_Group_incl(all, count(ranks.len())?, ranks.as_ptr(), part.as_mut_ptr()),
                "MPI_Group_incl",
            );
            ffi::MPI_Group_free(&mut all);
            incl?;
            let mut part = part.assume_init();
            let made = check(
                ffi::MPI_Comm_create_group(self.live()?, part, tag, raw.as_mut_ptr()),
                "MPI_Comm_create_group",
            );
            ffi::MPI_Group_free(&mut part);
            made?;
            Comm::adopt(raw.assume_init())
        }
    }

    /// Frees the communicator. Collective, once; pending requests on it must be
    /// done, and nothing may use it afterwards.
    pub fn free(&self) -> Result<()> {
        let _inside = Inside::enter(Call::CommFree, None);
        let mut raw = self.live()?;
        self.freed.store(true, Ordering::Relaxed);
        // SAFETY: it is live, and is given to MPI no more.
        check(unsafe { ffi::MPI_Comm_free(&mut raw) }, "MPI_Comm_free")
    }

    /// The handle.
    ///
    /// # Errors
    /// `State` after it was freed: a program may finalise MPI under objects that use it.
    #[inline]
    pub(super) fn live(&self) -> Result<ffi::MPI_Comm> {
        if self.freed.load(Ordering::Relaxed) {
            fail!(State, "the communicator was freed, as by the end of the runtime");
        }
        Ok(self.raw)
    }

    /// The caller's rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The MPI handle.
    pub fn handle(&self) -> CommHandle {
        self.raw
    }

    /// The rank in `other` of each rank of `self` (`None` where not a member).
    ///
    /// # Safety
    /// `other` must be a live communicator.
    pub unsafe fn ranks_in(&self, other: CommHandle) -> Result<Vec<Option<usize>>> {
        let mine: Vec<c_int> = (0..self.size as c_int).collect();
        let mut theirs: Vec<c_int> = vec![0; self.size];
        // SAFETY: both communicators are live; the groups are freed.
        unsafe {
            let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            check(ffi::MPI_Comm_group(self.live()?, a.as_mut_ptr()), "MPI_Comm_group")?;
            let mut a = a.assume_init();
            check(ffi::MPI_Comm_group(other, b.as_mut_ptr()), "MPI_Comm_group")?;
            let mut b = b.assume_init();
            let rc = ffi::MPI_Group_translate_ranks(
                a,
                self.size as c_int,
                mine.as_ptr(),
                b,
                theirs.as_mut_ptr(),
            );
            ffi::MPI_Group_free(&mut a);
            ffi::MPI_Group_free(&mut b);
            check(rc, "MPI_Group_translate_ranks")?;
        }
        Ok(theirs.into_iter().map(|r| usize::try_from(r).ok()).collect())
    }

    /// Starts a barrier.
    pub fn ibarrier(&self) -> Result<Request> {
        let mut request = Request::null();
        // SAFETY: the handle is live.
        check(unsafe { ffi::MPI_Ibarrier(self.live()?, &mut request.raw) }, "MPI_Ibarrier")?;
        Ok(request)
    }

    /// Starts a broadcast of bytes.
    ///
    /// # Safety
    /// `data` must stay valid for `len` bytes, and not be touched, until the
    /// request has completed.
    pub unsafe fn ibcast(&self, data: *mut u8, len: usize, root: usize) -> Result<Request> {
        let mut request = Request::null();
        check(
            // SAFETY: the caller keeps `data` valid.
            unsafe {
                ffi::MPI_Ibcast(
                    data.cast(),
                    count(len)?,
                    Datatype::Byte.raw(),
                    root as c_int,
                    self.live()?,
                    &mut request.raw,
                )
            },
            "MPI_Ibcast",
        )?;
        Ok(request)
    }

    /// Starts an allgather of `len` bytes from each rank.
    ///
    /// # Safety
    /// `send` (`len` bytes) and `recv` (`len` times the size) must stay valid
    /// until the request has completed, and not overlap.
    pub unsafe fn iallgather(&self, send: *const u8, recv: *mut u8, len: usize) -> Result<Request> {
        let mut request = Request::null();
        let n = count(len)?;
        check(
            // SAFETY: the caller keeps both buffers valid.
            unsafe {
                ffi::MPI_Iallgather(
                    send.cast(),
                    n,
                    Datatype::Byte.raw(),
                    recv.cast(),
                    n,
                    Datatype::Byte.raw(),
                    self.live()?,
                    &mut request.raw,
                )
            },
            "MPI_Iallgather",
        )?;
        Ok(request)
    }

    /// Starts a reduction in place; the result is everywhere, or only at `root`.
    ///
    /// # Safety
    /// `data` must stay valid for `n` elements of `datatype`, and not be
    /// touched, until the request has completed.
    pub unsafe fn ireduce(
        &self,
        data: *mut c_void,
        n: usize,
        datatype: Datatype,
        op: &ReduceOp,
        root: Option<usize>,
    ) -> Result<Request> {
        let mut request = Request::null();
        let n = count(n)?;
        // SAFETY: the caller keeps `data` valid; MPI_IN_PLACE is passed where
        // the standard allows it (at the root of a reduce).
        unsafe {
            match root {
                None => check(
                    ffi::MPI_Iallreduce(
                        portolan_shim_in_place(),
                        data,
                        n,
                        datatype.raw(),
                        op.raw(),
                        self.live()?,
                        &mut request.raw,
                    ),
                    "MPI_Iallreduce",
                )?,
                Some(root) => {
                    let send = if root == self.rank { portolan_shim_in_place() } else { data };
                    check(
                        ffi::MPI_Ireduce(
                            send,
                            data,
                            n,
                            datatype.raw(),
                            op.raw(),
                            root as c_int,
                            self.live()?,
                            &mut request.raw,
                        ),
                        "MPI_Ireduce",
                    )?;
                }
            }
        }
        Ok(request)
    }
}
