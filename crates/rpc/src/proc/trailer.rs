//! The end of a pass: checksum and trailer.

use super::Fault;
use super::state::{Op, Proc, slice};
use crate::checksum::{Checksum, Method};

pub fn trailer_len(method: Method) -> usize {
    match method.size() {
        0 => 0,
        bytes => 8 + bytes,
    }
}

/// Checks the trailer of received parameters, and returns the parameters without it. A proc can
/// then decode any part of them. Returns `Overflow` if `bytes` is shorter than a trailer, and
/// `Length` or `Checksum` if the trailer does not match the parameters.
pub fn without_trailer(bytes: &[u8], method: Method) -> Result<&[u8], Fault> {
    let mut proc = Proc::decoder(bytes, method);
    let parameters = proc.take(bytes.len().saturating_sub(trailer_len(method)))?;
    proc.finish()?;
    Ok(parameters)
}

impl Proc<'_> {
    /// Extends the checksum to all bytes encoded or consumed so far.
    fn catch_up(&mut self) {
        // SAFETY: `summed <= at`, and the first `at` bytes of the buffer are written.
        let new = unsafe { slice(self.ptr.wrapping_add(self.summed), self.at - self.summed) };
        self.sum.update(new);
        self.summed = self.at;
    }

    /// Adds bytes that are not in the buffer to the checksum.
    pub fn update_checksum(&mut self, bytes: &[u8]) {
        self.catch_up();
        self.sum.update(bytes);
    }

    pub fn checksum(&mut self) -> &Checksum {
        self.catch_up();
        &self.sum
    }

    /// Ends the pass: writes or checks the trailer, if any. A second call does nothing. Returns the
    /// first fault of the pass, `Length` if the trailer counts other bytes, or `Checksum`.
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

    /// Compares the received checksum `came` with the checksum of the consumed bytes. Returns
    /// `Checksum` if they differ, `Argument` if `came` is shorter than a checksum.
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

    /// Ends the pass like [`Proc::flush`] and returns the length of the message. Fails like
    /// [`Proc::flush`]; returns `Protocol` if bytes are left after decoding.
    pub fn finish(&mut self) -> Result<usize, Fault> {
        self.flush()?;
        if self.op == Op::Decode && self.left() > 0 {
            let text = format!("{} bytes remain after the last parameter", self.left());
            return Err(self.fail(Fault::Protocol(text)));
        }
        Ok(self.at)
    }
}
