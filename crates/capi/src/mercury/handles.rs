//! Call handles of 2013: C handles for a call at its origin or at its target.

use super::callbacks::HgInfo;
use super::interface::Interface::V1;
use super::objects::address;
use super::objects::attached::Attached;
use super::objects::context::{CONTEXTS, token_of};
use super::table::{Number, Table, Token};
use parking_lot::Mutex;
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use portolan_rpc::hg::Context;
use portolan_rpc::hg::origin::Origin;
use portolan_rpc::hg::target::Target;
use portolan_rpc::na::Address;
use portolan_rpc::na::memory::ZeroedBuffer;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

/// Size in bytes of the buffer for an output that a program encodes itself.
pub(super) const OUTPUT: usize = 4096;

#[derive(Debug, Clone)]
pub(super) enum End {
    Target(Arc<Target>),
    Origin(Arc<Origin>),
}

#[derive(Debug)]
pub(super) struct HandleEntry {
    pub end: End,
    pub references: AtomicI32,
    /// The number of callbacks that will receive the handle, which stays until they have run.
    flights: AtomicI32,
    /// The address handle that the program has received for the peer, or 0. Freed with this handle.
    address: Mutex<usize>,
    output: OnceLock<ZeroedBuffer>,
    pub info: Mutex<Option<Box<HgInfo>>>,
    pub data: Mutex<Attached>,
}

pub(super) static HANDLES: Table<Arc<HandleEntry>> = Table::new("handle", 0x22);

pub(super) fn hold_end(end: End) -> Token {
    HANDLES.insert(Arc::new(HandleEntry {
        end,
        references: AtomicI32::new(1),
        flights: AtomicI32::new(0),
        address: Mutex::new(0),
        output: OnceLock::new(),
        info: Mutex::new(None),
        data: Mutex::default(),
    }))
}

pub(super) fn hold(target: Arc<Target>) -> Token {
    hold_end(End::Target(target))
}

pub(super) fn let_go(handle: Token) {
    if let Ok(held) = HANDLES.remove(handle) {
        held.free_address();
    }
}

pub(super) fn drop_those_of(context: &Context) {
    let of = |held: &Arc<HandleEntry>| match &held.end {
        End::Target(target) => Arc::ptr_eq(target.context(), &context.shared),
        End::Origin(origin) => Arc::ptr_eq(origin.context(), &context.shared),
    };
    let mut gone = Vec::new();
    HANDLES.each(|token, held| {
        if of(held) {
            gone.push(token);
        }
    });
    gone.into_iter().for_each(let_go);
}

impl HandleEntry {
    pub(super) fn target(&self) -> Result<&Arc<Target>> {
        match &self.end {
            End::Target(target) => Ok(target),
            End::Origin(_) => Err(not_served()),
        }
    }

    /// Returns the handles of the call's class and context, null for the class of `HG_Init`.
    pub(super) fn class_and_context(&self) -> (Token, Token) {
        let context = match &self.end {
            End::Target(target) => target.context(),
            End::Origin(origin) => origin.context(),
        };
        let Some(token) = token_of(V1, context) else {
            return (ptr::null_mut(), ptr::null_mut());
        };
        let class = CONTEXTS[V1].with(token, |held| held.class_token.token());
        (class.unwrap_or(ptr::null_mut()), token)
    }

    /// Drops a reference, under the table's lock. Returns whether nothing keeps the handle. Fails
    /// with `INVALID_ARG` if the handle only waits for its callback.
    pub(super) fn let_go(&self) -> Result<bool> {
        if self.references.load(Ordering::Acquire) <= 0 {
            refuse!(INVALID_ARG, "the handle was freed and only waits for its callback to run");
        }
        let last = self.references.fetch_sub(1, Ordering::AcqRel) <= 1;
        Ok(last && self.flights.load(Ordering::Acquire) == 0)
    }

    /// Returns the handle of the peer's address, the same each time, or null if it is not set yet.
    pub(super) fn address(&self) -> Token {
        let mut address = self.address.lock();
        if *address == 0 {
            *address = self.peer().map_or(0, |peer| address::keep_v1(peer) as usize);
        }
        *address as Token
    }

    pub(super) fn output(&self) -> Result<*mut u8> {
        if let Some(buffer) = self.output.get() {
            return Ok(buffer.address());
        }
        let fresh = ZeroedBuffer::new(OUTPUT)?;
        Ok(self.output.get_or_init(|| fresh).address())
    }

    fn peer(&self) -> Option<Address> {
        match &self.end {
            End::Target(target) => Some(target.source()),
            End::Origin(origin) => origin.address(),
        }
    }

    pub(super) fn free_address(&self) {
        let address = std::mem::take(&mut *self.address.lock());
        *self.info.lock() = None;
        if address != 0 {
            // The program may have freed the address handle itself.
            let _ = address::release(V1, address as Token);
        }
    }
}

#[cold]
fn not_served() -> Failure {
    let text = "the handle is for a call made by this process, not for one that it serves";
    Failure::new(Status::INVALID_ARG, text)
}

/// Keeps a handle alive for a callback that will receive it.
pub(super) struct Flight(Number);

impl Flight {
    pub(super) fn of(handle: Token, held: &HandleEntry) -> Flight {
        held.flights.fetch_add(1, Ordering::AcqRel);
        Flight(Number::of(handle))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let landed = |held: &mut Arc<HandleEntry>| {
            let last = held.flights.fetch_sub(1, Ordering::AcqRel) <= 1;
            Ok(last && held.references.load(Ordering::Acquire) <= 0)
        };
        // The handle may have been freed with its context.
        if let Ok(Some(held)) = HANDLES.remove_if(self.0.token(), landed) {
            held.free_address();
        }
    }
}
