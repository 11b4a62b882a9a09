//! Addresses of the processes that a class can communicate with.

use crate::failure::{Result, refuse};
use std::net::Ipv6Addr;

/// Maximum length in bytes of an address as text, including the terminating NUL.
pub const MAX_ADDRESS: usize = 1024;

/// The source or destination of a message or transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// The calling process.
    Own,
    /// Another rank of this job.
    Rank(u32),
    /// A connected process. The low [`INDEX_BITS`] of its number are its index in tables; the rest
    /// distinguishes the successive peers of an index.
    Remote(u32),
}

pub(crate) const INDEX_BITS: u32 = 24;

#[inline]
pub(crate) fn index_of(remote: u32) -> usize {
    (remote & ((1 << INDEX_BITS) - 1)) as usize
}

/// An address of a class. Copies remain valid until the class is finalised. No other class accepts
/// it, except that all classes over MPI accept the address of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    /// The number of the class in this process.
    pub(super) class: u32,
    #[doc(hidden)]
    pub peer: Peer,
}

impl Address {
    /// Returns whether this is the address of the calling process.
    pub fn is_self(&self) -> bool {
        self.peer == Peer::Own
    }

    /// Returns the rank if the address is that of another rank of this job.
    pub fn rank(&self) -> Option<usize> {
        match self.peer {
            Peer::Rank(rank) => Some(rank as usize),
            _ => None,
        }
    }
}

/// The network that a class runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// The calling process alone.
    Own,
    /// The ranks of this job.
    Mpi,
    /// Processes of the same user on this host, through shared memory.
    Sm,
    /// Processes on any host, through TCP.
    Tcp,
}

/// The names of each network in information strings and addresses. The first one is canonical.
const NETWORKS: [(Scheme, &[&str], &str); 4] = [
    (Scheme::Own, &["self", "na+self"], "the calling process"),
    (Scheme::Mpi, &["mpi", "mpi+static"], "the ranks of this job"),
    (Scheme::Sm, &["na+sm", "sm"], "processes of this host"),
    (
        Scheme::Tcp,
        &["tcp", "ofi+tcp", "ofi+tcp;ofi_rxm", "ofi+sockets", "bmi+tcp", "na+tcp"],
        "processes of any host",
    ),
];

/// A parsed information string: `NETWORK` or `NETWORK://PLACE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network<'a> {
    pub scheme: Scheme,
    /// The name of the network as it is written in the string.
    pub name: &'a str,
    /// The part after `://`, which says where to listen; may be empty.
    pub place: &'a str,
}

fn split(text: &str) -> Option<Network<'_>> {
    let (name, place) = text.trim().split_once("://").unwrap_or((text.trim(), ""));
    let (scheme, ..) = NETWORKS.iter().find(|(_, names, _)| names.contains(&name))?;
    Some(Network { scheme: *scheme, name, place })
}

impl Scheme {
    pub fn name(self) -> &'static str {
        let row = NETWORKS.iter().find(|(scheme, ..)| *scheme == self);
        row.map_or("", |(_, names, _)| names[0])
    }
}

