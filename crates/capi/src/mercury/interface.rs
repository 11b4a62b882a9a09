//! The two C interfaces: what they convert differently, and the export of their calls.
//!
//! [`calls!`] declares calls of one interface. It catches panics, stores failures for
//! `portolan_last_error`, and returns the interface's code. The calls of [`Interface::V2_4`] get the
//! prefix `mercury2_`, because the plain names belong to [`Interface::V2013`].

use super::entry;
use super::v2_4::codes;
use portolan_rpc::failure::{Failure, Result, Status};
use std::os::raw::c_int;

/// The C interface of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    /// Mercury of 2013, and `na.h`.
    V2013,
    /// Mercury 2.4.
    V2_4,
}

impl Interface {
    pub(super) fn code(self, status: Status) -> c_int {
        match self {
            Interface::V2013 => status.0,
            Interface::V2_4 => codes::to_code(status),
        }
    }

    /// Converts what a program's proc returned, other than 0.
    pub(super) fn proc_status(self, code: c_int) -> Status {
        match self {
            Interface::V2013 => Status::PROTOCOL_ERROR,
            Interface::V2_4 => codes::to_status(code),
        }
    }

    /// Converts a failed decoding of a memory handle. In 2013, missing bytes have another code.
    pub(super) fn decoded<T>(self, handle: Result<T>) -> Result<T> {
        handle.map_err(|failure| match failure.status() {
            Status::OVERFLOW if self == Interface::V2013 => {
                Failure::new(Status::PROTOCOL_ERROR, failure.text())
            }
            _ => failure,
        })
    }

    #[inline]
    pub(super) fn run<O: Outcome>(
        self,
        call: &'static str,
        body: impl FnOnce() -> Result<O>,
    ) -> c_int {
        let code = |outcome: O| self.code(outcome.status());
        entry::value(call, |status| self.code(status), || body().map(code))
    }
}

/// The result of a call that returns a code.
pub(super) trait Outcome {
    fn status(self) -> Status;
}

impl Outcome for () {
    #[inline]
    fn status(self) -> Status {
        Status::SUCCESS
    }
}

/// Whether something happened before a timeout. Programs poll often without waiting, so a timeout
/// is no `Failure`: formatting its text would cost more than the poll.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Happened(pub bool);

impl Outcome for Happened {
    #[inline]
    fn status(self) -> Status {
        if self.0 { Status::SUCCESS } else { Status::TIMEOUT }
    }
}

/// Exports calls of an interface. The first form returns a code. The second form returns another
/// type and states the value for a failed call. Two names separated by `|` have the same body, in
/// which `[name: first, second]` defines a variable with a value for each.
macro_rules! calls {
    (V2013: $($items:tt)*) => { $crate::mercury::interface::calls! { @ "" V2013; $($items)* } };
    (V2_4: $($items:tt)*) => { $crate::mercury::interface::calls! { @ "mercury2_" V2_4; $($items)* } };
    (@ $prefix:literal $of:ident;) => {};
    (@ $prefix:literal $of:ident;
        $(#[$doc:meta])* $name:ident | $other:ident $([$which:ident: $one:expr, $two:expr])?
        ($($args:tt)*) $(-> $ret:ty, $none:expr,)? $body:block $($rest:tt)*) => {
        $crate::mercury::interface::calls! {
            @ $prefix $of;
            $(#[$doc])* $name($($args)*) $(-> $ret, $none,)? { $(let $which = $one;)? $body }
            $(#[$doc])* $other($($args)*) $(-> $ret, $none,)? { $(let $which = $two;)? $body }
            $($rest)*
        }
    };
    (@ $prefix:literal $of:ident;
        $(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Each pointer must be null, or valid for the access that the header describes.
        #[unsafe(export_name = concat!($prefix, stringify!($name)))]
        pub(crate) unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> std::os::raw::c_int {
            $crate::mercury::interface::Interface::$of.run(stringify!($name), || $body)
        }
        $crate::mercury::interface::calls! { @ $prefix $of; $($rest)* }
    };
    (@ $prefix:literal $of:ident;
        $(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty, $none:expr,
        $body:block $($rest:tt)*) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Each pointer must be null, or valid for the access that the header describes.
        #[unsafe(export_name = concat!($prefix, stringify!($name)))]
        pub(crate) unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret {
            $crate::mercury::entry::value(stringify!($name), |_| $none, || $body)
        }
        $crate::mercury::interface::calls! { @ $prefix $of; $($rest)* }
    };
}
pub(super) use calls;
