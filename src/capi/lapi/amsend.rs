//! The origin's side of active messages.
//!
//! A message of the engine's carries a [`Head`] and the user header as its header, the
//! user data as its data. The address of a header handler travels as one of three:
//!
//! * an index of the address table, as it is;
//! * an address that `LAPI_Address_init` gave for this target, or one that is no code
//!   of this process: it is the target's own, and goes as it is;
//! * other code of this process, as a program gives it that counts on all tasks having
//!   it at the same address: as object and offset (see [`super::objects`]), so that
//!   the target finds its own copy wherever that lies.
//!
//! The completion counter is served by a reply of this interface's own rather than by
//! the engine's, so that `LAPI_LOCAL_STATE` can forbid it.

use super::context::{self, Context, TABLE, call, enter};
use super::finish;
use super::outcome::{Outcome, refuse};
use super::traffic::add;
use super::types::Hook;
use super::types::{Counter, ErrorOf, Handle, MAX_MSG_SZ, SendHandler, WORD};
use super::{counters, messages, objects, twin};
use crate::am::Am;
use crate::am::{Data, MAX_HEADER, Signal, Signals};
use bytemuck::{Pod, Zeroable};
use std::mem::{MaybeUninit, size_of};
use std::os::raw::{c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::Ordering;

/// What travels before the user header, which is filled up to a word with zeros.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Head {
    /// Index, address or offset of the header handler.
    pub handler: u64,
    /// The object that it is an offset in; 0 none.
    pub object: u64,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The origin's completion counter, or 0.
    pub cmpl_cntr: u64,
    /// Bytes of the user header.
    pub uhdr_len: u32,
    /// [`VECTOR`], [`AGAIN`], [`WHOLE`].
    pub flags: u32,
    /// The origin, where it is not the sender.
    pub origin: u32,
    /// Blocks of a vector, whose lengths are the first of the data; its type is in
    /// the flags.
    pub blocks: u32,
}

/// The message is a vector's.
pub(crate) const VECTOR: u32 = 1;
/// The message is one that was dropped before.
pub(crate) const AGAIN: u32 = 2;
/// It had come whole then.
pub(crate) const WHOLE: u32 = 4;
/// The vector's type, times this.
pub(crate) const VECTOR_TYPE: u32 = 256;

/// `MAX_UHDR_SZ`.
pub(crate) const MAX_UHDR: usize = (MAX_HEADER - size_of::<Head>()) / WORD * WORD;

/// What all active messages have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    /// The task that gets it.
    pub tgt: c_uint,
    /// The header handler.
    pub hdr_hdl: u64,
    /// The user header.
    pub uhdr: *const c_void,
    /// Bytes of it.
    pub uhdr_len: c_uint,
    /// The send completion handler.
    pub sent: Option<Hook<SendHandler>>,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The origin's counter, or null.
    pub org_cntr: *const Counter,
    /// The completion counter, or null.
    pub cmpl_cntr: *const Counter,
}

/// A message that was checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked<'a> {
    message: &'a Message,
    target: usize,
}

impl Message {
    /// Checks what all messages have in common.
    pub(crate) fn check(&self, context: &Context) -> Outcome<Checked<'_>> {
        let target = context.target(self.tgt)?;
        if self.hdr_hdl == 0 {
            refuse!(messages::HDR_HNDLR_NULL, "the header handler is null");
        }
        let len = self.uhdr_len as usize;
        if len > MAX_UHDR {
            refuse!(
                messages::UHDR_LEN,
                "a user header of {len} bytes, but MAX_UHDR_SZ is {MAX_UHDR}"
            );
        }
        if len > 0 && self.uhdr.is_null() {
            refuse!(messages::UHDR_NULL, "the user header is null, but has {len} bytes");
        }
        Ok(Checked { message: self, target })
    }
}

/// How the address of a header handler travels: object and handler.
fn route(context: &Context, engine: &Am, target: usize, hdr_hdl: u64) -> (u64, u64) {
    if hdr_hdl <= TABLE as u64 || target == engine.rank() {
        return (0, hdr_hdl);
    }
    if let Some(&route) = context.routes.read().get(&(target, hdr_hdl)) {
        return route;
    }
    let given = context.exchanged.read().contains(&(target, hdr_hdl));
    let own = if given { None } else { objects::locate(hdr_hdl as usize) };
    let route = own.unwrap_or((0, hdr_hdl));
    context.routes.write().insert((target, hdr_hdl), route);
    route
}

