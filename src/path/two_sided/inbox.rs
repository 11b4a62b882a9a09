//! Receives that wait for requests.
//!
//! A few receives of [`SMALL`] bytes are posted at all times, so that a request goes
//! from the wire into its buffer without a probe. They are matched in the order in
//! which they were posted, so it is enough to test the oldest, and requests of one
//! origin come out in the order in which they were sent. A longer request is
//! announced by a small one and follows on the data channel.
//!
//! Posting costs a call while the origin waits for its request to be handled, so a buffer is
//! posted again when there is nothing else to do, or when several buffers wait for that.

use crate::error::Result;
use crate::mpi::{Comm, Request, p2p};
use std::collections::VecDeque;

/// Longest request that is received without an announcement.
pub(crate) const SMALL: usize = 16 << 10;
/// Receives that are posted.
const POSTED: usize = 16;
/// Buffers that may wait to be posted again.
const SPARE: usize = 8;

/// The posted receives, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    posted: VecDeque<(Request, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

/// A received request.
#[derive(Debug)]
pub(crate) struct ReceivedRequest {
    /// Its origin.
    pub source: usize,
    /// Its length.
    pub bytes: usize,
    /// The buffer that it is in, to be given back by [`Inbox::give_back`].
    pub buffer: Vec<u8>,
}

impl Inbox {
    /// Posts all receives on a channel.
    pub(crate) fn open(comm: &Comm) -> Result<Inbox> {
        let mut inbox = Inbox::default();
        for _ in 0..POSTED {
            inbox.post(comm, vec![0; SMALL])?;
        }
        Ok(inbox)
    }

    /// Takes a buffer back.
    #[inline]
    pub(crate) fn give_back(&mut self, comm: &Comm, buffer: Vec<u8>) -> Result<()> {
        self.spare.push(buffer);
        if self.spare.len() >= SPARE { self.post_all(comm) } else { Ok(()) }
    }

    /// Posts what was given back.
    #[inline]
    pub(crate) fn post_all(&mut self, comm: &Comm) -> Result<()> {
        while let Some(buffer) = self.spare.pop() {
            self.post(comm, buffer)?;
        }
        Ok(())
    }

    /// Posts a receive into a buffer of [`SMALL`] bytes.
    fn post(&mut self, comm: &Comm, mut buffer: Vec<u8>) -> Result<()> {
        debug_assert_eq!(buffer.len(), SMALL);
        // SAFETY: the buffer stays with the request until that has completed or was
        // cancelled; moving a Vec does not move its bytes.
        let request = unsafe { p2p::irecv(comm, buffer.as_mut_ptr(), SMALL, None, 0) }?;
        self.posted.push_back((request, buffer));
        Ok(())
    }

    /// The receive into which the next request comes, for a look at it with others.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&mut Request> {
        self.posted.front_mut().map(|(request, _)| request)
    }

    /// The next request, of which such a look has told the source and the length.
    #[inline]
    pub(crate) fn received(&mut self, (source, bytes): (usize, usize)) -> ReceivedRequest {
        let buffer = self.posted.pop_front().map(|(_, buffer)| buffer).unwrap_or_default();
        ReceivedRequest { source, bytes, buffer }
    }

    /// The next request, if it is here.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Option<ReceivedRequest>> {
        let Some(next) = self.next() else { return Ok(None) };
        Ok(next.test_message()?.map(|message| self.received(message)))
    }

    /// Takes the receives back. Nothing may be under way any more.
    pub(crate) fn close(&mut self) -> Result<()> {
        for (request, _) in &mut self.posted {
            request.cancel()?;
        }
        self.posted.clear();
        Ok(())
    }
}
