//! Calls for bindings to languages without borrows, to languages whose signals end calls, and to
//! languages whose lines appear in reports.

#[cfg(feature = "array")]
use crate::array::{Access, DistArray};
use crate::in_call::public;
use crate::{Group, Result, Runtime, RuntimeBuilder, unfreed};
#[cfg(feature = "array")]
use {crate::Element, ndarray::Dimension};

/// Sets a function that ends waits for other ranks, for languages whose signals must end a call. A
/// call that waits in a collective, for a mutex or for a flag calls it about every 20 ms, on the
/// waiting thread. If the function returns true, the call returns a `State` error. A collective of
/// long values, whose memory MPI uses, ends the job instead. Other transfers are not interrupted. A
/// panic in the function ends the job.
///
/// # Safety
/// The other ranks do not learn of the error, and for them the call may have succeeded. A rank that
/// has received the error must not use the runtime, nor views of the memory of segments, until it
/// has ended.
pub unsafe fn interrupted(
    mut builder: RuntimeBuilder,
    interrupted: fn() -> bool,
) -> RuntimeBuilder {
    builder.hooks.interrupted = Some(interrupted);
    builder
}

/// Sets a function that returns the line of the program that makes the current call, as
/// `file:line`. Reports of waits and of races show it instead of the line in Rust, and traces
/// instead of the return address. A trace asks for the line of each call.
pub fn caller(mut builder: RuntimeBuilder, caller: fn() -> Option<String>) -> RuntimeBuilder {
    builder.hooks.caller = Some(caller);
    builder
}

/// For bindings that have given addresses to code that they cannot stop: sets a function that is
/// called when the runtime ends, also by `MPI_Finalize` of the program. If it returns true, the
/// memory of segments stays mapped until the process ends.
pub fn keeps_mapped(mut builder: RuntimeBuilder, keeps: fn() -> bool) -> RuntimeBuilder {
    builder.hooks.keeps_mapped = Some(keeps);
    builder
}

/// Finalises a runtime that other objects still borrow from, as [`Runtime::finalize`] does. For a
/// language without borrows, whose binding keeps the runtime in a static. Collective over all
/// ranks.
///
/// # Errors
/// Fails as [`Runtime::finalize`] does.
///
/// # Safety
/// After this call, even if it fails, the caller must use neither this runtime nor any object that
/// borrows from it, and must forget these objects ([`std::mem::forget`]) instead of dropping them.
/// Their memory is unmapped, unless [`keeps_mapped`] prevents it.
#[track_caller]
pub unsafe fn finalize_borrowed(runtime: &'static Runtime) -> Result<()> {
    unfreed::forget();
    public("Runtime::finalize", || runtime.end())
}

/// Compares the lists of ranks that [`Group::subgroup`] gets, without creating a group, for bindings
/// that keep the groups of known ranks. Collective over `ranks`. Returns whether this rank is one of
/// them.
///
/// # Errors
/// Fails as [`Group::subgroup`] does.
#[track_caller]
pub fn agree_on_ranks(group: &Group<'_>, ranks: &[usize]) -> Result<bool> {
    public("Group::subgroup", || group.engine().agree_on_ranks(group.inner(), ranks))
}

/// Returns the ranks of the group that [`Group::split`] creates for the caller. Collective.
///
/// # Errors
/// Fails as [`Group::split`] does.
#[track_caller]
pub fn ranks_of_color(
    group: &Group<'_>,
    color: Option<usize>,
    key: usize,
) -> Result<Option<Vec<usize>>> {
    public("Group::split", || group.ranks_of_color(color, key))
}

/// Returns the access that was dropped without being released, or `None` if no access is going on.
/// For a caller that cannot store an [`Access`] beside its array: it drops the access between its
/// calls and resumes it here. Not collective.
#[cfg(feature = "array")]
pub fn resume<'a, 'rt, T: Element, D: Dimension>(
    array: &'a mut DistArray<'rt, T, D>,
) -> Option<Access<'a, 'rt, T, D>> {
    array.resume()
}
