//! The interface of 2013: `include/mercury*.h` and `include/na.h`.
//!
//! A process has one class and one context, which `HG_Init` creates. A call is a request at its origin
//! ([`client`]) and a handle at its target ([`server`]). `HG_Wait` and
//! `HG_Handler_process` make progress and run calls and callbacks.

pub(crate) mod bulk;
pub(crate) mod checksum;
pub(crate) mod client;
pub(crate) mod na;
pub(crate) mod na_transfer;
pub(crate) mod server;
