//! One connection to a process of another job: messages out and in, and its end.
//!
//! What the peer sends is not trusted. Nothing here waits for it: a message is received while
//! the class goes on, one at a time so that they stay in order. A peer that breaks the
//! protocol, or vanishes, loses its connection and nothing else.
//!
//! Memory that MPI may still use when a connection is given up is never freed.

use super::greeting::{Lifeline, Sign};
use super::secret::{PROOF, Proof};
use crate::error::{Error, ErrorKind, Result};
use crate::mpi::{Comm, Request, p2p};
use crate::rpc::failure::{self, refuse};
use crate::rpc::na::wire::CHUNK;
use crate::rpc::na::wire::{HEAD, Head};
use crate::wait::Naps;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longest message: a chunk, and where it belongs.
const LONGEST: usize = HEAD + super::service::NAMES + CHUNK;
/// Bytes that may wait to leave before reads of the peer are served: it may not take them in.
const UNSENT: usize = 16 << 20;
/// Messages that may wait to leave.
const MOST_UNSENT: usize = 1 << 16;
/// Reads of the peer that wait.
const MOST_ASKED: usize = 1 << 14;

/// Bytes that MPI uses.
struct InFlight {
    request: Request,
    bytes: ManuallyDrop<Vec<u8>>,
}

impl InFlight {
    /// Whether MPI is done; a request that failed is given up.
    fn is_done(&mut self) -> bool {
        self.request.test().unwrap_or(false)
    }

    /// The bytes of one that is done.
    fn into_bytes(self) -> Vec<u8> {
        ManuallyDrop::into_inner(self.bytes)
    }
}

const FIRST_NAP: Duration = Duration::from_micros(50);
const LONGEST_NAP: Duration = Duration::from_millis(2);

fn start_send(comm: &Comm, bytes: Vec<u8>) -> Result<InFlight> {
    let bytes = ManuallyDrop::new(bytes);
    // SAFETY: the bytes stay until the request has completed; else they are never freed.
    let request = unsafe { p2p::isend(comm, bytes.as_ptr(), bytes.len(), 0, 0) }?;
    Ok(InFlight { request, bytes })
}

/// Sends a proof over a connection that MPI has just made, and waits for the peer's.
///
/// # Errors
/// `PROTOCOL_ERROR` for another message; `TIMEOUT`; what MPI says.
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
                refuse!(PROTOCOL_ERROR, "its first message has {bytes} bytes and is no proof");
            }
            let mut bytes = vec![0; PROOF];
            message.receive(&mut bytes)?;
            theirs = Some(bytes);
        }
        match theirs.take_if(|_| mine.is_none()) {
            Some(theirs) => return Ok(theirs),
            None if Instant::now() > end => {
                refuse!(TIMEOUT, "MPI has connected it, but it says nothing")
            }
            None => {}
        }
        std::thread::sleep(naps.take());
    }
}

/// A read that the peer asks for.
pub(super) struct Asked {
    /// Its head.
    pub head: Head,
    /// What it names.
    pub names: [u8; super::service::NAMES],
}

/// A connection.
pub(super) struct Connection {
    comm: Comm,
    lifeline: Lifeline,
    /// What it was looked up by.
    pub name: Option<String>,
    lost: AtomicBool,
    /// The peer is no more.
    vanished: AtomicBool,
    /// This side has said that it ends the connection.
    said_bye: AtomicBool,
    /// Since when the peer wants no more.
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
    /// Over what MPI has made.
    pub(super) fn new(comm: Comm, lifeline: Lifeline, name: Option<String>) -> Connection {
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

    /// Whether messages can be sent.
    pub(super) fn is_open(&self) -> bool {
        !self.is_lost() && self.bye.lock().is_none()
    }

    /// Whether nothing comes any more.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Since when the peer has said that it ends the connection.
    pub(super) fn ends_since(&self) -> Option<Instant> {
        *self.bye.lock()
    }

    /// The connection is given up; true for the first thread that says so.
    pub(super) fn lose(&self) -> bool {
        let first = !self.lost.swap(true, Ordering::AcqRel);
        if first {
            self.lifeline.cut();
            self.asked.lock().clear();
        }
        first
    }

    /// Looks whether the peer has vanished, which is an error, or ends the connection.
    pub(super) fn look(&self) -> Result<()> {
        match self.lifeline.sign() {
            Sign::None => Ok(()),
            Sign::Bye => {
                self.bye.lock().get_or_insert_with(Instant::now);
                Ok(())
            }
            Sign::Gone if self.bye.lock().is_some() => Ok(()),
            Sign::Gone => {
                self.vanished.store(true, Ordering::Release);
                Err(broken("it has vanished"))
            }
        }
    }

    /// Says once that this side ends the connection.
    pub(super) fn say_bye(&self) {
        if !self.said_bye.swap(true, Ordering::AcqRel) {
            self.lifeline.say_bye();
        }
    }

    /// Whether both sides have said so.
    pub(super) fn is_ended(&self) -> bool {
        self.said_bye.load(Ordering::Acquire) && self.ends_since().is_some()
    }

    /// Whether the peer sends nothing any more: it is no more, or has ended the connection so
    /// long ago. One that was given up for what it has sent may go on.
    pub(super) fn is_over(&self, after_bye: Duration) -> bool {
        self.vanished.load(Ordering::Acquire)
            || self.is_ended() && self.ends_since().is_some_and(|since| since.elapsed() > after_bye)
    }

    /// Sends a message of so many parts.
    pub(super) fn send(&self, head: &Head, parts: &[&[u8]]) -> Result<()> {
        let mut bytes = head.bytes().to_vec();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        let started = start_send(&self.comm, bytes)?;
        let mut sending = self.sending.lock();
        self.unsent.fetch_add(started.bytes.len(), Ordering::Relaxed);
        sending.push(started);
        Ok(())
    }

    /// Lets go of what has left; true where something has.
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
            return Err(broken("it takes nothing in"));
        }
        Ok(sending.len() < before)
    }

    /// Whether everything has left.
    pub(super) fn all_sent(&self) -> bool {
        self.sending.lock().is_empty()
    }

    /// The next message, where there is a whole one.
    ///
    /// # Errors
    /// What MPI says; a message that is longer than any.
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
            // SAFETY: as for sends.
            let request = unsafe { message.start(bytes.as_mut_ptr()) }?;
            *receiving = Some(InFlight { request, bytes });
        }
        if receiving.as_mut().is_some_and(InFlight::is_done) {
            return Ok(receiving.take().map(InFlight::into_bytes));
        }
        Ok(None)
    }

    /// The peer asks for a read.
    ///
    /// # Errors
    /// Where too many wait.
    pub(super) fn ask(&self, asked: Asked) -> Result<()> {
        let mut waiting = self.asked.lock();
        if waiting.len() >= MOST_ASKED {
            return Err(broken("it asks for too many reads at a time"));
        }
        waiting.push_back(asked);
        Ok(())
    }

    /// The next read that is to be served now.
    pub(super) fn next_asked(&self) -> Option<Asked> {
        if self.unsent.load(Ordering::Relaxed) >= UNSENT {
            return None;
        }
        self.asked.lock().pop_front()
    }

    /// Ends it. What is under way is MPI's.
    pub(super) fn free(self) -> Result<()> {
        self.comm.free()
    }
}