impl Checked<'_> {
    /// Sends it with `data`. `flags` and `blocks` are those of the head.
    ///
    /// # Safety
    /// Header and data must be valid, the data until the origin is told, and the
    /// counters until they have counted.
    pub(crate) unsafe fn send(
        &self,
        context: &'static Context,
        engine: &Am,
        data: Data<'_>,
        flags: u32,
        blocks: u32,
    ) -> Outcome {
        let Checked { message, target } = *self;
        let len = match &data {
            Data::Bytes(bytes) => bytes.len(),
            Data::Owned(bytes) => bytes.len(),
            Data::At(_, len) => *len,
        };
        let owned = matches!(data, Data::Owned(_));
        let (object, handler) = route(context, engine, target, message.hdr_hdl);
        let head = Head {
            handler,
            object,
            tgt_cntr: message.tgt_cntr,
            cmpl_cntr: message.cmpl_cntr as u64,
            uhdr_len: message.uhdr_len,
            flags,
            origin: engine.rank() as u32,
            blocks,
        };
        let mut header = MaybeUninit::<[u8; MAX_HEADER]>::uninit();
        // Filled up to a word, so that what follows lies as before.
        let len_of_uhdr = message.uhdr_len as usize;
        let padding = len_of_uhdr.next_multiple_of(WORD) - len_of_uhdr;
        let bytes = size_of::<Head>() + len_of_uhdr + padding;
        // SAFETY: the header has room for all, see `check` (MAX_UHDR is a multiple of the
        // word); the caller vouches for the user header. The slice covers what was written.
        let header = unsafe {
            let to = header.as_mut_ptr().cast::<u8>();
            to.copy_from_nonoverlapping((&raw const head).cast(), size_of::<Head>());
            let from = message.uhdr.cast::<u8>();
            if message.uhdr_len > 0 {
                to.add(size_of::<Head>()).copy_from_nonoverlapping(from, len_of_uhdr);
            }
            to.add(size_of::<Head>() + len_of_uhdr).write_bytes(0, padding);
            std::slice::from_raw_parts(to, bytes)
        };
        let waits = !owned && len > engine.eager_limit(target);
        let origin = match message.sent {
            None if message.org_cntr.is_null() && !waits => Signal::None,
            None if !waits && !context.watched.has(message.org_cntr) => {
                // SAFETY: the counter is valid, see above.
                Signal::Count(unsafe { &raw const (*message.org_cntr).value })
            }
            sent => {
                let counter = message.org_cntr as usize;
                Signal::Call(Box::new(move |engine| {
                    context.tallies.left.fetch_add(1, Ordering::Release);
                    // SAFETY: the user keeps the counter until it has counted.
                    unsafe { counters::bump(context, counter as *const Counter, target) };
                    if let Some(hook) = sent
                        && let Err(error) = hook.call(context, engine, target)
                    {
                        context::fatal(&error);
                    }
                }))
            }
        };
        let signals = Signals { origin, completion: Signal::None };
        // SAFETY: passed on from the caller.
        unsafe { engine.send_am(target, context.handlers.message, header, data, signals) }?;
        let traffic = context.traffic(target);
        add(&traffic.sent, 1);
        add(&traffic.bytes_sent, len);
        Ok(finish::serve(context, engine)?)
    }
}

/// Checks the user data.
pub(crate) fn check_data(udata: *const c_void, udata_len: c_ulong) -> Outcome {
    if udata_len > MAX_MSG_SZ {
        refuse!(messages::DATA_LEN, "{udata_len} bytes are more than LAPI_MAX_MSG_SZ");
    }
    if udata_len > 0 && udata.is_null() {
        refuse!(messages::ORG_ADDR_NULL, "the user data is null, but has {udata_len} bytes");
    }
    Ok(())
}

/// Sends contiguous data.
///
/// # Safety
/// As for [`Checked::send`].
pub(crate) unsafe fn send(
    hndl: Handle,
    message: &Message,
    udata: *const c_void,
    udata_len: c_ulong,
) -> Outcome {
    let (context, engine) = enter(hndl)?;
    let checked = message.check(context)?;
    check_data(udata, udata_len)?;
    let data = match udata_len {
        0 => Data::NONE,
        len => Data::At(udata.cast(), len as usize),
    };
    // SAFETY: passed on from the caller.
    unsafe { checked.send(context, engine, data, 0, 0) }
}

/// The kind that errors of active messages belong to.
pub(crate) const OF: ErrorOf = ErrorOf::Am;

twin! {
    /// Sends an active message: the header handler `hdr_hdl` of task `tgt` gets the
    /// user header and says where the user data goes. Does not block, except for room
    /// at a target that is far behind, and serves others meanwhile.
    LAPI_Amsend / PLAPI_Amsend(
        hndl: Handle, tgt: c_uint, hdr_hdl: *mut c_void, uhdr: *mut c_void, uhdr_len: c_uint,
        udata: *mut c_void, udata_len: c_ulong, tgt_cntr: *mut Counter, org_cntr: *mut Counter,
        cmpl_cntr: *mut Counter,
    ) -> c_int {
        call("LAPI_Amsend", || {
            let message = Message {
                tgt,
                hdr_hdl: hdr_hdl as u64,
                uhdr,
                uhdr_len,
                sent: None,
                tgt_cntr: tgt_cntr as u64,
                org_cntr,
                cmpl_cntr,
            };
            // SAFETY: the caller vouches for the addresses.
            unsafe { send(hndl, &message, udata, udata_len) }
        })
    }
}
