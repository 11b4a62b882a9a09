//! A message to one rank and a message from another, each with a header that names the call.
//!
//! The first [`INLINE`] bytes of the data follow the header. The rest follows in a second message,
//! whose receive is posted after the header was checked, so no message exceeds its receive.
//!
//! **Memory.** The sent bytes are copies, because a transfer may be abandoned while MPI still reads
//! them. Abandoned copies are never freed. An abandoned receive is cancelled.

use super::call::{Call, Detail, Signature};
use crate::mpi::{Comm, Request, p2p};
use portolan_base::error::{Result, fail};
use std::cell::RefCell;
use std::mem;

/// Enough for the counts of messages by target ([`crate::am`]).
const INLINE: usize = 1024;
/// Distance of the tags of second and first messages. If the header was refused, the second message
/// is never received, and must not match the receive of a first message.
pub(super) const REST: i32 = 1 << 14;
const HEADER: usize = size_of::<Header>();
const DETAIL: usize = size_of::<Detail>();
const FIRST: usize = HEADER + DETAIL + INLINE;

/// The detail of the call follows, if it has one.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Header {
    pub number: u32,
    len: u32,
    pub signature: Signature,
}

impl Header {
    pub fn new(number: u32, signature: Signature) -> Header {
        Header { number, len: 0, signature }
    }

    fn bytes(&self) -> usize {
        if self.signature.is_detailed() { HEADER + DETAIL } else { HEADER }
    }
}

#[derive(Debug)]
enum IncomingBytes<'a> {
    /// The receive of the first message is pending.
    First {
        request: Request,
        frame: Frame,
        data: &'a mut [u8],
    },
    Rest {
        request: Request,
        _data: &'a mut [u8],
    },
    Done,
}

#[derive(Debug)]
pub(super) struct GroupTransfer<'a> {
    incoming: IncomingBytes<'a>,
    from: usize,
    first: Option<(Request, Frame)>,
    rest: Option<(Request, Vec<u8>)>,
}

/// Bytes of a first message. Each thread reuses its frames.
type Frame = Box<[u8; FIRST]>;

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

fn take_frame() -> Frame {
    // A collective in an exit handler runs after the thread-local variables were dropped.
    let spare = FRAMES.try_with(|frames| frames.borrow_mut().pop());
    spare.ok().flatten().unwrap_or_else(|| Box::new([0; FIRST]))
}

fn give_back(frame: Frame) {
    let _ = FRAMES.try_with(|frames| frames.borrow_mut().push(frame));
}

/// Ends the job if a message failed, because MPI may still use the memory.
fn must<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| error.end_job_in("a message of a collective failed"))
}

impl<'a> GroupTransfer<'a> {
    /// `send` and `receive` name ranks of the communicator.
    pub(super) fn start(
        (comm, tag): (&Comm, i32),
        mut header: Header,
        send: Option<(&[u8], usize)>,
        receive: Option<(&'a mut [u8], usize)>,
    ) -> GroupTransfer<'a> {
        let from = receive.as_ref().map_or(usize::MAX, |(_, from)| *from);
        let incoming = receive.map_or(IncomingBytes::Done, |(data, from)| {
            let mut frame = take_frame();
            // SAFETY: the frame, whose bytes do not move, stays until the request has ended.
            let request =
                must(unsafe { p2p::irecv(comm, frame.as_mut_ptr(), FIRST, Some(from), tag) });
            IncomingBytes::First { request, frame, data }
        });
        let mut transfer = GroupTransfer { incoming, from, first: None, rest: None };
        if let Some((data, to)) = send {
            header.len = data.len() as u32;
            let (inline, rest) = data.split_at(data.len().min(INLINE));
            let (mut frame, begin) = (take_frame(), header.bytes());
            frame[..HEADER].copy_from_slice(bytemuck::bytes_of(&header));
            if header.signature.is_detailed() {
                frame[HEADER..begin].copy_from_slice(bytemuck::bytes_of(&Detail::here()));
            }
            frame[begin..begin + inline.len()].copy_from_slice(inline);
            // SAFETY: the frame is kept until the request has completed, or is leaked by `drop`.
            let sent =
                must(unsafe { p2p::isend(comm, frame.as_ptr(), begin + inline.len(), to, tag) });
            transfer.first = Some((sent, frame));
            if !rest.is_empty() {
                let rest = rest.to_vec();
                // SAFETY: the copy is kept until the request has completed, or is leaked by `drop`.
                let sent =
                    must(unsafe { p2p::isend(comm, rest.as_ptr(), rest.len(), to, tag + REST) });
                transfer.rest = Some((sent, rest));
            }
        }
        transfer
    }

