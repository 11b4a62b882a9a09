//! Scans, gathers to one rank, scatters, and exchanges between all pairs of a [`Group`]. The
//! members first compare their calls and lengths. Elements travel as blocks of bytes, so that MPI
//! counts elements.

use super::group::{Group, meet};
use super::{ANY_COUNT, ElementType, Kind, Operator, PIECE, Reducible, Signature, finish};
use crate::mpi::{Comm, DerivedType};
use bytemuck::Pod;
use portolan_base::error::{Error, ErrorKind, Result, fail};
use portolan_base::trace::Call;
use portolan_base::wait::Progress;
use std::os::raw::c_void;

fn fits(elements: usize) -> Result<()> {
    if i32::try_from(elements).is_err() {
        fail!(Argument, "{elements} elements on one rank exceed the limit of 2^31-1");
    }
    Ok(())
}

#[cold]
fn uneven(elements: usize, ranks: usize, part: Option<usize>) -> Error {
    let parts = match part {
        Some(part) => format!("parts of {part} elements"),
        None => "equal parts".into(),
    };
    let text = format!("{elements} elements are not {parts} for {ranks} ranks");
    Error::new(ErrorKind::Argument, text)
}

fn matching(elements: usize, counts: &[usize], ranks: usize) -> Result<()> {
    if counts.len() != ranks {
        fail!(Argument, "{} parts for {ranks} ranks", counts.len());
    }
    let sum = counts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
    if sum != Some(elements) {
        fail!(Argument, "the parts do not have the {elements} elements of the data");
    }
    fits(elements)
}

/// Addresses for buffers without bytes. Empty vectors can have equal addresses, which MPI refuses,
/// and for bytes the address 1, which is Open MPI's `MPI_IN_PLACE`.
static EMPTY: [u64; 2] = [0; 2];

fn source<T>(data: &[T]) -> *const c_void {
    if size_of_val(data) == 0 { (&raw const EMPTY[0]).cast() } else { data.as_ptr().cast() }
}

fn destination<T>(data: &mut [T]) -> *mut c_void {
    match size_of_val(data) {
        0 => (&raw const EMPTY[1]).cast_mut().cast(),
        _ => data.as_mut_ptr().cast(),
    }
}

fn element<T>() -> Result<DerivedType> {
    DerivedType::strided(size_of::<T>(), &[], &[])
}

/// The members have agreed that `data` has a part of equal length for each.
fn equal_parts<T: Pod>(comm: &Comm, progress: &dyn Progress, data: &[T]) -> Result<Vec<T>> {
    let element = element::<T>()?;
    let mut all = vec![T::zeroed(); data.len()];
    let (from, to) = (source(data), destination(&mut all));
    // SAFETY: both arrays have all parts, and live until `finish` returns.
    let request = unsafe { comm.ialltoall(from, to, data.len() / comm.size(), &element) }?;
    finish(comm, progress, "an exchange of all ranks", request);
    Ok(all)
}

/// Returns the lengths of consecutive parts, which [`fits`] has checked, and their offsets.
fn layout(counts: &[usize]) -> (Vec<i32>, Vec<i32>) {
    let mut at = 0;
    let place = |&n: &usize| {
        let begin = at;
        at += n as i32;
        (n as i32, begin)
    };
    counts.iter().map(place).unzip()
}

impl Group {
    /// Combines `data` of all members up to this one, in group order, and replaces it. With
    /// [`Kind::ExclusiveScan`], the own data is left out, and the first member gets the identity of
    /// the operator. All members pass the same length.
    pub fn scan<T: Reducible>(
        &self,
        progress: &dyn Progress,
        kind: Kind,
        data: &mut [T],
        operator: Operator,
    ) -> Result<()> {
        if !T::allows(operator) {
            fail!(Type, "{operator:?} is not defined for the elements");
        }
        let call = Signature::here(kind).of(ElementType::of::<T>(), data.len()).by(operator);
        meet(progress, Call::Reduce, size_of_val(data), || {
            self.live_team()?.meet(progress, call)?;
            let (comm, op) = (self.comm()?, T::reduce_op(operator)?);
            let exclusive = kind == Kind::ExclusiveScan;
            for fragment in data.chunks_mut(PIECE / size_of::<T>()) {
                let (at, n) = (fragment.as_mut_ptr().cast(), fragment.len());
                // SAFETY: `fragment` is borrowed until `finish` returns, when the request has
                // completed.
                let request = unsafe { comm.iscan(at, n, T::DATATYPE, &op, exclusive) }?;
                finish(&comm, progress, "a scan", request);
            }
            if exclusive && self.rank() == 0 {
                data.fill(T::identity(operator));
            }
            Ok(())
        })
    }

