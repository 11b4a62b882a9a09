//! The first message or transfer to a peer connects ([`super::dialling`]).

use super::arrivals::Arrivals;
use super::dialling::Kept;
use super::link::Link;
use super::listener::{Opened, Who};
use super::{Links, sm, tcp};
use crate::failure::{Failure, Result, Status, refuse};
use crate::na::address::Peer;
use crate::na::class::{Plugin, Shared};
use portolan_base::error::{Error, ErrorKind};
use std::sync::Arc;

/// The networks of a class, which the threads that connect share.
pub(super) struct Networks {
    /// The name in addresses and errors.
    pub name: String,
    pub tcp: Option<tcp::Tcp>,
    pub sm: Option<sm::Sm>,
    pub arrivals: Arc<Arrivals>,
}

impl Networks {
    fn dial(&self, place: &str, n: u32) -> Result<Opened> {
        let life = self.arrivals.peers.life_for(place);
        let share = |memory: &str| match &self.sm {
            Some(sm) => sm.dial(memory, n, life),
            None => refuse!(NODEV, "the class has no shared memory"),
        };
        let opened = match &self.tcp {
            Some(tcp) => tcp.dial((&self.name, place), life, |memory| {
                let shared = share(memory).inspect_err(|failure| log::info!("{failure}"));
                shared.ok()
            }),
            None => share(place),
        };
        // The server may know itself by another name.
        opened.map(|opened| Opened { who: Who::Known(n), name: place.into(), ..opened })
    }
}

impl Links {
    pub(super) fn open_link(&self, n: u32) -> Result<Arc<Link>> {
        match self.peers().open(n) {
            Some(link) => Ok(link),
            None => refuse!(HOSTUNREACH, "the connection has ended"),
        }
    }

    /// Returns an open connection to a peer. If there is none and the peer was looked up, connects.
    /// If that takes long, keeps a message or a transfer, and returns `None`.
    pub(super) fn reach(
        &self,
        class: &Shared,
        n: u32,
        kept: impl FnOnce() -> Kept,
    ) -> Result<Option<Arc<Link>>> {
        if self.dialling.is_empty()
            && let Some(link) = self.peers().open(n)
        {
            return Ok(Some(link));
        }
        let mut dials = self.dialling.lock();
        let kept = match dials.keep(n, kept) {
            Ok(kept) => return kept.map(|()| None),
            Err(kept) => kept,
        };
        if let Some(link) = self.peers().open(n) {
            return Ok(Some(link));
        }
        let Some(place) = self.peers().dialled(n) else {
            refuse!(HOSTUNREACH, "the connection has ended");
        };
        let dial = dials.begin(n);
        drop(dials);
        self.lose(class, n);
        let (networks, result) = (self.networks.clone(), dial.clone());
        let connect = move || {
            portolan_base::process::quiet_signals();
            if result.finish(networks.dial(&place, n)) {
                networks.arrivals.dialled(n);
            }
        };
        let thread = std::thread::Builder::new().name("portolan-connect".into()).spawn(connect);
        if let Err(error) = thread {
            dial.finish(Err(Failure::new(Status::NOMEM, error.to_string())));
        }
        match dial.wait(kept)? {
            Some(result) => {
                self.end_dial(class, n, result)?;
                self.open_link(n).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Adds a connection that was made and sends what is kept for the peer, or fails it.
    pub(super) fn end_dial(&self, class: &Shared, n: u32, result: Result<Opened>) -> Result<()> {
        let failure = result.map(|opened| self.add(class, opened, false)).err();
        let mut failed = false;
        loop {
            let kept = self.dialling.lock().take_kept(n);
            if kept.is_empty() {
                break;
            }
            for kept in kept {
                match &failure {
                    None => self.send_kept(n, kept),
                    Some(failure) => {
                        kept.fail(&failure.to_string());
                        failed = true;
                    }
                }
            }
        }
        match failure {
            None => Ok(()),
            Some(failure) => {
                if failed {
                    log::debug!("{}: {failure}", self.name_of(n));
                    class.lost(Peer::Remote(n));
                }
                Err(failure)
            }
        }
    }

    /// Sends what was kept. If the connection has ended already, its end fails the calls.
    fn send_kept(&self, n: u32, kept: Kept) {
        let link = match self.open_link(n) {
            Ok(link) => link,
            Err(failure) => return kept.fail(&failure.to_string()),
        };
        match kept {
            Kept::Message { head, body } => {
                let _ = self.post(&link, &head, &body, None);
            }
            Kept::Request { class, chunk, counter } => {
                match self.request(class, &link, chunk, &counter) {
                    Ok(()) => counter.end(),
                    Err(failure) => {
                        counter.fail(Error::new(ErrorKind::Mpi, failure.to_string()));
                    }
                }
            }
        }
    }
}
