//! The LAPI interface: `lapi.h` and `lapif.h`.
//!
//! Every call `LAPI_X` has a profiling twin `PLAPI_X`; a program's own `LAPI_X` wins
//! over ours, because nothing here calls the `LAPI_` names. There is one context a
//! process, over all ranks of the job.
//!
//! | module | owns |
//! |---|---|
//! | [`types`], [`messages`] | layouts and values; return codes and their texts |
//! | [`outcome`] | how a call fails |
//! | [`context`] | the context: entering a call, errors, targets that were purged |
//! | [`lifecycle`] | start, end |
//! | [`addresses`], [`objects`] | exchange of addresses, the address table; code that lies elsewhere in each process |
//! | [`amsend`] | the origin's side of active messages |
//! | [`incoming`], [`deliver`] | the target's side: a message's header, header handlers, completion handlers |
//! | [`vectors`] | shapes of vectors, and the calls that take them |
//! | [`putget`], [`rmw`], [`xfer`] | put and get, read-modify-write, all of them by `LAPI_Xfer` |
//! | [`groups`], [`group`] | groups; the calls about them, and the transfer to all of a group |
//! | [`util`], [`lock`] | `LAPI_Util`; the lock and the conditions that it gives out |
//! | [`pending`], [`finish`], [`notices`] | transfers that are not done; what runs when one is; counting at another rank |
//! | [`counters`], [`counter_calls`], [`fences`], [`progress`], [`environment`] | counters, order, polling, settings |
//! | [`watched`], [`traffic`] | counters with the status of destinations; what has gone which way |
//! | [`fortran`] | the same for Fortran |
//!
//! **Order of checks.** A call looks at its handle first, then at the target's number,
//! then whether the target was purged, then at its other arguments in their order; a
//! length comes before the address whose bytes it counts. What fails a check has
//! changed nothing. Checks are made whatever `ERROR_CHK` says.
//!
//! **Counters of an active message.** The origin's counts when header and data may be
//! changed again. The target's counts at the target after the completion handler, or
//! when the data is in place where there is none. The completion counter counts at the
//! origin when the target's reply to that event has come. A header handler that sets
//! `LAPI_LOCAL_STATE` forbids the reply: the completion counter then never counts, the
//! other two do.
//!
//! **Errors without a caller.** What goes wrong at the target, such as a header handler
//! that returns no address for data that has not come, is told to the error handler of
//! `lapi_info_t`, if there is one, and then ends the job, since the origin counts on
//! the message.

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
