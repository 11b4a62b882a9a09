//! Flags: data and then a number that says it is there.

use crate::error::{Result, fail};
use crate::layout::Shape;
use crate::ops::Ops;
use crate::path::ops::TransferKind;
use crate::trace::{About, Call, Cause};
use crate::wait;
use std::sync::atomic::{AtomicI32, Ordering};

impl Ops {
    /// Puts along a shape and then sets the `int` at `flag` of the same target
    /// to `value`: a rank that sees the flag sees the data.
    ///
    /// # Safety
    /// As for [`Ops::put_shape`].
    pub unsafe fn put_flag(
        &self,
        target: usize,
        remote: usize,
        local: *const u8,
        shape: &Shape,
        flag: usize,
        value: i32,
    ) -> Result<()> {
        // Nothing is to be written if the flag is bad.
        self.check_rank(target)?;
        drop(self.memory.registry.find(target, flag, 4)?);
        if !flag.is_multiple_of(4) {
            fail!(Type, "the flag at {flag:#x} of rank {target} is not aligned for an int");
        }
        let path = || self.path_to(TransferKind::Put, target, remote);
        self.observed(
            || About::new(Call::Notify).to(target).moves(shape.bytes() + 4).by(path()),
            || {
                // SAFETY: passed on from the caller.
                unsafe { self.put_shape(target, remote, local, shape)? };
                // On the direct path this orders the stores; on the others the data is
                // complete before the flag sets out.
                self.fence(target)?;
                // SAFETY: four bytes of a local.
                unsafe { self.put(target, flag, value.to_ne_bytes().as_ptr(), 4) }
            },
        )
    }

    /// Waits until the `int` at `flag`, in this rank's own memory, is `value`,
    /// and serves other ranks meanwhile.
    ///
    /// # Safety
    /// `flag` must be valid for reads and aligned, and written by other ranks
    /// only through this library or with atomic stores.
    pub unsafe fn wait_flag(&self, flag: *const i32, value: i32) -> Result<()> {
        if flag.is_null() || !flag.is_aligned() {
            fail!(Argument, "the flag {flag:p} is null or not aligned for an int");
        }
        // SAFETY: the caller vouches for the memory.
        let flag = unsafe { &*flag.cast::<AtomicI32>() };
        let what = || format!("the flag at {flag:p} to become {value}");
        let come = || Ok(flag.load(Ordering::Acquire) == value);
        self.observed(
            || About::new(Call::NotifyWait),
            || wait::until(self, Cause::Notify, &what, come),
        )
    }
}
