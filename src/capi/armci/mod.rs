//! The ARMCI interface: `armci.h`, `message.h` and `armcix.h`.
//!
//! The binary contract is that of Debian's libarmci-mpi-dev 0.3.1 and 0.4. Every call
//! `ARMCI_X` that has a profiling twin `PARMCI_X` is exported under both names;
//! a program's own `ARMCI_X` wins over ours, because nothing here calls the
//! `ARMCI_` names.
//!
//! | module | calls |
//! |---|---|
//! | [`types`] | layouts of the C structures, argument checks |
//! | [`lifecycle`] | init, finalize, cleanup, error |
//! | [`memory`] | malloc, free, local memory, access epochs, copy |
//! | [`contiguous`], [`strided`], [`vector`], [`values`] | transfers |
//! | [`handles`] | non-blocking handles, wait, test |
//! | [`sync`] | fence, barrier, read-modify-write, mutexes |
//! | [`groups`] | groups; `group_table` knows them by communicator, `scopes` what scopes mean |
//! | [`notify`] | notifications: `armci_notify`, `armci_notify_wait` |
//! | [`strides`] | `armci_stride_info_*`: the segments of strided memory, one by one |
//! | [`messages`], [`reductions`] | `armci_msg_*` |
//! | [`domains`] | locality |
//!
//! **Errors.** A call that returns `int` returns 0 or a code
//! (`PORTOLAN_ERR_*`), has changed nothing then, and writes the reason to
//! standard error. A call that returns nothing ends the job through
//! `ARMCI_Error` with the reason.

pub(crate) mod contiguous;
pub(crate) mod domains;
mod group_table;
pub(crate) mod groups;
pub(crate) mod handles;
pub(crate) mod lifecycle;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod notify;
pub(crate) mod reductions;
mod scopes;
pub(crate) mod strided;
pub(crate) mod strides;
pub(crate) mod sync;
pub(crate) mod types;
pub(crate) mod values;
pub(crate) mod vector;

/// Exports a function under its `ARMCI_` name and its `PARMCI_` twin.
macro_rules! twin {
    ($(#[$doc:meta])* $name:ident / $twin:ident ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The pointers must be valid for what the interface says of them.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $twin($($arg: $ty),*) $(-> $ret)? $body

        $(#[$doc])*
        ///
        /// # Safety
        /// As for its profiling twin.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the same contract.
            unsafe { $twin($($arg),*) }
        }
    };
}
pub(crate) use twin;
