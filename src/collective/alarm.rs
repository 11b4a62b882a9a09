//! The alarm of a group: its ranks have made different collective calls.
//!
//! The rank that finds two [calls](super::call) that differ raises the alarm. On its node the alarm
//! is a text in the memory of the board. The other nodes get a message each, on the communicator
//! of the groups' own messages. Every wait of a collective ends when the alarm is raised, and every
//! later collective of the group fails with the same text: once ranks have made different calls,
//! nobody can tell which of their next calls belong together.
//!
//! The messages are received by ranks that wait in a collective of any group, because only they
//! need them.
//!
//! Ranks that make a group have no key in common yet. An alarm of theirs is for all creations of groups
//! by the ranks that it reaches, for good.

use super::slots::Slots;
use super::wire::Wire;
use crate::error::{Error, ErrorKind, Result};
use crate::mpi::p2p;
use std::sync::{Arc, OnceLock};

/// Bytes of the text, on the board and in messages.
pub(super) const TEXT: usize = 496;

/// An alarm as it travels.
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

/// What a group's alarms are known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// The key of the group.
    Group(u64),
    /// A group that is being made.
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

/// The alarm of one group, as one of its ranks knows it.
#[derive(Debug)]
pub(super) struct Alarm {
    /// Where there are other nodes: how they are reached, and their leaders' ranks in the world.
    others: Option<(Arc<Wire>, Vec<usize>)>,
    key: Key,
    /// World ranks of the group.
    members: Arc<[usize]>,
    text: OnceLock<String>,
    slots: OnceLock<Arc<Slots>>,
}

impl Alarm {
    /// Of the group with this key.
    pub(super) fn new(
        others: Option<(Arc<Wire>, Vec<usize>)>,
        key: Key,
        members: Arc<[usize]>,
    ) -> Alarm {
        Alarm { others, key, members, text: OnceLock::new(), slots: OnceLock::new() }
    }

    /// The ranks of the node share this memory.
    pub(super) fn set_slots(&self, slots: Arc<Slots>) {
        let _ = self.slots.set(slots);
    }

    /// World ranks of the group.
    pub(super) fn members(&self) -> &[usize] {
        &self.members
    }

    /// The text of an alarm that this rank has raised or received.
    pub(super) fn text(&self) -> Option<&String> {
        self.text.get()
    }

    /// Whether the alarm is raised, as far as this rank knows.
    #[inline]
    pub(super) fn is_raised(&self) -> bool {
        self.text.get().is_some() || self.slots.get().is_some_and(|slots| slots.is_alarmed())
    }

    /// # Errors
    /// `Mismatch` once the alarm is raised.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        if self.is_raised() { Err(self.error()) } else { Ok(()) }
    }

    /// [`Alarm::check`] of a thread that waits: it receives alarms of other nodes, too.
    pub(super) fn look(&self) -> Result<()> {
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
            // The rank that raised the alarm may know another list of ranks. Or the group stands on its
            // side, and ranks of this node that still make it have no board.
            if self.key == Key::Making || self.slots.get().is_none() {
                self.send(notice);
            }
        }
        Ok(())
    }

    /// Sends a notice to the other nodes.
    fn send(&self, notice: Notice) {
        let Some((wire, ranks)) = &self.others else { return };
        // Kept for good: nobody waits until it has left, and there is one in the life of a group.
        let bytes = bytemuck::bytes_of::<Notice>(Box::leak(Box::new(notice)));
        for &rank in ranks {
            // SAFETY: the bytes are never freed or changed.
            let sent =
                unsafe { p2p::isend(wire.comm(), bytes.as_ptr(), bytes.len(), rank, Wire::NOTICE) };
            if let Err(error) = sent {
                log::debug!("rank {rank} gets no alarm: {error:#}");
            }
        }
    }

    /// The alarm's text is known on this rank, and on its node.
    fn note(&self, text: &str) {
        let _ = self.text.set(text.to_string());
        if let Some(slots) = self.slots.get() {
            slots.set_alarm(text.as_bytes());
        }
    }

    /// Raises the alarm on this node and on all others.
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
