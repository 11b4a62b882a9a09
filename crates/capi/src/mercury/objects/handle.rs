//! Handles of calls.
//!
//! A handle represents calls at their origin (2.4), or one call at its target. The program holds
//! references, and so do a call under way until its callback has run, and each decoded input or
//! output until it is freed ([`super::references`]). `HG_Destroy` directly after `HG_Forward` is
//! therefore legal, as in 2.4.

use super::address;
use super::attached::{Attached, OnCreate};
use super::bulk::{self, BULKS};
use super::class::{CLASSES, HeldClass, count};
use super::more_data::Acquisition;
use super::references::References;
use crate::mercury::params::Which;
use crate::mercury::table::{Number, Table, Token};
use parking_lot::Mutex;
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use portolan_rpc::hg::context::ContextShared;
use portolan_rpc::hg::origin::{Origin, Output};
use portolan_rpc::hg::target::Target;
use portolan_rpc::na::memory::ZeroedBuffer;
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// `struct hg_info` of 2.4.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HgInfo {
    pub hg_class: Token,
    pub context: Token,
    pub addr: Token,
    pub id: u64,
    pub context_id: u8,
}

// SAFETY: the handles are numbers, and they are never dereferenced.
unsafe impl Send for HgInfo {}
// SAFETY: the handles are numbers, and they are never dereferenced.
unsafe impl Sync for HgInfo {}

#[derive(Debug, Clone)]
pub(crate) enum End {
    /// At the origin, with no call forwarded since the handle was created or reset.
    Fresh,
    Origin(Arc<Origin>),
    Target(Arc<Target>),
}

/// The inputs or the outputs of a handle.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    /// For parameters that the program encodes itself, and for its own bytes.
    pub buffer: OnceLock<ZeroedBuffer>,
    /// Length of those encoded last, in bytes.
    pub size: AtomicUsize,
    /// Whether the trailer of those received has been checked.
    pub is_checked: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct HandleEntry {
    pub class: Arc<HeldClass>,
    pub context: Number,
    shared: Arc<ContextShared>,
    /// Set if this process is the target.
    target: Option<Arc<Target>>,
    /// The call made since the last reset, if any.
    origin: Mutex<Option<Arc<Origin>>>,
    pub references: References,
    pub info: Mutex<HgInfo>,
    pub data: Mutex<Attached>,
    pub acquisition: Acquisition,
    /// Bulk handles in the input of the call under way. A program may free them directly after
    /// `HG_Forward`; the call keeps the memory exposed until it ends.
    pub lent: Mutex<Vec<Number>>,
    parameters: [Parameters; 2],
    /// The output received last. The program may hold pointers into it.
    pub answer: Mutex<Option<Arc<Output>>>,
    /// Number of decoded inputs and outputs that have not been freed.
    pub decoded: AtomicI32,
}

pub(crate) static HANDLES: Table<Arc<HandleEntry>> = Table::new("handle", 0x44);

impl HandleEntry {
    pub(crate) fn end(&self) -> End {
        match (&self.target, &*self.origin.lock()) {
            (Some(target), _) => End::Target(target.clone()),
            (None, Some(origin)) => End::Origin(origin.clone()),
            (None, None) => End::Fresh,
        }
    }

    pub(crate) fn parameters(&self, which: Which) -> &Parameters {
        &self.parameters[which as usize]
    }

    /// Returns the buffer for parameters to be sent, which is allocated on first use, and its size.
    pub(crate) fn buffer(&self, which: Which) -> Result<(*mut u8, usize)> {
        let (buffer, room) = (&self.parameters(which).buffer, self.class.room(which));
        if let Some(buffer) = buffer.get() {
            return Ok((buffer.address(), room));
        }
        let fresh = ZeroedBuffer::new(room)?;
        Ok((buffer.get_or_init(|| fresh).address(), room))
    }

