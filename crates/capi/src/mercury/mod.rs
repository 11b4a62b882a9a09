//! The two C interfaces of Mercury: `mercury*.h` of 2013 with `na.h`, and `mercury2/*.h` of 2.4.
//!
//! Both drive the same engine (`portolan_rpc`) and share its objects (`objects`), the tables of
//! handles ([`table`]), the procs of functions ([`params`], [`proc_bulk`]), transfers that can be
//! cancelled (`operations`), and the conversion of arguments, panics and errors ([`entry`]).
//! [`interface`] exports the calls. The modules `hg1_*`, [`na`], [`na_transfer`], [`proc`] and its
//! types, [`checksum`] and [`handles`] belong to 2013, [`v2`] to 2.4.
//!
//! **Invariant.** An object belongs to the interface that created it, and so does every object
//! reachable from it. Each kind of object has one [`Tables`](table::Tables) with a table for each
//! interface, and each interface refuses the handles of the other. The state and the code that
//! changes it are shared. A module of an interface converts names, codes and structs, and decides
//! what differs:
//!
//! | | 2013 | 2.4 |
//! |---|---|---|
//! | codes | the numbers of [`Status`](portolan_rpc::failure::Status) | `v2::codes` |
//! | numbers of functions | 32 bits | 64 bits |
//! | address | has a handle for each duplicate, belongs to no class | counts references, ends with its class |
//! | bulk handle | is never bound; a transfer does not check permissions at its start | can be bound; does check them |
//! | call | a request at its origin, a handle at its target | a handle with an address, buffers and references |
//! | function without a proc | has no parameters | refuses to decode them |
//!
//! **Errors.** A call that returns an error code changes no state unless its documentation says
//! otherwise. `portolan_last_error` returns the reason.

#![allow(non_snake_case, reason = "the names of the calls of C")]

pub(crate) mod checksum;
pub(crate) mod entry;
pub(crate) mod handles;
pub(crate) mod hg1_bulk;
pub(crate) mod hg1_client;
pub(crate) mod hg1_server;
pub(crate) mod interface;
pub(crate) mod na;
pub(crate) mod na_transfer;
mod objects;
mod operations;
pub(crate) mod params;
pub(crate) mod proc;
pub(crate) mod proc_bulk;
pub(crate) mod proc_string;
pub(crate) mod proc_types;
pub(crate) mod table;
pub(crate) mod types;
pub(crate) mod v2;
