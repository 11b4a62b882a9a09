//! Classes and contexts, as a program holds them.

use super::class::ClassShared;
use super::context::{ContextShared, Work};
use crate::rpc::bulk::Bulk;
use crate::rpc::checksum::Method;
use crate::rpc::failure::{Result, Status};
use crate::rpc::na::{self, Address, Direction, OpId, Part};
use std::sync::Arc;
use std::time::Duration;

/// A class of functions over a network. Clones are the same class.
#[derive(Debug, Clone)]
pub struct Class {
    pub(crate) shared: Arc<ClassShared>,
    own_network: bool,
}

impl Class {
    /// A class over a network of its own. Collective over the job where that is.
    ///
    /// # Errors
    /// As for [`na::Class::new`].
    pub fn init(info: &str, listen: bool) -> Result<Class> {
        Class::init_with(info, listen, Method::default())
    }

    /// [`Class::init`] with a checksum.
    ///
    /// # Errors
    /// As there.
    pub fn init_with(info: &str, listen: bool, method: Method) -> Result<Class> {
        let na = na::Class::new(info, listen)?;
        match ClassShared::over(&na, method) {
            Ok(shared) => Ok(Class { shared, own_network: true }),
            Err(failure) => {
                na.finalize()?;
                Err(failure)
            }
        }
    }

    /// A class over a network, which stays when the class is finalised.
    ///
    /// # Errors
    /// `BUSY` where the network carries another class.
    pub fn over(na: &na::Class, method: Method) -> Result<Class> {
        Ok(Class { shared: ClassShared::over(na, method)?, own_network: false })
    }

    /// Ends the class. Calls under way are cancelled; what others were promised they
    /// can still pull for some seconds. Collective over the job where it ends the last
    /// network.
    ///
    /// # Errors
    /// `INVALID_ARG` the second time; `BUSY` while contexts, handles or calls of it
    /// live, and then the network stays.
    pub fn finalize(&self) -> Result<()> {
        if self.own_network {
            self.shared.na.check_idle()?;
        }
        self.shared.close()?;
        if self.own_network { self.shared.na.finalize() } else { Ok(()) }
    }

    /// Whether calls to oneself run where they are forwarded, instead of in trigger.
    pub fn set_inline(&self, inline: bool) {
        self.shared.inline.store(inline, std::sync::atomic::Ordering::Relaxed);
    }

    /// The network.
    pub fn network(&self) -> &na::Class {
        &self.shared.na
    }

    /// A new context.
    pub fn context(&self) -> Result<Context> {
        self.context_numbered(0)
    }

    /// A new context with a number, by which callers may ask for it.
    pub fn context_numbered(&self, id: u8) -> Result<Context> {
        Ok(Context { shared: ContextShared::new(self.shared.clone(), id)? })
    }

    /// The address of a name.
    ///
    /// # Errors
    /// As for [`na::Class::lookup`].
    pub fn lookup(&self, name: &str) -> Result<Address> {
        self.shared.na.lookup(name)
    }

    /// The calling process's address.
    pub fn own_address(&self) -> Address {
        self.shared.na.own_address()
    }
}

/// Where calls run and end. Clones are the same context.
#[derive(Debug, Clone)]
pub struct Context {
    pub(crate) shared: Arc<ContextShared>,
}

impl Context {
    /// Makes progress until there is something for trigger, a call without a callback has ended, or the time is over;
    /// false where it is.
    pub fn progress(&self, timeout: Duration) -> Result<bool> {
        self.shared.progress(timeout)
    }

    /// Runs at most `most` calls and callbacks; how many.
    pub fn trigger(&self, most: usize) -> usize {
        self.shared.trigger(most)
    }

    /// Runs something in trigger, on the thread that serves: how other threads hand
    /// their results to it. It wakes up for that.
    pub fn defer(&self, body: impl FnOnce() + Send + 'static) {
        self.shared.push(Work::Run(Box::new(body)));
    }

    /// Moves bytes between the memory of a peer's bulk handle and that of one here.
    /// `callback` runs in trigger.
    ///
    /// # Errors
    /// As for [`na::Context::transfer`].
    pub fn transfer(
        &self,
        op: BulkOp,
        origin: &Address,
        (remote, remote_offset): (&Bulk, usize),
        (local, local_offset): (&Bulk, usize),
        size: usize,
        callback: impl FnOnce(Status) + Send + 'static,
    ) -> Result<OpId> {
        let direction = match op {
            BulkOp::Push => Direction::Put,
            BulkOp::Pull => Direction::Get,
        };
        let shared = self.shared.clone();
        let done: na::Callback = Box::new(move |event| {
            shared.push(Work::Run(Box::new(move || callback(event.status))));
        });
        self.shared.na.transfer(
            direction,
            origin,
            Part { mem: local.mem(), offset: local_offset },
            Part { mem: remote.mem(), offset: remote_offset },
            size,
            done,
        )
    }

    /// Cancels a transfer; its callback hears so. One that has ended stays as it is.
    ///
    /// # Errors
    /// `INVALID_ARG` for what was never an operation.
    pub fn cancel(&self, op: OpId) -> Result<()> {
        self.shared.na.cancel(op)
    }

    /// Ends what is under way, so that the class can be finalised: its calls and transfers
    /// are cancelled, and their callbacks run before this returns; calls of others that wait
    /// are answered with a failure. Nothing can be begun in the context then.
    ///
    /// # Errors
    /// `BUSY` in a call or callback of the context, and nothing has changed; `INVALID_ARG`
    /// the second time.
    pub fn destroy(&self) -> Result<()> {
        self.shared.destroy()
    }
}

/// Which way a bulk transfer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkOp {
    /// From here to the origin.
    Push,
    /// From the origin to here.
    Pull,
}
