//! Active messages at the target: header handlers and their decisions.
//!
//! A header handler runs under the engine's rules for handlers: one at a time, without blocking. In
//! polling mode (`INTERRUPT_SET` 0) it runs only inside calls of the task; until then the message
//! waits in the context's [`Deferral`]. Messages for an unset index wait there in either mode.
//!
//! The handler gets a copy of the user header, which lives until the completion handler has
//! returned, and a [`ReturnInfo`] at `msg_len`. Its return value decides about the data:
//!
//! | data | returned address | effect |
//! |---|---|---|
//! | none | any | nothing is copied |
//! | arrived whole | null | nothing is copied; the handler has taken the data |
//! | arrived whole | an address | the data is copied there |
//! | not yet here | an address | the data is received there |
//! | not yet here | null | an error that ends the job |
//!
//! `LAPI_BURY_MSG` discards the data; counters and handlers work as usual. `LAPI_DROP_PKT` keeps
//! the message and calls the header handler again later; fences do not wait for kept messages.
//!
//! Completion handlers run on the engine's completion thread in the order of completion, and may
//! block and communicate. With `LAPI_SEND_REPLY` or `LAPI_LOCAL_STATE`, they run at once, under the
//! rules of handlers.

use super::amsend::{AGAIN, Head, OF, VECTOR, WHOLE};
use super::context::{self, Context, TABLE, fatal};
use super::incoming::Incoming;
use super::types::{
    BURY_MSG, DELIVER_MSG, DROP_PKT, HdrHandler, LOCAL_STATE, MAGIC, ReturnInfo, SEND_REPLY,
};
use super::{messages, vectors};
use portolan_base::error::Result;
use portolan_engine::am::Am;
use portolan_engine::am::deferral::Deferral;
use portolan_engine::am::wire::read_pod;
use portolan_engine::am::{Accept, Arrival, Completion, Data, Destination, Handler, Signals, Then};
use std::os::raw::{c_int, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Aligns data that arrived with the header to 8 bytes, as C programs expect.
struct Aligned(Vec<u64>);

impl Aligned {
    fn of(&mut self, data: &[u8]) -> *mut c_void {
        if data.as_ptr().addr().is_multiple_of(8) {
            return data.as_ptr().cast_mut().cast();
        }
        self.0 = vec![0; data.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut self.0)[..data.len()].copy_from_slice(data);
        self.0.as_mut_ptr().cast()
    }
}

/// Keeps a message that was dropped and delivers it again later.
fn again(message: &Arrival<'_>, incoming: Incoming, whole: bool) -> Accept {
    let header = incoming.head.again(message.header, whole, incoming.origin);
    let resend: Completion = Box::new(move |engine, data| {
        let sent = context::current().and_then(|context| {
            let (me, handler) = (engine.rank(), context.handlers.message);
            // SAFETY: `Data::Owned` passes ownership, and there are no signals.
            unsafe { engine.send_am(me, handler, &header, Data::Owned(data), Signals::default()) }
        });
        if let Err(error) = sent {
            fatal(&error);
        }
    });
    // Through the completion thread, so that other messages get their turn first.
    Accept { to: Destination::Buffer, then: Then::Later(resend) }
}

#[derive(Debug)]
pub(crate) struct Messages(pub Arc<Deferral>);

impl Handler for Messages {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let context = context::current()?;
        let incoming = Incoming::new(context, message)?;
        if incoming.head.flags & VECTOR != 0 {
            return vectors::arrive(context, engine, message, incoming);
        }
        deliver(context, engine, message, incoming)
    }

    fn deferral(&self) -> Option<Arc<Deferral>> {
        Some(self.0.clone())
    }

    /// Holds back a message for an unset index. Fails after `TIMEOUT` seconds, or in `LAPI_Term`.
    fn is_ready(&self, origin: usize, header: &[u8], waited: Duration) -> Result<bool> {
        let context = context::current()?;
        let head: Head = read_pod(header)?;
        let settable = head.object == 0 && (1..TABLE as u64).contains(&head.handler);
        if !settable || context.table[head.handler as usize].load(Ordering::Acquire) != 0 {
            return Ok(true);
        }
        let seconds = context.settings.timeout.load(Ordering::Relaxed);
        let ending = context.ending.load(Ordering::Acquire);
        if !ending && waited < Duration::from_secs(seconds.unsigned_abs().into()) {
            return Ok(false);
        }
        let origin = head.first_origin(header, origin);
        let why = match ending {
            true => "until LAPI_Term".into(),
            false => format!("for {seconds} seconds (TIMEOUT)"),
        };
        let text = format!(
            "task {origin} sent a message for the header handler of index {}, which waited \
             {why}, but no handler was set here by LAPI_Addr_set",
            head.handler
        );
        Err(context.report(messages::HDR_HNDLR_NULL, OF, origin, text))
    }
}

