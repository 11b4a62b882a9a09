//! Addresses of a class.

use super::Shared;
use crate::failure::{Result, refuse};
use crate::na::address::{Address, Name, Peer};

impl Shared {
    /// Returns the address with the given name. Over `na+sm` and `tcp` the first message connects,
    /// and fails if that is not possible. Returns `INVALID_ARG` if the name is malformed, and
    /// `ADDRNOTAVAIL` if the rank is outside the job or the address belongs to another network.
    pub fn lookup(&self, name: &str) -> Result<Address> {
        self.check_open()?;
        let peer = match Name::parse(name)? {
            Name::Own => Peer::Own,
            Name::Rank(rank) => {
                let Some(engine) = self.engine() else {
                    let own = self.scheme.name();
                    refuse!(ADDRNOTAVAIL, "a class over {own} does not reach '{name}'");
                };
                if rank >= engine.size() {
                    refuse!(
                        ADDRNOTAVAIL,
                        "'{name}' is outside the {} ranks of the job",
                        engine.size()
                    );
                }
                self.peer_of(rank)
            }
            Name::Elsewhere(scheme, name) => match &self.plugin {
                Some(plugin) if scheme == self.scheme => plugin.connect(name)?,
                _ => refuse!(
                    ADDRNOTAVAIL,
                    "'{name}' is an address of {}; the class was created over {}",
                    scheme.name(),
                    self.scheme.name()
                ),
            },
        };
        Ok(self.address(peer))
    }

    pub(crate) fn address(&self, peer: Peer) -> Address {
        Address { class: self.serial, peer }
    }

    /// Returns the peer that an address names, or `ADDRNOTAVAIL` for an address of another class.
    #[inline]
    pub(crate) fn peer(&self, address: &Address) -> Result<Peer> {
        if address.class != self.serial {
            refuse!(ADDRNOTAVAIL, "the address belongs to another class; look it up in this one");
        }
        Ok(address.peer)
    }

    pub(super) fn peer_of(&self, rank: usize) -> Peer {
        match self.engine() {
            Some(engine) if engine.rank() != rank => Peer::Rank(rank as u32),
            _ => Peer::Own,
        }
    }

    pub fn text_of(&self, address: &Address) -> String {
        if self.peer(address).is_err() {
            return "(an address of another class)".into();
        }
        match (address.peer, self.engine()) {
            (Peer::Own, engine) => {
                let name = self.plugin.as_ref().and_then(|plugin| plugin.own_name());
                name.unwrap_or_else(|| match engine {
                    Some(engine) => format!("mpi://{}", engine.rank()),
                    None => self.scheme.name().into(),
                })
            }
            (Peer::Rank(rank), _) => format!("mpi://{rank}"),
            (Peer::Remote(n), _) => {
                self.plugin.as_ref().map_or_else(String::new, |plugin| plugin.name_of(n))
            }
        }
    }
}
