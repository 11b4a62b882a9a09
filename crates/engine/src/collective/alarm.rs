//! The alarm of a group, raised when its ranks have made different collective calls.
//!
//! The rank that finds two different [calls](super::call) raises the alarm. On its node the alarm
//! is a text in the shared-memory collective area. Each other node receives a message on the
//! communicator of the engine's collectives, in any rank that waits in a collective. A raised alarm
//! ends every wait of a collective of the group, and every later one fails with the same text,
//! because it is undecidable which of the next calls belong together. If all ranks agree to continue
//! ([`Group::resume`](super::group::Group::resume)), they get new collectives without the alarm.
//!
//! Ranks that create a group have no common key yet, so their alarm disables the creation of groups
//! for good on every rank that it reaches.

use super::slots::{Slots, TEXT};
use super::wire::Wire;
use crate::mpi::p2p;
use portolan_base::error::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Notice {
    pub key: u64,
    len: u64,
    text: [u8; TEXT],
}

impl Notice {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text[..(self.len as usize).min(TEXT)]).into_owned()
    }
}

/// The key of groups that are being created.
pub(super) const MAKING: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Alarm {
    /// If there are other nodes: a communicator with them, and the world ranks of their leaders.
    others: Option<(Arc<Wire>, Vec<usize>)>,
    key: u64,
    members: Arc<[usize]>,
    text: OnceLock<String>,
    slots: OnceLock<Arc<Slots>>,
    /// A call of this rank has failed with the text.
    told: AtomicBool,
}

impl Alarm {
    pub fn new(others: Option<(Arc<Wire>, Vec<usize>)>, key: u64, members: Arc<[usize]>) -> Alarm {
        let told = AtomicBool::new(false);
        Alarm { others, key, members, text: OnceLock::new(), slots: OnceLock::new(), told }
    }

    pub(super) fn set_slots(&self, slots: Arc<Slots>) {
        let _ = self.slots.set(slots);
    }

    pub(super) fn members(&self) -> &[usize] {
        &self.members
    }

    pub(super) fn text(&self) -> Option<&String> {
        self.text.get()
    }

    #[inline]
    pub(super) fn is_raised(&self) -> bool {
        self.text.get().is_some() || self.slots.get().is_some_and(|slots| slots.is_alarmed())
    }

    /// Fails with `Mismatch` if the alarm is raised.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        if self.is_raised() { Err(self.error()) } else { Ok(()) }
    }

    /// For a waiting thread, which also receives alarms of other nodes.
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
        if let Some(notice) = wire.notice_of(self.key) {
            self.note(&notice.text());
            // Forwards the alarm. The rank that raised it may have another list of ranks, or may
            // notify only leaders because the group is complete there, while ranks of this node
            // still create it and share no memory yet.
            if self.key == MAKING || self.slots.get().is_none() {
                self.send(notice);
            }
        }
        Ok(())
    }

    fn send(&self, notice: Notice) {
        let Some((wire, ranks)) = &self.others else { return };
        // Leaked, because no rank waits for these sends. A group has one alarm at most.
        let bytes = bytemuck::bytes_of::<Notice>(Box::leak(Box::new(notice)));
        for &rank in ranks {
            // SAFETY: the bytes are leaked.
            let sent =
                unsafe { p2p::isend(wire.comm(), bytes.as_ptr(), bytes.len(), rank, Wire::NOTICE) };
            if let Err(error) = sent {
                log::debug!("cannot alert rank {rank}: {error:#}");
            }
        }
    }

    fn note(&self, text: &str) {
        let _ = self.text.set(text.to_string());
        if let Some(slots) = self.slots.get() {
            slots.set_alarm(text.as_bytes());
        }
    }

    /// On this node and on all other nodes.
    pub(super) fn raise(&self, text: &str) -> Error {
        if !self.is_raised() {
            self.note(text);
            let mut notice: Notice = bytemuck::Zeroable::zeroed();
            let len = text.len().min(TEXT);
            notice.text[..len].copy_from_slice(&text.as_bytes()[..len]);
            notice.len = len as u64;
            notice.key = self.key;
            self.send(notice);
        }
        self.error()
    }

    fn error(&self) -> Error {
        let slots = || self.slots.get().map(|slots| slots.alarm()).unwrap_or_default();
        let text = self.text.get().cloned().unwrap_or_else(slots);
        let what = match self.told.swap(true, Ordering::Relaxed) {
            false => "the ranks' collective calls differ",
            true => "an earlier mismatch has ended the collectives of this group",
        };
        Error::new(ErrorKind::Mismatch, format!("{what}: {text}"))
    }
}
