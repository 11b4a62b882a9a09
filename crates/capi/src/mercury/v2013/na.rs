//! `na.h`: classes, contexts, addresses, progress, cancellation.

use crate::boundary::export;
use crate::mercury::entry::{error_text, maybe, place, put_text, text, timeout};
use crate::mercury::interface::calls;
use crate::mercury::objects::address;
use crate::mercury::table::{NA_CLASSES, NA_CONTEXTS, Token};
use portolan_rpc::failure::{Result, Status, refuse};
use portolan_rpc::na::{Callback, Class, Context, Event, MAX_TAG, OpId, What};
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) enum CallbackType {
    Lookup,
    SendUnexpected,
    RecvUnexpected,
    SendExpected,
    RecvExpected,
    Put,
    Get,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct RecvUnexpected {
    actual_buf_size: u64,
    source: Token,
    tag: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union Info {
    lookup: Token,
    recv_unexpected: RecvUnexpected,
    recv_expected: u64,
}

#[repr(C)]
pub(crate) struct CallbackInfo {
    arg: *mut c_void,
    ret: c_int,
    kind: CallbackType,
    info: Info,
}

impl std::fmt::Debug for CallbackInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallbackInfo").field("ret", &self.ret).field("kind", &self.kind).finish()
    }
}

pub(crate) type NaCallback = Option<unsafe extern "C-unwind" fn(*const CallbackInfo) -> c_int>;

#[derive(Debug, Clone, Copy)]
pub(super) struct OpIdPlace {
    pub at: *mut u8,
    pub len: usize,
}

struct Caller {
    callback: NaCallback,
    arg: *mut c_void,
    place: OpIdPlace,
}

// SAFETY: the program does not use `arg` and the buffer until the callback has run.
unsafe impl Send for Caller {}

impl Caller {
    fn notify(self, event: Event) {
        let Caller { callback, arg, place } = self;
        let mut ret = event.status.0;
        let mut received = |body: &[u8]| {
            if ret == 0 && body.len() > place.len {
                ret = Status::MSGSIZE.0;
            } else if ret == 0 && !body.is_empty() {
                // SAFETY: the message fits, and the program keeps its buffer until the callback.
                unsafe { ptr::copy_nonoverlapping(body.as_ptr(), place.at, body.len()) };
            }
            body.len() as u64
        };
        let (kind, info) = match &event.what {
            What::Lookup(address) => {
                let lookup = callback.map_or(ptr::null_mut(), |_| address::keep_alone(*address));
                (CallbackType::Lookup, Info { lookup })
            }
            What::RecvUnexpected { body, source, tag } => {
                let actual_buf_size = received(body);
                let wanted = callback.is_some() && event.status == Status::SUCCESS;
                let source = if wanted { address::keep_alone(*source) } else { ptr::null_mut() };
                let recv_unexpected = RecvUnexpected { actual_buf_size, source, tag: *tag };
                (CallbackType::RecvUnexpected, Info { recv_unexpected })
            }
            What::RecvExpected { body } => {
                let recv_expected = received(body);
                (CallbackType::RecvExpected, Info { recv_expected })
            }
            What::SendUnexpected => (CallbackType::SendUnexpected, NOTHING),
            What::SendExpected => (CallbackType::SendExpected, NOTHING),
            What::Put => (CallbackType::Put, NOTHING),
            What::Get => (CallbackType::Get, NOTHING),
        };
        if let Some(callback) = callback {
            let info = CallbackInfo { arg, ret, kind, info };
            // SAFETY: the program supplied the callback with `arg`, and `info` outlives the call.
            unsafe { callback(&info) };
        }
    }
}

const NOTHING: Info = Info {
    recv_unexpected: RecvUnexpected { actual_buf_size: 0, source: ptr::null_mut(), tag: 0 },
};

pub(super) fn calling(callback: NaCallback, arg: *mut c_void, place: OpIdPlace) -> Callback {
    let caller = Caller { callback, arg, place };
    Box::new(move |event| caller.notify(event))
}

pub(super) const NOWHERE: OpIdPlace = OpIdPlace { at: ptr::null_mut(), len: 0 };

pub(super) fn both(class: Token, context: Token) -> Result<(Class, Context)> {
    let (class, context) = (NA_CLASSES.get(class)?, NA_CONTEXTS.get(context)?);
    if !class.owns(&context) {
        refuse!(INVALID_ARG, "the context belongs to another NA class");
    }
    Ok((class, context))
}

/// # Safety
/// `place` must be null, `NA_OP_ID_IGNORE`, or valid for writes.
pub(super) unsafe fn give_op(place: *mut Token, op: OpId) {
    // SAFETY: the caller guarantees that `place` is null, `NA_OP_ID_IGNORE` or valid for writes.
    if let Some(place) = unsafe { maybe(place) } {
        *place = op.0 as usize as Token;
    }
}

