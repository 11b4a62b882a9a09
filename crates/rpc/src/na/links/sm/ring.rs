//! A connection through shared memory: a ring of bytes in each direction, and a socket whose end
//! means that the peer has gone.
//!
//! The rings and the counts of copies of both sides are one piece of memory. [`super::shared`] has
//! their protocol, and the invariants that hold whatever the peer does. A position that is not
//! possible ends the connection.
//!
//! The engine has another ring ([`portolan_engine`], `am::ring`): ranks of a job trust each other,
//! so a handler reads a record in place. Here the peer may change the bytes while they are read, so
//! they are copied first, and then are like the bytes of a socket.
//!
//! The peer may also copy to and from the memory of this process, until this process has cut the
//! connection. Memory of a lost connection can thus be used for other purposes.

use super::bell::Bell;
use super::shared::{Copies, Impossible, Positions, Reader, Writer};
use crate::na::links::stream::{Read, Stream, after, total};
use crate::na::memory::Run;
use portolan_engine::memory::registered::wait_for_copy;
use portolan_engine::memory::shared_bytes;
use portolan_engine::memory::shm_export::LONGEST_COPY;
use portolan_engine::shm::Mapping;
use std::fmt;
use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

const RING: usize = 128 << 10;

/// The part that is not bytes, by the number of the side that writes the ring, or that copies.
#[repr(C)]
struct Shared {
    rings: [Positions; 2],
    copies: [Copies; 2],
}

/// The bytes of the two rings follow the first page.
const FIRST: usize = 4096;
pub(super) const SIZE: usize = FIRST + 2 * RING;
const _: () = assert!(size_of::<Shared>() <= FIRST);

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
    writer: Writer<RING>,
    reader: Reader<RING>,
}

impl fmt::Debug for Rings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rings").field("side", &self.side).finish_non_exhaustive()
    }
}

fn broken(_: Impossible) -> io::Error {
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
            writer: Writer::default(),
            reader: Reader::default(),
        })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the mapping has `SIZE` bytes and is aligned to a page. It begins with atomics,
        // and every value of an atomic is valid.
        unsafe { &*self.mapping.base().cast() }
    }

    /// Returns the bytes of the ring that `writer` writes.
    fn bytes(&self, writer: Side) -> *mut u8 {
        self.mapping.base().wrapping_add(FIRST + writer as usize * RING)
    }

    /// Forbids further copies by the peer, and waits for the end of one in progress.
    fn end_copies(&self) {
        let theirs = &self.shared().copies[self.side.other() as usize];
        theirs.forbid();
        if theirs.is_any() {
            let reachable = self.other.reachable.as_ref();
            let lives = || reachable.is_none_or(|peer| peer.process().is_some());
            wait_for_copy(self.other.process, LONGEST_COPY, || !theirs.is_any(), lives);
        }
    }

    fn ring_bell(&self) {
        self.other.bell.ring(self.other.number, &self.other.waker);
    }
}

/// Calls `each` with the parts of the first `len` bytes of `runs`, and the offset in the ring of
/// each. The first one belongs to `position`.
#[inline]
fn parts(
    position: u64,
    runs: impl Iterator<Item = Run>,
    mut len: usize,
    mut each: impl FnMut(usize, Run),
) {
    let mut offset = (position % RING as u64) as usize;
    for mut left in runs {
        while left.len > 0 && len > 0 {
            let now = left.len.min(len).min(RING - offset);
            each(offset, Run { len: now, ..left });
            left = Run { address: left.address + now, len: left.len - now };
            (offset, len) = ((offset + now) % RING, len - now);
        }
    }
}

impl Stream for Rings {
    unsafe fn write(&self, runs: &[Run]) -> io::Result<usize> {
        let (ring, bytes) = (&self.shared().rings[self.side as usize], self.bytes(self.side));
        let written = self.writer.write(ring, total(runs), |done, position, len| {
            parts(position, after(runs, done), len, |offset, run| {
                // SAFETY: the caller guarantees the run. The part of the ring is within the
                // mapping.
                unsafe {
                    shared_bytes::copy(run.address as *const u8, bytes.add(offset), run.len);
                }
            });
        });
        let written = written.map_err(broken)?;
        if written > 0 {
            self.ring_bell();
        }
        Ok(written)
    }

