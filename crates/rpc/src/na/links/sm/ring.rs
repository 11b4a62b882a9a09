//! A connection through shared memory: a ring in each direction, and a socket whose end means that
//! the peer has gone.
//!
//! The rings ([`portolan_base::sync::ring`]) and the counts of copies of both sides are one piece
//! of memory. A record has some bytes of the stream. The peer may change them while they are read,
//! so they are copied first, and then are like the bytes of a socket. A number that is not possible
//! ends the connection.
//!
//! The peer may also copy to and from the memory of this process, until this process has cut the
//! connection. Memory of a lost connection can thus be used for other purposes.

use super::bell::Bell;
use super::shared::Copies;
use crate::na::links::stream::{Read, Stream, after, total};
use crate::na::memory::Run;
use portolan_base::shm::Mapping;
use portolan_base::sync::ring::{Impossible, Reader, Writer};
use portolan_base::sync::ring_memory::{self, Mapped};
use portolan_engine::memory::registered::wait_for_copy;
use portolan_engine::memory::shared_bytes;
use portolan_engine::memory::shm_export::LONGEST_COPY;
use std::cell::UnsafeCell;
use std::fmt;
use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// Length of a ring in bytes, and of its store.
const RING: usize = 128 << 10;
const STORE: usize = RING - ring_memory::bytes(0);
/// Maximum length of a record in bytes. The peer reads one while this side writes the next.
const RECORD: usize = 16 << 10;

/// The first page: the counts of the copies of each side.
type Shared = [Copies; 2];

/// The two rings follow.
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
    writer: UnsafeCell<Writer<Mapped>>,
    input: UnsafeCell<Input>,
}

// SAFETY: by the contract of `Stream`, one thread at a time writes and one reads. The rest is
// `Sync`.
unsafe impl Sync for Rings {}

struct Input {
    reader: Reader<Mapped>,
    /// The number of bytes of the first record that were read already.
    used: usize,
}

impl fmt::Debug for Rings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rings").field("side", &self.side).finish_non_exhaustive()
    }
}

fn broken(_: Impossible) -> io::Error {
    io::Error::other("its ring has an impossible number")
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
        let ring = |writer: Side| {
            let base = mapping.base().wrapping_add(FIRST + writer as usize * RING);
            // SAFETY: the ring lies in the mapping, on pages of its own. Both sides access it only
            // as a ring.
            unsafe { Mapped::new(base, STORE) }
        };
        let writer = UnsafeCell::new(Writer::new(ring(side)));
        let input = UnsafeCell::new(Input { reader: Reader::new(ring(side.other())), used: 0 });
        Ok(Rings { side, other, socket, ended: AtomicBool::new(false), writer, input, mapping })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the mapping has `SIZE` bytes and is aligned to a page. It begins with atomics,
        // and every value of an atomic is valid.
        unsafe { &*self.mapping.base().cast() }
    }

    /// Forbids further copies by the peer, and waits for the end of one in progress.
    fn end_copies(&self) {
        let theirs = &self.shared()[self.side.other() as usize];
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

/// Calls `each` with the parts of the first `len` bytes of `runs`, and the place in the ring of
/// each. The first one belongs to `at`.
#[inline]
fn parts(
    mut at: *mut u8,
    runs: impl Iterator<Item = Run>,
    mut len: usize,
    each: impl Fn(*mut u8, Run),
) {
    for run in runs {
        let now = run.len.min(len);
        each(at, Run { len: now, ..run });
        (at, len) = (at.wrapping_add(now), len - now);
        if len == 0 {
            return;
        }
    }
}

impl Stream for Rings {
    unsafe fn write(&self, runs: &[Run]) -> io::Result<usize> {
        // SAFETY: no other thread writes meanwhile.
        let writer = unsafe { &mut *self.writer.get() };
        let (wanted, mut done, mut asked) = (total(runs), 0, false);
        while done < wanted {
            let len = RECORD.min(wanted - done);
            let fill = |place| {
                parts(place, after(runs, done), len, |to, run| {
                    // SAFETY: the caller guarantees the run. The record lies in the ring.
                    unsafe { shared_bytes::copy(run.address as *const u8, to, run.len) };
                });
            };
            if writer.write_with(len, fill).map_err(broken)? {
                done += len;
            } else if asked {
                break;
            } else {
                writer.ask_for_room();
                asked = true;
            }
        }
        if done > 0 {
            self.ring_bell();
        }
        Ok(done)
    }

    unsafe fn read(&self, runs: &[Run]) -> io::Result<Read> {
        // The flag is read first: if it is set, the peer has written its last byte.
        let ended = self.ended.load(Ordering::Acquire);
        // SAFETY: no other thread reads meanwhile.
        let Input { reader, used } = unsafe { &mut *self.input.get() };
        let (wanted, mut done, mut freed) = (total(runs), 0, false);
        while done < wanted {
            let Some((from, size)) = reader.next().map_err(broken)? else { break };
            let left = size.checked_sub(*used).filter(|&left| left > 0);
            let len = left.ok_or(Impossible).map_err(broken)?.min(wanted - done);
            parts(from.wrapping_add(*used), after(runs, done), len, |from, run| {
                // SAFETY: the caller guarantees the run. The record lies in the ring.
                unsafe { shared_bytes::copy(from, run.address as *mut u8, run.len) };
            });
            (done, *used) = (done + len, *used + len);
            if *used == size {
                reader.advance(size);
                (*used, freed) = (0, true);
            }
        }
        if freed && reader.takes_request_for_room() {
            self.ring_bell();
        }
        Ok(match done {
            0 if ended => Read::End,
            0 => Read::Nothing,
            _ => Read::Bytes(done),
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
        self.shared()[self.side as usize].run(copy);
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
    use portolan_base::shm::SharedFile;
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

    /// Each cell is full and has an impossible length, whatever record the reader expects.
    #[test]
    fn a_peer_that_fills_the_shared_memory_ends_the_connection() {
        for fill in [0x7f, 0x80, 0xff] {
            let [client, server] = connection();
            let mut bytes = [7; 100];
            // SAFETY: the run is borrowed.
            assert_eq!(unsafe { client.write(&run_of(&mut bytes)) }.unwrap(), 100);
            // SAFETY: both sides map the memory, and no other thread uses it.
            unsafe { client.mapping.base().write_bytes(fill, SIZE) };
            let mut most = vec![7; 2 * RING];
            let mut into = [0; 100];
            for (side, writer) in [(&client, Side::Server), (&server, Side::Client)] {
                // SAFETY: the run is borrowed.
                assert!(unsafe { side.write(&run_of(&mut most)) }.is_err());
                let stamp = FIRST + writer as usize * RING + 64;
                // SAFETY: the cell lies in the mapping.
                unsafe { side.mapping.base().add(stamp).cast::<u32>().write(1 << 31) };
                // SAFETY: the run is borrowed.
                assert!(unsafe { side.read(&run_of(&mut into)) }.is_err());
            }
            assert_eq!(into, [0; 100]);
            let mut copied = false;
            server.copy_for_peer(&mut || copied = true);
            assert!(!copied, "the page forbids copies");
        }
    }
}
