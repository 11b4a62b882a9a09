//! The context of a check: the engine, and its calls in a form that fails the check.
//!
//! Checks on real ranks and checks on simulated ranks (`crates/sim`) share this module.

use bytemuck::Pod;
use portolan::{ErrorKind, Result};
use portolan_engine::memory::segment::Segment;
use portolan_engine::path::kernel::Scale;
use portolan_engine::runtime::Engine;
use std::sync::Arc;

#[derive(Debug)]
pub struct Ctx {
    pub engine: Arc<Engine>,
    pub me: usize,
    pub n: usize,
    pub seed: u64,
    /// Whether the check should do less.
    pub quick: bool,
    /// Whether the level is `release`, which permits large data.
    pub release: bool,
}

impl Ctx {
    pub fn barrier(&self) {
        self.engine.barrier_of(self.engine.world()).expect("barrier");
    }

    pub fn allocate(&self, bytes: usize) -> Arc<Segment> {
        self.engine.allocate(self.engine.world(), bytes).expect("allocate")
    }

    pub fn free(&self, segment: Arc<Segment>) {
        self.engine.release(segment).expect("release");
    }

    pub fn put(&self, target: usize, at: usize, bytes: &[u8]) {
        // SAFETY: `bytes` is a valid slice.
        unsafe { self.engine.put(target, at, bytes.as_ptr(), bytes.len()) }.expect("put");
    }

    pub fn get(&self, target: usize, at: usize, bytes: usize) -> Vec<u8> {
        let mut out = vec![0xee; bytes];
        // SAFETY: `out` has `bytes` bytes.
        unsafe { self.engine.get(target, at, out.as_mut_ptr(), bytes) }.expect("get");
        out
    }

    pub fn store<T: Pod>(&self, target: usize, at: usize, value: T) {
        self.put(target, at, bytemuck::bytes_of(&value));
    }

    pub fn accumulate<T: Pod>(&self, target: usize, at: usize, values: &[T], scale: Scale) {
        let source: &[u8] = bytemuck::cast_slice(values);
        // SAFETY: `source` is a valid slice.
        unsafe { self.engine.accumulate(target, at, source.as_ptr(), source.len(), scale) }
            .expect("accumulate");
    }

    pub fn loads<T: Pod>(&self, target: usize, at: usize, count: usize) -> Vec<T> {
        let bytes = self.get(target, at, count * std::mem::size_of::<T>());
        bytes.chunks_exact(std::mem::size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
    }

    pub fn load<T: Pod>(&self, target: usize, at: usize) -> T {
        bytemuck::pod_read_unaligned(&self.get(target, at, std::mem::size_of::<T>()))
    }
}

#[expect(clippy::mut_from_ref, reason = "the memory is not the segment's own")]
pub fn own(segment: &Segment) -> &mut [u8] {
    let base = segment.my_base();
    if base.is_null() {
        return &mut [];
    }
    let len = segment.part(segment.group().rank()).len();
    // SAFETY: the part is mapped while the segment lives. Checks access it only between barriers,
    // while no other rank does.
    unsafe { std::slice::from_raw_parts_mut(base, len) }
}

/// Computes, without calling the library, until another rank has put `value` at offset `place` of
/// this rank's part.
pub fn compute_until(segment: &Segment, place: usize, value: u8) {
    let at = &raw const own(segment)[place];
    // SAFETY: the memory is mapped while the segment lives. The other rank's byte may arrive at any
    // time, so the read is volatile.
    while unsafe { at.read_volatile() } != value {
        std::hint::spin_loop();
    }
}

/// Returns the text of the error.
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
