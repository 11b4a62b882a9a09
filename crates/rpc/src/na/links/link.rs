//! A connection of a class: its stream and its frames. A `String` error says why it has ended.

use super::input::Input;
use super::output::Output;
use super::stream::{Read, Stream};
use crate::na::memory::{InUse, Run};
use crate::na::wire::Head;
use parking_lot::Mutex;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

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

    pub fn descriptor(&self) -> RawFd {
        self.stream.descriptor()
    }

    pub fn signalled(&self) {
        self.stream.signalled();
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

    /// If `hold` is set, the frame may stay here until [`Link::transmit`].
    ///
    /// # Safety
    /// The requirements of [`Output::post`] apply. Abandoning the connection clears the output.
    pub unsafe fn post(
        &self,
        head: &Head,
        bytes: &[u8],
        runs: &[Run],
        guard: Option<InUse>,
        hold: bool,
    ) -> Result<(), String> {
        let mut output = self.output.lock();
        if let Some(why) = self.broken.get() {
            return Err(why.clone());
        }
        // SAFETY: the caller guarantees the runs.
        let posted = unsafe { output.post(&*self.stream, head, bytes, runs, guard, hold) };
        posted.map_err(|error| self.break_off(error.to_string()))
    }

    /// Writes what was held.
    pub fn transmit(&self) -> Result<(), String> {
        let mut output = self.output.lock();
        if let Some(why) = self.broken.get() {
            return Err(why.clone());
        }
        output.transmit(&*self.stream).map_err(|error| self.break_off(error.to_string()))
    }

    /// Writes waiting frames. Returns whether any were, and the pieces and copied bytes left.
    pub fn flush(&self) -> Result<(bool, usize, usize), String> {
        let mut output = self.output.lock();
        if let Some(why) = self.broken.get() {
            return Err(why.clone());
        }
        let busy = output.flush(&*self.stream).map_err(|error| error.to_string())?;
        let (pieces, copied) = output.waiting();
        Ok((busy, pieces, copied))
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
        loop {
            // SAFETY: `into` is the caller's buffer.
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
