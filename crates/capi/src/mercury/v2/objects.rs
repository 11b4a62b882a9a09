//! The state behind the handles of classes and contexts.

use super::types::{Attached, Counters, OnCreate};
use crate::mercury::table::{Number, Table, Token};
use parking_lot::Mutex;
use portolan_rpc::checksum::Method;
use portolan_rpc::failure::{Failure, Result, Status};
use portolan_rpc::hg::context::ContextShared;
use portolan_rpc::hg::target::Function;
use portolan_rpc::hg::wire::{ANSWER, REQUEST};
use portolan_rpc::hg::{self, Context};
use std::collections::HashMap;
use std::os::raw::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The state behind the handle of a class.
#[derive(Debug)]
pub(super) struct HeldClass {
    pub class: hg::Class,
    /// Lengths in bytes of the program's own bytes before encoded inputs and outputs.
    pub in_offset: AtomicUsize,
    pub out_offset: AtomicUsize,
    /// Whether parameters that do not fit into one message are an error.
    pub no_overflow: bool,
    pub counts: Counts,
    pub on_create: Mutex<OnCreate>,
    /// Data attached to functions, by the number of the function.
    pub rpc_data: Mutex<HashMap<u64, Attached>>,
    pub data: Mutex<Attached>,
}

/// Event counters of a class.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub req_sent: AtomicU64,
    pub req_recv: AtomicU64,
    pub resp_sent: AtomicU64,
    pub resp_recv: AtomicU64,
    pub req_extra: AtomicU64,
    pub resp_extra: AtomicU64,
    pub active: AtomicU64,
    pub bulk: AtomicU64,
}

/// Increments a counter.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    pub(super) fn read(&self) -> Counters {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            rpc_req_sent: of(&self.req_sent),
            rpc_req_recv: of(&self.req_recv),
            rpc_resp_sent: of(&self.resp_sent),
            rpc_resp_recv: of(&self.resp_recv),
            rpc_req_extra: of(&self.req_extra),
            rpc_resp_extra: of(&self.resp_extra),
            rpc_req_recv_active: of(&self.active),
            rpc_multi_recv_copy: 0,
            bulk: of(&self.bulk),
        }
    }
}

pub(super) static CLASSES: Table<Arc<HeldClass>> = Table::new("class", 0x41);

impl HeldClass {
    /// Returns the length in bytes of the longest input that fits into its request message.
    pub(super) fn input_room(&self) -> usize {
        self.room(self.class.network().max_unexpected(), REQUEST)
    }

    /// Returns the length in bytes of the longest output that fits into its response message.
    pub(super) fn output_room(&self) -> usize {
        self.room(self.class.network().max_expected(), ANSWER)
    }

    fn room(&self, message: usize, head: usize) -> usize {
        message.saturating_sub(head + trailer(self.class.shared.method))
    }

    /// Returns the function with a number.
    ///
    /// # Errors
    /// `NO_MATCH` if the number is not registered.
    pub(super) fn function(&self, id: u64) -> Result<Arc<Function>> {
        self.class.shared.functions.numbered(id).ok_or_else(|| unknown(id))
    }

    /// Returns the data attached to a function, or null.
    pub(super) fn data_of(&self, id: u64) -> *mut c_void {
        self.rpc_data.lock().get(&id).map_or(ptr::null_mut(), Attached::data)
    }
}

#[cold]
pub(super) fn unknown(id: u64) -> Failure {
    Failure::new(Status::NO_MATCH, format!("no function has the number {id:#x}"))
}

/// Returns the length in bytes of the trailer after encoded parameters.
pub(super) fn trailer(method: Method) -> usize {
    match method.size() {
        0 => 0,
        bytes => 8 + bytes,
    }
}

/// The state behind the handle of a context.
#[derive(Debug)]
pub(super) struct HeldContext {
    pub class: Arc<HeldClass>,
    pub class_token: Number,
    pub context: Context,
    /// The create callback set by `HG_Core_context_set_handle_create_callback`.
    pub on_create: Mutex<OnCreate>,
    pub data: Mutex<Attached>,
}

pub(super) static CONTEXTS: Table<Arc<HeldContext>> = Table::new("context", 0x42);

/// Returns the handle of a context.
pub(super) fn token_of(shared: &Arc<ContextShared>) -> Option<Token> {
    CONTEXTS.find(|held| Arc::ptr_eq(&held.context.shared, shared))
}
