//! Processes of any hosts, connected through TCP (`tcp`).
//!
//! An address is `tcp://HOST:PORT`, with the name of the network as the program wrote it. A class
//! that listens binds to the place in its information string, or to loopback. With a key, both
//! sides prove before any message that they know it ([`super::tcp_greeting`]). With TLS, they first
//! prove that they have a certificate of the same authority ([`super::tls`]).
//!
//! The address that a client claims is *proven* if the client knows the key, or if there is no key
//! and the process that listens there confirms the claim. A server asks only if the client connects
//! from the same host, so strangers cannot make it connect to others, and resolves no host name
//! that the program has not looked up itself. A client with an unproven claim, for example behind a
//! firewall that rewrites addresses, is a peer with the address of its socket.

use super::arrivals::Arrivals;
use super::channel::Channel;
use super::listener::{self, Listen, Listener, Listening, Opened, Refusal, Who};
use super::stream::{Read, Stream};
use super::tcp_greeting::{self as greeting, Dials, Own};
use super::tls::Tls;
use crate::failure::{Failure, Result, Status, refuse};
use crate::na::address::host_and_port;
use crate::na::interface;
use crate::na::memory::Run;
use crate::na::secret::{Key, Nonce};
use rustix::net::sockopt;
use smallvec::SmallVec;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);
/// Time limits for the process at a claimed address to accept a connection, and to answer.
const CONFIRM: Duration = Duration::from_secs(1);
/// Maximum number of claims that are checked at a time; others are not proven.
const MOST_ASKED: usize = 32;
/// Keep-alive: the idle time before the first probe, the interval and the number of probes. A host
/// that has vanished is noticed after 20 s.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(2), 5);
/// Time after which a connection ends if the peer does not acknowledge bytes.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);
/// Maximum number of parts that the kernel takes in one call.
const PARTS: usize = 1024;

struct Mine {
    own: Own,
    tls: Option<Tls>,
    arrivals: Arc<Arrivals>,
    asked: AtomicUsize,
}

impl Mine {
    /// Returns whether the process at `place` confirms that it has sent `nonce` to the socket
    /// `here`, from the host of `from`.
    fn confirms(&self, place: &str, nonce: &Nonce, from: SocketAddr, here: SocketAddr) -> bool {
        if place.ends_with(":0") {
            return false;
        }
        let first = self.asked.fetch_add(1, Ordering::AcqRel) < MOST_ASKED;
        let confirmed = first && self.asked_at(place, nonce, from, here).unwrap_or(false);
        self.asked.fetch_sub(1, Ordering::AcqRel);
        confirmed
    }

    /// Returns the addresses that a client's claim stands for. A host name is resolved only if the
    /// program has looked it up itself, so strangers cannot choose names that are resolved.
    fn resolve_claim(&self, place: &str) -> io::Result<std::vec::IntoIter<SocketAddr>> {
        match place.parse::<SocketAddr>() {
            Ok(at) => Ok(vec![at].into_iter()),
            Err(_) if self.arrivals.peers.is_looked_up(place) => place.to_socket_addrs(),
            Err(_) => Ok(Vec::new().into_iter()),
        }
    }

    fn asked_at(
        &self,
        place: &str,
        nonce: &Nonce,
        from: SocketAddr,
        here: SocketAddr,
    ) -> std::result::Result<bool, Refusal> {
        let client = from.ip().to_canonical();
        let of_client = |at: &SocketAddr| {
            let ip = at.ip().to_canonical();
            ip == client || client.is_loopback() && UdpSocket::bind((ip, 0)).is_ok()
        };
        let Some(at) = self.resolve_claim(place)?.find(of_client) else { return Ok(false) };
        let mut again = 0..3;
        loop {
            let socket = TcpStream::connect_timeout(&at, CONFIRM)?;
            let channel = Channel::as_client(socket, self.tls.as_ref(), CONFIRM);
            match channel.and_then(|mut channel| greeting::ask(&mut channel, nonce, here)) {
                // The process drops clients if many connect.
                Err(Refusal::Left) if again.next().is_some() => {}
                answered => return answered,
            }
        }
    }
}

pub(super) struct Tcp {
    mine: Arc<Mine>,
    /// `None` once the class does not listen.
    listening: Listening<Socket>,
}

pub(super) struct Socket {
    listener: TcpListener,
    mine: Arc<Mine>,
}

