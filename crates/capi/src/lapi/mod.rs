//! The LAPI interface: `lapi.h` and `lapif.h`.
//!
//! Every call `LAPI_X` has a profiling twin `PLAPI_X`. Code in this module never calls the `LAPI_`
//! names, so a program may define its own `LAPI_X` to intercept the call. A process has one context
//! ([`context`]), which covers all ranks of the job.
//!
//! An active message goes from [`amsend`] to [`incoming`] and [`deliver`]; [`objects`] names code
//! whose address differs between processes. [`putget`], [`vectors`] and [`rmw`] move data, and
//! [`xfer`] calls all of them. [`pending`] holds unfinished transfers, and [`finish`] runs their
//! actions; [`notices`] count at other ranks.
//!
//! **Order of checks.** A call checks its handle, the range of the target, whether the target is
//! purged, and then its other arguments in order, a length before its address. A call that fails a
//! check has changed nothing.
//!
//! **Counters of an active message.** The origin counter counts when the header and data may be
//! modified again. The target counter counts after the completion handler has run or, without one,
//! when the data is in place. The completion counter counts when the target's reply to that arrives
//! at the origin, never if the header handler sets `LAPI_LOCAL_STATE`.
//!
//! **Errors without a caller.** An error at the target, for example a header handler that returns
//! no address, is reported to the error handler of `lapi_info_t`. It then ends the job, because the
//! origin relies on the message.

pub(crate) mod addresses;
pub(crate) mod agreement;
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
