//! Preposted receives for requests.
//!
//! Some receives of [`SMALL`] bytes are always posted, so that a request arrives directly in its
//! buffer, without a probe. MPI matches receives in posting order, so only the oldest one is
//! tested, and the requests of one origin stay in order. A longer request is announced by a short
//! one and follows on the data channel.
//!
//! Posting a receive costs an MPI call, during which the origin waits. A buffer is therefore posted
//! again only when there is nothing else to do, or when several wait.

use crate::mpi::{Comm, Request, p2p};
use portolan_base::error::Result;
use std::collections::VecDeque;

/// Maximum length in bytes of a request without an announcement: an eager active message with its
/// headers. Memory of a buffer that no long request has reached is not touched.
pub const SMALL: usize = (64 << 10) + 4096;
const POSTED: usize = 12;
/// Number of waiting buffers at which all are posted again.
const SPARE: usize = 8;

/// Oldest first.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    posted: VecDeque<(Request, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) struct ReceivedRequest {
    pub source: usize,
    pub bytes: usize,
    /// To be returned with [`Inbox::give_back`].
    pub buffer: Vec<u8>,
}

impl Inbox {
    pub fn open(comm: &Comm) -> Result<Inbox> {
        let mut inbox = Inbox::default();
        for _ in 0..POSTED {
            inbox.post(comm, vec![0; SMALL])?;
        }
        Ok(inbox)
    }

    #[inline]
    pub fn give_back(&mut self, comm: &Comm, buffer: Vec<u8>) -> Result<()> {
        self.spare.push(buffer);
        if self.spare.len() >= SPARE { self.post_all(comm) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn post_all(&mut self, comm: &Comm) -> Result<()> {
        while let Some(buffer) = self.spare.pop() {
            self.post(comm, buffer)?;
        }
        Ok(())
    }

    fn post(&mut self, comm: &Comm, mut buffer: Vec<u8>) -> Result<()> {
        debug_assert_eq!(buffer.len(), SMALL);
        // SAFETY: the buffer, whose bytes do not move, stays until the request has ended.
        let request = unsafe { p2p::irecv(comm, buffer.as_mut_ptr(), SMALL, None, 0) }?;
        self.posted.push_back((request, buffer));
        Ok(())
    }

    /// Returns the receive of the next request, to be tested together with other requests.
    #[inline]
    pub fn next(&mut self) -> Option<&mut Request> {
        self.posted.front_mut().map(|(request, _)| request)
    }

    /// Takes the next request after a test of [`Inbox::next`].
    #[inline]
    pub fn received(&mut self, (source, bytes): (usize, usize)) -> ReceivedRequest {
        let buffer = self.posted.pop_front().map(|(_, buffer)| buffer).unwrap_or_default();
        ReceivedRequest { source, bytes, buffer }
    }

    #[inline]
    pub fn take(&mut self) -> Result<Option<ReceivedRequest>> {
        let Some(next) = self.next() else { return Ok(None) };
        Ok(next.test_message()?.map(|message| self.received(message)))
    }

    /// No request may be in flight.
    pub fn close(&mut self) -> Result<()> {
        for (request, _) in &mut self.posted {
            request.cancel()?;
        }
        self.posted.clear();
        Ok(())
    }
}
