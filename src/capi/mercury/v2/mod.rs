//! The Mercury interface of version 2.4, by its own names: `include/mercury2/*.h`.
//!
//! | module | calls |
//! |---|---|
//! | [`codes`] | `hg_return_t` of 2.4, and what calls have in common |
//! | [`types`] | structs of the headers |
//! | [`class`] | `HG_Init`, classes, what is attached to them |
//! | [`about`] | versions, error texts, networks, the log |
//! | `objects` | what handles of classes and contexts stand for |
//! | [`context`] | contexts, progress, trigger, events |
//! | [`registry`] | functions by name or number |
//! | [`address`] | addresses |
//! | [`handle`] | handles: made, counted, reset, what is attached |
//! | [`params`] | inputs and outputs of handles |
//! | [`call`] | forward, respond, cancel |
//! | [`bulk`], [`bulk_handle`] | bulk transfers and handles |
//! | [`proc`] | procs and the types of parameters |
//! | [`core`] | `HG_Core_*` |
//! | [`request`] | `hg_request_*` of the utilities |
//!
//! **Names.** `HG_Init`, `HG_Forward` and others are calls of 2013 in this library, with
//! other parameters. So a call `X` of 2.4 is exported as `mercury2_X`, and the headers
//! declare `X` with that label: whatever is compiled with them means these, in whatever
//! order libraries are linked. The small library `libmercury2.so.0` has the names
//! themselves, for what looks names up (`dlsym`, other languages); `scripts/install.sh`
//! makes it.
//!
//! **What handles are.** As in the rest of [`mercury`](super): numbers, so that one that
//! was freed or never was is refused and not followed. A class of HG is one of HG Core
//! as well, and so are contexts, addresses and handles.
//!
//! **Codes.** The engine speaks [`Status`](crate::rpc::failure::Status), whose numbers
//! are those of 2013 and travel; 2.4 numbers differently. [`codes`] maps them where a
//! call enters and leaves, in both directions, so that programs of both interfaces
//! understand each other's answers.

#![allow(non_snake_case, reason = "the names of the calls of C, exported under labels")]

pub(crate) mod about;
pub(crate) mod address;
pub(crate) mod bulk;
pub(crate) mod bulk_handle;
pub(crate) mod call;
pub(crate) mod class;
pub(crate) mod codes;
pub(crate) mod context;
pub(crate) mod core;
pub(crate) mod handle;
pub(crate) mod objects;
pub(crate) mod params;
pub(crate) mod proc;
pub(crate) mod registry;
pub(crate) mod request;
pub(crate) mod types;
