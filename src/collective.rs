//! Collectives: barrier, broadcast, allgather, reductions, agreements.
//!
//! | module | owns |
//! |---|---|
//! | `call` | what a collective call is, so that ranks can compare theirs |
//! | `alarm` | the report that ranks of a group have made different calls |
//! | `team` | the ranks of a group by nodes: its collectives of short values |
//! | `board` | shared memory on which the ranks of a node meet |
//! | `slots` | that memory: marks, and slots for values |
//! | `mark` | a number there on which they sleep |
//! | `circle` | collectives by messages between nodes |
//! | `transfer` | messages with the header of a call |
//! | `wire` | the communicator of these messages |
//! | `share` | files that ranks of a node have in common |
//! | `reduce` | operators, and what they are to MPI |
//!
//! The functions of this module are those over a communicator, for long values, whose
//! bandwidth counts. Each starts MPI's non-blocking form and waits in the engine's loop
//! ([`crate::wait`]), so that a rank inside a collective serves the others, and
//! gives up its core when it has to wait long. Lengths beyond what one MPI call
//! takes are cut into pieces. [`crate::group::Group`] takes the one or the other.

use crate::error::{Error, ErrorKind, Result};
use crate::mpi::{Comm, ReduceOp, Request};
use crate::trace::Cause;
use crate::wait::{self, Progress};
use bytemuck::Pod;

mod alarm;
mod board;
mod call;
mod circle;
mod mark;
mod reduce;
mod share;
mod slots;
mod team;
mod transfer;
mod wire;
pub(crate) use call::{ElementType, Kind, scope, scope_of};
pub use reduce::{Element, Operator};
pub(crate) use share::share;
pub(crate) use team::{Sharing, Team};
pub(crate) use wire::Wire;

/// The longest piece of one MPI call, in bytes.
const PIECE: usize = 1 << 30;

/// Waits for a collective. There is no way on from one that failed half way: MPI
/// may still use the caller's memory, so the job ends.
fn finish<P: Progress + ?Sized>(comm: &Comm, progress: &P, what: &str, mut request: Request) {
    let text = || format!("{what} of {} ranks", comm.size());
    if let Err(error) = wait::until(progress, Cause::Collective, &text, || request.test()) {
        log::error!("{what} failed: {error:#}");
        crate::process::end_job(error.kind().code());
    }
}

/// Waits until all ranks have called.
pub fn barrier<P: Progress + ?Sized>(comm: &Comm, progress: &P) -> Result<()> {
    if comm.size() == 1 {
        return Ok(());
    }
    finish(comm, progress, "a barrier", comm.ibarrier()?);
    Ok(())
}

/// Copies `data` of `root` to all ranks.
pub fn broadcast<P: Progress + ?Sized>(
    comm: &Comm,
    progress: &P,
    data: &mut [u8],
    root: usize,
) -> Result<()> {
    if comm.size() == 1 {
        return Ok(());
    }
    for piece in data.chunks_mut(PIECE) {
        // SAFETY: `piece` is borrowed until the request has completed (`finish`
        // returns only then).
        let request = unsafe { comm.ibcast(piece.as_mut_ptr(), piece.len(), root) }?;
        finish(comm, progress, "a broadcast", request);
    }
    Ok(())
}

/// Every rank's `item`, in the order of ranks.
pub fn allgather<T: Pod, P: Progress + ?Sized>(
    comm: &Comm,
    progress: &P,
    item: &T,
) -> Result<Vec<T>> {
    let mut all = vec![T::zeroed(); comm.size()];
    if comm.size() == 1 {
        all[0] = *item;
        return Ok(all);
    }
    // SAFETY: both buffers live until the request has completed, see above.
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

/// Does a reduction for which the rank needs no other one, of `size`; false where it needs them.
pub(crate) fn needs_no_other<T: Element>(
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

/// Combines `data` element by element over all ranks; the result is everywhere,
/// or only at `root` (elsewhere `data` is then left as it was).
pub fn reduce<T: Element, P: Progress + ?Sized>(
    comm: &Comm,
    progress: &P,
    data: &mut [T],
    operator: Operator,
    root: Option<usize>,
) -> Result<()> {
    if needs_no_other(data, operator, root, (comm.rank(), comm.size())) {
        return Ok(());
    }
    let op: ReduceOp = T::reduce_op(operator)?;
    for piece in data.chunks_mut(PIECE / std::mem::size_of::<T>()) {
        // SAFETY: as for broadcast.
        let request = unsafe {
            comm.ireduce(piece.as_mut_ptr().cast(), piece.len(), T::DATATYPE, &op, root)
        }?;
        finish(comm, progress, "a reduction", request);
    }
    Ok(())
}

/// A rank's verdict on its part of a collective step, as it travels.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Verdict {
    /// Of the error; 0 is none.
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

    /// What others make of it.
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

/// An agreement: every rank says whether its part of a collective step went
/// well; all succeed, or all get the error of the lowest rank that failed.
pub fn agree<P: Progress + ?Sized>(comm: &Comm, progress: &P, mine: Result<()>) -> Result<()> {
    let all = allgather(comm, progress, &Verdict::of(&mine))?;
    mine?;
    all.iter().enumerate().try_for_each(|(rank, verdict)| verdict.result_of(rank))
}