calls! { V2013:
    NA_Initialize(info_string: *const c_char, listen: u8) -> Token, ptr::null_mut(), {
        // SAFETY: the caller guarantees that `info_string` is null or a terminated string.
        let info = unsafe { text(info_string, "information string") }?;
        Ok(NA_CLASSES.insert(Class::new(&info, listen != 0)?))
    }

    NA_Finalize(na_class: Token) {
        NA_CLASSES.get(na_class)?.finalize()?;
        NA_CLASSES.remove(na_class).map(drop)
    }

    NA_Is_listening(na_class: Token) -> u8, 0, { Ok(u8::from(NA_CLASSES.get(na_class)?.listens())) }

    NA_Context_create(na_class: Token) -> Token, ptr::null_mut(), {
        Ok(NA_CONTEXTS.insert(NA_CLASSES.get(na_class)?.context()?))
    }

    /// Queued callbacks do not run. Returns `NA_BUSY` while transfers are in progress.
    NA_Context_destroy(na_class: Token, context: Token) {
        let (_, found) = both(na_class, context)?;
        if found.is_moving() {
            refuse!(BUSY, "transfers of the context are under way; wait for them or cancel them");
        }
        drop(found);
        NA_CONTEXTS.remove(context).map(|context| context.clear())
    }

    NA_Addr_lookup(
        na_class: Token,
        context: Token,
        callback: NaCallback,
        arg: *mut c_void,
        name: *const c_char,
        op_id: *mut Token,
    ) {
        let (_, context) = both(na_class, context)?;
        // SAFETY: the caller guarantees that `name` is null or a terminated string.
        let name = unsafe { text(name, "name") }?;
        let op = context.lookup(&name, calling(callback, arg, NOWHERE))?;
        // SAFETY: by contract, `op_id` is null, `NA_OP_ID_IGNORE` or valid for writes.
        unsafe { give_op(op_id, op) };
        Ok(())
    }

    NA_Addr_lookup_wait(na_class: Token, name: *const c_char, addr: *mut Token) {
        let class = NA_CLASSES.get(na_class)?;
        // SAFETY: by contract, `name` is null or a terminated string, and `addr` is null or valid.
        let (name, addr) = unsafe { (text(name, "name")?, place(addr, "address")?) };
        *addr = address::keep_alone(class.lookup(&name)?);
        Ok(())
    }

    NA_Addr_free(na_class: Token, addr: Token) {
        NA_CLASSES.get(na_class)?;
        address::get(addr)?; // null is an error
        address::release(addr)
    }

    NA_Addr_self(na_class: Token, addr: *mut Token) {
        let class = NA_CLASSES.get(na_class)?;
        // SAFETY: the caller guarantees that `addr` is null or valid for writes.
        let addr = unsafe { place(addr, "address") }?;
        *addr = address::keep_alone(class.own_address());
        Ok(())
    }

    NA_Addr_dup(na_class: Token, addr: Token, new_addr: *mut Token) {
        NA_CLASSES.get(na_class)?;
        let address = address::get(addr)?;
        // SAFETY: the caller guarantees that `new_addr` is null or valid for writes.
        *unsafe { place(new_addr, "address") }? = address::keep_alone(address);
        Ok(())
    }

    NA_Addr_is_self(na_class: Token, addr: Token) -> u8, 0, {
        NA_CLASSES.get(na_class)?;
        Ok(u8::from(address::get(addr)?.is_self()))
    }

    NA_Addr_to_string(na_class: Token, buf: *mut c_char, buf_size: u64, addr: Token) {
        let text = NA_CLASSES.get(na_class)?.text_of(&address::get(addr)?);
        // SAFETY: the caller guarantees that `buf` is null or valid for writes of `buf_size` bytes.
        unsafe { put_text(buf, buf_size as usize, &text) }
    }

    NA_Msg_get_max_expected_size(na_class: Token) -> u64, 0, {
        Ok(NA_CLASSES.get(na_class)?.max_expected() as u64)
    }

    NA_Msg_get_max_unexpected_size(na_class: Token) -> u64, 0, {
        Ok(NA_CLASSES.get(na_class)?.max_unexpected() as u64)
    }

    NA_Msg_get_max_tag(na_class: Token) -> u32, 0, { NA_CLASSES.get(na_class).map(|_| MAX_TAG) }

    NA_Progress(na_class: Token, context: Token, milliseconds: c_uint) {
        let (_, context) = both(na_class, context)?;
        if !context.progress(timeout(milliseconds))? {
            refuse!(TIMEOUT, "no operation completed within {milliseconds} ms");
        }
        Ok(())
    }

    /// Makes progress first if none is queued and the timeout is not 0. Returns `NA_TIMEOUT` if
    /// none has run.
    NA_Trigger(context: Token, milliseconds: c_uint, max_count: c_uint, actual_count: *mut c_uint) {
        // SAFETY: the caller guarantees that `actual_count` is null or valid for writes.
        let actual = unsafe { maybe(actual_count) };
        let context = NA_CONTEXTS.get(context)?;
        let ran = context.trigger(timeout(milliseconds), max_count as usize)?;
        if let Some(actual) = actual {
            *actual = ran as c_uint;
        }
        if ran == 0 && max_count > 0 {
            refuse!(TIMEOUT, "no callback became ready within {milliseconds} ms");
        }
        Ok(())
    }

    NA_Cancel(na_class: Token, context: Token, op_id: Token) {
        let (_, context) = both(na_class, context)?;
        context.cancel(OpId(op_id as usize as u64))
    }
}

export! {
    NA_Error_to_string(errnum: c_int) -> *const c_char { error_text(Status(errnum), "NA_").as_ptr() }
}
