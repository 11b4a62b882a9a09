//! The two C interfaces of Mercury: [`v2013`] (`mercury*.h` and `na.h`) and [`v2_4`]
//! (`mercury2/*.h`).
//!
//! Both drive the same engine (`portolan_rpc`) and share one set of objects (`objects`) with one table
//! of handles for each kind ([`table`]), the procs of functions ([`params`], [`proc`]) and the
//! conversion of arguments, panics and errors ([`entry`]). [`interface`] exports the calls.
//!
//! **Invariant.** The state of an object and the code that changes it are shared, whichever interface
//! created the object. A module of an interface converts names, codes and structs, and decides what
//! differs:
//!
//! | | 2013 | 2.4 |
//! |---|---|---|
//! | codes | the numbers of [`Status`](portolan_rpc::failure::Status) | `v2_4::codes` |
//! | numbers of functions | 32 bits | 64 bits |
//! | address | a duplicate has a handle of its own; belongs to no class | a duplicate is a reference; ends with its class |
//! | bulk handle | is never bound; a transfer does not check permissions at its start | can be bound; does check them |
//! | call | a request at its origin, a handle at its target | a handle with an address, buffers and references |
//! | function without a proc | has no parameters | refuses to decode them |
//! | missing bytes of a serialised handle | `PROTOCOL_ERROR` | `OVERFLOW` |
//!
//! **Errors.** A call that returns an error code changes no state unless its documentation says
//! otherwise. `portolan_last_error` returns the reason.

#![allow(non_snake_case, reason = "the names of the calls of C")]

pub(crate) mod entry;
pub(crate) mod interface;
mod objects;
pub(crate) mod params;
pub(crate) mod proc;
pub(crate) mod table;
pub(crate) mod v2013;
pub(crate) mod v2_4;
