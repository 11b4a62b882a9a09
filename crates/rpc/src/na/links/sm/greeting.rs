//! How two processes of a host meet: over a Unix socket, with descriptors of shared memory.
//!
//! | | from | contents |
//! |---|---|---|
//! | 1 | client | hello; the connection's memory, the client's bell and eventfd |
//! | 2 | server | hello; the server's bell and eventfd |
//! | 3 | client | one byte: whether the client can access the server's memory |
//!
//! A hello has a fixed length: magic (8), number of the receiver at the sender (4), whether the
//! sender can access the receiver's memory (4; 0 in the client's), address and value of a word of
//! the sender (8 each), life of the sender (8), length (4) and bytes of the sender's name.
//!
//! The kernel says which user and process the peer is. Both sides refuse another user. Each side
//! tries to read the other one's word, because systems restrict such access in several ways.

use super::bell::Bell;
use super::ring::{self, Other, Reachable, Rings, Side};
use crate::na::address::host_and_port;
use crate::na::links::listener::{Opened, Refusal, Who};
use crate::na::wire::number;
use portolan_base::shm::{Mapping, SharedFile};
use portolan_engine::any_memory::{Direction, Span};
use portolan_engine::path::cma;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg, sockopt,
};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;
use std::time::Duration;

/// The last byte is the version of the hello, of the shared memory and of the messages.
const MAGIC: [u8; 8] = *b"ptlnsm\0\x05";
const NAME: usize = 264;
const FIXED: usize = 44;
const HELLO: usize = FIXED + NAME;
/// Time for a message of the peer to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

static WORD: LazyLock<u64> =
    LazyLock::new(|| u64::from_ne_bytes(crate::na::secret::random().unwrap_or_default()));

pub(super) struct Own<'a> {
    pub bell: BorrowedFd<'a>,
    pub waker: BorrowedFd<'a>,
    pub name: &'a str,
}

struct Hello {
    number: u32,
    reaches: bool,
    address: u64,
    value: u64,
    life: u64,
    name: String,
}

/// Returns whether a name is an address of shared memory or of TCP.
fn is_name(name: &str) -> bool {
    super::check_place(name).is_ok() || host_and_port(name).is_some()
}

impl Hello {
    fn new((number, life): (u32, u64), reaches: bool, name: &str) -> Hello {
        let word: &'static u64 = &WORD;
        let address = std::ptr::from_ref(word) as u64;
        Hello { number, reaches, address, value: *word, life, name: name.into() }
    }

    fn bytes(&self) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        let name = &self.name.as_bytes()[..self.name.len().min(NAME)];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..16].copy_from_slice(&u32::from(self.reaches).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.address.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.value.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.life.to_le_bytes());
        bytes[40..FIXED].copy_from_slice(&(name.len() as u32).to_le_bytes());
        bytes[FIXED..FIXED + name.len()].copy_from_slice(name);
        bytes
    }

    fn parse(bytes: &[u8; HELLO]) -> Result<Hello, Refusal> {
        let len = number(&bytes[40..FIXED]) as usize;
        let name = bytes[FIXED..].get(..len).and_then(|name| std::str::from_utf8(name).ok());
        match name {
            Some(name) if bytes[..8] == MAGIC && is_name(name) => Ok(Hello {
                number: number(&bytes[8..12]) as u32,
                reaches: number(&bytes[12..16]) != 0,
                address: number(&bytes[16..24]),
                value: number(&bytes[24..32]),
                life: number(&bytes[32..40]),
                name: name.into(),
            }),
            _ => Err(Refusal::Rubbish),
        }
    }
}

fn send(socket: &UnixStream, hello: &Hello, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(files));
    let bytes = hello.bytes();
    // A socket with a time limit returns EINTR even if the signal handler asks to restart calls.
    let sent = retry_on_intr(|| {
        sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)
    })?;
    // The descriptors went with the first byte.
    let mut socket = socket;
    socket.write_all(&bytes[sent..])
}

