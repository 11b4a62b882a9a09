//! How memory that a rank does not map is reached: the paths, and the capabilities of transports.

use std::ops::BitOr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    Direct,
    Rma,
    Message,
    /// An external transport ([`crate::path::install`]).
    Installed,
}

impl Path {
    pub const REMOTE: [Path; 3] = [Path::Rma, Path::Message, Path::Installed];

    /// Returns the name as spelled in `PORTOLAN_PATH`.
    pub fn name(self) -> &'static str {
        match self {
            Path::Direct => "direct",
            Path::Rma => "rma",
            Path::Message => "message",
            Path::Installed => "installed",
        }
    }

    /// Returns the bit of the path in [`crate::core::peer::Peers::pending`].
    #[inline]
    pub const fn pending_bit(self) -> u8 {
        match self {
            Path::Direct => 0,
            Path::Rma => 1,
            Path::Message => 2,
            Path::Installed => 4,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(u8);

impl Capabilities {
    /// Puts and gets along shapes.
    pub const TRANSFER: Capabilities = Capabilities(1);
    /// Accumulates and read-modify-writes.
    pub const ATOMIC: Capabilities = Capabilities(1 << 1);
    /// Small blocks can share one operation.
    pub const BATCH: Capabilities = Capabilities(1 << 2);
    /// Operations to one target take effect in the order in which they were issued.
    pub const ORDERED: Capabilities = Capabilities(1 << 3);
    /// An accumulate has read its source when the call returns.
    pub const COPIES_SOURCE: Capabilities = Capabilities(1 << 4);
    /// The owner executes read-modify-writes. Ranks of a node then combine their additions.
    pub const BY_OWNER: Capabilities = Capabilities(1 << 5);
    /// The blocks of a vector can be one operation.
    pub const VECTOR: Capabilities = Capabilities(1 << 6);

    #[inline]
    pub const fn contains(self, other: Capabilities) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Capabilities {
    type Output = Capabilities;

    fn bitor(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }
}
