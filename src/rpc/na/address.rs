//! The processes that a class can talk to.

use crate::rpc::failure::{Result, refuse};

/// Longest address as text, with its terminating zero.
pub const MAX_ADDRESS: usize = 1024;

/// Where something comes from or goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    /// This process.
    Own,
    /// A rank of this job.
    Rank(u32),
    /// A process of another job: a connection.
    Remote(u32),
}

/// An address of a class. Copies stay valid as long as the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    pub(crate) peer: Peer,
}

impl Address {
    /// Whether the address is the calling process's own.
    pub fn is_self(&self) -> bool {
        self.peer == Peer::Own
    }

    /// The rank, where it is another rank of this job.
    pub fn rank(&self) -> Option<usize> {
        match self.peer {
            Peer::Rank(rank) => Some(rank as usize),
            _ => None,
        }
    }
}

/// What a class runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// This process alone.
    Own,
    /// The ranks of this job.
    Mpi,
    /// The ranks of the job, and processes of other jobs.
    Dynamic,
}

impl Scheme {
    /// Of an information string.
    ///
    /// # Errors
    /// `PROTONOSUPPORT`, with what is known.
    pub fn parse(info: &str) -> Result<Scheme> {
        match info.trim().split("://").next().unwrap_or("") {
            "self" | "na+self" => Ok(Scheme::Own),
            "mpi" | "mpi+static" => Ok(Scheme::Mpi),
            "mpi+dynamic" => Ok(Scheme::Dynamic),
            "" => refuse!(INVALID_ARG, "the information string is empty; expected {KNOWN}"),
            _ => refuse!(PROTONOSUPPORT, "there is no network '{info}'; expected {KNOWN}"),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Own => "self",
            Scheme::Mpi => "mpi",
            Scheme::Dynamic => "mpi+dynamic",
        }
    }
}

const KNOWN: &str = "mpi (the ranks of this job), mpi+dynamic (several jobs) or self";

/// An address as text, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name<'a> {
    /// `self`
    Own,
    /// `mpi://RANK`
    Rank(usize),
    /// `mpi+dynamic://PORT`
    Port(&'a str),
}

impl<'a> Name<'a> {
    /// Takes a text apart.
    ///
    /// # Errors
    /// `INVALID_ARG`, with the forms that are known.
    pub(crate) fn parse(name: &'a str) -> Result<Name<'a>> {
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
            "'{name}' is no address; expected self, mpi://RANK or mpi+dynamic://PORT"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::failure::Status;

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
        assert_eq!(refused.status, Status::PROTONOSUPPORT);
        assert!(refused.text.contains("bmi+tcp") && refused.text.contains("mpi+dynamic"));
    }
}
