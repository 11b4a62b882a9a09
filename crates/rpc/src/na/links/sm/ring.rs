//! A connection through shared memory: a ring of bytes in each direction, and a socket whose end
//! means that the peer has gone.
//!
//! The writer owns `tail` and the reader owns `head`; both only grow. A writer that finds no room
//! sets `wants_room`, and the reader then rings the writer's bell after it has read.
//!
//! Invariant: the writer sets `wants_room` and then reads `head`; the reader stores `head` and then
//! reads `wants_room`, sequentially consistently. Either the writer finds the room, or the reader
//! finds the request.
//!
//! The peer may also copy to and from the memory of this process. The peer counts its copy and then
//! reads whether this process has cut the connection; this process stores that and then reads the
//! count, sequentially consistently. Either the peer does not begin the copy, or this process waits
//! for its end. Memory of a lost connection can thus be used for other purposes.
//!
//! The peer may change the rings at any time. A position that is not possible ends the connection.

use super::bell::Bell;
use super::mapping::Mapping;
use crate::na::limited::limited;
use crate::na::links::stream::{Read, Stream, after};
use crate::na::memory::Run;
use portolan_engine::memory::shared_bytes;
use std::fmt;
use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const RING: usize = 128 << 10;

#[repr(C, align(64))]
struct Position(AtomicU64);

#[repr(C, align(64))]
struct Flag(AtomicU32);

/// The positions of a ring, in shared memory. A process uses a ring either as writer or as reader.
#[repr(C, align(64))]
struct Positions {
    tail: Position,
    head: Position,
    wants_room: Flag,
}

#[repr(C, align(64))]
struct Copies {
    in_progress: AtomicU32,
    /// Nonzero if the other side has cut the connection: no copy may begin.
    over: AtomicU32,
}

/// Size of the shared memory: two positions and two copies in the first page, then two rings.
pub(super) const SIZE: usize = 4096 + 2 * RING;
const COPIES: usize = 2 * size_of::<Positions>();
const _: () = assert!(COPIES + 2 * size_of::<Copies>() <= 4096);

/// Longest time that a side that cuts the connection waits for a copy of the other side. A copy
/// takes milliseconds; only a peer that was stopped does not report its end.
const LONGEST_COPY: Duration = Duration::from_secs(1);

/// The side of a connection. The client writes the first ring and reads the second one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

#[derive(Debug)]
pub(super) struct Other {
    pub bell: Bell,
    pub waker: OwnedFd,
    /// The number that this process has at the peer.
    pub number: u32,
    pub process: u32,
    /// The peer's process, if this process can access its memory.
    pub reachable: Option<Reachable>,
    pub reaches_us: bool,
}

/// A process whose memory this process can access, as long as it lives. Its number may be reused
/// afterwards, and then another process must not be accessed on its behalf.
#[derive(Debug)]
pub(super) struct Reachable {
    process: u32,
    descriptor: OwnedFd,
}

impl Reachable {
    pub fn open(process: u32) -> Option<Reachable> {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let pid = Pid::from_raw(i32::try_from(process).ok()?)?;
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Reachable { process, descriptor })
    }

    fn process(&self) -> Option<u32> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut ended = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        (poll(&mut ended, Some(&now)) == Ok(0)).then_some(self.process)
    }
}

pub(super) struct Rings {
    mapping: Mapping,
    side: Side,
    other: Other,
    socket: UnixStream,
    ended: AtomicBool,
    tail: AtomicU64,
    head: AtomicU64,
    their_head: AtomicU64,
}

impl fmt::Debug for Rings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rings").field("side", &self.side).finish_non_exhaustive()
    }
}

fn broken() -> io::Error {
    io::Error::other("its ring has an impossible position")
}

impl Rings {
    /// Creates one side of a connection over zeroed memory of [`SIZE`] bytes.
    pub fn new(
        mapping: Mapping,
        side: Side,
        other: Other,
        socket: UnixStream,
    ) -> io::Result<Rings> {
        socket.set_nonblocking(true)?;
        Ok(Rings {
            mapping,
            side,
            other,
            socket,
            ended: AtomicBool::new(false),
            tail: AtomicU64::new(0),
            head: AtomicU64::new(0),
            their_head: AtomicU64::new(0),
        })
    }

