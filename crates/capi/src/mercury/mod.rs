//! The C interface of Mercury as of 2013: `mercury*.h`.
//!
//! | module | contents |
//! |---|---|
//! | [`types`] | return codes, constants and their Rust counterparts |
//! | [`proc`] | `hg_proc_*`: procs and their buffers |
//! | [`proc_types`] | `hg_proc_int32_t` and the other basic types |
//! | [`proc_string`] | `hg_proc_hg_string_t` and its variants, `hg_string_object_*` |
//! | [`proc_bulk`] | `hg_proc_hg_bulk_t` |
//! | [`checksum`] | `hg_checksum_*` |
//! | [`na`] | `na.h`: classes, contexts, addresses, progress |
//! | [`na_transfer`] | `na.h`: messages, memory handles, put and get |
//! | [`hg1_client`] | `mercury.h` of 2013: client calls |
//! | [`hg1_server`] | `mercury_handler.h`: server calls |
//! | [`bulk`] | `mercury_bulk.h` |
//! | [`hg2_class`] | Mercury 2 calls whose names do not clash: classes, functions, addresses |
//! | [`hg2_handle`] | Mercury 2 calls: handles |
//! | [`hg2_bulk`] | Mercury 2 calls: bulk data |
//! | [`v2`] | the interface of Mercury 2.4 under its own names: `mercury2/*.h` |
//!
//! These modules share the handle tables ([`table`]), call handles ([`handles`]), functions of
//! programs ([`functions`], [`params`]), bulk transfers that can be cancelled (`operations`), the
//! structs that callbacks receive ([`callbacks`]), and the entry points from C ([`face`]).
//!
//! **Errors.** A call that returns an error code changes no state unless its documentation says
//! otherwise. It stores the reason for `portolan_last_error`.

pub(crate) mod bulk;
pub(crate) mod callbacks;
pub(crate) mod checksum;
pub(crate) mod face;
pub(crate) mod functions;
pub(crate) mod handles;
pub(crate) mod hg1_client;
pub(crate) mod hg1_server;
pub(crate) mod hg2_bulk;
pub(crate) mod hg2_class;
pub(crate) mod hg2_handle;
pub(crate) mod na;
pub(crate) mod na_transfer;
mod operations;
pub(crate) mod params;
pub(crate) mod proc;
pub(crate) mod proc_bulk;
pub(crate) mod proc_string;
pub(crate) mod proc_types;
pub(crate) mod table;
pub(crate) mod types;
pub(crate) mod v2;
