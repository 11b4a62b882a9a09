//! A connection to a process of another job: sending, receiving, and closing.
//!
//! Data from the peer is not trusted, and no call here blocks on the peer. Messages are received
//! asynchronously, one at a time, which preserves their order. A peer that breaks the protocol or
//! vanishes loses only its own connection.
//!
//! Memory that MPI may still access when a connection is abandoned is never freed.

use super::greeting::{Lifeline, Sign};
use crate::failure::{self, refuse};
use crate::na::secret::{PROOF, Proof};
use crate::na::wire::CHUNK;
use crate::na::wire::{HEAD, Head};
use parking_lot::Mutex;
use portolan_engine::error::{Error, ErrorKind, Result};
use portolan_engine::mpi::{Comm, Request, p2p};
use portolan_engine::wait::Naps;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Maximum message length in bytes: a header, a memory name and a chunk.
const LONGEST: usize = HEAD + crate::na::service::NAMES + CHUNK;
/// Bytes queued for sending at which the peer's read requests are no longer served, because the
/// peer may not be receiving.
const UNSENT: usize = 16 << 20;
/// Maximum number of messages queued for sending.
const MOST_UNSENT: usize = 1 << 16;
/// Maximum number of pending read requests of the peer.
const MOST_ASKED: usize = 1 << 14;

/// Bytes that MPI may access, and the request that uses them.
struct InFlight {
    request: Request,
    bytes: ManuallyDrop<Vec<u8>>,
}

impl InFlight {
    /// Returns whether MPI is done with the bytes. A failed request never counts as done.
    fn is_done(&mut self) -> bool {
        self.request.test().unwrap_or(false)
    }

    /// Returns the bytes of a request that is done.
    fn into_bytes(self) -> Vec<u8> {
        ManuallyDrop::into_inner(self.bytes)
    }
}

const FIRST_NAP: Duration = Duration::from_micros(50);
const LONGEST_NAP: Duration = Duration::from_millis(2);

fn start_send(comm: &Comm, bytes: Vec<u8>) -> Result<InFlight> {
    let bytes = ManuallyDrop::new(bytes);
    // SAFETY: the bytes stay valid: they are freed only after the request has completed, and leaked
    // if it never does.
    let request = unsafe { p2p::isend(comm, bytes.as_ptr(), bytes.len(), 0, 0) }?;
    Ok(InFlight { request, bytes })
}

/// Sends a proof over a connection that MPI has just made, and waits for the peer's proof.
///
/// # Errors
/// Returns `PROTOCOL_ERROR` if the first message is not a proof, `TIMEOUT` if none arrives before
/// `end`, and MPI's errors.
pub(super) fn exchange(line: &Comm, mine: &Proof, end: Instant) -> failure::Result<Vec<u8>> {
    let mut mine = Some(start_send(line, mine.to_vec())?);
    let (mut theirs, mut naps) = (None, Naps::new(FIRST_NAP, LONGEST_NAP));
    loop {
        if mine.as_mut().is_some_and(InFlight::is_done) {
            drop(mine.take().map(InFlight::into_bytes));
        }
        if theirs.is_none()
            && let Some(message) = p2p::improbe(line, None, None)?
        {
            if message.bytes != PROOF {
                let bytes = message.bytes;
                message.discard();
                refuse!(PROTOCOL_ERROR, "its first message has {bytes} bytes and is not a proof");
            }
            let mut bytes = vec![0; PROOF];
            message.receive(&mut bytes)?;
            theirs = Some(bytes);
        }
        match theirs.take_if(|_| mine.is_none()) {
            Some(theirs) => return Ok(theirs),
            None if Instant::now() > end => {
                refuse!(TIMEOUT, "MPI has connected it, but it sends nothing")
            }
            None => {}
        }
        std::thread::sleep(naps.take());
    }
}

/// A read request of the peer.
pub(super) struct Asked {
    /// The header of the request.
    pub head: Head,
    /// The encoded name of the memory to read.
    pub names: [u8; crate::na::service::NAMES],
}

/// A connection.
pub(super) struct Connection {
    comm: Comm,
    lifeline: Lifeline,
    /// The address that the connection was looked up by.
    pub name: Option<String>,
    lost: AtomicBool,
    /// Whether the peer's process is gone.
    vanished: AtomicBool,
    /// Whether this side has announced the end of the connection.
    said_bye: AtomicBool,
    /// When the peer announced the end of the connection.
    bye: Mutex<Option<Instant>>,
    sending: Mutex<Vec<InFlight>>,
    unsent: AtomicUsize,
    receiving: Mutex<Option<InFlight>>,
    asked: Mutex<VecDeque<Asked>>,
}

fn broken(why: &str) -> Error {
    Error::new(ErrorKind::Argument, why.to_string())
}

