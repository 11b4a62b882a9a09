//! A connection of a class: its stream and its frames. A `String` error says why it has ended.

use super::input::Input;
use super::output::Output;
use super::stream::{Read, Stream};
use crate::na::memory::{InUse, MOST_COPIED, Run};
use crate::na::wire::Head;
use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A peer with more copied bytes than the first is behind, until at most the second wait.
const BEHIND: [usize; 2] = [16 << 20, 8 << 20];
/// Limits on what may wait for a peer that does not read: pieces, and copied bytes.
const MOST_WAITING: (usize, usize) = (1 << 16, MOST_COPIED);

pub(super) struct Step {
    pub busy: bool,
    pub again: bool,
}

pub(super) struct Link {
    n: u32,
    name: String,
    accepted: bool,
    pub(super) stream: Box<dyn Stream>,
    output: Mutex<Output>,
    pub(super) input: Mutex<Input>,
    broken: OnceLock<String>,
    /// Whether this side writes no more.
    left: AtomicBool,
    /// Whether many bytes wait for the peer. It changes only with the lock of the output.
    behind: AtomicBool,
    behind_changed: AtomicBool,
}

impl Link {
    /// Creates a connection to peer `n` at `name`. `accepted` means that the peer has made it.
    pub fn new(n: u32, stream: Box<dyn Stream>, name: String, accepted: bool) -> Link {
        Link {
            n,
            name,
            accepted,
            stream,
            output: Mutex::default(),
            input: Mutex::default(),
            broken: OnceLock::new(),
            left: AtomicBool::new(false),
            behind: AtomicBool::new(false),
            behind_changed: AtomicBool::new(false),
        }
    }

    pub fn number(&self) -> u32 {
        self.n
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_accepted(&self) -> bool {
        self.accepted
    }

    pub fn is_open(&self) -> bool {
        self.broken.get().is_none()
    }

    /// Ends the connection, unless it has ended. Returns the first reason for the end.
    pub fn break_off(&self, why: String) -> String {
        self.broken.get_or_init(|| why).clone()
    }

    /// Discards the frames of an ended connection, which then accesses no memory of transfers.
    pub fn abandon(&self, why: &str) {
        self.output.lock().clear();
        self.input.lock().abandon(why);
        self.stream.cut();
    }

    /// Returns whether the peer should cause no more output, because too many bytes wait for it.
    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Acquire)
    }

    /// Returns whether [`Link::is_behind`] has changed since the last call.
    pub fn take_behind_change(&self) -> bool {
        let changed = &self.behind_changed;
        changed.load(Ordering::Acquire) && changed.swap(false, Ordering::AcqRel)
    }

    /// Updates [`Link::is_behind`]. Fails if too much waits.
    fn look_behind(&self, output: &Output) -> Result<(), String> {
        let (pieces, copied) = output.waiting();
        if pieces > MOST_WAITING.0 || copied > MOST_WAITING.1 {
            return Err("it receives nothing".into());
        }
        let was = self.is_behind();
        let now = copied > BEHIND[usize::from(was)];
        if was != now {
            self.behind.store(now, Ordering::Release);
            self.behind_changed.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// If `hold` is set, the frame may stay here until [`Link::transmit`].
    pub fn post(
        &self,
        head: &Head,
        bytes: &[u8],
        memory: Option<(InUse, Vec<Run>)>,
        hold: bool,
    ) -> Result<(), String> {
        let mut output = self.output.lock();
        if let Some(why) = self.broken.get() {
            return Err(why.clone());
        }
        let posted = output.post(&*self.stream, head, bytes, memory, hold);
        let (pieces, copied) = output.waiting();
        let posted = match posted {
            Ok(()) if pieces > MOST_WAITING.0 || copied > BEHIND[0] => {
                output.flush(&*self.stream).map(drop)
            }
            posted => posted,
        };
        let looked = posted.map_err(|error| error.to_string());
        let looked = looked.and_then(|()| self.look_behind(&output));
        looked.map_err(|why| self.break_off(why))
    }

    /// Writes what was held.
    pub fn transmit(&self) -> Result<(), String> {
        let mut output = self.output.lock();
        if let Some(why) = self.broken.get() {
            return Err(why.clone());
        }
        output.transmit(&*self.stream).map_err(|error| self.break_off(error.to_string()))
    }

    /// Writes waiting frames. Returns whether any were.
    pub fn flush(&self) -> Result<bool, String> {
        let mut output = self.output.lock();
        if let Some(why) = self.broken.get() {
            return Err(why.clone());
        }
        let busy = output.flush(&*self.stream).map_err(|error| error.to_string())?;
        self.look_behind(&output)?;
        Ok(busy)
    }

    /// Progresses towards the end: writes what waits, or discards it if `at_once`, and discards
    /// what arrives. Returns whether the peer has ended the connection too.
    pub fn leave(&self, buffer: &mut [u8], at_once: bool) -> Result<bool, String> {
        let mut output = self.output.lock();
        if at_once {
            output.clear();
        }
        output.flush(&*self.stream).map_err(|error| error.to_string())?;
        if output.is_empty() && !self.left.swap(true, Ordering::AcqRel) {
            self.stream.end_output();
        }
        drop(output);
        self.stream.signalled();
        let into = Run { address: buffer.as_mut_ptr() as usize, len: buffer.len() };
        let _reading = self.input.lock();
        loop {
            // SAFETY: `into` is the caller's buffer. This thread holds the lock of the input.
            match unsafe { self.stream.read(&[into]) } {
                Ok(Read::Bytes(_)) => {}
                Ok(Read::Nothing) => return Ok(false),
                Ok(Read::End) => return Ok(self.has_left()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Returns whether this side has written everything and announced its end.
    pub fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }
}
