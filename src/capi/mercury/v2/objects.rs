//! Classes and contexts, as their handles stand for them.

use super::types::{Attached, Counters, OnCreate};
use crate::capi::mercury::table::{Number, Table, Token};
use crate::rpc::checksum::Method;
use crate::rpc::failure::{Failure, Result, Status};
use crate::rpc::hg::context::ContextShared;
use crate::rpc::hg::target::Function;
use crate::rpc::hg::wire::{ANSWER, REQUEST};
use crate::rpc::hg::{self, Context};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::raw::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A class, as its handle stands for it.
#[derive(Debug)]
pub(super) struct HeldClass {
    pub class: hg::Class,
    /// Bytes before the parameters that are the program's.
    pub in_offset: AtomicUsize,
    pub out_offset: AtomicUsize,
    /// Parameters that do not fit a message are an error.
    pub no_overflow: bool,
    pub counts: Counts,
    pub on_create: Mutex<OnCreate>,
    /// What is attached to functions.
    pub rpc_data: Mutex<HashMap<u64, Attached>>,
    pub data: Mutex<Attached>,
}

/// What happened in a class so far.
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

/// One more.
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
    /// Longest input that goes along with its request.
    pub(super) fn input_room(&self) -> usize {
        self.room(self.class.network().max_unexpected(), REQUEST)
    }

    /// Longest output that goes along with its answer.
    pub(super) fn output_room(&self) -> usize {
        self.room(self.class.network().max_expected(), ANSWER)
    }

    fn room(&self, message: usize, head: usize) -> usize {
        message.saturating_sub(head + trailer(self.class.shared.method))
    }

    /// The function of a number.
    pub(super) fn function(&self, id: u64) -> Result<Arc<Function>> {
        self.class.shared.functions.numbered(id).ok_or_else(|| unknown(id))
    }

    /// What is attached to a function.
    pub(super) fn data_of(&self, id: u64) -> *mut c_void {
        self.rpc_data.lock().get(&id).map_or(ptr::null_mut(), Attached::data)
    }
}

#[cold]
pub(super) fn unknown(id: u64) -> Failure {
    Failure::new(Status::NO_MATCH, format!("no function has the number {id:#x}"))
}

/// Bytes behind parameters.
pub(super) fn trailer(method: Method) -> usize {
    match method.size() {
        0 => 0,
        bytes => 8 + bytes,
    }
}

/// A context, as its handle stands for it.
#[derive(Debug)]
pub(super) struct HeldContext {
    pub class: Arc<HeldClass>,
    pub class_token: Number,
    pub context: Context,
    /// What the core's program wants to hear of handles.
    pub on_create: Mutex<OnCreate>,
    pub data: Mutex<Attached>,
}

pub(super) static CONTEXTS: Table<Arc<HeldContext>> = Table::new("context", 0x42);

/// The handle of the context that a call came into.
pub(super) fn token_of(shared: &Arc<ContextShared>) -> Option<Token> {
    CONTEXTS.find(|held| Arc::ptr_eq(&held.context.shared, shared))
}
