//! The Mercury interface of 2013: `mercury*.h`.
//!
//! | module | calls |
//! |---|---|
//! | [`types`] | codes, constants and their meaning in Rust |
//! | [`proc`] | `hg_proc_*`: procs and their buffers |
//! | [`proc_types`] | `hg_proc_int32_t` and the like |
//! | [`proc_string`] | `hg_proc_hg_string_t` and the like, `hg_string_object_*` |
//! | [`proc_bulk`] | `hg_proc_hg_bulk_t` |
//! | [`checksum`] | `hg_checksum_*` |
//! | [`na`] | `na.h`: classes, contexts, addresses, progress |
//! | [`na_transfer`] | `na.h`: messages and memory |
//! | [`hg1_client`] | `mercury.h` of 2013: clients |
//! | [`hg1_server`] | `mercury_handler.h`: servers |
//! | [`bulk`] | `mercury_bulk.h` |
//! | [`hg2_class`] | calls of Mercury 2 whose names do not clash: classes, functions, addresses |
//! | [`hg2_handle`] | its handles |
//! | [`hg2_bulk`] | its bulk data |
//! | [`v2`] | the interface of Mercury 2.4, by its own names: `mercury2/*.h` |
//!
//! They share the tables of handles ([`table`]), calls at their ends ([`handles`]), functions
//! of programs ([`functions`], [`params`]), transfers by name (`operations`), what
//! callbacks are given ([`callbacks`]), and
//! the way in and out of C ([`face`]).
//!
//! **Errors.** A call that returns a code has changed nothing then that it does not
//! speak of, and keeps the reason for `portolan_last_error`.

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
