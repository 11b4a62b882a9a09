//! The end of a pass: the checksum over it, and the trailer.
//!
//! Invariant: the checksum covers the bytes before `summed`, in order, whichever
//! buffer they lay in when they were summed.

use super::Fault;
use super::state::{Op, Proc, slice};
use crate::rpc::checksum::Checksum;

impl Proc<'_> {
    /// Brings the checksum up to what was encoded or consumed.
    fn catch_up(&mut self) {
        // SAFETY: `summed <= at`, and the first `at` bytes are written.
        let new = unsafe { slice(self.ptr.wrapping_add(self.summed), self.at - self.summed) };
        self.sum.update(new);
        self.summed = self.at;
    }

    /// Takes further bytes into the checksum, which are not in the buffer.
    pub fn update_checksum(&mut self, bytes: &[u8]) {
        self.catch_up();
        self.sum.update(bytes);
    }

    /// The checksum of what was encoded or consumed so far.
    pub fn checksum(&mut self) -> &Checksum {
        self.catch_up();
        &self.sum
    }

    /// Ends the pass: writes or checks the trailer where there is one. Once more
    /// does nothing.
    ///
    /// # Errors
    /// The first fault of the pass; `Checksum`, `Length`.
    pub fn flush(&mut self) -> Result<(), Fault> {
        self.sound()?;
        self.catch_up();
        if self.closed || !self.trailer {
            return Ok(());
        }
        let (value, size) = (self.sum.bytes(), self.sum.method().size());
        let body = self.at;
        match self.op {
            Op::Free => return Ok(()),
            Op::Encode => {
                self.put_size(body)?;
                self.put(&value[..size])?;
            }
            Op::Decode => {
                let sent = u64::from_le_bytes(self.take_array()?);
                if sent != body as u64 {
                    return Err(self.fail(Fault::Length { sent, found: body }));
                }
                let mut came = [0; 8];
                came[..size].copy_from_slice(self.take(size)?);
                self.compare(came)?;
            }
        }
        (self.summed, self.closed) = (self.at, true);
        Ok(())
    }

    /// Compares a checksum that came with the one of what was consumed.
    pub fn verify(&mut self, came: &[u8]) -> Result<(), Fault> {
        self.catch_up();
        let mut value = [0; 8];
        let size = self.sum.method().size();
        if came.len() < size {
            return Err(Fault::argument(format!(
                "a {} has {size} bytes, not {}",
                self.sum.method().name(),
                came.len()
            )));
        }
        value[..size].copy_from_slice(&came[..size]);
        self.compare(value)
    }

    fn compare(&mut self, came: [u8; 8]) -> Result<(), Fault> {
        let (sent, found) = (u64::from_le_bytes(came), self.sum.value());
        if sent != found {
            let method = self.sum.method().name();
            return Err(self.fail(Fault::Checksum { method, sent, found }));
        }
        Ok(())
    }

    /// [`Proc::flush`], and when decoding, that nothing is left over. Returns the
    /// length of the message.
    pub fn finish(&mut self) -> Result<usize, Fault> {
        self.flush()?;
        if self.op == Op::Decode && self.left() > 0 {
            let text = format!("{} bytes follow the last parameter", self.left());
            return Err(self.fail(Fault::Protocol(text)));
        }
        Ok(self.at)
    }
}
