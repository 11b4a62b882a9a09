//! The local side of transfers, safe and without a copy.
//!
//! A [`Buffer`] is plain memory to its owner. A transfer takes it by value and gives
//! it back when it has ended, so nobody can look at bytes that are being moved. It reuses
//! [`Bulk`] and [`Context::transfer`]; its invariant is that its handle is never given to
//! others, so only a transfer that owns the buffer touches the bytes besides its owner.
//!
//! ```no_run
//! use portolan::rpc::bulk::{Buffer, Bulk};
//! use portolan::rpc::hg::Call;
//!
//! // A handler that answers with the sum of the caller's bytes.
//! fn sum(call: Call<Bulk, u64>) -> Result<(), portolan::rpc::Failure> {
//!     let data = call.input()?;
//!     let buffer = Buffer::zeroed(data.len())?;
//!     let (context, origin, size) = (call.context(), call.source(), data.len());
//!     context.pull(&origin, (&data, 0), buffer, size, move |moved, buffer| match moved {
//!         Ok(()) => drop(call.answer(&buffer.iter().map(|&byte| u64::from(byte)).sum())),
//!         Err(failure) => call.refuse(failure.status),
//!     });
//!     Ok(())
//! }
//! ```

use super::Bulk;
use crate::rpc::failure::Result;
use crate::rpc::hg::context::Work;
use crate::rpc::hg::{BulkOp, Context};
use crate::rpc::na::{Address, OpId};
use parking_lot::Mutex;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Memory for one transfer at a time; bytes to its owner.
pub struct Buffer {
    bulk: Bulk,
}

impl Buffer {
    /// So many zeros.
    ///
    /// # Errors
    /// `NOMEM`.
    pub fn zeroed(bytes: usize) -> Result<Buffer> {
        Ok(Buffer { bulk: Bulk::private(bytes)? })
    }

    fn address(&self) -> *mut u8 {
        self.bulk.mem().runs()[0].address as *mut u8
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer of {} bytes", self.bulk.len())
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is the handle's own, initialised, and of this length. The
        // handle leaves the buffer only for transfers that own the buffer, and those have
        // ended, since the buffer is here.
        unsafe { std::slice::from_raw_parts(self.address(), self.bulk.len()) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.bulk.len()) }
    }
}

/// A buffer in a transfer, and the callback that gets it back.
type Held<F> = Arc<Mutex<Option<(Buffer, F)>>>;

impl Context {
    /// Pulls bytes of a peer's memory to the front of a buffer. `then` runs in trigger
    /// with the buffer, however that ends: a transfer that cannot begin ends there too,
    /// and has no number.
    pub fn pull(
        &self,
        origin: &Address,
        remote: (&Bulk, usize),
        into: Buffer,
        size: usize,
        then: impl FnOnce(Result<()>, Buffer) + Send + 'static,
    ) -> Option<OpId> {
        self.carry(BulkOp::Pull, origin, remote, into, size, then)
    }

    /// Pushes bytes from the front of a buffer to a peer's memory; otherwise as
    /// [`Context::pull`].
    pub fn push(
        &self,
        origin: &Address,
        remote: (&Bulk, usize),
        from: Buffer,
        size: usize,
        then: impl FnOnce(Result<()>, Buffer) + Send + 'static,
    ) -> Option<OpId> {
        self.carry(BulkOp::Push, origin, remote, from, size, then)
    }

    fn carry<F: FnOnce(Result<()>, Buffer) + Send + 'static>(
        &self,
        op: BulkOp,
        origin: &Address,
        remote: (&Bulk, usize),
        buffer: Buffer,
        size: usize,
        then: F,
    ) -> Option<OpId> {
        let local = buffer.bulk.clone();
        let held: Held<F> = Arc::new(Mutex::new(Some((buffer, then))));
        let to_end = held.clone();
        let begun = self.transfer(op, origin, remote, (&local, 0), size, move |status| {
            let text = || format!("a transfer of {size} bytes: {}", status.meaning());
            give_back(&to_end, status.result(text));
        });
        match begun {
            Ok(op) => Some(op),
            Err(failure) => {
                // The callback above is gone; the end is told where all ends are told.
                self.shared.push(Work::Run(Box::new(move || give_back(&held, Err(failure)))));
                None
            }
        }
    }
}

fn give_back<F: FnOnce(Result<()>, Buffer)>(held: &Held<F>, result: Result<()>) {
    let taken = held.lock().take();
    if let Some((buffer, then)) = taken {
        then(result, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::failure::Status;
    use crate::rpc::hg::Class;
    use crate::rpc::na::Access;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn a_buffer_goes_into_a_transfer_and_comes_back() {
        let class = Class::init("self", true).unwrap();
        let context = class.context().unwrap();
        let own = class.own_address();
        let theirs = Bulk::allocate(&[3, 7, 90], Access::ReadOnly).unwrap();
        let bytes: Vec<u8> = (0..100).collect();
        theirs.write(0, &bytes).unwrap();
        let (tell, told) = channel();
        let move_on = |context: &Context| {
            for _ in 0..10 {
                context.progress(Duration::ZERO).unwrap();
                context.trigger(10);
            }
        };

        let first = tell.clone();
        let op =
            context.pull(&own, (&theirs, 2), Buffer::zeroed(64).unwrap(), 20, move |end, b| {
                first.send((end, b)).unwrap();
            });
        assert!(op.is_some());
        move_on(&context);
        let (end, mut buffer) = told.try_recv().unwrap();
        end.unwrap();
        assert_eq!(&buffer[..20], &bytes[2..22]);
        assert!(buffer[20..].iter().all(|&byte| byte == 0));

        // What is not permitted, and what is too long, gives the buffer back too.
        buffer[0] = 200;
        for (size, status) in [(10, Status::PERMISSION), (65, Status::OVERFLOW)] {
            let then = tell.clone();
            let pull = size > 64;
            let then = move |end: Result<()>, b: Buffer| then.send((end, b)).unwrap();
            let op = match pull {
                true => context.pull(&own, (&theirs, 0), buffer, size, then),
                false => context.push(&own, (&theirs, 0), buffer, size, then),
            };
            assert!(op.is_none());
            move_on(&context);
            let end;
            (end, buffer) = told.try_recv().unwrap();
            assert_eq!(end.unwrap_err().status, status);
            assert_eq!(buffer[0], 200);
        }
        drop(context);
        class.finalize().unwrap();
    }
}
