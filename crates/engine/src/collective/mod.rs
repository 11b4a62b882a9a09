//! Collectives: barrier, broadcast, allgather, reductions, agreements. The functions of this module
//! are the collectives of other long values over a communicator. Each one starts the non-blocking
//! MPI collective and waits in the engine's loop ([`portolan_base::wait`]). Values that are too long
//! for one MPI call are split. [`group::Group`] chooses between these functions and `team`.

use crate::mpi::{Comm, CommHandle, ReduceOp, Request};
use bytemuck::Pod;
use portolan_base::error::{Error, ErrorKind, Result};
use portolan_base::trace::Cause;
use portolan_base::wait::{self, Boot, Progress};

mod alarm;
mod call;
mod exchange;
pub mod group;
mod kind;
mod message_group;
mod reduce;
mod scope;
mod shared_area;
pub(crate) mod shared_counter;
mod slots;
mod team;
mod transfer;
mod wire;
pub(crate) use call::{ANY_COUNT, Signature};
pub use call::{ElementType, MULTIPLIERS};
pub use kind::Kind;
pub use reduce::{Operator, Reducible};
pub use scope::{scope, scope_of};
pub(crate) use team::reduction;
pub use team::{Sharing, Team};
pub use wire::Wire;

/// Of the block of one MPI call, in bytes.
const PIECE: usize = 1 << 30;

/// A failure or a panic ends the job, because MPI may still use the memory.
fn finish(comm: &Comm, progress: &dyn Progress, what: &str, mut request: Request) {
    struct Waiting<'a>(&'a str);
    impl Drop for Waiting<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                log::error!("a panic in {} ends the job", self.0);
                portolan_base::process::end_job(ErrorKind::Internal.code());
            }
        }
    }
    let _waiting = Waiting(what);
    let text = || format!("{what} of {} ranks", comm.size());
    if let Err(error) = wait::until(progress, Cause::Collective, &text, || request.test()) {
        error.end_job_in(format_args!("{what} failed"));
    }
}

/// Duplicates an intracommunicator. Collective. Waits in the engine's loop, because `MPI_Comm_dup`
/// would occupy the core that the awaited ranks may need.
///
/// # Safety
/// `parent` must be live.
pub unsafe fn dup_of(parent: CommHandle) -> Result<Comm> {
    let what = || "a duplicate of a communicator".into();
    // SAFETY: the caller guarantees a live communicator.
    unsafe { Comm::dup_of(parent, |done| wait::until(&Boot, Cause::Start, &what, done)) }
}

pub fn dup(comm: &Comm) -> Result<Comm> {
    // SAFETY: the communicator is live.
    unsafe { dup_of(comm.handle()) }
}

/// All ranks pass the same length.
pub fn broadcast(comm: &Comm, progress: &dyn Progress, data: &mut [u8], root: usize) -> Result<()> {
    if comm.size() == 1 {
        return Ok(());
    }
    for fragment in data.chunks_mut(PIECE) {
        // SAFETY: `fragment` is borrowed until `finish` returns, when the request has completed.
        let request = unsafe { comm.ibcast(fragment.as_mut_ptr(), fragment.len(), root) }?;
        finish(comm, progress, "a broadcast", request);
    }
    Ok(())
}

pub fn allgather<T: Pod>(comm: &Comm, progress: &dyn Progress, item: &T) -> Result<Vec<T>> {
    let mut all = vec![T::zeroed(); comm.size()];
    if comm.size() == 1 {
        all[0] = *item;
        return Ok(all);
    }
    // SAFETY: `finish` returns when the request has completed. `item` and `all` live until then.
    let request = unsafe {
        comm.iallgather(
            bytemuck::bytes_of(item).as_ptr(),
            all.as_mut_ptr().cast(),
            std::mem::size_of::<T>(),
        )
    }?;
    finish(comm, progress, "an allgather", request);
    Ok(all)
}

/// Completes a reduction that needs no other rank: `Abs`, one rank, or no data. Else returns false.
pub(crate) fn needs_no_other<T: Reducible>(
    data: &mut [T],
    operator: Operator,
    root: Option<usize>,
    (rank, size): (usize, usize),
) -> bool {
    if operator == Operator::Abs {
        if root.is_none_or(|root| root == rank) {
            data.iter_mut().for_each(|x| *x = x.absolute());
        }
        return true;
    }
    if size == 1 {
        data.iter_mut().for_each(|x| *x = x.alone(operator));
    }
    size == 1 || data.is_empty()
}

/// All ranks pass the same length and get the result, or only `root` if given.
pub fn reduce<T: Reducible>(
    comm: &Comm,
    progress: &dyn Progress,
    data: &mut [T],
    operator: Operator,
    root: Option<usize>,
) -> Result<()> {
    if needs_no_other(data, operator, root, (comm.rank(), comm.size())) {
        return Ok(());
    }
    let op: ReduceOp = T::reduce_op(operator)?;
    for fragment in data.chunks_mut(PIECE / std::mem::size_of::<T>()) {
        // SAFETY: `fragment` is borrowed until `finish` returns, when the request has completed.
        let request = unsafe {
            comm.ireduce(fragment.as_mut_ptr().cast(), fragment.len(), T::DATATYPE, &op, root)
        }?;
        finish(comm, progress, "a reduction", request);
    }
    Ok(())
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Verdict {
    /// Code of the [`ErrorKind`], or 0 for success.
    kind: u32,
    text: [u8; 252],
}

impl Verdict {
    fn of(result: &Result<()>) -> Verdict {
        let mut verdict = Verdict { kind: 0, text: [0; 252] };
        if let Err(error) = result {
            verdict.kind = error.kind().code() as u32;
            let text = error.detail().as_bytes();
            let n = text.len().min(verdict.text.len());
            verdict.text[..n].copy_from_slice(&text[..n]);
        }
        verdict
    }

    fn result_of(&self, rank: usize) -> Result<()> {
        if self.kind == 0 {
            return Ok(());
        }
        let len = self.text.iter().position(|&b| b == 0).unwrap_or(self.text.len());
        let text = String::from_utf8_lossy(&self.text[..len]);
        let kind = ErrorKind::from_code(self.kind as i32);
        Err(Error::new(kind, format!("rank {rank} of the group failed: {text}")))
    }
}

/// See [`Team::agree`]; here for all ranks of a communicator.
pub fn agree(comm: &Comm, progress: &dyn Progress, mine: Result<()>) -> Result<()> {
    let all = allgather(comm, progress, &Verdict::of(&mine))?;
    mine?;
    all.iter().enumerate().try_for_each(|(rank, verdict)| verdict.result_of(rank))
}
