//! The stream of an encrypted connection.
//!
//! Outgoing bytes are encrypted in portions. If the socket does not take a portion whole, the
//! encrypted rest waits here, and the portion counts as not written. By the contract of
//! [`Output`](super::super::output::Output), the caller presents the same bytes again. They are
//! skipped, and count as written once the rest is in the socket. A frame therefore never leaves the
//! output before its last byte has left this process.
//!
//! Incoming bytes are read from the socket in large parts and decrypted. Those that do not fit into
//! the caller's memory wait here, and are returned before the socket is read again.
//!
//! A peer that closes says so inside TLS. An end of the socket without that is an error, because
//! anyone on the way can cause it.
//!
//! Invariant: [`Stream::read`] returns `Nothing` only if nothing decryptable waits here and the
//! socket would block. Whatever waits to be written has found the socket full. So the poller
//! reports every change.

use super::super::stream::{Read, Stream, after, total};
use super::super::tcp::Connected;
use super::failed;
use crate::na::memory::Run;
use parking_lot::Mutex;
use portolan_engine::memory::pool::Pool;
use portolan_engine::memory::runs::{gather, scatter};
use rustls::Connection;
use std::fmt;
use std::io::{self, BufRead, ErrorKind, Write};
use std::ops::DerefMut;
use std::os::fd::RawFd;

/// Size in bytes of a portion that is encrypted or read at a time: four records of TLS.
const PORTION: usize = 64 << 10;

/// Buffers that no call uses now. They are not thread-local, because a class can be closed while
/// the process exits, when the thread-local values of its thread are gone.
static PORTIONS: Pool = Pool::new(8, 8 * PORTION);

fn portion() -> impl DerefMut<Target = Vec<u8>> {
    scopeguard::guard(PORTIONS.take_filled(PORTION), |buffer| PORTIONS.give(buffer))
}

struct SessionState {
    session: Connection,
    /// Bytes at the beginning of the next write that are encrypted already.
    owed: usize,
    unread: Vec<u8>,
    /// An error that comes after bytes that were returned.
    broken: Option<io::Error>,
    ended: bool,
}

pub(super) struct Sealed {
    socket: Connected,
    state: Mutex<SessionState>,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sealed").field(&self.socket).finish()
    }
}

/// The state of decryption when it stops.
enum Front {
    /// There is room for more, and the input is used up.
    Hungry,
    Full,
    End,
}

impl SessionState {
    /// Decrypts `input` into `parts` until they are full. `filled` counts their full bytes. Fails
    /// if the peer does not follow the protocol.
    ///
    /// # Safety
    /// `parts` must be valid for writes.
    unsafe fn open(
        &mut self,
        input: &mut &[u8],
        parts: &[Run],
        filled: &mut usize,
    ) -> io::Result<Front> {
        let room = total(parts);
        loop {
            let mut reader = self.session.reader();
            match reader.fill_buf() {
                Ok([]) => return Ok(Front::End),
                Ok(_) if *filled == room => return Ok(Front::Full),
                Ok(bytes) => {
                    // SAFETY: the caller guarantees the parts.
                    let moved = unsafe { scatter(bytes, after(parts, *filled)) };
                    reader.consume(moved);
                    *filled += moved;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if input.is_empty() {
                return Ok(Front::Hungry);
            }
            if *filled == room {
                return Ok(Front::Full);
            }
            self.session.read_tls(input)?;
            self.session.process_new_packets().map_err(failed)?;
        }
    }
}

impl Sealed {
    pub fn new(mut session: Connection, socket: Connected) -> Sealed {
        // Portions limit it.
        session.set_buffer_limit(None);
        let (unread, broken) = (Vec::new(), None);
        let state = SessionState { session, owed: 0, unread, broken, ended: false };
        Sealed { socket, state: Mutex::new(state) }
    }

    /// Writes encrypted bytes that wait. Returns whether none wait any more.
    fn flush(&self, state: &mut SessionState) -> io::Result<bool> {
        while state.session.wants_write() {
            match state.session.write_tls(&mut self.socket.socket()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if state.ended {
            self.socket.end_output();
        }
        Ok(true)
    }

    /// Reads into `parts`: first what waits here, then from the socket.
    ///
    /// # Safety
    /// `parts` must be valid for writes.
    unsafe fn fill(
        &self,
        state: &mut SessionState,
        parts: &[Run],
        filled: &mut usize,
    ) -> io::Result<Read> {
        let unread = std::mem::take(&mut state.unread);
        let mut input = &unread[..];
        // SAFETY: the caller guarantees the parts.
        let mut front = unsafe { state.open(&mut input, parts, filled) }?;
        state.unread = input.to_vec();
        let mut buffer = None;
        while *filled == 0 && matches!(front, Front::Hungry) {
            let buffer = buffer.get_or_insert_with(portion);
            let into = [Run { address: buffer.as_mut_ptr() as usize, len: buffer.len() }];
            // SAFETY: the buffer is valid and exclusive.
            match unsafe { self.socket.read(&into) }? {
                Read::Nothing => return Ok(Read::Nothing),
                Read::End => {
                    let why = "the peer has ended the connection without a sign in TLS";
                    return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
                }
                Read::Bytes(n) => {
                    let mut input = &buffer[..n];
                    // SAFETY: the caller guarantees the parts.
                    front = unsafe { state.open(&mut input, parts, filled) }?;
                    state.unread = input.to_vec();
                }
            }
        }
        Ok(match (*filled, front) {
            (0, Front::End) => Read::End,
            (n, _) => Read::Bytes(n),
        })
    }
}

impl Stream for Sealed {
    fn is_costly(&self) -> bool {
        true
    }

    unsafe fn write(&self, parts: &[Run]) -> io::Result<usize> {
        let state = &mut *self.state.lock();
        if state.ended {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if !self.flush(state)? {
            return Ok(0);
        }
        let whole = total(parts);
        let mut written = state.owed.min(whole);
        state.owed -= written;
        if written == whole {
            return Ok(written);
        }
        let mut buffer = portion();
        while written < whole {
            // SAFETY: the caller guarantees the parts.
            let now = unsafe { gather(after(parts, written), &mut buffer) };
            state.session.writer().write_all(&buffer[..now])?;
            if !self.flush(state)? {
                state.owed = now;
                break;
            }
            written += now;
        }
        Ok(written)
    }

    unsafe fn read(&self, parts: &[Run]) -> io::Result<Read> {
        let state = &mut *self.state.lock();
        if let Some(error) = state.broken.take() {
            return Err(error);
        }
        let mut filled = 0;
        // SAFETY: the caller guarantees the parts.
        let read = unsafe { self.fill(state, parts, &mut filled) };
        // TLS may have to send an alert or an answer. Bytes that are owed are left to `write`.
        let flushed = if state.owed == 0 { self.flush(state).map(drop) } else { Ok(()) };
        match (read.and_then(|read| flushed.map(|()| read)), filled) {
            (Err(error), 1..) => {
                state.broken = Some(error);
                Ok(Read::Bytes(filled))
            }
            (read, _) => read,
        }
    }

    fn descriptor(&self) -> RawFd {
        self.socket.descriptor()
    }

    fn end_output(&self) {
        let state = &mut *self.state.lock();
        if !state.ended {
            state.ended = true;
            state.session.send_close_notify();
            // If the socket is full, a later read sends the rest.
            let _ = self.flush(state);
        }
    }

    fn cut(&self) {
        self.end_output();
        self.socket.cut();
    }
}