    pub(crate) fn target(&self) -> Result<&Arc<Target>> {
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
    pub(crate) fn origin(&self) -> Result<Arc<Origin>> {
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

    pub(crate) fn context_shared(&self) -> &Arc<ContextShared> {
        &self.shared
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.acquisition.is_under_way()
            || self.origin.lock().as_ref().is_some_and(|origin| origin.is_under_way())
    }

    pub(crate) fn target_context(&self) -> u8 {
        self.info.lock().context_id
    }

    /// Returns the address of the peer, which is freed with the handle. That of a caller gets its
    /// handle when the program asks for it.
    pub(crate) fn address(&self) -> Token {
        let mut info = self.info.lock();
        if let Some(target) = self.target.as_ref().filter(|_| info.addr.is_null()) {
            info.addr = address::keep(info.hg_class, target.source());
        }
        info.addr
    }

    pub(crate) fn class_token(&self) -> Token {
        self.info.lock().hg_class
    }

    /// Drops the references to the bulk handles in the input.
    pub(crate) fn end_loans(&self) {
        for bulk in std::mem::take(&mut *self.lent.lock()) {
            // This cannot fail: the reference that is dropped keeps the handle in the table.
            let _ = bulk::release(bulk.token());
        }
    }

    /// Lets the program release the data that it has acquired, if any.
    pub(crate) fn release_data(&self, handle: Token) {
        if !self.acquisition.take_acquired() {
            return;
        }
        // The callback may lock the callbacks of the class too.
        let callbacks = *self.class.more_data.lock();
        if let Some(release) = callbacks.release {
            // SAFETY: the program has set this callback, and `handle` is live.
            unsafe { release(handle) };
        }
    }

    pub(crate) fn forget_answer(&self) {
        *self.answer.lock() = None;
        self.parameters(Which::Output).is_checked.store(false, Ordering::Release);
    }

    /// Sets another address or function. Null and 0 keep the current one.
    pub(crate) fn reset(&self, addr: Token, id: u64) -> Result<()> {
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
        // An error means that the program has freed the address itself.
        let _ = address::release(addr);
    }
}

/// Keeps a bulk handle until the call of `handle` ends, if `handle` is at the origin of a call.
pub(crate) fn lend(handle: Token, bulk: Token) {
    if let Ok(held) = HANDLES.get(handle)
        && held.target.is_none()
        && let Ok(lent) = BULKS.get(bulk)
    {
        lent.hold();
        held.lent.lock().push(Number::of(bulk));
    }
}

/// Creates a handle in a context and passes it to the program's create callbacks.
pub(crate) fn keep(
    class: Arc<HeldClass>,
    (class_token, context): (Token, Token),
    shared: Arc<ContextShared>,
    target: Option<Arc<Target>>,
    (of_context, references): (OnCreate, References),
    (addr, id, context_id): (Token, u64, u8),
) -> Result<Token> {
    let info = HgInfo { hg_class: class_token, context, addr, id, context_id };
    let callbacks = [*class.on_create.lock(), of_context];
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
        parameters: Default::default(),
        answer: Mutex::default(),
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

/// Creates the handle of an incoming call, in the context that runs it.
pub(crate) fn of_target(
    class_token: Token,
    (context, on_create): (Token, OnCreate),
    target: Arc<Target>,
    references: References,
) -> Result<Token> {
    let class = CLASSES.get(class_token)?;
    let shared = target.context().clone();
    count(&class.counts.req_recv);
    class.counts.active.fetch_add(1, Ordering::Relaxed);
    if target.input().len() > class.room(Which::Input) {
        count(&class.counts.req_extra);
    }
    let callee = (ptr::null_mut(), target.function().number(), target.origin_context());
    let tokens = (class_token, context);
    keep(class, tokens, shared, Some(target), (on_create, references), callee)
}

/// Frees the handles of a context, whatever references they have.
pub(crate) fn drop_those_of(context: Token) {
    let (of, mut gone) = (Number::of(context), Vec::new());
    HANDLES.each(|handle, held| {
        if held.context == of {
            gone.push(handle);
        }
    });
    gone.into_iter().for_each(|handle| drop(HANDLES.remove(handle)));
}

/// The last handles that were freed without a response. The program may destroy each of them once
/// more, to drop the reference of the response.
static UNANSWERED: Mutex<VecDeque<Number>> = Mutex::new(VecDeque::new());
const MOST_UNANSWERED: usize = 256;

/// Drops a reference. A call that is unanswered after the last one fails at its origin.
pub(crate) fn release(handle: Token) -> Result<()> {
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
        held.release_data(handle);
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
pub(crate) fn callback_returned(handle: Token) {
    // No error is possible: the reference of the trigger keeps the handle in the table.
    let _ = drop_reference(handle, References::callback_returned);
}