impl<'a> Network<'a> {
    /// Parses an information string. Returns `PROTONOSUPPORT` if the network is unknown, and
    /// `INVALID_ARG` if the string is empty; both list the known networks.
    pub fn parse(info: &'a str) -> Result<Network<'a>> {
        match split(info) {
            Some(network) => Ok(network),
            None if info.trim().is_empty() => {
                refuse!(INVALID_ARG, "the info string is empty; expected {}", known())
            }
            None if info.contains("mpi+dynamic") => refuse!(
                PROTONOSUPPORT,
                "'{info}' is not supported. Use tcp to connect processes that were started \
                 separately, or na+sm if they run on one host; neither needs MPI or a launcher"
            ),
            None => refuse!(PROTONOSUPPORT, "unknown network '{info}'; expected {}", known()),
        }
    }
}

fn known() -> String {
    let row = |(_, names, what): &(Scheme, &[&str], &str)| format!("{} ({what})", names.join(", "));
    NETWORKS.iter().map(row).collect::<Vec<_>>().join("; ")
}

#[derive(Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// `self`
    Own,
    /// `mpi://RANK`
    Rank(usize),
    /// `NETWORK://PLACE`, an address of a plug-in.
    Elsewhere(Scheme, &'a str),
}

impl<'a> Name<'a> {
    /// Parses an address name. If malformed, returns `INVALID_ARG` with the known forms.
    pub fn parse(name: &'a str) -> Result<Name<'a>> {
        match split(name) {
            Some(Network { scheme: Scheme::Own, .. }) => return Ok(Name::Own),
            Some(Network { scheme: Scheme::Mpi, place, .. }) => {
                if let Ok(rank) = place.parse() {
                    return Ok(Name::Rank(rank));
                }
            }
            Some(Network { scheme, place, .. }) if !place.is_empty() => {
                return Ok(Name::Elsewhere(scheme, place));
            }
            _ => {}
        }
        refuse!(
            INVALID_ARG,
            "'{name}' is not an address; expected self, mpi://RANK, na+sm://PID-N or \
             tcp://HOST:PORT"
        )
    }
}

/// Splits a TCP address, `HOST:PORT`. The host is a name, or an IPv6 address with or without
/// brackets. Returns `None` for anything else, so an address has no character that a log, a terminal
/// or a C string treats specially, and a port has one spelling.
pub(crate) fn host_and_port(place: &str) -> Option<(&str, u16)> {
    let (host, port) = place.rsplit_once(':')?;
    let number: u16 = port.parse().ok()?;
    if !port.bytes().all(|b| b.is_ascii_digit()) || port.len() > 1 && port.starts_with('0') {
        return None;
    }
    let is_name = |text: &str| {
        let of_name = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        !text.is_empty() && text.bytes().all(of_name)
    };
    let is_ipv6 = |text: &str| {
        let (address, interface) = text.split_once('%').unwrap_or((text, "0"));
        address.parse::<Ipv6Addr>().is_ok() && is_name(interface)
    };
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let valid = match inner {
        Some(inner) => is_ipv6(inner),
        None => is_name(host) || is_ipv6(host),
    };
    valid.then_some((host, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Status;

    #[test]
    fn names() {
        assert_eq!(Name::parse("self").unwrap(), Name::Own);
        assert_eq!(Name::parse("mpi://12").unwrap(), Name::Rank(12));
        assert_eq!(Name::parse("sm://17-0").unwrap(), Name::Elsewhere(Scheme::Sm, "17-0"));
        let tcp = Name::Elsewhere(Scheme::Tcp, "[::1]:7");
        assert_eq!(Name::parse("ofi+tcp;ofi_rxm://[::1]:7").unwrap(), tcp);
        for bad in ["", "mpi", "mpi://", "mpi://x", "mpi://-1", "ib://host:1", "mpi+dynamic://"] {
            assert!(Name::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn networks() {
        let scheme = |info| Network::parse(info).map(|network| network.scheme);
        assert_eq!(scheme("mpi").unwrap(), Scheme::Mpi);
        assert_eq!(scheme("self").unwrap(), Scheme::Own);
        assert_eq!(scheme("mpi+static").unwrap(), Scheme::Mpi);
        assert_eq!(scheme("na+sm").unwrap(), Scheme::Sm);
        let network = Network { scheme: Scheme::Tcp, name: "bmi+tcp", place: "localhost:3344" };
        assert_eq!(Network::parse(" bmi+tcp://localhost:3344").unwrap(), network);
        let refused = Network::parse("ofi+verbs://localhost").unwrap_err();
        assert_eq!(refused.status(), Status::PROTONOSUPPORT);
        for name in ["ofi+verbs", "mpi", "na+sm", "ofi+tcp;ofi_rxm"] {
            assert!(refused.text().contains(name), "{name}");
        }
        let refused = Network::parse("mpi+dynamic").unwrap_err();
        assert_eq!(refused.status(), Status::PROTONOSUPPORT);
        assert!(refused.text().contains("Use tcp"), "{refused}");
    }
}
