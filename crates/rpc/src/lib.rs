//! Function shipping: calls that run on another rank.
//!
//! | module | contents |
//! |---|---|
//! | [`proc`] | parameters as bytes: the codec that C procs and Rust types share |
//! | [`checksum`] | checksums over those bytes |
//! | `failure` | statuses and failed calls |
//! | [`hg`] | classes, contexts, functions, calls |
//! | [`bulk`] | memory as a parameter of calls, and its transfers |
//! | [`na`] | the network: classes, contexts, addresses, messages, memory |

pub mod bulk;
pub mod checksum;
pub mod failure;
pub mod hg;
pub mod na;
pub mod proc;

pub use failure::{Failure, Result, Status};
pub use hg::Listen;
