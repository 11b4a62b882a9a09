//! The bounds of a figure: the same work by a plain copy or loop, MPI messages, and MPI windows.

pub mod rma;
pub mod two_sided;

use crate::lab::{Contender, Lab, Library};
use crate::plan::Case;
use crate::result::Result;
use std::hint::black_box;

/// Returns a contender that copies within the memory of each origin, or `None` if plain operations
/// are not a bound of this run.
pub fn copies<'a>(lab: &'a Lab<'_>, case: Case, window: usize) -> Option<Contender<'a>> {
    if !lab.bounds.plain {
        return None;
    }
    let origin = !lab.targets(case.pattern).is_empty();
    let bytes = case.bytes;
    let length = if origin { bytes } else { 0 };
    let source = vec![1u8; length];
    let mut target = vec![0u8; length * window];
    let body = move |n: usize| {
        if origin {
            for _ in 0..n {
                for part in target.chunks_exact_mut(bytes) {
                    part.copy_from_slice(black_box(&source));
                }
                black_box(&mut target);
            }
        }
        Ok(())
    };
    Some(plain("memcpy", window, body))
}

/// Returns a contender that does not communicate.
pub fn plain<'a>(
    name: &'static str,
    ops: usize,
    body: impl FnMut(usize) -> Result<()> + 'a,
) -> Contender<'a> {
    Contender::new(name, Library::Plain, false, ops, body)
}
