//! Function shipping: calls that run on another rank.

pub mod bulk;
pub mod checksum;
pub mod failure;
pub mod hg;
pub mod na;
pub mod proc;

pub use failure::{Failure, Result, Status};
pub use hg::Listen;
