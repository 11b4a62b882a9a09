//! The two C interfaces of Mercury: `mercury*.h` of 2013 with `na.h`, and `mercury2/*.h` of 2.4.
//!
//! Both drive the same engine (`portolan_rpc`) and share one implementation of its objects:
//!
//! | module | contents |
//! |---|---|
//! | [`interface`] | the names of the interfaces, and the export of their calls |
//! | [`table`] | tables of handles |
//! | `objects` | the state behind classes, contexts, addresses and bulk handles |
//! | [`params`] | the procs of functions, which encode, decode and free parameters |
//! | [`proc_bulk`] | bulk handles as parameters |
//! | `operations` | bulk transfers that can be cancelled |
//! | [`entry`] | conversions of arguments from C, panics, errors |
//!
//! The other modules belong to one interface:
//!
//! | module | contents |
//! |---|---|
//! | [`types`] | return codes, constants and their Rust counterparts |
//! | [`proc`] | `hg_proc_*`: procs and their buffers |
//! | [`proc_types`] | `hg_proc_int32_t` and the other basic types |
//! | [`proc_string`] | `hg_proc_hg_string_t` and its variants, `hg_string_object_*` |
//! | [`checksum`] | `hg_checksum_*` |
//! | [`na`] | `na.h`: classes, contexts, addresses, progress |
//! | [`na_transfer`] | `na.h`: messages, memory handles, put and get |
//! | [`hg1_client`] | `mercury.h` of 2013: client calls |
//! | [`hg1_server`] | `mercury_handler.h`: server calls |
//! | [`hg1_bulk`] | `mercury_bulk.h` |
//! | [`hg2_class`] | Mercury 2 calls whose names do not clash: classes, functions, addresses |
//! | [`hg2_handle`] | Mercury 2 calls: handles |
//! | [`hg2_bulk`] | Mercury 2 calls: bulk data |
//! | [`handles`] | call handles of 2013 |
//! | [`functions`] | functions of 2013 and their callbacks at the server |
//! | [`callbacks`] | the structs of 2013 that callbacks receive |
//! | [`v2`] | the interface of 2.4 under its own names |
//!
//! **Invariant.** An object belongs to the interface that created it, and so does every object
//! reachable from it. There is one [`Tables`](table::Tables) for each kind of object, with a table
//! for each interface. The handles of the two tables differ in their upper byte, so each interface
//! refuses the handles of the other. The state behind a handle and the code that changes it are
//! shared. A module of an interface converts names, codes and structs, and decides what differs:
//!
//! | | 2013 | 2.4 |
//! |---|---|---|
//! | codes | the numbers of [`Status`](portolan_rpc::failure::Status) | `v2::codes` |
//! | numbers of functions | 32 bits | 64 bits |
//! | address | has a handle for each duplicate, belongs to no class | counts references, ends with its class |
//! | bulk handle | is never bound; a transfer does not check permissions at its start | can be bound; does check them |
//! | call handle | counts references and pending callbacks apart, names its peer on demand | counts both together, has an address and buffers from the start |
//! | context | is destroyed with its calls and handles | is not destroyed while it has handles |
//! | function without a proc | has no parameters | refuses to decode them |
//!
//! **Errors.** A call that returns an error code changes no state unless its documentation says
//! otherwise. `portolan_last_error` returns the reason.

#![allow(non_snake_case, reason = "the names of the calls of C")]

pub(crate) mod callbacks;
pub(crate) mod checksum;
pub(crate) mod entry;
pub(crate) mod functions;
pub(crate) mod handles;
pub(crate) mod hg1_bulk;
pub(crate) mod hg1_client;
pub(crate) mod hg1_server;
pub(crate) mod hg2_bulk;
pub(crate) mod hg2_class;
pub(crate) mod hg2_handle;
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
