//! Peers in other jobs: a connection for each, made when its address is looked up.
//!
//! A listening process has a TCP socket, whose address is the one that is published.
//! Who connects there is told the name of an MPI port, and then one side accepts and
//! the other connects by MPI; after that the socket is not used any more. So a server
//! that waits for connections sleeps in the system, not in MPI, and can be ended.
//!
//! Messages are a head and a body. Memory is moved by messages too: the owner's
//! progress serves them, and only what it has registered, by the handle's number.

use super::address::Peer;
use super::class::Shared;
use super::memory::{InUse, Mem, Run};
use super::net;
use super::wire::{HEAD, Head, Kind, number};
use crate::am::Data;
use crate::error::{Error, ErrorKind};
use crate::mpi::dynamic::{self, Port};
use crate::mpi::init::ThreadLevel;
use crate::mpi::{Comm, Request, p2p};
use crate::peer::Tally;
use crate::rpc::failure::{Failure, Result, Status, refuse};
use crate::runtime::Engine;
use parking_lot::{Mutex, RwLock};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a client says first.
const HELLO: &[u8; 8] = b"portolan";
/// Messages of one connection that are handled in one poll.
const PER_POLL: usize = 64;

struct Connection {
    comm: Mutex<Option<Arc<Comm>>>,
    /// What it was looked up by.
    port: Option<String>,
}

struct Sending {
    request: Request,
    _bytes: Vec<u8>,
}

struct Moving {
    tally: Arc<Tally>,
    /// Where bytes that were asked for go.
    runs: Vec<Run>,
}

struct Listener {
    address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

type Accepted = Arc<Mutex<Vec<Comm>>>;

/// The connections of a class.
pub(super) struct Dynamic {
    connections: RwLock<Vec<Arc<Connection>>>,
    accepted: Accepted,
    listener: Mutex<Option<Listener>>,
    own: Option<String>,
    sending: Mutex<Vec<Sending>>,
    moving: Mutex<HashMap<u64, Moving>>,
    next: AtomicU64,
    polling: Mutex<()>,
}

impl Dynamic {
    /// Begins to listen, if so asked.
    pub fn open(engine: &Arc<Engine>, listen: bool) -> Result<Dynamic> {
        let accepted = Accepted::default();
        let listener = match listen {
            true => Some(Listener::start(engine, accepted.clone())?),
            false => None,
        };
        Ok(Dynamic {
            connections: RwLock::default(),
            accepted,
            own: listener.as_ref().map(|l| l.address.clone()),
            listener: Mutex::new(listener),
            sending: Mutex::default(),
            moving: Mutex::default(),
            next: AtomicU64::new(1),
            polling: Mutex::default(),
        })
    }

    /// The address that others connect to.
    pub fn own_port(&self) -> Option<&str> {
        self.own.as_deref()
    }

    /// What a connection was looked up by.
    pub fn port_of(&self, n: u32) -> Option<String> {
        self.connections.read().get(n as usize)?.port.clone()
    }

    /// The peer at an address.
    pub fn connect(&self, class: &Shared, port: &str) -> Result<Peer> {
        let known = self.connections.read().iter().position(|c| c.port.as_deref() == Some(port));
        if let Some(n) = known {
            return Ok(Peer::Remote(n as u32));
        }
        let unreached = |e: std::io::Error| {
            Failure::new(Status::HOSTUNREACH, format!("nobody listens at {port}: {e}"))
        };
        let mut stream = TcpStream::connect(port).map_err(unreached)?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(unreached)?;
        stream.write_all(HELLO).map_err(unreached)?;
        let mut size = [0; 4];
        stream.read_exact(&mut size).map_err(unreached)?;
        let mut name = vec![0; (u32::from_le_bytes(size) as usize).min(4096)];
        stream.read_exact(&mut name).map_err(unreached)?;
        let comm = dynamic::connect(&String::from_utf8_lossy(&name))?;
        Ok(self.add(class, comm, Some(port.to_string())))
    }

