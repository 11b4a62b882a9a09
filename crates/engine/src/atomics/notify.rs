//! Flags: a put of data, followed by a number that signals its arrival.

use crate::error::{Result, fail};
use crate::layout::Shape;
use crate::ops::Ops;
use crate::path::ops::TransferKind;
use crate::trace::{Call, CallInfo, Cause};
use crate::wait;
use std::sync::atomic::{AtomicI32, Ordering};

impl Ops {
    /// Puts along a shape, and then sets the aligned `int` at `flag` of the same target to `value`.
    /// A rank that sees the flag also sees the data.
    ///
    /// # Safety
    /// The requirements of [`Ops::put_shape`] apply.
    pub unsafe fn put_flag(
        &self,
        target: usize,
        remote: usize,
        local: *const u8,
        shape: &Shape,
        flag: usize,
        value: i32,
    ) -> Result<()> {
        // Check the flag first, so that nothing is written if it is invalid.
        self.check_rank(target)?;
        drop(self.memory.registry.find(target, flag, 4)?);
        if !flag.is_multiple_of(4) {
            fail!(Type, "the flag at {flag:#x} of rank {target} is not aligned for an int");
        }
        let path = || self.path_to(TransferKind::Put, target, remote);
        self.observed(
            || CallInfo::new(Call::Notify).to(target).moves(shape.bytes() + 4).by(path()),
            || {
                // SAFETY: the caller guarantees that `local` is readable for the extent of the
                // shape.
                unsafe { self.put_shape(target, remote, local, shape)? };
                // On the direct path this orders the stores. On the other paths the data is
                // complete before the flag is sent.
                self.fence(target)?;
                // SAFETY: the source is a local array of four bytes.
                unsafe { self.put(target, flag, value.to_ne_bytes().as_ptr(), 4) }
            },
        )
    }

    /// Waits until the `int` at `flag`, in this rank's own memory, equals `value`. Serves other
    /// ranks meanwhile.
    ///
    /// # Errors
    /// Returns `Argument` if `flag` is null or not aligned.
    ///
    /// # Safety
    /// `flag` must be valid for reads. Other ranks may write it only through this library or with
    /// atomic stores.
    pub unsafe fn wait_flag(&self, flag: *const i32, value: i32) -> Result<()> {
        if flag.is_null() || !flag.is_aligned() {
            fail!(Argument, "the flag {flag:p} is null or not aligned for an int");
        }
        // SAFETY: the caller guarantees that the flag is readable and written atomically. It is not
        // null, and aligned, as checked above.
        let flag = unsafe { &*flag.cast::<AtomicI32>() };
        let what = || format!("the flag at {flag:p} to become {value}");
        let come = || Ok(flag.load(Ordering::Acquire) == value);
        self.observed(
            || CallInfo::new(Call::NotifyWait),
            || wait::until(self, Cause::Notify, &what, come),
        )
    }
}
