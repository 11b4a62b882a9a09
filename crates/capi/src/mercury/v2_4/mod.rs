//! The Mercury 2.4 interface: `include/mercury2/*.h`.
//!
//! **Names.** The 2013 interface also exports `HG_Init`, `HG_Forward` and other names. A call `X`
//! of 2.4 is therefore exported as `mercury2_X`, and the headers declare `X` with that label, so
//! code compiled with them calls 2.4 whatever the link order. The small library `libmercury2.so.0`
//! (`scripts/install.sh`) exports the plain names, for programs that look them up (`dlsym`, other
//! languages).
//!
//! **Handles.** HG and HG Core have the same classes, contexts, addresses and handles.
//!
//! **Codes.** The numbers of [`Status`](portolan_rpc::failure::Status) are those of 2013 and are
//! sent over the network. [`codes`] converts them at each call, so programs of both interfaces
//! understand each other's responses.

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
mod operations;
pub(crate) mod params;
pub(crate) mod proc;
pub(crate) mod queries;
pub(crate) mod registry;
pub(crate) mod request;
pub(crate) mod types;