    fn add(&self, class: &Shared, comm: Comm, port: Option<String>) -> Peer {
        let mut connections = self.connections.write();
        class.add_remote_flow();
        connections.push(Arc::new(Connection { comm: Mutex::new(Some(Arc::new(comm))), port }));
        Peer::Remote(connections.len() as u32 - 1)
    }

    fn comm(&self, n: u32) -> Result<Arc<Comm>> {
        let comm = self.connections.read().get(n as usize).and_then(|c| c.comm.lock().clone());
        comm.ok_or_else(|| Failure::new(Status::HOSTUNREACH, "the connection is closed"))
    }

    /// Sends a message.
    pub fn send(&self, n: u32, head: &Head, body: Data<'_>) -> Result<()> {
        let body = match &body {
            Data::Bytes(bytes) => bytes,
            Data::Owned(bytes) => &bytes[..],
            Data::At(..) => refuse!(INVALID_ARG, "an address is no message"),
        };
        self.post(n, head, &[body])
    }

    fn post(&self, n: u32, head: &Head, parts: &[&[u8]]) -> Result<()> {
        let comm = self.comm(n)?;
        let mut bytes = head.bytes().to_vec();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        // SAFETY: the bytes stay with the request until it has completed.
        let request = unsafe { p2p::isend(&comm, bytes.as_ptr(), bytes.len(), 0, 0) }?;
        self.sending.lock().push(Sending { request, _bytes: bytes });
        Ok(())
    }

    /// Takes in what has come.
    pub fn poll(&self, class: &Shared) -> Result<bool> {
        let Some(_polling) = self.polling.try_lock() else { return Ok(false) };
        let mut busy = false;
        let accepted = std::mem::take(&mut *self.accepted.lock());
        for comm in accepted {
            self.add(class, comm, None);
            busy = true;
        }
        for n in 0..self.connections.read().len() as u32 {
            let Ok(comm) = self.comm(n) else { continue };
            for _ in 0..PER_POLL {
                let Some(message) = p2p::improbe(&comm, None, None)? else { break };
                busy = true;
                let mut bytes = vec![0; message.bytes];
                message.receive(&mut bytes)?;
                let head = bytes.get(..HEAD).and_then(Head::parse);
                match head {
                    // Classes of different jobs are numbered apart.
                    Some(head) => {
                        let head = Head { class: class.number, ..head };
                        net::arrived(Peer::Remote(n), head, Cow::Borrowed(&bytes[HEAD..]));
                    }
                    None => log::warn!("a message that makes no sense is dropped"),
                }
            }
        }
        let mut sending = self.sending.lock();
        let mut n = 0;
        while n < sending.len() {
            if sending[n].request.test()? {
                sending.swap_remove(n);
                busy = true;
            } else {
                n += 1;
            }
        }
        Ok(busy)
    }

    /// Waits until what was sent has left, and ends everything.
    pub fn close(&self) {
        let end = std::time::Instant::now() + Duration::from_secs(5);
        loop {
            self.sending.lock().retain_mut(|s| !s.request.test().unwrap_or(true));
            if self.sending.lock().is_empty() || std::time::Instant::now() > end {
                break;
            }
            std::thread::yield_now();
        }
        if let Some(listener) = self.listener.lock().take() {
            listener.end();
        }
        let waiting = std::mem::take(&mut *self.accepted.lock());
        let open = self.connections.read().iter().filter_map(|c| c.comm.lock().take()).collect();
        for comm in waiting.into_iter().chain(owned(open)) {
            if let Err(error) = dynamic::disconnect(comm) {
                log::warn!("{error}");
            }
        }
    }

    // ---------------------------------------------------------------- memory