    /// Returns the positions and the bytes of the ring that `writer` writes.
    fn ring(&self, writer: Side) -> (&Positions, *mut u8) {
        let at = writer as usize;
        // SAFETY: the mapping has `SIZE` bytes and is aligned to a page. The positions are atomics,
        // and every value of an atomic is valid.
        unsafe {
            let positions = &*self.mapping.base().cast::<Positions>().add(at);
            (positions, self.mapping.base().add(4096 + at * RING))
        }
    }

    fn out(&self) -> (&Positions, *mut u8) {
        self.ring(self.side)
    }

    fn into(&self) -> (&Positions, *mut u8) {
        self.ring(self.side.other())
    }

    fn copies(&self, side: Side) -> &Copies {
        // SAFETY: the copies lie behind the positions in the first page of the mapping, and are
        // aligned. Every value of an atomic is valid.
        unsafe { &*self.mapping.base().add(COPIES).cast::<Copies>().add(side as usize) }
    }

    /// Forbids further copies by the peer, and waits for the end of one in progress.
    fn end_copies(&self) {
        let theirs = self.copies(self.side.other());
        theirs.over.store(1, Ordering::SeqCst);
        let begun = Instant::now();
        let lives = || self.other.reachable.as_ref().is_none_or(|peer| peer.process().is_some());
        while theirs.in_progress.load(Ordering::SeqCst) != 0 && lives() {
            if begun.elapsed() > LONGEST_COPY {
                return limited!(
                    Error,
                    "a peer has not ended its copy after {LONGEST_COPY:?}; is its process stopped?"
                );
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Returns the room in the outgoing ring, according to the reader's last known position.
    fn room(&self, tail: u64) -> io::Result<usize> {
        let used = tail.wrapping_sub(self.their_head.load(Ordering::Relaxed));
        match usize::try_from(used).ok().filter(|&used| used <= RING) {
            Some(used) => Ok(RING - used),
            None => Err(broken()),
        }
    }

    fn ring_bell(&self) {
        self.other.bell.ring(self.other.number, &self.other.waker);
    }
}

/// Returns the part of a ring at a position, at most `len` bytes long: its offset and length.
fn part(position: u64, len: usize) -> (usize, usize) {
    let offset = (position % RING as u64) as usize;
    (offset, len.min(RING - offset))
}

impl Stream for Rings {
    unsafe fn write(&self, parts: &[Run]) -> io::Result<usize> {
        let (positions, ring) = self.out();
        let first = self.tail.load(Ordering::Relaxed);
        let (mut tail, mut asked) = (first, false);
        let mut room = self.room(tail)?;
        let wanted: usize = parts.iter().map(|run| run.len).sum();
        loop {
            let done = tail.wrapping_sub(first) as usize;
            for run in after(parts, done) {
                let mut left = run;
                while left.len > 0 && room > 0 {
                    let (offset, len) = part(tail, left.len.min(room));
                    // SAFETY: the caller guarantees the run. The part of the ring is within the
                    // mapping, and the reader does not read it before `tail` has passed it.
                    unsafe {
                        shared_bytes::copy(left.address as *const u8, ring.add(offset), len);
                    }
                    left = Run { address: left.address + len, len: left.len - len };
                    (tail, room) = (tail + len as u64, room - len);
                }
                if room == 0 {
                    break;
                }
            }
            if tail.wrapping_sub(first) as usize == wanted || asked && room == 0 {
                break;
            }
            if room == 0 {
                // The reader can make room only if it sees the bytes.
                positions.tail.0.store(tail, Ordering::Release);
                let now = positions.head.0.load(Ordering::SeqCst);
                if now == self.their_head.load(Ordering::Relaxed) {
                    positions.wants_room.0.store(1, Ordering::SeqCst);
                    asked = true;
                }
                let now = positions.head.0.load(Ordering::SeqCst);
                self.their_head.store(now, Ordering::Relaxed);
                room = self.room(tail)?;
            }
        }
        if tail != first {
            positions.tail.0.store(tail, Ordering::Release);
            self.tail.store(tail, Ordering::Relaxed);
            self.ring_bell();
        }
        Ok(tail.wrapping_sub(first) as usize)
    }

    unsafe fn read(&self, parts: &[Run]) -> io::Result<Read> {
        let (positions, ring) = self.into();
        let first = self.head.load(Ordering::Relaxed);
        // The flag is read first: if it is set, the peer has written its last byte.
        let ended = self.ended.load(Ordering::Acquire);
        let come = positions.tail.0.load(Ordering::Acquire).wrapping_sub(first);
        let mut come =
            usize::try_from(come).ok().filter(|&come| come <= RING).ok_or_else(broken)?;
        if come == 0 {
            return Ok(if ended { Read::End } else { Read::Nothing });
        }
        let mut head = first;
        for run in parts {
            let mut left = *run;
            while left.len > 0 && come > 0 {
                let (offset, len) = part(head, left.len.min(come));
                // SAFETY: the caller guarantees the run. The part of the ring is within the
                // mapping, and the writer does not write it before `head` has passed it.
                unsafe { shared_bytes::copy(ring.add(offset), left.address as *mut u8, len) };
                left = Run { address: left.address + len, len: left.len - len };
                (head, come) = (head + len as u64, come - len);
            }
        }
        self.head.store(head, Ordering::Relaxed);
        positions.head.0.store(head, Ordering::SeqCst);
        if positions.wants_room.0.load(Ordering::SeqCst) != 0 {
            positions.wants_room.0.store(0, Ordering::SeqCst);
            self.ring_bell();
        }
        Ok(Read::Bytes(head.wrapping_sub(first) as usize))
    }

    fn signalled(&self) {
        let mut byte = [0];
        loop {
            match (&self.socket).read(&mut byte) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // No byte is ever sent, so this is the end or an error.
                _ => return self.ended.store(true, Ordering::Release),
            }
        }
    }

    fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn process(&self) -> Option<u32> {
        Some(self.other.process)
    }

    fn accessible(&self) -> Option<u32> {
        self.other.reachable.as_ref().and_then(Reachable::process)
    }

    fn copy_for_peer(&self, copy: &mut dyn FnMut()) {
        let mine = self.copies(self.side);
        mine.in_progress.fetch_add(1, Ordering::SeqCst);
        if mine.over.load(Ordering::SeqCst) == 0 {
            copy();
        }
        mine.in_progress.fetch_sub(1, Ordering::SeqCst);
    }

    fn is_reachable(&self) -> bool {
        self.other.reaches_us
    }

    fn end_output(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    fn cut(&self) {
        self.end_copies();
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sides of a connection between this process and itself.
    fn connection() -> [Rings; 2] {
        let (mapping, file) = Mapping::create(SIZE).unwrap();
        let again = Mapping::open(&file, SIZE).unwrap();
        let (a, b) = UnixStream::pair().unwrap();
        let side = |mapping, side, socket: UnixStream| {
            let (bell, _) = Bell::create().unwrap();
            let waker = socket.try_clone().unwrap().into();
            let reachable = Reachable::open(std::process::id());
            let other = Other { bell, waker, number: 0, process: 0, reachable, reaches_us: true };
            Rings::new(mapping, side, other, socket).unwrap()
        };
        [side(mapping, Side::Client, a), side(again, Side::Server, b)]
    }

    #[test]
    fn a_cut_waits_for_copies_and_permits_no_more() {
        let [client, server] = connection();
        let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                server.copy_for_peer(&mut || {
                    assert_eq!(server.accessible(), Some(std::process::id()));
                    begun.store(true, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(50));
                    ended.store(true, Ordering::SeqCst);
                });
            });
            while !begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            client.cut();
            assert!(ended.load(Ordering::SeqCst), "a copy was not waited for");
        });
        server.copy_for_peer(&mut || panic!("a copy after the cut"));
        let mut copied = false;
        client.copy_for_peer(&mut || copied = true);
        assert!(copied, "the server has not cut the connection");
    }
}