fn deliver(
    context: &Context,
    engine: &Am,
    message: &Arrival<'_>,
    mut incoming: Incoming,
) -> Result<Accept> {
    let flags = incoming.head.flags;
    let data = message.data.filter(|_| flags & AGAIN == 0 || flags & WHOLE != 0);
    let whole = data.is_some();
    let mut copy = Aligned(Vec::new());
    let packet = match data {
        Some(data) if message.len > 0 => copy.of(data),
        _ => ptr::null_mut(),
    };
    let mut info = ReturnInfo {
        msg_len: message.len as c_ulong,
        magic: MAGIC,
        ret_flags: 0,
        ctl_flags: DELIVER_MSG,
        dgsp_handle: ptr::null_mut(),
        bytes: message.len as c_ulong,
        src: incoming.origin as c_int,
        udata_one_pkt_ptr: packet,
        recv_offset_dgsp_bytes: 0,
    };
    let (mut completion, mut user_info) = (None, ptr::null_mut());
    let mut uhdr_len = incoming.head.uhdr_len.into();
    let uhdr = incoming.uhdr_ptr();
    // SAFETY: `Incoming::new` found `handler` as an address of code, or LAPI_Addr_set set it; the
    // program guarantees a header handler there. All pointers are to live locals, and `msg_len`
    // points to the whole of `info`.
    let address = unsafe {
        let handler: HdrHandler = std::mem::transmute(incoming.handler);
        handler(
            &mut context.handle(),
            uhdr,
            &mut uhdr_len,
            (&raw mut info).cast(),
            &mut completion,
            &mut user_info,
        )
    };
    drop(copy);
    let origin = incoming.origin;
    let wrong = |code, text: &str| {
        let len = message.len;
        let text =
            format!("the header handler of a message of {len} bytes from task {origin} {text}");
        Err(context.report(code, OF, origin, text))
    };
    if !info.dgsp_handle.is_null() {
        return wrong(messages::UNKNOWN, "set dgsp_handle, which no message of LAPI_Amsend may");
    }
    let to = match info.ctl_flags {
        DROP_PKT => return Ok(again(message, incoming, whole)),
        BURY_MSG => Destination::Taken,
        DELIVER_MSG if message.len == 0 => Destination::Taken,
        DELIVER_MSG if !address.is_null() => Destination::At(address.cast()),
        DELIVER_MSG if whole => Destination::Taken,
        DELIVER_MSG => {
            return wrong(
                messages::TGT_ADDR_NULL,
                "returned null, but the data has not come yet (udata_one_pkt_ptr is null); it \
                 must return an address for it, or set LAPI_BURY_MSG",
            );
        }
        _ => return wrong(messages::UNKNOWN, "set ctl_flags to an unknown value"),
    };
    let inline = info.ret_flags & (SEND_REPLY | LOCAL_STATE) != 0;
    let reply = info.ret_flags & LOCAL_STATE == 0;
    let finish = incoming.finish(completion, user_info, message.len, reply);
    let (true, Some(data)) = (inline || !finish.has_handler(), message.data) else {
        return Ok(Accept { to, then: finish.then(inline) });
    };
    // All the data is here and nothing has to wait.
    if let Destination::At(to) = to {
        // SAFETY: the header handler returned an address with room for the data.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()) };
    }
    finish.run(engine);
    Ok(Accept::DONE)
}