    /// Puts the bytes of `runs` into a handle of the other side.
    pub fn put(
        &self,
        n: u32,
        class: u16,
        id: u64,
        offset: usize,
        runs: &[Run],
        tally: &Arc<Tally>,
    ) -> Result<()> {
        let len: usize = runs.iter().map(|r| r.len).sum();
        let names = where_to(id, offset, len);
        let mut parts: Vec<&[u8]> = vec![&names];
        for run in runs.iter().filter(|r| r.len > 0) {
            // SAFETY: the transfer keeps the local handle, and so its memory.
            parts.push(unsafe { std::slice::from_raw_parts(run.address as *const u8, run.len) });
        }
        let token = self.await_moving(tally, Vec::new());
        let posted = self.post(n, &Head { kind: Kind::Put, class, tag: 0, word: token }, &parts);
        self.posted(token, posted)
    }

    /// Gets bytes of a handle of the other side into `runs`.
    pub fn get(
        &self,
        n: u32,
        class: u16,
        id: u64,
        offset: usize,
        runs: Vec<Run>,
        tally: &Arc<Tally>,
    ) -> Result<()> {
        let names = where_to(id, offset, runs.iter().map(|r| r.len).sum());
        let token = self.await_moving(tally, runs);
        let posted = self.post(n, &Head { kind: Kind::Get, class, tag: 0, word: token }, &[&names]);
        self.posted(token, posted)
    }

    fn await_moving(&self, tally: &Arc<Tally>, runs: Vec<Run>) -> u64 {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        tally.begin();
        self.moving.lock().insert(token, Moving { tally: tally.clone(), runs });
        token
    }

    fn posted(&self, token: u64, posted: Result<()>) -> Result<()> {
        if posted.is_err()
            && let Some(moving) = self.moving.lock().remove(&token)
        {
            moving.tally.end();
        }
        posted
    }

    /// A message about memory.
    pub fn arrived(&self, class: &Shared, from: Peer, head: &Head, body: &[u8]) {
        let Peer::Remote(n) = from else { return };
        let answer = |kind, status: Status, bytes: &[u8]| {
            let head = Head { kind, class: class.number, tag: status.0 as u32, word: head.word };
            if let Err(failure) = self.post(n, &head, &[bytes]) {
                log::error!("a peer cannot be answered: {failure}");
            }
        };
        match head.kind {
            Kind::Get => match serve_get(body) {
                Ok(bytes) => answer(Kind::GetData, Status::SUCCESS, &bytes),
                Err(failure) => answer(Kind::GetData, failure.status, &[]),
            },
            Kind::Put => {
                let status = serve_put(body).map_or_else(|f| f.status, |()| Status::SUCCESS);
                answer(Kind::PutDone, status, &[]);
            }
            _ => {
                let Some(moving) = self.moving.lock().remove(&head.word) else { return };
                let status = Status(head.tag as i32);
                let wanted: usize = moving.runs.iter().map(|r| r.len).sum();
                if status != Status::SUCCESS || body.len() != wanted {
                    let text = format!("the peer refuses: {}", status.meaning());
                    moving.tally.fail(Error::new(ErrorKind::Address, text));
                    return;
                }
                let mut rest = body;
                for run in &moving.runs {
                    let (part, after) = rest.split_at(run.len);
                    // SAFETY: the transfer keeps its local handle until the tally is
                    // done, which is below.
                    unsafe {
                        let to = run.address as *mut u8;
                        std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                    }
                    rest = after;
                }
                moving.tally.end();
            }
        }
    }
}

/// The communicators that nobody else holds any more.
fn owned(list: Vec<Arc<Comm>>) -> impl Iterator<Item = Comm> {
    list.into_iter().filter_map(Arc::into_inner)
}

fn where_to(id: u64, offset: usize, len: usize) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    bytes[8..16].copy_from_slice(&(offset as u64).to_le_bytes());
    bytes[16..].copy_from_slice(&(len as u64).to_le_bytes());
    bytes
}

