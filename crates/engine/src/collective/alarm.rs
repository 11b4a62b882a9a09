//! The alarm of a group, raised when its ranks have made different collective calls.
//!
//! The rank that finds two different [calls](super::call) raises the alarm. On its node the alarm
//! is a text in the shared-memory collective area. Each of the other nodes receives a message on
//! the communicator of the engine's collectives. A raised alarm ends every wait of a collective,
//! and every later collective of the group fails with the same text. After ranks have made
//! different calls, it is undecidable which of their next calls belong together.
//!
//! Ranks that wait in a collective of any group receive the messages, because only they need them.
//!
//! Ranks that create a group do not have a common key yet. Their alarm therefore permanently
//! disables the creation of groups on every rank that it reaches.

use super::slots::Slots;
use super::wire::Wire;
use crate::error::{Error, ErrorKind, Result};
use crate::mpi::p2p;
use std::sync::{Arc, OnceLock};

/// Maximum length in bytes of the text, in shared memory and in messages.
pub(super) const TEXT: usize = 496;

/// An alarm in the format of messages.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Notice {
    key: u64,
    len: u64,
    text: [u8; TEXT],
}

impl Notice {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text[..(self.len as usize).min(TEXT)]).into_owned()
    }
}

/// Identifies the group of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// The key of the group.
    Group(u64),
    /// A group that is being created.
    Making,
}

impl Key {
    fn number(self) -> u64 {
        match self {
            Key::Group(key) => key,
            Key::Making => u64::MAX,
        }
    }
}

/// The alarm of one group, as one of its ranks sees it.
#[derive(Debug)]
pub(super) struct Alarm {
    /// If there are other nodes: their communicator, and the world ranks of their leaders.
    others: Option<(Arc<Wire>, Vec<usize>)>,
    key: Key,
    /// World ranks of the group.
    members: Arc<[usize]>,
    text: OnceLock<String>,
    slots: OnceLock<Arc<Slots>>,
}

impl Alarm {
    /// Creates the alarm of the group with this key.
    pub fn new(others: Option<(Arc<Wire>, Vec<usize>)>, key: Key, members: Arc<[usize]>) -> Alarm {
        Alarm { others, key, members, text: OnceLock::new(), slots: OnceLock::new() }
    }

    /// Sets the shared memory of the node's ranks. It holds the alarm of the node.
    pub(super) fn set_slots(&self, slots: Arc<Slots>) {
        let _ = self.slots.set(slots);
    }

    /// Returns the world ranks of the group.
    pub(super) fn members(&self) -> &[usize] {
        &self.members
    }

    /// Returns the text of an alarm that this rank has raised or received by message.
    pub(super) fn text(&self) -> Option<&String> {
        self.text.get()
    }

    /// Returns whether the alarm is raised, as far as this rank knows.
    #[inline]
    pub(super) fn is_raised(&self) -> bool {
        self.text.get().is_some() || self.slots.get().is_some_and(|slots| slots.is_alarmed())
    }

    /// # Errors
    /// Returns `Mismatch` if the alarm is raised.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        if self.is_raised() { Err(self.error()) } else { Ok(()) }
    }

    /// Performs [`Alarm::check`] for a waiting thread, which also receives alarms of other nodes.
    pub(super) fn check_others(&self) -> Result<()> {
        if !self.is_raised() {
            self.listen()?;
        }
        self.check()
    }

    fn listen(&self) -> Result<()> {
        let Some((wire, _)) = &self.others else { return Ok(()) };
        let mut notice: Notice = bytemuck::Zeroable::zeroed();
        while let Some(message) = p2p::improbe(wire.comm(), None, Some(Wire::NOTICE))? {
            message.receive(bytemuck::bytes_of_mut(&mut notice))?;
            wire.keep_notice(notice);
        }
        let key = self.key.number();
        if let Some(notice) = wire.notice_of(|notice| notice.key == key) {
            self.note(&notice.text());
            // Forwards the alarm in two cases. The rank that raised it may have another list of
            // ranks. Or the group is complete on that rank, which then notifies only leaders, while
            // ranks of this node still create the group and share no memory yet.
            if self.key == Key::Making || self.slots.get().is_none() {
                self.send(notice);
            }
        }
        Ok(())
    }

    /// Sends a notice to the other nodes.
    fn send(&self, notice: Notice) {
        let Some((wire, ranks)) = &self.others else { return };
        // The notice is leaked: no rank waits for the completion of these sends, and a group has
        // one alarm at most.
        let bytes = bytemuck::bytes_of::<Notice>(Box::leak(Box::new(notice)));
        for &rank in ranks {
            // SAFETY: the bytes are leaked, so they are never freed or changed.
            let sent =
                unsafe { p2p::isend(wire.comm(), bytes.as_ptr(), bytes.len(), rank, Wire::NOTICE) };
            if let Err(error) = sent {
                log::debug!("cannot alert rank {rank}: {error:#}");
            }
        }
    }

    /// Stores the text of the alarm on this rank and in the shared memory of its node.
    fn note(&self, text: &str) {
        let _ = self.text.set(text.to_string());
        if let Some(slots) = self.slots.get() {
            slots.set_alarm(text.as_bytes());
        }
    }

    /// Raises the alarm on this node and on all other nodes, and returns the error.
    pub(super) fn raise(&self, text: &str) -> Error {
        if !self.is_raised() {
            self.note(text);
            let mut notice: Notice = bytemuck::Zeroable::zeroed();
            let len = text.len().min(TEXT);
            notice.text[..len].copy_from_slice(&text.as_bytes()[..len]);
            notice.len = len as u64;
            notice.key = self.key.number();
            self.send(notice);
        }
        self.error()
    }

    fn error(&self) -> Error {
        let slots = || self.slots.get().map(|slots| slots.alarm()).unwrap_or_default();
        let text = self.text.get().cloned().unwrap_or_else(slots);
        Error::new(ErrorKind::Mismatch, format!("the ranks' collective calls differ: {text}"))
    }
}
