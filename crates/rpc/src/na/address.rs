//! Addresses of the processes that a class can communicate with.

use crate::failure::{Result, refuse};

/// Maximum length in bytes of an address as text, including the terminating NUL.
pub const MAX_ADDRESS: usize = 1024;

/// The source or destination of a message or transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// The calling process.
    Own,
    /// Another rank of this job.
    Rank(u32),
    /// A process of another job, identified by its connection number.
    Remote(u32),
}

/// An address of a class. Copies remain valid as long as the class exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
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
pub enum Scheme {
    /// The calling process alone.
    Own,
    /// The ranks of this job.
    Mpi,
    /// The ranks of this job and processes of other jobs.
    Dynamic,
}

impl Scheme {
    /// Parses an information string.
    ///
    /// # Errors
    /// Returns `PROTONOSUPPORT` if the network is unknown, and `INVALID_ARG` if the string is
    /// empty. The message lists the known networks.
    pub fn parse(info: &str) -> Result<Scheme> {
        match info.trim().split("://").next().unwrap_or("") {
            "self" | "na+self" => Ok(Scheme::Own),
            "mpi" | "mpi+static" => Ok(Scheme::Mpi),
            "mpi+dynamic" => Ok(Scheme::Dynamic),
            "" => refuse!(INVALID_ARG, "the info string is empty; expected {KNOWN}"),
            _ => refuse!(PROTONOSUPPORT, "unknown network '{info}'; expected {KNOWN}"),
        }
    }

    /// Returns the name of the network, as used in information strings.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Own => "self",
            Scheme::Mpi => "mpi",
            Scheme::Dynamic => "mpi+dynamic",
        }
    }
}

const KNOWN: &str = "mpi (the ranks of this job), mpi+dynamic (several jobs) or self";

/// A parsed address name.
#[derive(Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// `self`
    Own,
    /// `mpi://RANK`
    Rank(usize),
    /// `mpi+dynamic://PORT`
    Port(&'a str),
}

impl<'a> Name<'a> {
    /// Parses an address name.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if the name is malformed. The message lists the known forms.
    pub fn parse(name: &'a str) -> Result<Name<'a>> {
        let name = name.trim();
        if name == "self" || name.starts_with("self://") {
            return Ok(Name::Own);
        }
        if let Some(rank) = name.strip_prefix("mpi://") {
            if let Ok(rank) = rank.parse() {
                return Ok(Name::Rank(rank));
            }
        } else if let Some(port) = name.strip_prefix("mpi+dynamic://")
            && !port.is_empty()
        {
            return Ok(Name::Port(port));
        }
        refuse!(
            INVALID_ARG,
            "'{name}' is not an address; expected self, mpi://RANK or mpi+dynamic://PORT"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Status;

    #[test]
    fn names() {
        assert_eq!(Name::parse("self").unwrap(), Name::Own);
        assert_eq!(Name::parse("mpi://12").unwrap(), Name::Rank(12));
        assert_eq!(Name::parse("mpi+dynamic://a:b c").unwrap(), Name::Port("a:b c"));
        for bad in ["", "mpi", "mpi://", "mpi://x", "mpi://-1", "tcp://host:1", "mpi+dynamic://"] {
            assert!(Name::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn schemes() {
        assert_eq!(Scheme::parse("mpi").unwrap(), Scheme::Mpi);
        assert_eq!(Scheme::parse("self").unwrap(), Scheme::Own);
        assert_eq!(Scheme::parse("mpi+dynamic").unwrap(), Scheme::Dynamic);
        let refused = Scheme::parse("bmi+tcp://localhost:3344").unwrap_err();
        assert_eq!(refused.status(), Status::PROTONOSUPPORT);
        assert!(refused.text().contains("bmi+tcp") && refused.text().contains("mpi+dynamic"));
    }
}