/// The registered memory that a message names.
fn named(body: &[u8]) -> Result<(InUse, usize, usize)> {
    if body.len() < 24 {
        refuse!(PROTOCOL_ERROR, "{} bytes do not name memory", body.len());
    }
    let (id, offset, len) = (number(body), number(&body[8..]), number(&body[16..]));
    let Some(mem) = Mem::find(id) else {
        refuse!(FAULT, "handle {id} is not registered (any more)");
    };
    let (offset, len) = (offset as usize, len as usize);
    mem.check(offset, len)?;
    Ok((mem, offset, len))
}

fn serve_get(body: &[u8]) -> Result<Vec<u8>> {
    let (mem, offset, len) = named(body)?;
    if !mem.access().readable() {
        refuse!(PERMISSION, "the memory is write-only");
    }
    let mut bytes = Vec::with_capacity(len);
    for run in mem.pieces(offset, len).filter(|r| r.len > 0) {
        // SAFETY: who exposed the memory vouches for it while the handle lives.
        let part = unsafe { std::slice::from_raw_parts(run.address as *const u8, run.len) };
        bytes.extend_from_slice(part);
    }
    Ok(bytes)
}

fn serve_put(body: &[u8]) -> Result<()> {
    let (mem, offset, len) = named(body)?;
    if !mem.access().writable() {
        refuse!(PERMISSION, "the memory is read-only");
    }
    let mut rest = &body[24..];
    if rest.len() != len {
        refuse!(PROTOCOL_ERROR, "{} bytes came instead of {len}", rest.len());
    }
    for run in mem.pieces(offset, len) {
        let (part, after) = rest.split_at(run.len);
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), run.address as *mut u8, part.len()) };
        rest = after;
    }
    Ok(())
}

impl Listener {
    fn start(engine: &Arc<Engine>, accepted: Accepted) -> Result<Listener> {
        if engine.thread_level() < ThreadLevel::Multiple {
            refuse!(
                OPNOTSUPPORTED,
                "listening for other jobs needs MPI_THREAD_MULTIPLE, but MPI was initialised \
                 below it"
            );
        }
        let port = Port::open()?;
        let failed = |e: std::io::Error| {
            Failure::new(Status::ADDRNOTAVAIL, format!("cannot listen for other jobs: {e}"))
        };
        let socket = TcpListener::bind(("0.0.0.0", 0)).map_err(failed)?;
        let number = socket.local_addr().map_err(failed)?.port();
        let address = format!("{}:{number}", host());
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = std::thread::Builder::new()
            .name("portolan-accept".into())
            .spawn(move || serve(&socket, port, &seen, &accepted))
            .map_err(failed)?;
        Ok(Listener { address, stop, thread: Some(thread) })
    }

    fn end(mut self) {
        self.stop.store(true, Ordering::Release);
        // It sleeps until somebody connects.
        let _ = TcpStream::connect(&self.address);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error!("the thread that accepts connections ended by a panic");
        }
    }
}

/// A name of this host that leads back to it.
fn host() -> String {
    let name = crate::topology::host_name::<256>();
    let name = name.split(|&b| b == 0).next().unwrap_or_default();
    match std::str::from_utf8(name) {
        Ok(name) if !name.is_empty() && (name, 1u16).to_socket_addrs().is_ok() => name.into(),
        _ => "127.0.0.1".into(),
    }
}

fn serve(socket: &TcpListener, port: Port, stop: &AtomicBool, accepted: &Accepted) {
    crate::progress::quiet_signals();
    let name = port.name();
    while let Ok((mut stream, _)) = socket.accept() {
        if stop.load(Ordering::Acquire) {
            break;
        }
        let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
        let mut hello = [0; 8];
        let greeted = stream.read_exact(&mut hello).is_ok() && &hello == HELLO;
        let told = greeted
            && stream.write_all(&(name.len() as u32).to_le_bytes()).is_ok()
            && stream.write_all(name.as_bytes()).is_ok();
        if !told {
            continue;
        }
        match port.accept() {
            Ok(comm) => accepted.lock().push(comm),
            Err(error) => log::error!("a connection cannot be accepted: {error}"),
        }
    }
    if let Err(error) = port.close() {
        log::warn!("{error}");
    }
}
