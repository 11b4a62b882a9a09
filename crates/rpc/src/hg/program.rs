//! The handles of a program to classes and contexts.

use super::class::ClassShared;
use super::context::{ContextShared, Work};
use crate::checksum::Method;
use crate::failure::Result;
use crate::na::{self, Address, OpId, Options};
use std::sync::Arc;
use std::time::Duration;

/// Whether a class accepts messages from other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Listen {
    /// The class accepts messages from other processes, so it can serve functions.
    Yes,
    /// The class only calls functions of other processes.
    No,
}

impl From<bool> for Listen {
    fn from(listens: bool) -> Listen {
        if listens { Listen::Yes } else { Listen::No }
    }
}

/// A class of functions over a network. Clones are the same class.
#[derive(Debug, Clone)]
pub struct Class {
    #[doc(hidden)]
    pub shared: Arc<ClassShared>,
    own_network: bool,
}

impl Class {
    /// Creates a class over a network of its own, with the default checksum method. `info` names
    /// the network:
    ///
    /// | network | reaches |
    /// |---|---|
    /// | `mpi` | the ranks of the job |
    /// | `na+sm` | processes of the same user on this host, started separately |
    /// | `tcp`, `tcp://PLACE` | processes on any host, started separately |
    /// | `self` | the calling process |
    ///
    /// A class over `tcp` listens at `PLACE`, else at the place in `PORTOLAN_RPC_LISTEN`, else on
    /// loopback. The first class over MPI is collective over the job, and starts MPI and the
    /// runtime if needed. The networks `na+sm` and `tcp` use neither.
    ///
    /// # Errors
    /// Returns `PROTONOSUPPORT` if `info` names an unknown network, `INVALID_ARG` if it is empty,
    /// `ADDRNOTAVAIL` if the class cannot listen there, `BUSY` if the process has 256 classes, and
    /// `NA_ERROR` if MPI fails.
    pub fn init(info: &str, listen: Listen) -> Result<Class> {
        Class::init_with(info, listen, Method::default())
    }

    /// Like [`Class::init`], with a checksum method.
    ///
    /// # Errors
    /// Fails like [`Class::init`].
    pub fn init_with(info: &str, listen: Listen, method: Method) -> Result<Class> {
        Class::init_with_options(info, listen, method, Options::default())
    }

    /// Like [`Class::init_with`], with options of the network.
    ///
    /// # Errors
    /// Fails like [`Class::init`]. Returns `OPNOTSUPPORTED` for TLS without the feature `tls`, and
    /// another status if a secret or a certificate cannot be used.
    pub fn init_with_options(
        info: &str,
        listen: Listen,
        method: Method,
        options: Options<'_>,
    ) -> Result<Class> {
        let na = na::Class::with(info, listen == Listen::Yes, options)?;
        match ClassShared::over(&na, method) {
            Ok(shared) => Ok(Class { shared, own_network: true }),
            Err(failure) => {
                // The caller needs the cause, so an error of the clean-up goes to the log.
                if let Err(second) = na.finalize() {
                    log::warn!("the network of a class that fails to start stays open: {second}");
                }
                Err(failure)
            }
        }
    }

    /// Creates a class over an existing network, which stays open when the class is finalised.
    ///
    /// # Errors
    /// Returns `BUSY` if the network carries another class.
    #[doc(hidden)]
    pub fn over(na: &na::Class, method: Method) -> Result<Class> {
        Ok(Class { shared: ClassShared::over(na, method)?, own_network: false })
    }

    /// Finalises the class and cancels its calls. Other ranks can still pull promised outputs for
    /// some seconds. Collective over the job if it ends the last network over MPI.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if the class is finalised already, and `BUSY` if a context of the
    /// class is neither destroyed nor dropped; the class then stays open. Handles and calls keep
    /// their context.
    pub fn finalize(&self) -> Result<()> {
        if self.own_network {
            self.shared.na.check_idle()?;
        }
        self.shared.close()?;
        if self.own_network { self.shared.na.finalize() } else { Ok(()) }
    }

    #[doc(hidden)]
    pub fn set_inline(&self, inline: bool) {
        self.shared.inline.store(inline, std::sync::atomic::Ordering::Relaxed);
    }

    #[doc(hidden)]
    pub fn network(&self) -> &na::Class {
        &self.shared.na
    }

    /// Creates a context with number 0.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if the class is finalised.
    pub fn context(&self) -> Result<Context> {
        self.context_numbered(0)
    }

    /// Creates a context with a number. Callers in C choose it by this number (`HG_Set_target_id`).
    ///
    /// # Errors
    /// Fails like [`Class::context`].
    pub fn context_numbered(&self, id: u8) -> Result<Context> {
        Ok(Context { shared: ContextShared::new(self.shared.clone(), id)? })
    }

    /// Returns the address with the given name: `mpi://RANK`, `na+sm://PID-N`, `tcp://HOST:PORT`,
    /// or `self`. Over `na+sm` and `tcp` the first call to the address connects. It fails with
    /// `HOSTUNREACH` if no process listens there, `PERMISSION` if the process refuses the
    /// connection, and `TIMEOUT` if it does not respond.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if the name is malformed, and `ADDRNOTAVAIL` if the rank is outside
    /// the job or the address belongs to another network.
    pub fn lookup(&self, name: &str) -> Result<Address> {
        self.shared.na.lookup(name)
    }

    /// Returns the address of this process.
    pub fn own_address(&self) -> Address {
        self.shared.na.own_address()
    }

    /// Returns an address as text, in the form that [`Class::lookup`] accepts.
    pub fn address_text(&self, address: &Address) -> String {
        self.shared.na.text_of(address)
    }
}

/// A context: incoming calls and callbacks run in it. Clones are the same context.
#[derive(Debug, Clone)]
pub struct Context {
    #[doc(hidden)]
    pub shared: Arc<ContextShared>,
}

impl Context {
    /// Makes progress until trigger has work, a call without a callback has ended, or the time is
    /// over. Returns false if the time is over.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if the class is finalised, or the error of the network.
    pub fn progress(&self, timeout: Duration) -> Result<bool> {
        self.shared.progress(timeout)
    }

    /// Runs at most `most` calls and callbacks, and returns how many it has run.
    pub fn trigger(&self, most: usize) -> usize {
        self.shared.trigger(most)
    }

    /// Runs `body` in trigger, on the thread that serves the context, and wakes that thread. Other
    /// threads use this to hand over their results. If the context is destroyed, `body` is dropped.
    pub fn defer(&self, body: impl FnOnce() + Send + 'static) {
        self.shared.push(Work::Run(Box::new(body)));
    }

    /// Cancels a transfer; its callback receives `CANCELED`. Does nothing if it has ended.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if `op` is not an operation of this class.
    pub fn cancel(&self, op: OpId) -> Result<()> {
        self.shared.na.cancel(op)
    }

    /// Destroys the context. Cancels its calls and transfers and runs their callbacks before it
    /// returns. Answers waiting incoming calls with a failure. Afterwards, clones and handles of
    /// the context no longer keep the class from being finalised.
    ///
    /// # Errors
    /// Returns `BUSY`, and changes nothing, if a call or callback of the context is running, and
    /// `INVALID_ARG` if the context is destroyed already.
    pub fn destroy(&self) -> Result<()> {
        self.shared.destroy()
    }
}

/// The direction of a bulk transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkOp {
    /// From this process to the origin of the call.
    Push,
    /// From the origin of the call to this process.
    Pull,
}
