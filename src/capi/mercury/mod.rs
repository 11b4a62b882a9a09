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
//! of programs ([`functions`], [`params`]), what callbacks are given ([`callbacks`]), and
//! the way in and out of C ([`face`]).
//!
//! **Errors.** A call that returns a code has changed nothing then that it does not
//! speak of, and keeps the reason for `portolan_last_error`.

pub mod bulk;
pub mod callbacks;
pub mod checksum;
pub mod face;
pub mod functions;
pub mod handles;
pub mod hg1_client;
pub mod hg1_server;
pub mod hg2_bulk;
pub mod hg2_class;
pub mod hg2_handle;
pub mod na;
pub mod na_transfer;
pub mod params;
pub mod proc;
pub mod proc_bulk;
pub mod proc_string;
pub mod proc_types;
pub mod table;
pub mod types;
pub mod v2;