impl Listen for Socket {
    type Guest = (TcpStream, SocketAddr);

    fn accept(&self) -> io::Result<Self::Guest> {
        self.listener.accept()
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    fn stop(&self) {
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
    }

    fn descriptor<'a>(&self, (guest, _): &'a Self::Guest) -> BorrowedFd<'a> {
        guest.as_fd()
    }

    fn greet(
        &self,
        (guest, from): Self::Guest,
        keep: &dyn Fn(),
    ) -> std::result::Result<(), Refusal> {
        prepare(&guest)?;
        let (mine, here) = (&self.mine, guest.local_addr()?);
        let mut channel = Channel::as_server(guest, mine.tls.as_ref(), PATIENCE)?;
        let bound = channel.binding(here);
        let life_for = |place: &str| mine.arrivals.peers.life_for(place);
        let confirms = |place: &str, nonce: &Nonce| mine.confirms(place, nonce, from, here);
        let greeted =
            greeting::as_server(&mut channel, &mine.own, life_for, confirms, keep, &bound)?;
        let Some(greeting::Client { place: name, proven, life, moves: false }) = greeted else {
            return Ok(());
        };
        let who = if proven { Who::Proven } else { Who::Claims(from.to_string()) };
        let stream = channel.into_stream()?;
        mine.arrivals.accept(Opened { who, stream, name, life });
        Ok(())
    }
}

fn prepare(socket: &TcpStream) -> io::Result<()> {
    let (idle, interval, probes) = KEEP_ALIVE;
    socket.set_nodelay(true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, idle)?;
    sockopt::set_tcp_keepintvl(socket, interval)?;
    sockopt::set_tcp_keepcnt(socket, probes)?;
    sockopt::set_tcp_user_timeout(socket, UNACKNOWLEDGED.as_millis() as u32)?;
    Ok(())
}

pub(super) fn check_place(place: &str) -> Result<()> {
    if host_and_port(place).is_none() {
        refuse!(INVALID_ARG, "'{place}' is not a TCP address; expected HOST:PORT");
    }
    Ok(())
}

/// The listening socket of a class, if it has one, and the address of the class.
pub(super) type Bound = (Option<TcpListener>, String);

/// Binds the socket of a class at `place`, or at `default` if the place is empty. A class that does
/// not listen gets an address with port 0, which is valid for its peers while they are connected.
/// Returns `ADDRNOTAVAIL` if this host does not have the address, the interface or the free port.
pub(super) fn bind(place: &str, default: &str, listen: bool) -> Result<Bound> {
    if !listen {
        let random = u32::from_ne_bytes(crate::na::secret::random()?);
        let (host, process) = (interface::host_name(), std::process::id());
        return Ok((None, format!("{host}.{process}.{random:08x}:0")));
    }
    let place = if place.is_empty() { default } else { place };
    interface::listen_at(place).map(|(listener, place)| (Some(listener), place))
}

impl Tcp {
    /// Creates the sockets of a class, and starts to listen if it is bound. `memory` is the name of
    /// its shared memory if peers on this host may use it.
    pub fn open(
        (listener, place): Bound,
        key: Option<Key>,
        tls: Option<Tls>,
        memory: Option<String>,
        arrivals: Arc<Arrivals>,
    ) -> Result<Tcp> {
        let failed = |e: io::Error| Failure::new(Status::ADDRNOTAVAIL, format!("tcp: {e}"));
        let own = Own { place, key, memory, dials: Dials::default() };
        let mine = Arc::new(Mine { own, tls, arrivals, asked: AtomicUsize::new(0) });
        let listener =
            listener.map(|listener| Listener::open(Socket { listener, mine: mine.clone() }));
        let listening = Listening::new(listener.transpose().map_err(failed)?);
        Ok(Tcp { mine, listening })
    }

    pub fn place(&self) -> &str {
        &self.mine.own.place
    }