    pub(super) fn source(&self) -> Option<usize> {
        (!matches!(self.incoming, IncomingBytes::Done)).then_some(self.from)
    }

    /// Advances the transfer. Returns whether all messages are complete. `check` judges the header
    /// before any data is used. It receives the header, a function that returns the call in it, and
    /// the sender's rank. Its error is returned.
    pub(super) fn step(
        &mut self,
        channel: (&Comm, i32),
        check: impl FnOnce(&Header, &dyn Fn() -> Call, usize) -> Result<()>,
    ) -> Result<bool> {
        if let IncomingBytes::First { request, .. } = &mut self.incoming
            && let Some((_, bytes)) = must(request.test_message())
        {
            self.arrived(channel, bytes, check)?;
        }
        if let IncomingBytes::Rest { request, .. } = &mut self.incoming
            && must(request.test())
        {
            self.incoming = IncomingBytes::Done;
        }
        if let Some((request, _)) = &mut self.first
            && must(request.test())
        {
            self.first.take().into_iter().for_each(|(_, frame)| give_back(frame));
        }
        if let Some((request, _)) = &mut self.rest
            && must(request.test())
        {
            self.rest = None;
        }
        let sent = self.first.is_none() && self.rest.is_none();
        Ok(sent && matches!(self.incoming, IncomingBytes::Done))
    }

    fn arrived(
        &mut self,
        (comm, tag): (&Comm, i32),
        bytes: usize,
        check: impl FnOnce(&Header, &dyn Fn() -> Call, usize) -> Result<()>,
    ) -> Result<()> {
        let first = mem::replace(&mut self.incoming, IncomingBytes::Done);
        let IncomingBytes::First { frame, data, .. } = first else { return Ok(()) };
        if bytes < HEADER {
            fail!(Internal, "a collective's message of {bytes} bytes has no header");
        }
        let header: Header = bytemuck::pod_read_unaligned(&frame[..HEADER]);
        let call = || Call {
            signature: header.signature,
            detail: bytemuck::pod_read_unaligned(&frame[HEADER..HEADER + DETAIL]),
        };
        check(&header, &call, self.from)?;
        let inline = data.len().min(INLINE);
        if header.len as usize != data.len() || bytes != header.bytes() + inline {
            fail!(
                Internal,
                "a collective's message of {bytes} bytes announces {}, but {} are expected",
                header.len,
                data.len()
            );
        }
        data[..inline].copy_from_slice(&frame[header.bytes()..bytes]);
        give_back(frame);
        if data.len() > INLINE {
            // SAFETY: the data stays borrowed until the request has completed or was cancelled.
            let request = must(unsafe {
                let rest = data.as_mut_ptr().add(INLINE);
                p2p::irecv(comm, rest, data.len() - INLINE, Some(self.from), tag + REST)
            });
            self.incoming = IncomingBytes::Rest { request, _data: data };
        }
        Ok(())
    }
}

impl Drop for GroupTransfer<'_> {
    fn drop(&mut self) {
        match &mut self.incoming {
            IncomingBytes::First { request, .. } | IncomingBytes::Rest { request, .. } => {
                must(request.cancel());
            }
            IncomingBytes::Done => {}
        }
        mem::forget((self.first.take(), self.rest.take()));
    }
}
