//! Handles: creation, reference counts, reset and attached data.
//!
//! A handle represents calls at their origin, or one call at its target. The program holds
//! references, and so do a call under way until its callback has run, and each decoded input or
//! output until it is freed ([`super::references`]). `HG_Destroy` directly after `HG_Forward` is
//! therefore legal, as in 2.4.

use super::more_data::{self, Acquisition};
use super::references::References;
use super::types::HgInfo;
use crate::mercury::entry::place;
use crate::mercury::interface::calls;
use crate::mercury::objects::address;
use crate::mercury::objects::attached::{Attached, FreeCallback, OnCreate};
use crate::mercury::objects::class::{CLASSES, HeldClass as Class, count};
use crate::mercury::objects::context::{CONTEXTS, HeldContext};
use crate::mercury::table::{Number, Table, Token};
use parking_lot::Mutex;
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use portolan_rpc::hg::context::ContextShared;
use portolan_rpc::hg::origin::{Origin, Output};
use portolan_rpc::hg::target::Target;
use portolan_rpc::na::memory::ZeroedBuffer;
use std::collections::VecDeque;
use std::os::raw::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

#[derive(Debug, Clone)]
pub(super) enum End {
    /// At the origin, with no call forwarded since the handle was created or reset.
    Fresh,
    Origin(Arc<Origin>),
    Target(Arc<Target>),
}

#[derive(Debug)]
pub(super) struct HandleEntry {
    pub class: Arc<Class>,
    pub context: Number,
    shared: Arc<ContextShared>,
    /// Set if this process is the target.
    target: Option<Arc<Target>>,
    /// The call made since the last reset, if any.
    origin: Mutex<Option<Arc<Origin>>>,
    pub references: References,
    info: Mutex<Box<HgInfo>>,
    data: Mutex<Attached>,
    pub acquisition: Acquisition,
    /// Bulk handles in the input of the call under way. A program may free them directly after
    /// `HG_Forward`; the call keeps the memory exposed until it ends.
    pub lent: Mutex<Vec<Number>>,
    /// Buffers for parameters that the program encodes itself, and for its own bytes.
    pub input: OnceLock<ZeroedBuffer>,
    pub output: OnceLock<ZeroedBuffer>,
    /// The output received last. The program may hold pointers into it.
    pub answer: Mutex<Option<Arc<Output>>>,
    /// Whether the trailers of the received input and output have been checked.
    pub input_checked: AtomicBool,
    pub answer_checked: AtomicBool,
    /// Lengths of the parameters encoded last, in bytes.
    pub input_size: AtomicUsize,
    pub output_size: AtomicUsize,
    /// Number of decoded inputs and outputs that have not been freed.
    pub decoded: AtomicI32,
}

pub(super) static HANDLES: Table<Arc<HandleEntry>> = Table::new("handle", 0x44);

impl HandleEntry {
    pub(super) fn end(&self) -> End {
        match (&self.target, &*self.origin.lock()) {
            (Some(target), _) => End::Target(target.clone()),
            (None, Some(origin)) => End::Origin(origin.clone()),
            (None, None) => End::Fresh,
        }
    }

    pub(super) fn target(&self) -> Result<&Arc<Target>> {
        match &self.target {
            Some(target) => Ok(target),
            None => refuse!(
                INVALID_ARG,
                "the handle is for a call made by this process, not for one that it serves"
            ),
        }
    }

    /// Returns the call at its origin, ready to be forwarded. Fails with `INVALID_ARG` if this
    /// process is the target of the call or the handle lacks an address, and with `NO_MATCH` if its
    /// function is not registered.
    pub(super) fn origin(&self) -> Result<Arc<Origin>> {
        if self.target.is_some() {
            refuse!(
                INVALID_ARG,
                "the handle is for a call that this process serves, not for one that it made"
            );
        }
        let mut made = self.origin.lock();
        if let Some(origin) = &*made {
            return Ok(origin.clone());
        }
        let (addr, id) = {
            let info = self.info.lock();
            (info.addr, info.id)
        };
        if addr.is_null() {
            refuse!(INVALID_ARG, "the handle has no address; give it one by HG_Reset");
        }
        let target = address::get(addr)?;
        let origin = Origin::new(&self.shared, target, self.class.function(id)?);
        Ok(made.insert(origin).clone())
    }

    pub(super) fn context_shared(&self) -> &Arc<ContextShared> {
        &self.shared
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.acquisition.is_under_way()
            || self.origin.lock().as_ref().is_some_and(|origin| origin.is_under_way())
    }

    pub(super) fn target_context(&self) -> u8 {
        self.info.lock().context_id
    }

    pub(super) fn class_token(&self) -> Token {
        self.info.lock().hg_class
    }

