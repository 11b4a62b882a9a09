//! The local side of transfers, safe and without a copy.
//!
//! A transfer takes a [`Buffer`] by value and returns it when it ends, so no code can access bytes
//! that are being moved. Invariant: the buffer's handle is never passed to other ranks, so only the
//! owner and a transfer that owns the buffer access its bytes.

use super::{Bulk, BulkOffset};
use crate::failure::Result;
use crate::hg::context::Work;
use crate::hg::{BulkOp, Context};
use crate::na::{Address, OpId};
use parking_lot::Mutex;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Memory for one transfer at a time. Its owner uses it as a byte slice.
pub struct Buffer {
    bulk: Bulk,
}

impl Buffer {
    /// Allocates a buffer of zeros.
    ///
    /// # Errors
    /// Returns `NOMEM` if memory is exhausted.
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
        // SAFETY: the handle owns the memory, which is initialised and `len` bytes long. Only a
        // transfer that owns the buffer gets the handle, and `self` is borrowed, so there is none.
        unsafe { std::slice::from_raw_parts(self.address(), self.bulk.len()) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the handle owns the memory, which is initialised and `len` bytes long. `self` is
        // borrowed exclusively, and no transfer has the handle while a `Buffer` exists.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.bulk.len()) }
    }
}

type PendingBuffer<F> = Arc<Mutex<Option<(Buffer, F)>>>;

impl Context {
    /// Pulls `size` bytes from a peer's memory to the front of a buffer. `then` runs in trigger
    /// with the result and the buffer, even if the transfer fails. If it cannot begin, returns
    /// `None`.
    pub fn pull(
        &self,
        origin: &Address,
        remote: BulkOffset<'_>,
        into: Buffer,
        size: usize,
        then: impl FnOnce(Result<()>, Buffer) + Send + 'static,
    ) -> Option<OpId> {
        self.carry(BulkOp::Pull, origin, remote, into, size, then)
    }

    /// Like [`Context::pull`], but pushes the bytes to the memory of the peer.
    pub fn push(
        &self,
        origin: &Address,
        remote: BulkOffset<'_>,
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
        remote: BulkOffset<'_>,
        buffer: Buffer,
        size: usize,
        then: F,
    ) -> Option<OpId> {
        let local = buffer.bulk.clone();
        let held: PendingBuffer<F> = Arc::new(Mutex::new(Some((buffer, then))));
        let to_end = held.clone();
        let begun = self.transfer(op, origin, remote, local.at(0), size, move |status| {
            let text = || format!("a transfer of {size} bytes: {}", status.meaning());
            give_back(&to_end, status.result(text));
        });
        match begun {
            Ok(op) => Some(op),
            Err(failure) => {
                // `transfer` has dropped its callback, so this path runs `then` in trigger too.
                self.shared.push(Work::Run(Box::new(move || give_back(&held, Err(failure)))));
                None
            }
        }
    }
}

fn give_back<F: FnOnce(Result<()>, Buffer)>(held: &PendingBuffer<F>, result: Result<()>) {
    let taken = held.lock().take();
    if let Some((buffer, then)) = taken {
        then(result, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Status;
    use crate::hg::{Class, Listen};
    use crate::na::Permission;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    #[cfg_attr(miri, ignore = "a class starts the watchdog, which installs a signal handler")]
    fn a_buffer_goes_into_a_transfer_and_comes_back() {
        let class = Class::init("self", Listen::Yes).unwrap();
        let context = class.context().unwrap();
        let own = class.own_address();
        let theirs = Bulk::allocate(&[3, 7, 90], Permission::ReadOnly).unwrap();
        let bytes: Vec<u8> = (0..100).collect();
        theirs.write(0, &bytes).unwrap();
        let (sender, receiver) = channel();
        let move_on = |context: &Context| {
            for _ in 0..10 {
                context.progress(Duration::ZERO).unwrap();
                context.trigger(10);
            }
        };

        let first = sender.clone();
        let op =
            context.pull(&own, theirs.at(2), Buffer::zeroed(64).unwrap(), 20, move |end, b| {
                first.send((end, b)).unwrap();
            });
        assert!(op.is_some());
        move_on(&context);
        let (end, mut buffer) = receiver.try_recv().unwrap();
        end.unwrap();
        assert_eq!(&buffer[..20], &bytes[2..22]);
        assert!(buffer[20..].iter().all(|&byte| byte == 0));

        // A transfer that is not permitted or too long returns the buffer too.
        buffer[0] = 200;
        for (size, status) in [(10, Status::PERMISSION), (65, Status::OVERFLOW)] {
            let then = sender.clone();
            let pull = size > 64;
            let then = move |end: Result<()>, b: Buffer| then.send((end, b)).unwrap();
            let op = match pull {
                true => context.pull(&own, theirs.at(0), buffer, size, then),
                false => context.push(&own, theirs.at(0), buffer, size, then),
            };
            assert!(op.is_none());
            move_on(&context);
            let end;
            (end, buffer) = receiver.try_recv().unwrap();
            assert_eq!(end.unwrap_err().status(), status);
            assert_eq!(buffer[0], 200);
        }
        drop(context);
        class.finalize().unwrap();
    }
}
