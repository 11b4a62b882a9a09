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
//! | [`hg`] | `mercury.h`: clients |
//! | [`handler`] | `mercury_handler.h`: servers |
//! | [`bulk`] | `mercury_bulk.h` |
//! | [`today`] | today's calls, where their names do not clash: classes, functions, addresses |
//! | [`today_call`] | today's handles |
//! | [`today_bulk`] | today's bulk data |
//! | [`v2`] | the interface of Mercury 2.4, by its own names: `mercury2/*.h` |
//!
//! **Errors.** A call that returns a code has changed nothing then that it does not
//! speak of, and keeps the reason for `portolan_last_error`.

pub mod bulk;
pub mod checksum;
pub mod face;
pub mod handler;
pub mod hg;
pub mod na;
pub mod na_transfer;
pub mod params;
pub mod proc;
pub mod proc_bulk;
pub mod proc_string;
pub mod proc_types;
pub mod table;
pub mod today;
pub mod today_bulk;
pub mod today_call;
pub mod types;
pub mod v2;
