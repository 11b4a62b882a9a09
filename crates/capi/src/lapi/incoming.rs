//! A message at its target: its header, and the actions to run when its data is in place.

use super::amsend::{Head, OF};
use super::context::{self, Context, TABLE, fatal};
use super::traffic::add;
use super::types::{ComplHandler, Hook};
use super::{counters, messages, notices, objects};
use portolan_base::error::Result;
use portolan_engine::am::Am;
use portolan_engine::am::wire::read_pod;
use portolan_engine::am::{Accept, Arrival, Completion, Destination, Then};
use std::os::raw::c_void;
use std::ptr;
use std::sync::atomic::Ordering;

#[derive(Debug)]
pub(crate) struct Incoming {
    pub head: Head,
    pub origin: usize,
    /// Lives until the completion handler has returned.
    pub uhdr: Vec<u64>,
    pub handler: usize,
}

#[derive(Debug)]
pub(crate) struct Finish {
    completion: Option<Hook<ComplHandler>>,
    uhdr: Vec<u64>,
    tgt_cntr: u64,
    cmpl_cntr: u64,
    origin: usize,
    bytes: usize,
}

impl Finish {
    pub(crate) fn run(self, engine: &Am) {
        let done = context::current().and_then(|context| {
            if let Some(hook) = self.completion {
                hook.call(context);
            }
            drop(self.uhdr);
            let traffic = context.traffic(self.origin);
            add(&traffic.bytes_received, self.bytes);
            add(&traffic.received, 1);
            context.tallies.received.fetch_add(1, Ordering::Release);
            counters::bump_at(context, self.tgt_cntr, OF, self.origin)?;
            notices::reply(context, engine, self.origin, self.cmpl_cntr, OF)
        });
        if let Err(error) = done {
            fatal(&error);
        }
    }

    pub(crate) fn has_handler(&self) -> bool {
        self.completion.is_some()
    }

    /// Runs on the completion thread if there is a handler and `inline` is false, else at once.
    pub(crate) fn then(self, inline: bool) -> Then {
        let later = self.completion.is_some() && !inline;
        let job: Completion = Box::new(move |engine, _| self.run(engine));
        if later { Then::Later(job) } else { Then::Inline(job) }
    }
}

impl Incoming {
    pub(crate) fn new(context: &Context, message: &Arrival<'_>) -> Result<Incoming> {
        let head: Head = read_pod(message.header)?;
        let rest = &message.header[size_of::<Head>()..];
        let bytes = head.uhdr_len as usize;
        if rest.len() < bytes {
            let text = format!("task {} sent a truncated user header", message.origin);
            return Err(context.report(messages::UNKNOWN, OF, message.origin, text));
        }
        let mut uhdr = vec![0u64; bytes.div_ceil(8)];
        bytemuck::cast_slice_mut(&mut uhdr)[..bytes].copy_from_slice(&rest[..bytes]);
        let origin = head.first_origin(message.header, message.origin);
        let handler = find(context, origin, &head)?;
        Ok(Incoming { head, origin, uhdr, handler })
    }

    /// Returns the user header as handlers get it: null if it is empty.
    pub(crate) fn uhdr_ptr(&mut self) -> *mut c_void {
        if self.uhdr.is_empty() { ptr::null_mut() } else { self.uhdr.as_mut_ptr().cast() }
    }

    /// Returns the actions to run when `bytes` of data are in place.
    pub(crate) fn finish(
        self,
        completion: Option<ComplHandler>,
        user_info: *mut c_void,
        bytes: usize,
        reply: bool,
    ) -> Finish {
        Finish {
            completion: completion.map(|function| Hook(function, user_info)),
            uhdr: self.uhdr,
            tgt_cntr: self.head.tgt_cntr,
            cmpl_cntr: if reply { self.head.cmpl_cntr } else { 0 },
            origin: self.origin,
            bytes,
        }
    }
}

fn find(context: &Context, origin: usize, head: &Head) -> Result<usize> {
    let Head { handler, object, .. } = *head;
    if object == 0 && handler <= TABLE as u64 {
        let entry = context.table.get(handler as usize).map_or(0, |a| a.load(Ordering::Acquire));
        if entry != 0 && handler != 0 {
            return Ok(entry);
        }
        let text = format!(
            "task {origin} sent a message for the header handler of index {handler}, but \
             LAPI_Addr_set can set none there"
        );
        return Err(context.report(messages::HDR_HNDLR_NULL, OF, origin, text));
    }
    if let Some(&known) = context.code.read().get(&(object, handler)) {
        return Ok(known);
    }
    let found = match object {
        0 => Some(handler as usize).filter(|&address| objects::is_code(address)),
        _ => objects::resolve(object, handler),
    };
    let Some(address) = found else {
        let what = match object {
            0 => {
                format!("the header handler at {handler:#x}, which is not an address of code here")
            }
            _ => format!(
                "a header handler of its own, at offset {handler:#x} of a program or library \
                 that is not loaded here"
            ),
        };
        let text = format!(
            "task {origin} sent a message for {what}; use the target's own address, from \
             LAPI_Address_init, or an index, from LAPI_Addr_set"
        );
        return Err(context.report(messages::HDR_HNDLR_NULL, OF, origin, text));
    };
    context.code.write().insert((object, handler), address);
    Ok(address)
}

pub(crate) fn accept_done(finish: Finish) -> Accept {
    Accept { to: Destination::Taken, then: finish.then(false) }
}