    /// Connects to the process at `place` of `network`, and sends it `life`. If both sides may use
    /// shared memory, `share` tries to connect through it.
    pub fn dial(
        &self,
        (network, place): (&str, &str),
        life: u64,
        share: impl Fn(&str) -> Option<Opened>,
    ) -> Result<Opened> {
        if place.ends_with(":0") {
            refuse!(HOSTUNREACH, "{network}://{place} does not listen and is not connected");
        }
        let addresses: Vec<SocketAddr> = match place.to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => refuse!(ADDRNOTAVAIL, "{network}://{place}: {error}"),
        };
        let dialled = listener::greeted(|| {
            let socket = connect(&addresses)?;
            prepare(&socket)?;
            let own = &self.mine.own;
            let there = socket.peer_addr()?;
            let dial = own.dials.begin(there)?;
            let mut channel = Channel::as_client(socket, self.mine.tls.as_ref(), PATIENCE)?;
            let bound = channel.binding(there);
            let server = greeting::as_client(&mut channel, own, &dial, life, &bound)?;
            if let Some(memory) = server.memory {
                let opened = share(&memory);
                channel.extend(PATIENCE);
                greeting::choose(&mut channel, opened.is_some())?;
                if let Some(opened) = opened {
                    return Ok(opened);
                }
            }
            let stream = channel.into_stream()?;
            Ok(Opened { who: Who::Proven, stream, name: place.into(), life: server.life })
        });
        dialled.map_err(|refusal| {
            let status = match refusal {
                Refusal::Refused | Refusal::Unproven => Status::PERMISSION,
                Refusal::Plain | Refusal::TlsOnly | Refusal::Tls(_) => Status::PERMISSION,
                Refusal::Silent => Status::TIMEOUT,
                _ => Status::HOSTUNREACH,
            };
            Failure::new(status, format!("{network}://{place}: {refusal}"))
        })
    }

    pub fn listening(&self) -> &Listening<Socket> {
        &self.listening
    }
}

fn connect(addresses: &[SocketAddr]) -> std::result::Result<TcpStream, Refusal> {
    let mut failed = io::Error::other("the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(address, CONNECT) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(Refusal::Absent(failed))
}

#[derive(Debug)]
pub(super) struct Connected(TcpStream);

impl Connected {
    /// Makes a socket non-blocking after its greeting.
    pub fn new(socket: TcpStream) -> io::Result<Connected> {
        socket.set_read_timeout(None)?;
        socket.set_write_timeout(None)?;
        socket.set_nonblocking(true)?;
        Ok(Connected(socket))
    }

    #[cfg(feature = "tls")]
    pub fn socket(&self) -> &TcpStream {
        &self.0
    }
}

fn vectors(parts: &[Run]) -> SmallVec<[libc::iovec; 8]> {
    let vector = |run: &Run| libc::iovec { iov_base: run.address as *mut _, iov_len: run.len };
    parts.iter().filter(|run| run.len > 0).take(PARTS).map(vector).collect()
}

/// Repeats a kernel call that a signal has interrupted. Returns `None` if it would block.
fn moved(mut call: impl FnMut() -> isize) -> io::Result<Option<usize>> {
    loop {
        if let Ok(bytes) = usize::try_from(call()) {
            return Ok(Some(bytes));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => return Ok(None),
            _ => return Err(error),
        }
    }
}

impl Stream for Connected {
    unsafe fn write(&self, parts: &[Run]) -> io::Result<usize> {
        let flags = libc::MSG_NOSIGNAL;
        let mut written = 0;
        let whole = super::stream::total(parts);
        while written < whole {
            let rest: SmallVec<[Run; 8]> = super::stream::after(parts, written).collect();
            let vectors = vectors(&rest);
            // SAFETY: zeros are a valid message header.
            let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
            message.msg_iov = vectors.as_ptr().cast_mut();
            message.msg_iovlen = vectors.len() as _;
            // SAFETY: the caller guarantees the parts. Only the kernel accesses them.
            let sent = moved(|| unsafe { libc::sendmsg(self.0.as_raw_fd(), &message, flags) })?;
            match sent {
                Some(bytes) => written += bytes,
                None => break,
            }
        }
        Ok(written)
    }

    fn is_costly(&self) -> bool {
        true
    }

    unsafe fn read(&self, parts: &[Run]) -> io::Result<Read> {
        let vectors = vectors(parts);
        let (fd, count) = (self.0.as_raw_fd(), vectors.len() as libc::c_int);
        // SAFETY: the caller guarantees the parts. Only the kernel accesses them.
        let come = moved(|| unsafe { libc::readv(fd, vectors.as_ptr(), count) })?;
        Ok(match come {
            Some(0) => Read::End,
            Some(bytes) => Read::Bytes(bytes),
            None => Read::Nothing,
        })
    }

    fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    fn end_output(&self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }

    fn cut(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}