impl Connection {
    /// Wraps a communicator that MPI has made, and the socket of the same peer.
    pub fn new(comm: Comm, lifeline: Lifeline, name: Option<String>) -> Connection {
        Connection {
            comm,
            lifeline,
            name,
            lost: AtomicBool::new(false),
            vanished: AtomicBool::new(false),
            said_bye: AtomicBool::new(false),
            bye: Mutex::default(),
            sending: Mutex::default(),
            unsent: AtomicUsize::new(0),
            receiving: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// Returns whether messages can be sent.
    pub(super) fn is_open(&self) -> bool {
        !self.is_lost() && self.bye.lock().is_none()
    }

    /// Returns whether the connection was abandoned.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns when the peer announced the end of the connection.
    pub(super) fn ends_since(&self) -> Option<Instant> {
        *self.bye.lock()
    }

    /// Abandons the connection. Returns true in the first call only.
    pub(super) fn lose(&self) -> bool {
        let first = !self.lost.swap(true, Ordering::AcqRel);
        if first {
            self.lifeline.cut();
            self.asked.lock().clear();
        }
        first
    }

    /// Checks the socket. Records a goodbye of the peer, and fails if the peer has vanished without
    /// one.
    pub(super) fn poll_now(&self) -> Result<()> {
        match self.lifeline.sign() {
            Sign::None => Ok(()),
            Sign::Bye => {
                self.bye.lock().get_or_insert_with(Instant::now);
                Ok(())
            }
            Sign::Gone if self.bye.lock().is_some() => Ok(()),
            Sign::Gone => {
                self.vanished.store(true, Ordering::Release);
                Err(broken("it disappeared without closing the connection"))
            }
        }
    }

    /// Announces once that this side ends the connection.
    pub(super) fn say_bye(&self) {
        if !self.said_bye.swap(true, Ordering::AcqRel) {
            self.lifeline.say_bye();
        }
    }

    /// Returns whether both sides have announced the end of the connection.
    pub(super) fn is_ended(&self) -> bool {
        self.said_bye.load(Ordering::Acquire) && self.ends_since().is_some()
    }

    /// Returns whether the peer sends no more messages: it has vanished, or both sides have ended
    /// the connection and the peer's goodbye is older than `after_bye`. A peer whose connection was
    /// abandoned for a protocol error may still be sending.
    pub(super) fn is_over(&self, after_bye: Duration) -> bool {
        self.vanished.load(Ordering::Acquire)
            || self.is_ended() && self.ends_since().is_some_and(|since| since.elapsed() > after_bye)
    }

    /// Sends a message whose body consists of `parts`.
    pub fn send(&self, head: &Head, parts: &[&[u8]]) -> Result<()> {
        let mut bytes = head.bytes().to_vec();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        let started = start_send(&self.comm, bytes)?;
        let mut sending = self.sending.lock();
        self.unsent.fetch_add(started.bytes.len(), Ordering::Relaxed);
        sending.push(started);
        Ok(())
    }

    /// Releases messages that have been sent. Returns whether there were any.
    pub(super) fn sent(&self) -> Result<bool> {
        let mut sending = self.sending.lock();
        let (mut n, before) = (0, sending.len());
        while n < sending.len() {
            if sending[n].is_done() {
                let bytes = sending.swap_remove(n).into_bytes();
                self.unsent.fetch_sub(bytes.len(), Ordering::Relaxed);
            } else {
                n += 1;
            }
        }
        if sending.len() > MOST_UNSENT {
            return Err(broken("it receives nothing"));
        }
        Ok(sending.len() < before)
    }

    /// Returns whether all messages have been sent.
    pub(super) fn all_sent(&self) -> bool {
        self.sending.lock().is_empty()
    }

    /// Returns the next message, if one has arrived completely.
    ///
    /// # Errors
    /// Returns MPI's errors, and fails if the message is too long.
    pub(super) fn receive(&self) -> Result<Option<Vec<u8>>> {
        let mut receiving = self.receiving.lock();
        if receiving.is_none() {
            let Some(message) = p2p::improbe(&self.comm, None, None)? else { return Ok(None) };
            if message.bytes > LONGEST {
                let text = format!("it sends a message of {} bytes", message.bytes);
                message.discard();
                return Err(broken(&text));
            }
            let mut bytes = ManuallyDrop::new(vec![0; message.bytes]);
            // SAFETY: the buffer stays valid: it is freed only after the request has completed, and
            // leaked if it never does. It is not read before that.
            let request = unsafe { message.start(bytes.as_mut_ptr()) }?;
            *receiving = Some(InFlight { request, bytes });
        }
        if receiving.as_mut().is_some_and(InFlight::is_done) {
            return Ok(receiving.take().map(InFlight::into_bytes));
        }
        Ok(None)
    }

    /// Queues a read request of the peer.
    ///
    /// # Errors
    /// Fails if too many are pending.
    pub(super) fn ask(&self, asked: Asked) -> Result<()> {
        let mut waiting = self.asked.lock();
        if waiting.len() >= MOST_ASKED {
            return Err(broken("it asks for too many reads at a time"));
        }
        waiting.push_back(asked);
        Ok(())
    }

    /// Returns the next read request that may be served now.
    pub(super) fn next_asked(&self) -> Option<Asked> {
        if self.unsent.load(Ordering::Relaxed) >= UNSENT {
            return None;
        }
        self.asked.lock().pop_front()
    }

    /// Frees the communicator. Buffers of messages in flight are leaked, because MPI may still use
    /// them.
    pub(super) fn free(self) -> Result<()> {
        self.comm.free()
    }
}
