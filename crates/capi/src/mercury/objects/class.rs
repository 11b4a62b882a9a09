//! Classes, and the data that programs attach to their functions.

use super::attached::{Attached, OnCreate};
use super::more_data::Callbacks;
use crate::mercury::entry::{maybe, place, text};
use crate::mercury::params::Which;
use crate::mercury::table::{NA_CLASSES, Table, Token};
use parking_lot::Mutex;
use portolan_rpc::checksum::Method;
use portolan_rpc::failure::{Failure, Result, Status};
use portolan_rpc::hg::target::Function;
use portolan_rpc::hg::wire::{ANSWER, REQUEST};
use portolan_rpc::hg::{Class, Listen};
use portolan_rpc::na::Options;
use portolan_rpc::proc::trailer::trailer_len;
use std::collections::HashMap;
use std::os::raw::{c_char, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct HeldClass {
    pub class: Class,
    /// Lengths in bytes of the program's own bytes before encoded inputs and outputs.
    offsets: [AtomicUsize; 2],
    /// Parameters that do not fit into one message are an error.
    pub no_overflow: bool,
    /// Bulk handles in parameters may carry the bytes of their memory.
    pub bulk_eager: bool,
    pub counts: Counts,
    pub on_create: Mutex<OnCreate>,
    pub more_data: Mutex<Callbacks>,
    pub data: Mutex<Attached>,
    pub(super) function_data: Mutex<HashMap<u64, Attached>>,
}

/// Classes, except the one of `HG_Init` of 2013, which has no handle.
pub(crate) static CLASSES: Table<Arc<HeldClass>> = Table::new("class", 0x31);

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub req_sent: AtomicU64,
    pub req_recv: AtomicU64,
    pub resp_sent: AtomicU64,
    pub resp_recv: AtomicU64,
    pub req_extra: AtomicU64,
    pub resp_extra: AtomicU64,
    pub active: AtomicU64,
    pub bulk: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Creates a class over the network class `network`, or over a new network if `network` is null.
///
/// # Safety
/// `info` must be null or a NUL-terminated string.
pub(crate) unsafe fn create(
    (info, listen, options): (*const c_char, bool, Options<'_>),
    network: Token,
    method: Method,
    (no_overflow, bulk_eager): (bool, bool),
) -> Result<Token> {
    let class = if network.is_null() {
        // SAFETY: by this function's contract, `info` is null or NUL-terminated.
        let info = unsafe { text(info, "information string") }?;
        Class::init_with_options(&info, Listen::from(listen), method, options)?
    } else {
        Class::over(&NA_CLASSES.get(network)?, method)?
    };
    Ok(CLASSES.insert(Arc::new(HeldClass {
        class,
        offsets: Default::default(),
        no_overflow,
        bulk_eager,
        counts: Counts::default(),
        on_create: Mutex::default(),
        more_data: Mutex::default(),
        data: Mutex::default(),
        function_data: Mutex::default(),
    })))
}

/// Looks up a function by name and writes to `flag` whether it is registered.
///
/// # Safety
/// `flag` must be null or valid for a write.
pub(crate) unsafe fn find_named(
    class: &Class,
    name: &str,
    flag: *mut u8,
) -> Result<Option<Arc<Function>>> {
    let found = class.shared.functions.named(name);
    // SAFETY: by this function's contract, `flag` is null or valid for a write.
    *unsafe { place(flag, "flag") }? = u8::from(found.is_some());
    Ok(found)
}

/// Writes the number of a function, if there is one and the program wants it.
///
/// # Safety
/// `id` must be null, 1 or valid for a write.
pub(crate) unsafe fn put_number<T>(
    id: *mut T,
    function: Option<Arc<Function>>,
    number: impl Fn(&Function) -> T,
) {
    // SAFETY: by this function's contract, `id` is null, 1 or valid for a write.
    if let (Some(id), Some(function)) = (unsafe { maybe(id) }, function) {
        *id = number(&function);
    }
}

impl HeldClass {
    pub(crate) fn offset(&self, which: Which) -> &AtomicUsize {
        &self.offsets[which as usize]
    }

    /// Returns the length in bytes of the longest parameters that fit into their message.
    pub(crate) fn room(&self, which: Which) -> usize {
        let network = self.class.network();
        let (message, head) = match which {
            Which::Input => (network.max_unexpected(), REQUEST),
            Which::Output => (network.max_expected(), ANSWER),
        };
        message.saturating_sub(head + trailer_len(self.class.shared.method))
    }

    /// Fails with `NO_MATCH` if the number is not registered.
    pub(crate) fn function(&self, id: u64) -> Result<Arc<Function>> {
        self.class.shared.functions.numbered(id).ok_or_else(|| unknown(id))
    }

    /// Removes a function and frees its attached data. Fails with `NO_MATCH` if there is none.
    pub(crate) fn deregister(&self, id: u64) -> Result<()> {
        self.class.shared.functions.remove_numbered(id)?;
        let attached = self.function_data.lock().remove(&id);
        drop(attached); // outside the lock, because this calls the program's function
        Ok(())
    }

    /// Attaches data to a function and returns the data that was attached before.
    pub(crate) fn set_function_data(&self, function: &Function, data: Attached) -> Attached {
        self.function_data.lock().insert(function.number(), data).unwrap_or_default()
    }

    pub(crate) fn function_data(&self, id: u64) -> *mut c_void {
        self.function_data.lock().get(&id).map_or(ptr::null_mut(), Attached::data)
    }
}

#[cold]
fn unknown(id: u64) -> Failure {
    Failure::new(Status::NO_MATCH, format!("no function has the number {id:#x}"))
}
