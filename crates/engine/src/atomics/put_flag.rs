//! Flags: a put of data, followed by a number that signals its arrival.

use crate::core::peer::CompletionCounter;
use crate::ops::{Ops, check_local};
use crate::path::kernel::Scale;
use crate::path::ops::{Rmw, Transfer, TransferKind};
use crate::path::{self, Batch, Path};
use portolan_base::error::{Result, fail};
use portolan_base::layout::Shape;
use portolan_base::trace::{Awaited, Call, CallInfo, Cause};
use portolan_base::wait;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

impl Ops {
    /// Puts along a shape, and then sets the aligned `int` at `flag` of the same target to `value`.
    /// A rank that sees the flag also sees the data.
    ///
    /// # Safety
    /// `local` must be valid for reads of the local extent of the shape.
    pub unsafe fn put_flag(
        &self,
        target: usize,
        remote: usize,
        local: *const u8,
        shape: &Shape,
        flag: usize,
        value: i32,
    ) -> Result<()> {
        // Check the flag first, so that an invalid one writes nothing.
        self.check_rank(target)?;
        let flag_path = {
            let hit = self.memory.registry.find(target, flag, 4)?;
            path::for_transfer(hit.arena(), hit.region())
        };
        if !flag.is_multiple_of(4) {
            fail!(Type, "the flag at {flag:#x} of rank {target} is not aligned for an int");
        }
        let path = || self.path_to(TransferKind::Put, target, remote);
        self.observed(
            || CallInfo::new(Call::Notify).to(target).moves(shape.bytes() + 4).by(path()),
            || {
                if self.keeps_order(flag_path)?
                    && shape.is_contiguous()
                    && (1..=Batch::MAX_BLOCK).contains(&shape.bytes())
                {
                    // SAFETY: the caller guarantees the source.
                    return unsafe {
                        self.put_with_flag(target, (local, remote, shape.bytes()), flag, value)
                    };
                }
                // SAFETY: the caller guarantees the readable extent.
                unsafe {
                    if shape.is_contiguous() {
                        self.put(target, remote, local, shape.bytes())?;
                    } else {
                        let (kind, local) = (TransferKind::Put, local.cast_mut());
                        self.blocking(&Transfer { kind, target, remote, local, shape })?;
                    }
                }
                if !self.keeps_order(flag_path)? {
                    self.order(target)?;
                }
                // SAFETY: the source is a local array of four bytes.
                unsafe { self.put(target, flag, value.to_ne_bytes().as_ptr(), 4) }
            },
        )
    }

    /// Puts a block `(local, remote, bytes)` and a flag, in one message if both take the message
    /// path, whose blocks the target stores in order.
    ///
    /// # Safety
    /// The block must be valid for reads at `local`.
    unsafe fn put_with_flag(
        &self,
        target: usize,
        (local, remote, bytes): (*const u8, usize, usize),
        flag: usize,
        value: i32,
    ) -> Result<()> {
        check_local(local)?;
        drop(self.memory.registry.find(target, remote, bytes)?);
        let counter = Arc::new(CompletionCounter::default());
        let value = value.to_ne_bytes();
        let blocks = [(local as usize, remote, bytes), (value.as_ptr() as usize, flag, 4)];
        // SAFETY: the caller guarantees the source, and this waits for the transfers.
        unsafe {
            self.issue_blocks(TransferKind::Put, target, blocks.into_iter(), false, &counter)
        }?;
        let what = || format!("a put with a flag to rank {target}");
        self.complete(Awaited::of(Cause::Answer, target), &what, &counter)
    }

    /// Adds 1 to the aligned `int` at `at`, ordered after all operations that were issued to the
    /// target. Ranks and threads may add concurrently. `counter` counts it if it is not complete on
    /// return.
    pub fn increment_in_order(
        &self,
        target: usize,
        at: usize,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<()> {
        if self.increments_behind_data(target, at)? {
            let (kind, shape) = (TransferKind::Accumulate(Scale::Int(1)), &Shape::contiguous(4));
            let mut one = 1i32;
            let local = (&raw mut one).cast();
            let transfer = Transfer { kind, target, remote: at, local, shape };
            // SAFETY: the transport has read the source of an accumulate when it returns.
            unsafe { self.issue_by_path(&transfer, counter) }?;
            return Ok(());
        }
        // MPI does not order accumulates after puts.
        self.fence(target)?;
        self.rmw(target, at, Rmw::add::<i32>(1))?;
        Ok(())
    }

    /// Whether messages to the target increment the `int` at `at`, ordered after their data.
    pub fn increments_behind_data(&self, target: usize, at: usize) -> Result<bool> {
        let path = {
            let hit = self.memory.registry.find(target, at, 4)?;
            path::for_atomics(hit.arena(), hit.region())
        };
        self.keeps_order(path)
    }

    /// Returns whether the target performs the operations of this path in the order of their issue.
    fn keeps_order(&self, path: Path) -> Result<bool> {
        match path {
            // The fence orders the stores of the caller.
            Path::Direct => Ok(false),
            _ => Ok(self.transport(path)?.keeps_order()),
        }
    }

    /// Waits until the `int` at `flag`, in this rank's own memory, equals `value`. Fails with
    /// `Argument` if `flag` is null or not aligned.
    ///
    /// # Safety
    /// `flag` must be valid for reads, and written by others only by this library or atomically.
    pub unsafe fn wait_flag(&self, flag: *const i32, value: i32) -> Result<()> {
        if flag.is_null() || !flag.is_aligned() {
            fail!(Argument, "the flag {flag:p} is null or not aligned for an int");
        }
        // SAFETY: the caller guarantees the aligned flag, which is written atomically.
        let flag = unsafe { &*flag.cast::<AtomicI32>() };
        let what = || format!("the flag at {flag:p} to become {value}");
        let come = || flag.load(Ordering::Acquire) == value;
        let checks = if self.topology.nodes() == 1 { wait::NEAR } else { wait::ANYWHERE };
        self.observed(
            || CallInfo::new(Call::NotifyWait),
            || match wait::briefly(checks, come) {
                true => Ok(()),
                false => wait::until(self, Cause::Notify, &what, || Ok(come())),
            },
        )
    }
}
