//! The Mercury 2.4 interface: `include/mercury2/*.h`.
//!
//! | module | contents |
//! |---|---|
//! | [`codes`] | `hg_return_t` of 2.4 |
//! | [`types`] | structs of the headers |
//! | [`class`] | `HG_Init`, classes, data attached to them |
//! | [`queries`] | versions, error texts, networks, the log |
//! | [`context`] | contexts, progress, trigger, events |
//! | [`registry`] | functions by name or number |
//! | [`address`] | addresses |
//! | [`handle`] | handles: creation, reference counts, reset, attached data |
//! | [`references`] | the references to a handle |
//! | [`params`] | inputs and outputs of handles |
//! | [`call`] | forward, respond, cancel |
//! | [`bulk`], [`bulk_handle`] | bulk transfers and handles |
//! | [`proc`] | procs and the types of parameters |
//! | [`more_data`] | inputs and outputs of which the program transfers a part itself |
//! | [`request`] | `hg_request_*` of the utilities |
//! | [`na`], [`na_transfer`] | `na.h`: classes, contexts, addresses, progress; messages, memory, transfers |
//!
//! **Names.** The 2013 interface also exports `HG_Init`, `HG_Forward` and other names, with
//! different parameters. A call `X` of 2.4 is therefore exported as `mercury2_X`, and the headers
//! declare `X` with that label, so code compiled with them calls 2.4 whatever the link order. The
//! small library `libmercury2.so.0` exports the plain names, for programs that look them up
//! (`dlsym`, other languages); `scripts/install.sh` builds it.
//!
//! **Handles.** A handle is a number, as in all of [`mercury`](super). An HG class is also an HG
//! Core class; the same holds for contexts, addresses and handles.
//!
//! **Codes.** The numbers of [`Status`](portolan_rpc::failure::Status) come from the 2013 interface
//! and are sent over the network; 2.4 numbers its codes differently. [`codes`] converts at each
//! call, so programs of both interfaces understand each other's responses.

pub(crate) mod address;
pub(crate) mod bulk;
pub(crate) mod bulk_handle;
pub(crate) mod call;
pub(crate) mod class;
pub(crate) mod codes;
pub(crate) mod context;
pub(crate) mod handle;
pub(crate) mod more_data;
pub(crate) mod na;
pub(crate) mod na_transfer;
pub(crate) mod params;
pub(crate) mod proc;
pub(crate) mod queries;
mod references;
pub(crate) mod registry;
pub(crate) mod request;
pub(crate) mod types;
