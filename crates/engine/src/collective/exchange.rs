//! Scans, gathers to one rank, scatters, and exchanges between all pairs, over a communicator.
//! [`super::group::Group`] has compared the calls and checked the lengths. Elements travel as
//! blocks of bytes, so that MPI counts elements.

use super::{Kind, PIECE, Reducible, finish};
use crate::collective::Operator;
use crate::error::{Error, ErrorKind, Result, fail};
use crate::mpi::{Comm, DerivedType};
use crate::wait::Progress;
use bytemuck::Pod;
use std::os::raw::c_void;

pub(crate) fn fits(elements: usize) -> Result<()> {
    if i32::try_from(elements).is_err() {
        fail!(Argument, "{elements} elements on one rank exceed the limit of 2^31-1");
    }
    Ok(())
}

#[cold]
pub(crate) fn uneven(elements: usize, ranks: usize, part: Option<usize>) -> Error {
    let parts = match part {
        Some(part) => format!("parts of {part} elements"),
        None => "equal parts".into(),
    };
    let text = format!("{elements} elements are not {parts} for {ranks} ranks");
    Error::new(ErrorKind::Argument, text)
}

pub(crate) fn matching(elements: usize, counts: &[usize], ranks: usize) -> Result<()> {
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

pub(crate) fn scan<T: Reducible>(
    comm: &Comm,
    progress: &dyn Progress,
    kind: Kind,
    data: &mut [T],
    operator: Operator,
) -> Result<()> {
    let op = T::reduce_op(operator)?;
    let exclusive = kind == Kind::ExclusiveScan;
    for fragment in data.chunks_mut(PIECE / size_of::<T>()) {
        let (at, n) = (fragment.as_mut_ptr().cast(), fragment.len());
        // SAFETY: `fragment` is borrowed until `finish` returns, when the request has completed.
        let request = unsafe { comm.iscan(at, n, T::DATATYPE, &op, exclusive) }?;
        finish(comm, progress, "a scan", request);
    }
    if exclusive && comm.rank() == 0 {
        data.fill(T::identity(operator));
    }
    Ok(())
}

pub(crate) fn gather<T: Pod>(
    comm: &Comm,
    progress: &dyn Progress,
    data: &[T],
    root: usize,
) -> Result<Option<Vec<T>>> {
    let element = element::<T>()?;
    let here = comm.rank() == root;
    let mut all = vec![T::zeroed(); if here { data.len() * comm.size() } else { 0 }];
    let (from, to) = (source(data), destination(&mut all));
    // SAFETY: both arrays, `all` with all elements at the root, live until `finish` returns.
    let request = unsafe { comm.igather(from, to, data.len(), &element, root) }?;
    finish(comm, progress, "a gather", request);
    Ok(here.then_some(all))
}

pub(crate) fn scatter<T: Pod>(
    comm: &Comm,
    progress: &dyn Progress,
    data: &[T],
    part: &mut [T],
    root: usize,
) -> Result<()> {
    let element = element::<T>()?;
    let (from, to) = (source(data), destination(part));
    // SAFETY: both arrays, `data` with all parts at the root, live until `finish` returns.
    let request = unsafe { comm.iscatter(from, to, part.len(), &element, root) }?;
    finish(comm, progress, "a scatter", request);
    Ok(())
}

pub(crate) fn all_to_all<T: Pod>(
    comm: &Comm,
    progress: &dyn Progress,
    data: &[T],
) -> Result<Vec<T>> {
    let element = element::<T>()?;
    let mut all = vec![T::zeroed(); data.len()];
    let (from, to) = (source(data), destination(&mut all));
    // SAFETY: both arrays have all parts, and live until `finish` returns.
    let request = unsafe { comm.ialltoall(from, to, data.len() / comm.size(), &element) }?;
    finish(comm, progress, "an exchange of all ranks", request);
    Ok(all)
}

pub(crate) fn all_to_all_varied<T: Pod>(
    comm: &Comm,
    progress: &dyn Progress,
    (data, counts): (&[T], &[usize]),
    received: &[usize],
) -> Result<Vec<T>> {
    // `fits` has checked the counts and their sum.
    let layout = |counts: &[usize]| -> (Vec<i32>, Vec<i32>) {
        let mut at = 0;
        let place = |&n: &usize| {
            let begin = at;
            at += n as i32;
            (n as i32, begin)
        };
        counts.iter().map(place).unzip()
    };
    let element = element::<T>()?;
    let mut all = vec![T::zeroed(); received.iter().sum()];
    let (sends, receives) = (layout(counts), layout(received));
    let (from, to) = (source(data), destination(&mut all));
    // SAFETY: the layouts describe the arrays. All live until `finish` returns.
    let request = unsafe { comm.ialltoallv((from, &sends), (to, &receives), &element) }?;
    finish(comm, progress, "an exchange of all ranks", request);
    Ok(all)
}
