//! What a process brings to its greetings, and the greetings that it is making as a client, for the
//! question of a server without a key.

use super::hello::Offer;
use super::transcript::canonical;
use crate::na::links::listener::Refusal;
use crate::na::secret::{Key, Nonce, random};
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;

#[derive(Debug, Default)]
pub struct Own {
    pub place: String,
    pub key: Option<Key>,
    /// The name of its shared memory if peers on this host may use it.
    pub memory: Option<String>,
    pub dials: Dials,
}

impl Own {
    pub(super) fn offer(&self) -> Offer {
        Offer { has_key: self.key.is_some(), shares: self.memory.is_some() }
    }
}

pub(super) fn nonce() -> Result<Nonce, Refusal> {
    random().map_err(|failure| Refusal::Failed(io::Error::other(failure.text().to_string())))
}

/// The greetings of a process as a client: their nonces, and the servers' addresses.
#[derive(Debug, Default)]
pub struct Dials(Mutex<Vec<(Nonce, SocketAddr)>>);

#[derive(Debug)]
pub struct Dial<'a> {
    dials: &'a Dials,
    pub(super) nonce: Nonce,
}

impl Dials {
    pub fn begin(&self, there: SocketAddr) -> Result<Dial<'_>, Refusal> {
        Ok(self.begin_with(nonce()?, there))
    }

    pub(super) fn begin_with(&self, nonce: Nonce, there: SocketAddr) -> Dial<'_> {
        self.0.lock().push((nonce, there));
        Dial { dials: self, nonce }
    }

    /// Returns whether this process is greeting the server at `there` with this nonce.
    pub(super) fn include(&self, nonce: &Nonce, there: SocketAddr) -> bool {
        let dials = self.0.lock();
        dials.iter().any(|(own, at)| own == nonce && canonical(*at) == canonical(there))
    }
}

impl Drop for Dial<'_> {
    fn drop(&mut self) {
        self.dials.0.lock().retain(|(nonce, _)| *nonce != self.nonce);
    }
}
