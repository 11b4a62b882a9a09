//! Vector transfers: blocks at any addresses of any places.
//!
//! All elements are checked before any byte moves. The blocks of each place are transferred
//! together and in order. Blocks that are contiguous on both sides are merged.

use super::copy;
use super::refs::{self, Direction, GasRef};
use super::{code, environment, switches};
use crate::boundary::{array, export};
use portolan_base::error::Result;
use portolan_engine::any_memory::Span;
use portolan_engine::runtime::Engine;
use std::collections::BTreeMap;
use std::os::raw::{c_int, c_void};

/// `x10_giov_ref_t`: blocks of one length.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct GiovRef {
    pub remote: *const GasRef,
    pub local: *const *mut c_void,
    pub bytes: c_int,
    pub count: c_int,
}

type ByPlace = BTreeMap<usize, Vec<Span>>;

/// Converts the elements to spans by place. Returns them with their total number of bytes.
///
/// # Safety
/// The elements and the arrays that they point to must be valid.
unsafe fn spans(engine: &Engine, list: *const GiovRef, len: c_int) -> Result<(ByPlace, usize)> {
    let n = refs::count(len, "the number of vector elements")?;
    let (mut by_place, mut total) = (ByPlace::new(), 0usize);
    // SAFETY: the caller guarantees that `list` is null or valid for `len` elements.
    let list = unsafe { array(list, n, "the array of vector elements")? };
    for element in list {
        let bytes = refs::count(element.bytes, "the number of bytes of a block")?;
        let n = refs::count(element.count, "the number of blocks")?;
        // SAFETY: the caller guarantees that the arrays of each element are null or valid.
        let (remote, local) = unsafe {
            (
                array(element.remote, n, "the array of references")?,
                array(element.local, n, "the array of local addresses")?,
            )
        };
        for (&to, &here) in remote.iter().zip(local) {
            let target = refs::rank(engine, to.place)?;
            let span = Span { local: refs::local(here, bytes)?, remote: to.address(), bytes };
            if bytes > 0 {
                add(by_place.entry(target).or_default(), span);
                total += bytes;
            }
        }
    }
    Ok((by_place, total))
}

fn add(spans: &mut Vec<Span>, span: Span) {
    if let Some(last) = spans.last_mut()
        && last.local.checked_add(last.bytes) == Some(span.local)
        && last.remote.checked_add(last.bytes) == Some(span.remote)
    {
        last.bytes += span.bytes;
    } else {
        spans.push(span);
    }
}

/// Transfers the blocks of all elements, blocking or counted on the switch `hndl`.
///
/// # Safety
/// The elements must be valid, and their local blocks must be valid for the direction, with a
/// switch until the transfer is complete.
unsafe fn vector(
    engine: &Engine,
    direction: Direction,
    list: *const GiovRef,
    len: c_int,
    hndl: Option<usize>,
) -> Result<()> {
    // SAFETY: the caller guarantees that the elements and their arrays are valid.
    let (by_place, total) = unsafe { spans(engine, list, len)? };
    let switch = hndl.map(switches::find).transpose()?;
    match (switch, by_place.len()) {
        (_, 0) => return Ok(()),
        (Some(switch), _) => {
            for (&target, spans) in &by_place {
                // SAFETY: the caller keeps the local blocks valid until the transfer is complete.
                unsafe { engine.start_anywhere(target, spans, direction, switch.counter())? };
            }
        }
        (None, 1) => {
            for (&target, spans) in &by_place {
                // SAFETY: the caller guarantees that the local blocks are valid for the call.
                unsafe { engine.move_anywhere(target, spans, direction)? };
            }
        }
        // SAFETY: the caller guarantees that the local blocks are valid for the call.
        (None, _) => unsafe {
            copy::blocking(engine, direction, |part| {
                by_place.iter().try_for_each(|(&target, spans)| part(target, spans))
            })?
        },
    }
    environment::count_transfer(direction, total);
    Ok(())
}

export! {
    /// The elements must be valid, and their local blocks must be valid for writes.
    x10_get_v(dsrc: *const GiovRef, len: c_int) -> c_int =
        // SAFETY: the caller upholds the contract of `vector`, which is the same.
        code(|engine| unsafe { vector(engine, Direction::Get, dsrc, len, None) });

    /// The contract of `x10_get_v` applies, until the transfer is complete.
    x10_get_v_nb(dsrc: *const GiovRef, len: c_int, hndl: usize) -> c_int =
        // SAFETY: the caller upholds the contract of `vector`, which is the same.
        code(|engine| unsafe { vector(engine, Direction::Get, dsrc, len, Some(hndl)) });

    /// The elements must be valid, and their local blocks must be valid for reads.
    x10_put_v(dsrc: *const GiovRef, len: c_int) -> c_int =
        // SAFETY: the caller upholds the contract of `vector`, which is the same.
        code(|engine| unsafe { vector(engine, Direction::Put, dsrc, len, None) });

    /// The contract of `x10_put_v` applies, and the blocks must not change before completion.
    x10_put_v_nb(dsrc: *const GiovRef, len: c_int, hndl: usize) -> c_int =
        // SAFETY: the caller upholds the contract of `vector`, which is the same.
        code(|engine| unsafe {
            vector(engine, Direction::Put, dsrc, len, Some(hndl))
        });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_continue_each_other_join() {
        let mut spans = Vec::new();
        for (local, remote) in [(0, 64), (8, 72), (24, 80), (32, 200)] {
            add(&mut spans, Span { local, remote, bytes: 8 });
        }
        let all: Vec<_> = spans.iter().map(|s| (s.local, s.remote, s.bytes)).collect();
        assert_eq!(all, vec![(0, 64, 16), (24, 80, 8), (32, 200, 8)]);
    }
}