    /// Drops the references to the bulk handles in the input.
    pub(super) fn end_loans(&self) {
        for bulk in std::mem::take(&mut *self.lent.lock()) {
            // This cannot fail: the reference that is dropped keeps the handle in the table.
            let _ = crate::mercury::objects::bulk::release(bulk.token());
        }
    }

    pub(super) fn forget_answer(&self) {
        *self.answer.lock() = None;
        self.answer_checked.store(false, Ordering::Release);
    }

    fn reset(&self, addr: Token, id: u64) -> Result<()> {
        if self.target.is_some() {
            refuse!(INVALID_ARG, "the handle is for a call that this process serves");
        }
        if self.is_under_way() {
            refuse!(BUSY, "the call is under way; wait for its callback, or cancel it");
        }
        if id != 0 {
            self.class.function(id)?;
        }
        let mut before = ptr::null_mut();
        if !addr.is_null() {
            address::share(addr)?;
            before = std::mem::replace(&mut self.info.lock().addr, addr);
        }
        let mut info = self.info.lock();
        if id != 0 {
            info.id = id;
        }
        info.context_id = 0;
        drop(info);
        *self.origin.lock() = None;
        self.forget_answer();
        address::release(before)
    }
}

impl Drop for HandleEntry {
    fn drop(&mut self) {
        if self.target.is_some() {
            self.class.counts.active.fetch_sub(1, Ordering::Relaxed);
        }
        let addr = self.info.get_mut().addr;
        // An error means that the program has freed the address too often.
        let _ = address::release(addr);
    }
}

/// Keeps a bulk handle until the call of `handle` ends, if `handle` is at the origin of a call.
pub(in crate::mercury) fn lend(handle: Token, bulk: Token) {
    if let Ok(held) = HANDLES.get(handle)
        && held.target.is_none()
        && let Ok(lent) = crate::mercury::objects::bulk::BULKS.get(bulk)
    {
        lent.hold();
        held.lent.lock().push(Number::of(bulk));
    }
}

/// Creates a handle in a context and passes it to the program's create callbacks.
fn keep(
    class: Arc<Class>,
    (class_token, context): (Token, Token),
    shared: Arc<ContextShared>,
    target: Option<Arc<Target>>,
    of_context: OnCreate,
    (addr, id, context_id): (Token, u64, u8),
) -> Result<Token> {
    let info = Box::new(HgInfo { hg_class: class_token, context, addr, id, context_id });
    let callbacks = [*class.on_create.lock(), of_context];
    let references = match &target {
        Some(target) => References::of_target(target.is_quiet(), target.is_own()),
        None => References::of_origin(),
    };
    let handle = HANDLES.insert(Arc::new(HandleEntry {
        class,
        context: Number::of(context),
        shared,
        target,
        origin: Mutex::new(None),
        references,
        info: Mutex::new(info),
        data: Mutex::default(),
        acquisition: Acquisition::default(),
        lent: Mutex::default(),
        input: OnceLock::new(),
        output: OnceLock::new(),
        answer: Mutex::default(),
        input_checked: AtomicBool::new(false),
        answer_checked: AtomicBool::new(false),
        input_size: AtomicUsize::new(0),
        output_size: AtomicUsize::new(0),
        decoded: AtomicI32::new(0),
    }));
    for callback in callbacks {
        let status = callback.notify(handle);
        if status != Status::SUCCESS {
            drop(HANDLES.remove(handle));
            let text = "the program's callback for new handles has refused one";
            return Err(Failure::new(status, text));
        }
    }
    Ok(handle)
}

pub(super) fn of_target(class_token: Token, target: Arc<Target>) -> Result<Token> {
    let class = CLASSES.get(class_token)?;
    let shared = target.context().clone();
    let mine = |held: &Arc<HeldContext>| Arc::ptr_eq(&held.context.shared, &shared);
    let found = CONTEXTS.search(|held| mine(held).then(|| *held.on_create.lock()));
    let Some((context, on_create)) = found else {
        refuse!(FAIL, "a call arrived for a context that no longer exists");
    };
    count(&class.counts.req_recv);
    class.counts.active.fetch_add(1, Ordering::Relaxed);
    if target.input().len() > class.input_room() {
        count(&class.counts.req_extra);
    }
    let addr = address::keep(class_token, target.source());
    let callee = (addr, target.function().number(), target.origin_context());
    keep(class, (class_token, context), shared, Some(target), on_create, callee)
}

/// # Safety
/// `handle` must be null or valid for a write.
unsafe fn create(context: Token, addr: Token, id: u64, handle: *mut Token) -> Result<()> {
    let held = CONTEXTS.get(context)?;
    // SAFETY: by this function's contract, `handle` is null or valid for a write.
    let to = unsafe { place(handle, "handle") }?;
    if id != 0 {
        held.class.function(id)?;
    }
    if !addr.is_null() {
        address::share(addr)?;
    }
    let (class, shared) = (held.class.clone(), held.context.shared.clone());
    let tokens = (held.class_token.token(), context);
    let on_create = *held.on_create.lock();
    *to = keep(class, tokens, shared, None, on_create, (addr, id, 0))?;
    Ok(())
}

