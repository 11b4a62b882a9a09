//! Active messages at the origin.
//!
//! The header of an engine message is a [`Head`] and the user header; its data is the user data.
//! The address of a header handler is sent in one of three forms:
//!
//! * An index of the address table is sent unchanged.
//! * An address that `LAPI_Address_init` returned for this target, or that is not code of this
//!   process, belongs to the target and is sent unchanged.
//! * Other code of this process is sent as object and offset ([`super::objects`]), and the target
//!   finds its own copy. This supports programs that assume the same address on all tasks.
//!
//! A reply of this interface increments the completion counter, not the engine's own, because
//! `LAPI_LOCAL_STATE` must be able to suppress it.

use super::context::{self, Context, TABLE, call, enter};
use super::finish;
use super::outcome::{Outcome, refuse};
use super::traffic::add;
use super::types::Hook;
use super::types::{Counter, ErrorOf, Handle, MAX_MSG_SZ, SendHandler, WORD};
use super::{counters, messages, objects};
use crate::boundary::export;
use bytemuck::{Pod, Zeroable};
use portolan_base::error::Result;
use portolan_base::thread::fast_tls;
use portolan_engine::am::Am;
use portolan_engine::am::{Data, MAX_HEADER, Signal, Signals};
use std::mem::{MaybeUninit, size_of};
use std::os::raw::{c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::Ordering;

/// The bytes before the user header, which is padded with zeros to a whole word.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Head {
    /// The index or address of the header handler, or its offset in `object`.
    pub handler: u64,
    /// The key of the object that contains the header handler, or 0.
    pub object: u64,
    /// An address, or 0.
    pub tgt_cntr: u64,
    /// An address at the origin, or 0.
    pub cmpl_cntr: u64,
    /// In bytes, without padding.
    pub uhdr_len: u16,
    /// Bits [`VECTOR`], [`AGAIN`] and [`WHOLE`], and the vector type times [`VECTOR_TYPE`].
    pub flags: u16,
    /// The number of blocks of a vector. The data begins with their lengths.
    pub blocks: u32,
}

// A message with a user header of one word fits in a cell of the ring.
const _: () = assert!(size_of::<Head>() == 40);

pub(crate) const VECTOR: u16 = 1;
/// The target dropped the message and has sent it to itself again. The header ends with the task
/// that sent the message first, in a word.
pub(crate) const AGAIN: u16 = 2;
/// With [`AGAIN`]: the data had arrived whole with the header the first time.
pub(crate) const WHOLE: u16 = 4;
pub(crate) const VECTOR_TYPE: u16 = 256;

/// `MAX_UHDR_SZ`, the longest user header in bytes.
pub(crate) const MAX_UHDR: usize = (MAX_HEADER - size_of::<Head>() - WORD) / WORD * WORD;

impl Head {
    /// Returns the task that sent a message first.
    pub(crate) fn first_origin(&self, header: &[u8], origin: usize) -> usize {
        match header.last_chunk() {
            Some(first) if self.flags & AGAIN != 0 => u64::from_ne_bytes(*first) as usize,
            _ => origin,
        }
    }

