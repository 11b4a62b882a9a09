//! What a check gets: the engine, and its calls in a form that fails the check.
//!
//! Shared by the checks on real ranks and those on simulated ones (`tests/sim`).

use bytemuck::Pod;
use portolan::error::{ErrorKind, Result};
use portolan::internals::memory::segment::Segment;
use portolan::internals::path::kernel::Scale;
use portolan::internals::runtime::Engine;
use std::sync::Arc;

/// What a check gets.
#[derive(Debug)]
pub struct Ctx {
    /// The engine.
    pub engine: Arc<Engine>,
    /// This rank.
    pub me: usize,
    /// How many there are.
    pub n: usize,
    /// Seed of random checks.
    pub seed: u64,
    /// Whether to do less.
    pub quick: bool,
    /// The run is a full one: nothing is too large.
    pub full: bool,
}

impl Ctx {
    /// Waits for all ranks.
    pub fn barrier(&self) {
        self.engine.barrier_of(self.engine.world()).expect("barrier");
    }

    /// Allocates over all ranks.
    pub fn allocate(&self, bytes: usize) -> Arc<Segment> {
        self.engine.allocate(self.engine.world(), bytes).expect("allocate")
    }

    /// Frees a segment.
    pub fn free(&self, segment: Arc<Segment>) {
        self.engine.release(segment).expect("release");
    }

    /// Puts bytes.
    pub fn put(&self, target: usize, at: usize, bytes: &[u8]) {
        // SAFETY: the slice is valid.
        unsafe { self.engine.put(target, at, bytes.as_ptr(), bytes.len()) }.expect("put");
    }

    /// Gets bytes.
    pub fn get(&self, target: usize, at: usize, bytes: usize) -> Vec<u8> {
        let mut out = vec![0xee; bytes];
        // SAFETY: the vector has as many bytes.
        unsafe { self.engine.get(target, at, out.as_mut_ptr(), bytes) }.expect("get");
        out
    }

    /// Puts a number.
    pub fn store<T: Pod>(&self, target: usize, at: usize, value: T) {
        self.put(target, at, bytemuck::bytes_of(&value));
    }

    /// Accumulates numbers.
    pub fn accumulate<T: Pod>(&self, target: usize, at: usize, values: &[T], scale: Scale) {
        let source: &[u8] = bytemuck::cast_slice(values);
        // SAFETY: the slice is valid.
        unsafe { self.engine.accumulate(target, at, source.as_ptr(), source.len(), scale) }
            .expect("accumulate");
    }

    /// Gets so many numbers.
    pub fn loads<T: Pod>(&self, target: usize, at: usize, count: usize) -> Vec<T> {
        let bytes = self.get(target, at, count * std::mem::size_of::<T>());
        bytes.chunks_exact(std::mem::size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
    }

    /// Gets a number.
    pub fn load<T: Pod>(&self, target: usize, at: usize) -> T {
        bytemuck::pod_read_unaligned(&self.get(target, at, std::mem::size_of::<T>()))
    }
}

/// This rank's own memory of a segment.
#[expect(clippy::mut_from_ref, reason = "the memory is not the segment's own")]
pub fn own(segment: &Segment) -> &mut [u8] {
    let base = segment.my_base();
    if base.is_null() {
        return &mut [];
    }
    let len = segment.part(segment.group().rank()).len();
    // SAFETY: the piece is mapped while the segment lives; checks use it only
    // between barriers in which no other rank does.
    unsafe { std::slice::from_raw_parts_mut(base, len) }
}

/// Computes, without a call of the library, until another rank has put `value` at this place of the
/// caller's memory.
pub fn compute_until(segment: &Segment, place: usize, value: u8) {
    let at = &raw const own(segment)[place];
    // SAFETY: the memory is mapped while the segment lives, and the other rank's byte may come at any
    // time: the read is volatile.
    while unsafe { at.read_volatile() } != value {
        std::hint::spin_loop();
    }
}

/// The call must fail with an error of this kind.
#[track_caller]
pub fn refused<T>(kind: ErrorKind, what: &str, result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("{what}: succeeded, but must fail with {kind:?}"),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{what}: {error}");
            assert!(error.detail().len() > 10, "{what}: the error says too little: {error}");
            error.to_string()
        }
    }
}