/// The last handles that were freed without a response. The program may destroy each of them once
/// more, to drop the reference of the response.
static UNANSWERED: Mutex<VecDeque<Number>> = Mutex::new(VecDeque::new());
const MOST_UNANSWERED: usize = 256;

/// Drops a reference. A call that is unanswered after the last one fails at its origin.
pub(super) fn release(handle: Token) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    drop_reference(handle, |_| ())
}

fn drop_reference(handle: Token, before: impl FnOnce(&References)) -> Result<()> {
    let of = Number::of(handle);
    let mut releases = None;
    let last = |held: &mut Arc<HandleEntry>| {
        before(&held.references);
        let last = held.references.release()?;
        if last && held.acquisition.is_acquired() {
            // The program releases its data before the handle is freed.
            held.references.hold();
            releases = Some(held.clone());
            return Ok(false);
        }
        Ok(last)
    };
    let removed = HANDLES.remove_if(handle, last);
    if let Some(held) = releases {
        more_data::release(handle, &held);
        return release(handle);
    }
    match removed {
        Ok(None) => {}
        Ok(Some(held)) => {
            if held.references.is_unanswered() {
                let mut unanswered = UNANSWERED.lock();
                unanswered.truncate(MOST_UNANSWERED - 1);
                unanswered.push_front(of);
            }
            // Another thread may hold an `Arc` of the handle for a moment. The data is freed now.
            Attached::replace(&held.data, Attached::default());
        }
        Err(failure) => {
            let mut unanswered = UNANSWERED.lock();
            let Some(at) = unanswered.iter().position(|&known| known == of) else {
                return Err(failure);
            };
            unanswered.remove(at);
        }
    }
    Ok(())
}

/// Drops the reference of the trigger after the callback for an incoming call has returned.
pub(super) fn callback_returned(handle: Token) {
    // No error is possible: the reference of the trigger keeps the handle in the table.
    let _ = drop_reference(handle, References::callback_returned);
}

calls! { V2_4:
    /// A null address or an `id` of 0 can be set later by a reset.
    HG_Create | HG_Core_create(context: Token, addr: Token, id: u64, handle: *mut Token) {
        // SAFETY: by the call's contract, `handle` is null or valid for a write.
        unsafe { create(context, addr, id, handle) }
    }

    /// If a call is never answered, the program may also drop the reference of the response.
    HG_Destroy | HG_Core_destroy(handle: Token) { release(handle) }

    /// A null address or an `id` of 0 keeps the current one. Fails if a call is under way.
    HG_Reset | HG_Core_reset(handle: Token, addr: Token, id: u64) {
        let held = HANDLES.get(handle)?;
        held.reset(addr, id)?;
        more_data::release(handle, &held);
        Ok(())
    }

    HG_Ref_incr | HG_Core_ref_incr(handle: Token) {
        HANDLES.get(handle)?.references.hold();
        Ok(())
    }

    /// Counts as 2.4 does. Returns -1 if the handle is invalid.
    HG_Ref_get | HG_Core_ref_get(handle: Token) -> i32, -1, {
        Ok(HANDLES.get(handle)?.references.count())
    }

    /// Returns null if the handle is invalid. The pointer is valid until the handle is freed.
    HG_Get_info | HG_Core_get_info(handle: Token) -> *const HgInfo, ptr::null(), {
        let held = HANDLES.get(handle)?;
        let info: *const HgInfo = &**held.info.lock();
        Ok(info)
    }

    /// Attaches data that `free` gets when the handle is freed. Data attached before is not freed.
    HG_Set_data | HG_Core_set_data(handle: Token, data: *mut c_void, free: FreeCallback) {
        Attached::overwrite(&HANDLES.get(handle)?.data, Attached::new(data, free));
        Ok(())
    }

    HG_Get_data | HG_Core_get_data(handle: Token) -> *mut c_void, ptr::null_mut(), {
        let data = HANDLES.get(handle)?.data.lock().data();
        Ok(data)
    }

    HG_Core_get_rpc_data(handle: Token) -> *const c_void, ptr::null(), {
        let held = HANDLES.get(handle)?;
        let id = held.info.lock().id;
        Ok(held.class.function_data(id).cast_const())
    }

    /// Sets the number of the target's context that runs the calls.
    HG_Set_target_id | HG_Core_set_target_id(handle: Token, id: u8) {
        HANDLES.get(handle)?.info.lock().context_id = id;
        Ok(())
    }
}
