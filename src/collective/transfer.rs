//! A message to one rank and a message of another, each with a header that says for which call.
//!
//! The first [`INLINE`] bytes of the data travel behind the header. The rest follows in a message of
//! its own, which is received only when the header has been checked: so no message is longer than the
//! receive that takes it.
//!
//! **Memory.** What is sent is a copy, because a transfer may be given up while MPI still reads the
//! bytes: they are then never freed. A receive that is given up is cancelled.

use super::call::{Call, Detail, Signature};
use crate::error::{Result, fail};
use crate::mpi::{Comm, Request, p2p};
use std::cell::RefCell;
use std::mem;

/// Bytes of data in the first message.
const INLINE: usize = 128;
/// What the tag of the rest of the data is above that of the first message: one that is never received, as
/// its header was refused, must not meet the receive of a first message.
pub(super) const REST: i32 = 1 << 14;
const HEADER: usize = size_of::<Header>();
const DETAIL: usize = size_of::<Detail>();
/// The longest first message.
const FIRST: usize = HEADER + DETAIL + INLINE;

/// What every message begins with. The detail of the call follows, where it has one.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Header {
    /// The number of the collective.
    pub number: u32,
    /// Bytes of data, in this message and the next.
    len: u32,
    pub signature: Signature,
}

impl Header {
    pub(super) fn new(number: u32, signature: Signature) -> Header {
        Header { number, len: 0, signature }
    }

    /// Bytes of the header and the detail.
    fn bytes(&self) -> usize {
        if self.signature.is_detailed() { HEADER + DETAIL } else { HEADER }
    }
}

#[derive(Debug)]
enum Incoming<'a> {
    /// The first message is awaited.
    First {
        request: Request,
        frame: Frame,
        data: &'a mut [u8],
    },
    /// The rest of the data is.
    Rest {
        request: Request,
        _data: &'a mut [u8],
    },
    Done,
}

/// The two messages.
#[derive(Debug)]
pub(super) struct Transfer<'a> {
    incoming: Incoming<'a>,
    from: usize,
    first: Option<(Request, Frame)>,
    rest: Option<(Request, Vec<u8>)>,
}

/// The bytes of a first message. A thread uses them again.
type Frame = Box<[u8; FIRST]>;

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

fn take_frame() -> Frame {
    FRAMES.with_borrow_mut(Vec::pop).unwrap_or_else(|| Box::new([0; FIRST]))
}

fn give_back(frame: Frame) {
    FRAMES.with_borrow_mut(|frames| frames.push(frame));
}

/// There is no way on from a message that failed half way: MPI may still use the memory.
fn must<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| {
        log::error!("a message of a collective failed: {error:#}");
        crate::process::end_job(error.kind().code())
    })
}

impl<'a> Transfer<'a> {
    /// Starts both messages; ranks are those of the communicator.
    pub(super) fn start(
        (comm, tag): (&Comm, i32),
        mut header: Header,
        send: Option<(&[u8], usize)>,
        receive: Option<(&'a mut [u8], usize)>,
    ) -> Transfer<'a> {
        let from = receive.as_ref().map_or(usize::MAX, |(_, from)| *from);
        let incoming = receive.map_or(Incoming::Done, |(data, from)| {
            let mut frame = take_frame();
            // SAFETY: the frame is kept until the request has completed or was cancelled; a move of
            // the box does not move its bytes.
            let request =
                must(unsafe { p2p::irecv(comm, frame.as_mut_ptr(), FIRST, Some(from), tag) });
            Incoming::First { request, frame, data }
        });
        let mut transfer = Transfer { incoming, from, first: None, rest: None };
        if let Some((data, to)) = send {
            header.len = data.len() as u32;
            let (inline, rest) = data.split_at(data.len().min(INLINE));
            let (mut frame, begin) = (take_frame(), header.bytes());
            frame[..HEADER].copy_from_slice(bytemuck::bytes_of(&header));
            if header.signature.is_detailed() {
                frame[HEADER..begin].copy_from_slice(bytemuck::bytes_of(&Detail::here()));
            }
            frame[begin..begin + inline.len()].copy_from_slice(inline);
            // SAFETY: the frame is kept until the request has completed, or for good (`drop`).
            let sent =
                must(unsafe { p2p::isend(comm, frame.as_ptr(), begin + inline.len(), to, tag) });
            transfer.first = Some((sent, frame));
            if !rest.is_empty() {
                let rest = rest.to_vec();
                // SAFETY: as for the frame.
                let sent =
                    must(unsafe { p2p::isend(comm, rest.as_ptr(), rest.len(), to, tag + REST) });
                transfer.rest = Some((sent, rest));
            }
        }
        transfer
    }

    /// The rank of which something is awaited.
    pub(super) fn source(&self) -> Option<usize> {
        (!matches!(self.incoming, Incoming::Done)).then_some(self.from)
    }

    /// Whether both messages are complete. `check` judges the header, before any data is used; it gets
    /// what makes the call of the header, and the rank that sent it.
    ///
    /// # Errors
    /// That of `check`.
    pub(super) fn step(
        &mut self,
        channel: (&Comm, i32),
        check: impl FnOnce(&Header, &dyn Fn() -> Call, usize) -> Result<()>,
    ) -> Result<bool> {
        if let Incoming::First { request, .. } = &mut self.incoming
            && let Some((_, bytes)) = must(request.test_message())
        {
            self.arrived(channel, bytes, check)?;
        }
        if let Incoming::Rest { request, .. } = &mut self.incoming
            && must(request.test())
        {
            self.incoming = Incoming::Done;
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
        Ok(sent && matches!(self.incoming, Incoming::Done))
    }

    /// The first message is here.
    fn arrived(
        &mut self,
        channel: (&Comm, i32),
        bytes: usize,
        check: impl FnOnce(&Header, &dyn Fn() -> Call, usize) -> Result<()>,
    ) -> Result<()> {
        let first = mem::replace(&mut self.incoming, Incoming::Done);
        let Incoming::First { frame, data, .. } = first else { return Ok(()) };
        self.take(channel, (&frame, bytes), data, check)?;
        give_back(frame);
        Ok(())
    }

    /// Takes the data out of the first message.
    fn take(
        &mut self,
        (comm, tag): (&Comm, i32),
        (frame, bytes): (&Frame, usize),
        data: &'a mut [u8],
        check: impl FnOnce(&Header, &dyn Fn() -> Call, usize) -> Result<()>,
    ) -> Result<()> {
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
                "a collective's message of {bytes} bytes announces {}, and {} are expected",
                header.len,
                data.len()
            );
        }
        data[..inline].copy_from_slice(&frame[header.bytes()..bytes]);
        if data.len() > INLINE {
            // SAFETY: the data is borrowed until the request has completed or was cancelled.
            let request = must(unsafe {
                let rest = data.as_mut_ptr().add(INLINE);
                p2p::irecv(comm, rest, data.len() - INLINE, Some(self.from), tag + REST)
            });
            self.incoming = Incoming::Rest { request, _data: data };
        }
        Ok(())
    }
}

/// Gives up what is not complete.
impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        match &mut self.incoming {
            Incoming::First { request, .. } | Incoming::Rest { request, .. } => {
                must(request.cancel());
            }
            Incoming::Done => {}
        }
        mem::forget((self.first.take(), self.rest.take()));
    }
}
