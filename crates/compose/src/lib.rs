//! Compose and perform: describe once which bytes go where, then move them many times.
//!
//! A *composition* is a set of triples (local byte, target, remote byte). It is *simple* while it
//! has one target and pairs are added to it, *merged* if it was made from other compositions, and
//! *mapped* after it was converted to the form that the paths execute best. A *performance*
//! executes a mapped composition. There is no intermediate buffer within a node, so ranks
//! synchronise before they perform, and afterwards wait for the data of others.
//!
//! The pairs of a [`composition`] are collected ([`part`], [`mod@slice`]), normalised
//! ([`normalize`]), folded into loops ([`loop_detect`]) and prepared for their path ([`plan`],
//! [`loops`]). [`perform`] executes plans, [`guard`] detects freed segments, [`notify`] counts
//! arrived performances, and [`store`] encodes compositions for files ([`mod@file`]).
//!
//! **Steps of a performance.** [`perform::Composer::perform`] checks that the plan's segments still
//! exist, starts the transfers that use windows, messages, or memory outside segments, copies to
//! the ranks of the node and notifies them. Finally it notifies the other ranks, ordered after
//! their data.
//!
//! **Sets.** A triple that is added twice counts once. One local byte may go to several places. If
//! two local bytes go to one remote byte, mapping fails. The order of the copies is unspecified, so
//! a performance must not read bytes that any performance of the same phase writes.
//!
//! **Compositions are independent.** Merging and mapping take a snapshot of their inputs. Parts are
//! shared until one is modified, so merging is cheap.
//!
//! **When buffers may be reused.** Within a node, a performance is complete when the call returns.
//! For other targets, local bytes must not change until the next wait or sync.

pub mod composition;
pub mod file;
pub mod guard;
pub mod locate;
pub(crate) mod loop_detect;
pub mod loops;
pub(crate) mod normalize;
pub mod notify;
pub mod part;
pub mod perform;
pub mod plan;
pub mod slice;
pub mod store;

pub use composition::{Composition, CompositionKind};
pub use perform::Composer;
pub use slice::Blocks;
pub use store::Trust;