    /// Returns the header of the message that the target sends to itself for a dropped one.
    pub(crate) fn again(mut self, header: &[u8], whole: bool, origin: usize) -> Vec<u8> {
        let dropped_before = self.flags & AGAIN != 0;
        self.flags |= AGAIN | if whole { WHOLE } else { 0 };
        let mut again = header.to_vec();
        again[..size_of::<Head>()].copy_from_slice(bytemuck::bytes_of(&self));
        if !dropped_before {
            again.extend_from_slice(&(origin as u64).to_ne_bytes());
        }
        again
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub tgt: c_uint,
    pub hdr_hdl: u64,
    pub uhdr: *const c_void,
    pub uhdr_len: c_uint,
    pub sent: Option<Hook<SendHandler>>,
    /// An address, or 0.
    pub tgt_cntr: u64,
    pub org_cntr: *const Counter,
    pub cmpl_cntr: *const Counter,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked<'a> {
    message: &'a Message,
    target: usize,
}

impl Message {
    #[inline(always)] // keeps the result in registers
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

/// A route, and the identity of the routes among which it was found.
#[derive(Debug, Clone, Copy)]
struct LastRoute {
    of: (u32, u32),
    target: usize,
    hdr_hdl: u64,
    route: (u64, u64),
}

fast_tls! {
    /// The route that the thread has used last. No header handler has the address 0.
    static LAST: LastRoute = LastRoute { of: (0, 0), target: 0, hdr_hdl: 0, route: (0, 0) };
}

/// Returns (object, handler) of the [`Head`] for a header handler.
#[inline]
fn route(context: &Context, engine: &Am, target: usize, hdr_hdl: u64) -> (u64, u64) {
    if hdr_hdl <= TABLE as u64 || target == engine.rank() {
        return (0, hdr_hdl);
    }
    // Read before the routes, so that a route from before an exchange is not taken afterwards.
    let of = (context.handle(), context.exchanges.load(Ordering::Acquire));
    let known = LAST.with(|last| {
        let last = last.get();
        let is_same = last.hdr_hdl == hdr_hdl && last.target == target && last.of == of;
        is_same.then_some(last.route)
    });
    if let Some(route) = known {
        return route;
    }
    let route = find_route(context, target, hdr_hdl);
    LAST.set(LastRoute { of, target, hdr_hdl, route });
    route
}

#[cold]
#[inline(never)]
fn find_route(context: &Context, target: usize, hdr_hdl: u64) -> (u64, u64) {
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
    /// Sends the message. The user header must be valid for the call, the data until local
    /// completion, and the counters until they have counted.
    pub(crate) unsafe fn send(
        &self,
        context: &'static Context,
        engine: &Am,
        data: Data<'_>,
        flags: u16,
        blocks: u32,
    ) -> Outcome {
        let Checked { message, target } = *self;
        let len = data.len();
        let (object, handler) = route(context, engine, target, message.hdr_hdl);
        let head = Head {
            handler,
            object,
            tgt_cntr: message.tgt_cntr,
            cmpl_cntr: message.cmpl_cntr as u64,
            uhdr_len: message.uhdr_len as u16,
            flags,
            blocks,
        };
        let mut header = MaybeUninit::<[u8; MAX_HEADER]>::uninit();
        // The padding to whole words keeps the data behind the header aligned.
        let len_of_uhdr = message.uhdr_len as usize;
        let padding = len_of_uhdr.next_multiple_of(WORD) - len_of_uhdr;
        let bytes = size_of::<Head>() + len_of_uhdr + padding;
        #[expect(clippy::disallowed_methods, reason = "an array of this function")]
        // SAFETY: `check` ensures that the head and the padded user header fit (MAX_UHDR is a
        // multiple of the word), and by contract the user header is valid. The slice covers only
        // bytes written here.
        let header = unsafe {
            let to = header.as_mut_ptr().cast::<u8>();
            to.copy_from_nonoverlapping((&raw const head).cast(), size_of::<Head>());
            let from = message.uhdr.cast::<u8>();
            if message.uhdr_len > 0 {
                to.add(size_of::<Head>()).copy_from_nonoverlapping(from, len_of_uhdr);
            }
            if padding > 0 {
                to.add(size_of::<Head>() + len_of_uhdr).write_bytes(0, padding);
            }
            std::slice::from_raw_parts(to, bytes)
        };
        let handler = context.handlers.message;
        // SAFETY: the caller guarantees the data, and that the counter is null or valid.
        unsafe {
            if message.sent.is_none()
                && !context.watched.has(message.org_cntr)
                && engine.send_at_once(target, handler, header, data.bytes()?)?
            {
                if !message.org_cntr.is_null() {
                    Signal::Count(&raw const (*message.org_cntr).value).notify(engine);
                }
            } else {
                self.send_slow_path(context, engine, header, data)?;
            }
        }
        let traffic = context.traffic(target);
        add(&traffic.sent, 1);
        add(&traffic.bytes_sent, len);
        Ok(finish::serve(context, engine)?)
    }

    /// # Safety
    /// See [`Checked::send`].
    #[cold]
    #[inline(never)]
    unsafe fn send_slow_path(
        &self,
        context: &'static Context,
        engine: &Am,
        header: &[u8],
        data: Data<'_>,
    ) -> Result<()> {
        let Checked { message, target } = *self;
        let handler = context.handlers.message;
        let is_eager = data.len() <= engine.eager_limit(target);
        let waits = !is_eager && !matches!(data, Data::Owned(_));
        let origin = match message.sent {
            None if message.org_cntr.is_null() && !waits => Signal::None,
            None if !waits && !context.watched.has(message.org_cntr) => {
                // SAFETY: the first arm takes null, and by contract another counter is valid.
                Signal::Count(unsafe { &raw const (*message.org_cntr).value })
            }
            sent => {
                let counter = message.org_cntr as usize;
                Signal::Call(Box::new(move |engine| {
                    context.tallies.left.fetch_add(1, Ordering::Release);
                    // SAFETY: the caller keeps the counter valid until it has counted.
                    unsafe { counters::bump(context, counter as *const Counter, target) };
                    if let Some(hook) = sent
                        && let Err(error) = hook.call(context, engine, target)
                    {
                        context::fatal(&error);
                    }
                }))
            }
        };
        // SAFETY: by contract, data lives until local completion, counters until they count.
        unsafe {
            if is_eager {
                // The message is a copy, so its data has left when the call returns.
                engine.send_message(target, handler, header, data.bytes()?)?;
                origin.notify(engine);
                return Ok(());
            }
            let signals = Signals { origin, completion: Signal::None };
            engine.send_am(target, handler, header, data, signals)
        }
    }
}

pub(crate) fn check_data(udata: *const c_void, udata_len: c_ulong) -> Outcome {
    if udata_len > MAX_MSG_SZ {
        refuse!(messages::DATA_LEN, "{udata_len} bytes exceed LAPI_MAX_MSG_SZ");
    }
    if udata_len > 0 && udata.is_null() {
        refuse!(messages::ORG_ADDR_NULL, "the user data is null, but has {udata_len} bytes");
    }
    Ok(())
}

/// # Safety
/// The contract of `Checked::send` applies.
#[inline(always)] // saves copies of the message
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
    // SAFETY: the caller guarantees the contract of `Checked::send`.
    unsafe { checked.send(context, engine, data, 0, 0) }
}

pub(crate) const OF: ErrorOf = ErrorOf::Am;

export! {
    /// Blocks only for space at a target that is far behind, and then serves others.
    LAPI_Amsend / PLAPI_Amsend(
        hndl: Handle, tgt: c_uint, hdr_hdl: *mut c_void, uhdr: *mut c_void, uhdr_len: c_uint,
        udata: *mut c_void, udata_len: c_ulong, tgt_cntr: *mut Counter, org_cntr: *mut Counter,
        cmpl_cntr: *mut Counter,
    ) -> c_int = call(|| {
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
        // SAFETY: by contract, header, data and counters are valid.
        unsafe { send(hndl, &message, udata, udata_len) }
    });
}