    unsafe fn read(&self, runs: &[Run]) -> io::Result<Read> {
        let writer = self.side.other();
        let (ring, bytes) = (&self.shared().rings[writer as usize], self.bytes(writer));
        // The flag is read first: if it is set, the peer has written its last byte.
        let ended = self.ended.load(Ordering::Acquire);
        let read = self.reader.read(ring, total(runs), |position, len| {
            parts(position, runs.iter().copied(), len, |offset, run| {
                // SAFETY: the caller guarantees the run. The part of the ring is within the
                // mapping.
                unsafe { shared_bytes::copy(bytes.add(offset), run.address as *mut u8, run.len) };
            });
        });
        let (read, wants_room) = read.map_err(broken)?;
        if wants_room {
            self.ring_bell();
        }
        Ok(match read {
            0 if ended => Read::End,
            0 => Read::Nothing,
            _ => Read::Bytes(read),
        })
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
        self.shared().copies[self.side as usize].run(copy);
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
    use portolan_engine::shm::SharedFile;
    use std::time::Duration;

    /// Two sides of a connection between this process and itself.
    fn connection() -> [Rings; 2] {
        let (mapping, file) = SharedFile::sealed(SIZE).unwrap().into_parts();
        let again = Mapping::sealed(&file, SIZE).unwrap();
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

    fn run_of(bytes: &mut [u8]) -> [Run; 1] {
        [Run { address: bytes.as_mut_ptr() as usize, len: bytes.len() }]
    }

    #[test]
    fn bytes_of_any_runs_pass_the_end_of_the_ring() {
        let [client, server] = connection();
        let mut random = fastrand::Rng::with_seed(3);
        let (mut sent, mut came) = (0u64, 0u64);
        while came < 10 * RING as u64 {
            let mut bytes: Vec<u8> =
                (0..random.u64(..2 * RING as u64)).map(|n| ((sent + n) % 251) as u8).collect();
            let cut = random.usize(..=bytes.len());
            let (first, rest) = bytes.split_at_mut(cut);
            // SAFETY: the runs are borrowed.
            sent +=
                unsafe { client.write(&[run_of(first), run_of(rest)].concat()) }.unwrap() as u64;
            let mut into = vec![0; 1 + random.usize(..2 * RING)];
            let (first, rest) = into.split_at_mut(1);
            // SAFETY: the runs are borrowed.
            match unsafe { server.read(&[run_of(first), run_of(rest)].concat()) }.unwrap() {
                Read::Bytes(n) => {
                    assert!((came..).zip(&into[..n]).all(|(n, byte)| *byte == (n % 251) as u8));
                    came += n as u64;
                }
                nothing => assert_eq!((nothing, sent), (Read::Nothing, came)),
            }
        }
    }

    /// The first page holds the positions, counts and flags of both sides.
    #[test]
    fn a_peer_that_fills_the_shared_memory_ends_the_connection() {
        for fill in [1, 0x7f, 0x80, 0xff] {
            let [client, server] = connection();
            let mut bytes = [7; 100];
            // SAFETY: the run is borrowed.
            assert_eq!(unsafe { client.write(&run_of(&mut bytes)) }.unwrap(), 100);
            // SAFETY: both sides map the page, and no other thread uses it.
            unsafe { client.mapping.base().write_bytes(fill, FIRST) };
            let sides = [&client, &server];
            let mut into = [0; 100];
            for side in sides {
                // SAFETY: the run is borrowed.
                assert!(unsafe { side.read(&run_of(&mut into)) }.is_err());
            }
            assert_eq!(into, [0; 100]);
            let mut most = vec![7; 2 * RING];
            for side in sides {
                // SAFETY: the run is borrowed.
                assert!(unsafe { side.write(&run_of(&mut most)) }.is_err());
            }
            let mut copied = false;
            server.copy_for_peer(&mut || copied = true);
            assert!(!copied, "the page forbids copies");
        }
    }
}