    /// Returns `None` on members other than `root`. All members pass the same length.
    pub fn gather<T: Pod>(
        &self,
        progress: &dyn Progress,
        data: &[T],
        root: usize,
    ) -> Result<Option<Vec<T>>> {
        let call = Signature::here(Kind::Gather).of(ElementType::of::<T>(), data.len());
        meet(progress, Call::Exchange, size_of_val(data), || {
            self.live_team()?.agree_in(progress, call.rooted(root), fits(data.len()))?;
            let (comm, element) = (self.comm()?, element::<T>()?);
            let here = self.rank() == root;
            let mut all = vec![T::zeroed(); if here { data.len() * self.size() } else { 0 }];
            let (from, to) = (source(data), destination(&mut all));
            // SAFETY: both arrays, `all` with all elements at the root, live until `finish` returns.
            let request = unsafe { comm.igather(from, to, data.len(), &element, root) }?;
            finish(&comm, progress, "a gather", request);
            Ok(here.then_some(all))
        })
    }

    /// Copies part `i` of the root's `data` to `part` of member `i`. All parts have the same
    /// length. Fails with `Argument` on all members if the lengths do not match.
    pub fn scatter<T: Pod>(
        &self,
        progress: &dyn Progress,
        data: &[T],
        part: &mut [T],
        root: usize,
    ) -> Result<()> {
        let call = Signature::here(Kind::Scatter).of(ElementType::of::<T>(), part.len());
        meet(progress, Call::Exchange, size_of_val(part), || {
            let mine = match part.len().checked_mul(self.size()) {
                Some(all) if self.rank() != root || all == data.len() => fits(part.len()),
                _ => Err(uneven(data.len(), self.size(), Some(part.len()))),
            };
            self.live_team()?.agree_in(progress, call.rooted(root), mine)?;
            let (comm, element) = (self.comm()?, element::<T>()?);
            let (from, to) = (source(data), destination(part));
            // SAFETY: both arrays, `data` with all parts at the root, live until `finish` returns.
            let request = unsafe { comm.iscatter(from, to, part.len(), &element, root) }?;
            finish(&comm, progress, "a scatter", request);
            Ok(())
        })
    }

    /// Sends part `i` of `data` to member `i`. Returns the parts for this member, in group order.
    /// All parts of all members have the same length. Fails with `Argument` on all members if the
    /// data is not divisible into parts.
    pub fn all_to_all<T: Pod>(&self, progress: &dyn Progress, data: &[T]) -> Result<Vec<T>> {
        let call = Signature::here(Kind::AllToAll).of(ElementType::of::<T>(), data.len());
        meet(progress, Call::Exchange, size_of_val(data), || {
            let mine = match data.len().is_multiple_of(self.size()) {
                true => fits(data.len()),
                false => Err(uneven(data.len(), self.size(), None)),
            };
            self.live_team()?.agree_in(progress, call, mine)?;
            equal_parts(&*self.comm()?, progress, data)
        })
    }

    /// Sends part `i` of `data`, which has `counts[i]` elements, to member `i`. Returns the parts
    /// for this member, in group order, and their numbers of elements. Fails with `Argument` on all
    /// members if the counts of one do not match its data, or if a member would transfer more than
    /// 2^31-1 elements.
    pub fn all_to_all_varied<T: Pod>(
        &self,
        progress: &dyn Progress,
        data: &[T],
        counts: &[usize],
    ) -> Result<(Vec<T>, Vec<usize>)> {
        let call = Signature::here(Kind::AllToAllVaried).of(ElementType::of::<T>(), ANY_COUNT);
        meet(progress, Call::Exchange, size_of_val(data), || {
            let team = self.live_team()?;
            team.agree_in(progress, call, matching(data.len(), counts, self.size()))?;
            let comm = self.comm()?;
            let received = equal_parts(&comm, progress, counts)?;
            let total = received.iter().fold(0, |sum: usize, &n| sum.saturating_add(n));
            team.agree_in(progress, call, fits(total))?;
            let element = element::<T>()?;
            let mut all = vec![T::zeroed(); total];
            let (sends, receives) = (layout(counts), layout(&received));
            let (from, to) = (source(data), destination(&mut all));
            // SAFETY: the layouts describe the arrays. All live until `finish` returns.
            let request = unsafe { comm.ialltoallv((from, &sends), (to, &receives), &element) }?;
            finish(&comm, progress, "an exchange of all ranks", request);
            Ok((all, received))
        })
    }
}
