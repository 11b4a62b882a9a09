//! Sockets with a deadline, for greetings.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A socket with a deadline for every wait, even if bytes arrive slowly.
#[derive(Debug)]
pub(crate) struct Timed<'a> {
    stream: &'a TcpStream,
    pub end: Instant,
}

impl<'a> Timed<'a> {
    pub fn new(stream: &'a TcpStream, end: Instant) -> Timed<'a> {
        Timed { stream, end }
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Timed<'_> {
    /// Waits for the next byte and returns it, but leaves it to the next read.
    pub fn peek(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.stream.set_read_timeout(Some(self.left()?))?;
        match self.stream.peek(&mut byte)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(byte[0]),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        let mut stream = self.stream;
        stream.read(bytes)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        let mut stream = self.stream;
        stream.write(bytes)
    }

    /// TLS sends an alert, and what precedes it, by one call.
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        let mut stream = self.stream;
        stream.write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
