//! Contexts: creation, progress and trigger; and the end of classes, which have none then.

use super::attached::{Attached, OnCreate};
use super::class::{CLASSES, HeldClass};
use crate::mercury::entry::{maybe, timeout};
use crate::mercury::interface::Happened;
use crate::mercury::table::{Number, Table, Token};
use parking_lot::Mutex;
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use portolan_rpc::hg::Context;
use portolan_rpc::hg::context::ContextShared;
use std::os::raw::c_uint;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct HeldContext {
    pub class: Arc<HeldClass>,
    pub class_token: Number,
    pub context: Context,
    pub on_create: Mutex<OnCreate>,
    pub data: Mutex<Attached>,
}

/// Contexts, except the one of `HG_Init` of 2013, which has no handle.
pub(crate) static CONTEXTS: Table<Arc<HeldContext>> = Table::new("context", 0x32);

/// Creates a context with a number. `accepts` says whether it accepts calls at once.
pub(crate) fn create(
    class_token: Token,
    id: u8,
    accepts: impl FnOnce(&HeldClass) -> bool,
) -> Result<Token> {
    let class = CLASSES.get(class_token)?;
    let context = class.class.context_numbered(id)?;
    context.shared.set_accepts(accepts(&class));
    let class_token = Number::of(class_token);
    let (on_create, data) = (Mutex::default(), Mutex::default());
    let held = HeldContext { class, class_token, context, on_create, data };
    Ok(CONTEXTS.insert(Arc::new(held)))
}

/// Finalises a class and frees the data attached to it and to its functions. Fails with `BUSY` if
/// the class has contexts, or the error of the network. The class then stays open.
pub(crate) fn finalize_class(token: Token) -> Result<()> {
    let held = CLASSES.get(token)?;
    if CONTEXTS.find(|context| context.class_token == Number::of(token)).is_some() {
        refuse!(BUSY, "the class has contexts; destroy them first");
    }
    held.class.finalize()?;
    super::address::drop_those_of(token);
    CLASSES.remove(token)?;
    // Another thread may hold the class for a moment. The data is freed now, outside the locks.
    let function_data = std::mem::take(&mut *held.function_data.lock());
    drop(function_data);
    Attached::replace(&held.data, Attached::default());
    Ok(())
}

pub(crate) fn progress(token: Token, milliseconds: c_uint) -> Result<Happened> {
    CONTEXTS.get(token)?.context.progress(timeout(milliseconds)).map(Happened)
}

/// Runs at most `most` queued calls and callbacks, and writes their number to `actual`. If
/// `milliseconds` is not 0, makes progress first if none is queued. Returns whether one has run;
/// always true without `milliseconds` or if `most` is 0.
///
/// # Safety
/// `actual` must be null or valid for a write.
pub(crate) unsafe fn trigger(
    token: Token,
    milliseconds: Option<c_uint>,
    most: c_uint,
    actual: *mut c_uint,
) -> Result<Happened> {
    // SAFETY: by this function's contract, `actual` is null or valid for a write.
    let actual = unsafe { maybe(actual) };
    let held = CONTEXTS.get(token)?;
    if let Some(milliseconds @ 1..) = milliseconds
        && most > 0
    {
        held.context.progress(timeout(milliseconds))?;
    }
    let ran = held.context.trigger(most as usize);
    if let Some(actual) = actual {
        *actual = ran as c_uint;
    }
    Ok(Happened(ran > 0 || most == 0 || milliseconds.is_none()))
}

/// Returns the handle of a context, and its create callback. Fails with `FAIL` if it is destroyed.
pub(crate) fn of_shared(shared: &Arc<ContextShared>) -> Result<(Token, OnCreate)> {
    let mine = |held: &Arc<HeldContext>| Arc::ptr_eq(&held.context.shared, shared);
    let found = CONTEXTS.search(|held| mine(held).then(|| *held.on_create.lock()));
    found.ok_or_else(|| {
        let text = "a call arrived for a context that no longer exists";
        Failure::new(Status::FAIL, text)
    })
}