fn receive<const FILES: usize>(
    mut socket: &UnixStream,
) -> Result<(Hello, [OwnedFd; FILES]), Refusal> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; HELLO];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let came = retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)
    });
    let came = came.map_err(io::Error::from)?;
    let got = came.bytes;
    if got == 0 {
        return Err(Refusal::Left);
    }
    if came.flags.contains(ReturnFlags::CTRUNC) {
        // The kernel could not open the descriptors here.
        return Err(Refusal::Failed(io::Error::from_raw_os_error(libc::EMFILE)));
    }
    let files: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        })
        .flatten()
        .collect();
    socket.read_exact(&mut bytes[got..])?;
    let hello = Hello::parse(&bytes)?;
    files.try_into().map(|files| (hello, files)).map_err(|_| Refusal::Rubbish)
}

/// Returns the process of the peer, and refuses a process of another user.
fn peer(socket: &UnixStream) -> Result<u32, Refusal> {
    let peer = sockopt::socket_peercred(socket).map_err(io::Error::from)?;
    if peer.uid != rustix::process::geteuid() {
        return Err(Refusal::OtherUser(peer.uid.as_raw()));
    }
    Ok(peer.pid.as_raw_nonzero().get() as u32)
}

/// Returns the peer's process if its memory is accessible: its word reads as the peer said.
fn reachable(process: u32, hello: &Hello) -> Option<Reachable> {
    // It is opened first, so that the word is one of the process that is watched.
    let reachable = Reachable::open(process)?;
    let mut word = [0u8; 8];
    let span = Span {
        local: word.as_mut_ptr() as usize,
        remote: hello.address as usize,
        bytes: word.len(),
    };
    // SAFETY: the local side is `word`.
    let read = unsafe { cma::transfer(process, &[span], Direction::Get) };
    (read.is_ok() && u64::from_ne_bytes(word) == hello.value).then_some(reachable)
}

fn prepare(socket: &UnixStream) -> io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))
}

fn opened(n: u32, rings: Rings, hello: Hello) -> Opened {
    Opened { who: Who::Known(n), stream: Box::new(rings), name: hello.name, life: hello.life }
}

/// Greets a server. `numbers` are the number of the server at this process, and the life to send.
pub(super) fn as_client(
    socket: UnixStream,
    own: &Own<'_>,
    numbers: (u32, u64),
) -> Result<Opened, Refusal> {
    prepare(&socket)?;
    let process = peer(&socket)?;
    let (mapping, file) = SharedFile::sealed(ring::SIZE).map_err(io::Error::other)?.into_parts();
    let files = [std::os::fd::AsFd::as_fd(&file), own.bell, own.waker];
    send(&socket, &Hello::new(numbers, false, own.name), &files)?;
    let (hello, [bell, waker]) = receive(&socket)?;
    let reachable = reachable(process, &hello);
    let reaches = reachable.is_some();
    (&socket).write_all(&[u8::from(reaches)])?;
    let other = Other {
        bell: Bell::open(bell)?,
        waker,
        number: hello.number,
        process,
        reachable,
        reaches_us: hello.reaches,
    };
    Ok(opened(numbers.0, Rings::new(mapping, Side::Client, other, socket)?, hello))
}

/// Greets a client. `numbers` returns the client's number, and the life to send, by its name.
pub(super) fn as_server(
    socket: UnixStream,
    own: &Own<'_>,
    numbers: impl FnOnce(&str) -> (u32, u64),
) -> Result<Opened, Refusal> {
    prepare(&socket)?;
    let process = peer(&socket)?;
    let (hello, [mapping, bell, waker]) = receive(&socket)?;
    let mapping = Mapping::sealed(&File::from(mapping), ring::SIZE).map_err(io::Error::other)?;
    let bell = Bell::open(bell)?;
    let reachable = reachable(process, &hello);
    let reaches = reachable.is_some();
    let numbers = numbers(&hello.name);
    send(&socket, &Hello::new(numbers, reaches, own.name), &[own.bell, own.waker])?;
    let mut reached = [0];
    (&socket).read_exact(&mut reached)?;
    let other = Other {
        bell,
        waker,
        number: hello.number,
        process,
        reachable,
        reaches_us: reached[0] == 1,
    };
    Ok(opened(numbers.0, Rings::new(mapping, Side::Server, other, socket)?, hello))
}
