//! Strided transfers. A shape ([`Shape`]) is transferred in batches of spans.

use super::copy;
use super::refs::{self, Direction, GasRef};
use super::{code, environment, switches};
use crate::boundary::{self, array, export};
use portolan_base::error::{Result, fail};
use portolan_base::layout::{MAX_LEVELS, Shape};
use portolan_engine::any_memory::Span;
use portolan_engine::runtime::Engine;
use std::os::raw::{c_int, c_void};

/// The largest number of spans in one operation of the engine.
const BATCH: usize = 4096;

struct StridedCall {
    direction: Direction,
    remote: GasRef,
    remote_stride: *const c_int,
    local: *const c_void,
    local_stride: *const c_int,
    count: *const c_int,
    levels: c_int,
}

impl StridedCall {
    /// # Safety
    /// The stride arrays must have `levels` elements, and `count` must have `levels + 1`.
    unsafe fn shape(&self) -> Result<Shape> {
        let levels = match usize::try_from(self.levels) {
            Ok(levels) if levels <= MAX_LEVELS => levels,
            _ => {
                fail!(Argument, "{} stride levels, but 0 to {MAX_LEVELS} are possible", self.levels)
            }
        };
        // SAFETY: the caller guarantees the lengths of the arrays.
        let (counts, local, remote) = unsafe {
            (
                array(self.count, levels + 1, "the count array")?,
                array(self.local_stride, levels, "the local stride array")?,
                array(self.remote_stride, levels, "the remote stride array")?,
            )
        };
        boundary::shape(counts, local, remote)
    }

    /// Calls `batch` with at most [`BATCH`] spans of the shape at a time. Stops at the first error.
    fn batches(&self, shape: &Shape, mut batch: impl FnMut(&[Span]) -> Result<()>) -> Result<()> {
        let (local, remote, bytes) = (self.local as usize, self.remote.address(), shape.block());
        let mut spans = Vec::with_capacity((shape.bytes() / bytes).min(BATCH));
        let mut result = Ok(());
        shape.for_each(&mut |l, r| {
            if result.is_err() {
                return;
            }
            let span = Span {
                local: local.wrapping_add_signed(l),
                remote: remote.wrapping_add_signed(r),
                bytes,
            };
            spans.push(span);
            if spans.len() == BATCH {
                result = batch(&spans);
                spans.clear();
            }
        });
        result?;
        if spans.is_empty() { Ok(()) } else { batch(&spans) }
    }

    /// Runs the transfer, blocking or counted on the switch `hndl`.
    ///
    /// # Safety
    /// The stride arrays must have `levels` elements, and `count` must have `levels + 1`. The local
    /// bytes must be valid for the direction, with a switch until the transfer is complete.
    unsafe fn run(&self, engine: &Engine, hndl: Option<usize>) -> Result<()> {
        // SAFETY: the caller guarantees the lengths of the arrays.
        let shape = unsafe { self.shape()? };
        let target = refs::rank(engine, self.remote.place)?;
        let bytes = shape.bytes();
        refs::local(self.local, bytes)?;
        let switch = hndl.map(switches::find).transpose()?;
        if shape.is_empty() {
            return Ok(());
        }
        match switch {
            Some(switch) => self.batches(&shape, |spans| {
                // SAFETY: the caller keeps the local bytes valid until the transfer is complete.
                unsafe { engine.start_anywhere(target, spans, self.direction, switch.counter()) }
            })?,
            None if bytes / shape.block() <= BATCH => self.batches(&shape, |spans| {
                // SAFETY: the caller guarantees that the local bytes are valid for the call.
                unsafe { engine.move_anywhere(target, spans, self.direction) }
            })?,
            // SAFETY: the caller guarantees that the local bytes are valid for the call.
            None => unsafe {
                copy::blocking(engine, self.direction, |part| {
                    self.batches(&shape, |spans| part(target, spans))
                })?
            },
        }
        environment::count_transfer(self.direction, bytes);
        Ok(())
    }
}

export! {
    /// # Safety
    /// The stride arrays must have `levels` elements, and `count` must have `levels + 1`. The local
    /// bytes must be valid for writes.
    x10_get_s(
        src: GasRef, src_stride: *const c_int, dest: *mut c_void, dest_stride: *const c_int,
        count: *const c_int, levels: c_int,
    ) -> c_int = code(|engine| {
        let call = StridedCall {
            direction: Direction::Get, count, levels,
            remote: src, remote_stride: src_stride, local: dest, local_stride: dest_stride,
        };
        // SAFETY: the caller upholds the contract of `StridedCall::run`, which is the same.
        unsafe { call.run(engine, None) }
    });

    /// # Safety
    /// The contract of `x10_get_s` applies, until the transfer is complete.
    x10_get_s_nb(
        src: GasRef, src_stride: *const c_int, dest: *mut c_void, dest_stride: *const c_int,
        count: *const c_int, levels: c_int, hndl: usize,
    ) -> c_int = code(|engine| {
        let call = StridedCall {
            direction: Direction::Get, count, levels,
            remote: src, remote_stride: src_stride, local: dest, local_stride: dest_stride,
        };
        // SAFETY: the caller upholds the contract of `StridedCall::run`, which is the same.
        unsafe { call.run(engine, Some(hndl)) }
    });

    /// # Safety
    /// The stride arrays must have `levels` elements, and `count` must have `levels + 1`. The local
    /// bytes must be valid for reads.
    x10_put_s(
        src: *const c_void, src_stride: *const c_int, dest: GasRef, dest_stride: *const c_int,
        count: *const c_int, levels: c_int,
    ) -> c_int = code(|engine| {
        let call = StridedCall {
            direction: Direction::Put, count, levels,
            remote: dest, remote_stride: dest_stride, local: src, local_stride: src_stride,
        };
        // SAFETY: the caller upholds the contract of `StridedCall::run`, which is the same.
        unsafe { call.run(engine, None) }
    });

    /// # Safety
    /// The contract of `x10_put_s` applies, and the bytes must not change before completion.
    x10_put_s_nb(
        src: *const c_void, src_stride: *const c_int, dest: GasRef, dest_stride: *const c_int,
        count: *const c_int, levels: c_int, hndl: usize,
    ) -> c_int = code(|engine| {
        let call = StridedCall {
            direction: Direction::Put, count, levels,
            remote: dest, remote_stride: dest_stride, local: src, local_stride: src_stride,
        };
        // SAFETY: the caller upholds the contract of `StridedCall::run`, which is the same.
        unsafe { call.run(engine, Some(hndl)) }
    });
}
