//! The LAPI interface: `lapi.h` and `lapif.h`.
//!
//! Every call `LAPI_X` has a profiling twin `PLAPI_X`. Code in this module never calls the `LAPI_`
//! names, so a program may define its own `LAPI_X` to intercept the call. A process has one
//! context, which covers all ranks of the job.
//!
//! | module | contents |
//! |---|---|
//! | [`types`], [`messages`] | layouts and values; return codes and their texts |
//! | [`outcome`] | the errors of a call |
//! | [`context`] | the context: entry to a call, errors, purged targets |
//! | [`lifecycle`] | `LAPI_Init` and `LAPI_Term` |
//! | [`addresses`] | address exchange and the address table |
//! | [`objects`] | naming of code whose address differs between processes |
//! | [`amsend`] | active messages at the origin |
//! | [`incoming`], [`deliver`] | active messages at the target: headers and handlers |
//! | [`vectors`] | vector shapes, and the calls that take them |
//! | [`putget`], [`rmw`], [`xfer`] | put and get; read-modify-write; all transfers by `LAPI_Xfer` |
//! | [`groups`], [`group`] | the table of groups; the group calls and the multicast |
//! | [`util`], [`lock`] | `LAPI_Util`; the lock and the condition variables that it provides |
//! | [`pending`], [`finish`] | unfinished transfers; the actions on completion |
//! | [`notices`] | counting at another rank |
//! | [`counters`], [`counter_calls`] | counters, and the calls that use them |
//! | [`fences`], [`progress`], [`environment`] | ordering, polling, settings |
//! | [`watched`], [`traffic`] | counters with destination status; traffic statistics |
//! | [`fortran`] | the Fortran binding |
//!
//! **Order of checks.** A call checks its handle first, then the range of the target, then whether
//! the target is purged, then its other arguments in order, a length before its address. A call
//! that fails a check has changed nothing. `ERROR_CHK` does not affect the checks.
//!
//! **Counters of an active message.** The origin counter counts when the header and data may be
//! modified again. The target counter counts at the target after the completion handler has run or,
//! without one, when the data is in place. The completion counter counts at the origin when the
//! target's reply to that event arrives. A header handler that sets `LAPI_LOCAL_STATE` suppresses
//! the reply: the completion counter then never counts.
//!
//! **Errors without a caller.** An error at the target, for example a header handler that returns
//! no address for data that has not arrived, is reported to the error handler of `lapi_info_t` if
//! one is set. It then ends the job, because the origin relies on the message.

pub(crate) mod addresses;
pub(crate) mod amsend;
pub(crate) mod context;
pub(crate) mod counter_calls;
pub(crate) mod counters;
pub(crate) mod deliver;
pub(crate) mod environment;
pub(crate) mod fences;
pub(crate) mod finish;
pub(crate) mod fortran;
pub(crate) mod group;
pub(crate) mod groups;
pub(crate) mod incoming;
pub(crate) mod lifecycle;
pub(crate) mod lock;
pub(crate) mod messages;
pub(crate) mod notices;
pub(crate) mod objects;
pub(crate) mod outcome;
pub(crate) mod pending;
pub(crate) mod progress;
pub(crate) mod putget;
pub(crate) mod rmw;
pub(crate) mod traffic;
pub(crate) mod types;
pub(crate) mod util;
pub(crate) mod vectors;
pub(crate) mod watched;
pub(crate) mod xfer;

pub(crate) use super::armci::twin;
