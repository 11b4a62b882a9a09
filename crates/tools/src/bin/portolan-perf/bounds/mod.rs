//! The bounds of a figure: the same work done by a plain copy or loop, by MPI messages, and by MPI
//! windows.

pub mod rma;
pub mod two_sided;

use crate::measure::{By, Contender, Lab};
use crate::plan::Case;
use std::hint::black_box;

/// Returns a contender that copies within the memory of each origin.
pub fn copies<'a>(lab: &'a Lab<'_>, case: Case, window: usize) -> Contender<'a> {
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
    plain("memcpy", window, Box::new(body))
}

/// Returns a contender that does not communicate.
pub fn plain<'a>(name: &'static str, ops: usize, body: crate::measure::Body<'a>) -> Contender<'a> {
    Contender { name, by: By::Plain, both: false, body, ops: ops as f64 }
}
