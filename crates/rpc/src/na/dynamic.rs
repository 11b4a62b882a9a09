//! Peers in other jobs, with one connection each, made when the peer's address is looked up.
//!
//! A listening process has a TCP socket and publishes the socket's address together with a token. A
//! process that connects to the socket must prove that it knows the token (`secret`, `greeting`).
//! It then receives the name of an MPI port, at which one side accepts and the other connects
//! (`listener`, `meeting`). From then on the socket only shows whether the peer is alive and when
//! it ends the connection. While a server waits for connections it therefore blocks in the
//! operating system, not in MPI, and can be stopped.
//!
//! | module | contents |
//! |---|---|
//! | `greeting` | the protocol on the socket |
//! | `listener` | authentication of clients: deadlines and limits |
//! | `meeting` | accept and connect through MPI |
//! | `connection` | messages of a connection, and its end |
//!
//! A message consists of a header and a body. Transfers are messages too; the progress of the
//! memory's owner serves them.
//!
//! Invariant: messages from a peer affect only its own connection, memory registered under a handle
//! that they name, and registered functions. A message that no peer of this library would send ends
//! the connection.

mod connection;
pub mod greeting;
mod listener;
mod meeting;

use super::address::Peer;
use super::class::Shared;
use super::interface;
use super::moving::InMotion;
use super::plugin::{Capabilities, Chunk, Plugin};
use super::secret::{self, Key, Token};
use super::service::{self, NAMES, Named};
use super::transfer::Direction;
use super::wire::{HEAD, Head, Kind};
use crate::failure::{Failure, Result, Status, refuse};
use connection::{Asked, Connection};
use greeting::Lifeline;
use listener::{Door, LIMITS};
use meeting::{Client, Server};
use parking_lot::{Mutex, RwLock};
use portolan_engine::am::Data;
use portolan_engine::error::{Error, ErrorKind};
use portolan_engine::mpi::Comm;
use portolan_engine::mpi::dynamic;
use portolan_engine::mpi::init::ThreadLevel;
use portolan_engine::peer::CompletionCounter;
use portolan_engine::runtime::Engine;
use portolan_engine::wait::Naps;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of messages handled per connection in one poll.
const PER_POLL: usize = 64;
/// Interval at which the liveness of peers is checked.
const POLL: Duration = Duration::from_millis(50);
/// How long messages from a peer may still arrive after it has ended its connection.
const AFTER_BYE: Duration = Duration::from_secs(1);
/// Time limits from the start of closing: `LEAVING` for outgoing messages to be sent, and `ENDING`
/// for peers to end their side.
const LEAVING: Duration = Duration::from_secs(5);
const ENDING: Duration = Duration::from_secs(10);

type Accepted = Arc<Mutex<Vec<(Comm, Lifeline)>>>;

/// The parts of a published address: `HOST:PORT` and the token.
struct Published<'a> {
    place: &'a str,
    token: Token,
}

impl<'a> Published<'a> {
    fn parse(text: &'a str) -> Result<Published<'a>> {
        let parts = text.rsplit_once('/').and_then(|(place, token)| {
            let token = Token::parse(token)?;
            (!place.is_empty()).then_some(Published { place, token })
        });
        match parts {
            Some(published) => Ok(published),
            // The message must not reveal the token.
            None => refuse!(
                INVALID_ARG,
                "the address of another job is mpi+dynamic://HOST:PORT/TOKEN, as returned by its \
                 NA_Addr_to_string; the text after '{}' is not a token of 32 digits",
                text.split('/').next().unwrap_or("")
            ),
        }
    }
}

/// The connections of a class.
pub(crate) struct Dynamic {
    /// The connections, indexed by number; `None` for a connection that has ended.
    connections: RwLock<Vec<Option<Arc<Connection>>>>,
    accepted: Accepted,
    door: Mutex<Option<Door<Server>>>,
    own: Option<String>,
    client: Client,
    secret: Option<Vec<u8>>,
    moving: InMotion,
    /// Locked by the thread that polls. Holds the time of the last liveness check.
    polling: Mutex<Option<Instant>>,
}

impl Dynamic {
    /// Creates the connection state of a class, and starts to listen if requested.
    pub fn open(engine: &Arc<Engine>, listen: bool) -> Result<Dynamic> {
        let secret = secret::site_secret(&engine.config.rpc_secret_file)?;
        let accepted = Accepted::default();
        let (door, own) = match listen {
            true => {
                let (door, own) = open_door(engine, secret.as_deref(), accepted.clone())?;
                (Some(door), Some(own))
            }
            false => (None, None),
        };
        dynamic::outlive_broken_pipes();
        Ok(Dynamic {
            connections: RwLock::default(),
            accepted,
            own,
            door: Mutex::new(door),
            client: Client::new(engine.thread_level() == ThreadLevel::Multiple)?,
            secret,
            moving: InMotion::default(),
            polling: Mutex::default(),
        })
    }

    fn add(&self, class: &Shared, comm: Comm, lifeline: Lifeline, name: Option<String>) -> Peer {
        let mut connections = self.connections.write();
        class.begin_flow(connections.len() as u32);
        connections.push(Some(Arc::new(Connection::new(comm, lifeline, name))));
        Peer::Remote(connections.len() as u32 - 1)
    }

    fn connection(&self, n: u32) -> Result<Arc<Connection>> {
        let connection = self.connections.read().get(n as usize).cloned().flatten();
        connection.ok_or_else(|| Failure::new(Status::HOSTUNREACH, "the connection has ended"))
    }

    fn post(&self, n: u32, head: &Head, parts: &[&[u8]]) -> Result<()> {
        let connection = self.connection(n)?;
        if !connection.is_open() {
            refuse!(HOSTUNREACH, "the connection has ended");
        }
        Ok(connection.send(head, parts)?)
    }

    // -------------------------------------------------------------- progress

    /// Makes progress on one connection. An error ends the connection.
    fn step(
        &self,
        class: &Shared,
        n: u32,
        connection: &Connection,
        poll_now: bool,
    ) -> portolan_engine::error::Result<bool> {
        let mut busy = connection.sent()?;
        for _ in 0..PER_POLL {
            let Some(bytes) = connection.receive()? else { break };
            busy = true;
            let Some((head, body)) = bytes.split_at_checked(HEAD) else {
                return Err(Error::new(ErrorKind::Argument, "it sent a message without a head"));
            };
            let may = |head: &Head| class.may_come(Peer::Remote(n), head.kind, body.len());
            let Some(head) = Head::parse(head).filter(may) else {
                return Err(Error::new(
                    ErrorKind::Argument,
                    "it sent a message that this protocol does not allow",
                ));
            };
            // Class numbers are independent in different jobs.
            let head = Head { class: class.number, ..head };
            match head.kind {
                Kind::Get | Kind::GetData | Kind::Put | Kind::PutDone => {
                    self.serve(class, n, &head, body);
                }
                _ => class.arrived(Peer::Remote(n), &head, Cow::Borrowed(body)),
            }
            if connection.is_lost() {
                return Ok(true);
            }
        }
        while let Some(asked) = connection.next_asked() {
            busy = true;
            let (status, bytes) = match service::read(&asked.names) {
                Ok(bytes) => (Status::SUCCESS, bytes),
                Err(failure) => (failure.status(), Vec::new()),
            };
            self.answer(class, n, &asked.head, Kind::GetData, status, &bytes);
        }
        if poll_now {
            // Checked only after receiving, so that messages sent before the peer left are still
            // handled.
            connection.poll_now()?;
            // The peer waits for this side to say goodbye too. Nothing more is sent to it.
            let late = |since: Instant| since.elapsed() > AFTER_BYE;
            if connection.ends_since().is_some_and(|since| connection.all_sent() || late(since)) {
                connection.say_bye();
            }
        }
        Ok(busy)
    }

    fn answer(&self, class: &Shared, n: u32, to: &Head, kind: Kind, status: Status, bytes: &[u8]) {
        let head = Head { kind, class: class.number, tag: status.0 as u32, word: to.word };
        if let Err(failure) = self.post(n, &head, &[bytes]) {
            log::warn!("cannot respond to a peer in another job: {failure}");
        }
    }

    /// Abandons a connection.
    fn lose(&self, class: &Shared, n: u32, why: &str) {
        let Ok(connection) = self.connection(n) else { return };
        if connection.lose() {
            log::warn!("connection {n} to another job is closed: {why}");
            self.moving.fail_of(n, "the connection to the peer is lost");
            class.lost(Peer::Remote(n));
        }
    }

    /// Removes a connection on which no more messages arrive.
    fn retire(&self, class: &Shared, n: u32) {
        let over = self.connections.write().get_mut(n as usize).and_then(Option::take);
        let Some(connection) = over else { return };
        connection.lose();
        self.moving.fail_of(n, "the peer has ended the connection");
        class.lost(Peer::Remote(n));
        end(connection);
    }

    // ---------------------------------------------------------------- memory

    /// Starts a put of the bytes of `runs`.
    fn put(
        &self,
        n: u32,
        class: u16,
        chunk: &Chunk,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let len: usize = chunk.runs.iter().map(|r| r.len).sum();
        let names = Named { id: chunk.id, offset: chunk.offset, len }.bytes();
        let mut parts: Vec<&[u8]> = vec![&names];
        for run in chunk.runs.iter().filter(|r| r.len > 0) {
            // SAFETY: the transfer keeps the local handle alive, and the handle keeps the memory
            // valid.
            parts.push(unsafe { std::slice::from_raw_parts(run.address as *const u8, run.len) });
        }
        let token = self.moving.begin(n, Kind::PutDone, counter, Vec::new());
        let posted = self.post(n, &Head { kind: Kind::Put, class, tag: 0, word: token }, &parts);
        self.posted(token, posted)
    }

    /// Starts a get into `runs`.
    fn get(
        &self,
        n: u32,
        class: u16,
        chunk: Chunk,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let len = chunk.runs.iter().map(|r| r.len).sum();
        let names = Named { id: chunk.id, offset: chunk.offset, len }.bytes();
        let token = self.moving.begin(n, Kind::GetData, counter, chunk.runs);
        let posted = self.post(n, &Head { kind: Kind::Get, class, tag: 0, word: token }, &[&names]);
        self.posted(token, posted)
    }

    fn posted(&self, token: u64, posted: Result<()>) -> Result<()> {
        if posted.is_err() {
            self.moving.withdraw(token);
        }
        posted
    }

    /// Handles a message about memory.
    fn serve(&self, class: &Shared, n: u32, head: &Head, body: &[u8]) {
        match head.kind {
            Kind::Get => {
                let Ok(names) = <[u8; NAMES]>::try_from(body) else {
                    return self.lose(class, n, "it sent an invalid read");
                };
                let Ok(connection) = self.connection(n) else { return };
                if let Err(error) = connection.ask(Asked { head: *head, names }) {
                    self.lose(class, n, error.detail());
                }
            }
            Kind::Put => {
                let status = service::write(body).map_or_else(|f| f.status(), |()| Status::SUCCESS);
                self.answer(class, n, head, Kind::PutDone, status, &[]);
            }
            _ => match self.moving.answered(n, head) {
                Some(moving) => moving.answered(Status(head.tag as i32), body),
                None => self.lose(class, n, "it sent a reply to a request that was not made"),
            },
        }
    }
}

impl Plugin for Dynamic {
    fn capabilities(&self) -> Capabilities {
        Capabilities { wakes: false }
    }

    fn own_name(&self) -> Option<String> {
        self.own.as_ref().map(|own| format!("mpi+dynamic://{own}"))
    }

    fn name_of(&self, n: u32) -> String {
        let connection = self.connections.read().get(n as usize).cloned().flatten();
        match connection.and_then(|connection| connection.name.clone()) {
            Some(port) => format!("mpi+dynamic://{port}"),
            None => format!("mpi+dynamic://client-{n}"),
        }
    }

    fn connect(&self, class: &Shared, name: &str) -> Result<Peer> {
        if self.own.as_deref() == Some(name) {
            return Ok(Peer::Own);
        }
        let Published { place, token } = Published::parse(name)?;
        let known = |c: &Arc<Connection>| c.name.as_deref() == Some(name) && c.is_open();
        if let Some(n) = self.connections.read().iter().position(|c| c.as_ref().is_some_and(known))
        {
            return Ok(Peer::Remote(n as u32));
        }
        let key = Key::new(&token, self.secret.as_deref());
        let (comm, lifeline) = self.client.connect(place, &key)?;
        Ok(self.add(class, comm, lifeline, Some(name.to_string())))
    }

    fn send(&self, _class: &Shared, n: u32, head: &Head, body: Data<'_>) -> Result<()> {
        let body = match &body {
            Data::Bytes(bytes) => bytes,
            Data::Owned(bytes) => &bytes[..],
            Data::At(..) => refuse!(INVALID_ARG, "a message cannot be passed by address"),
        };
        self.post(n, head, &[body])
    }

    fn transfer(
        &self,
        class: &Shared,
        n: u32,
        chunk: Chunk,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        match chunk.direction {
            Direction::Put => self.put(n, class.number, &chunk, counter),
            Direction::Get => self.get(n, class.number, chunk, counter),
        }
    }

    fn poll(&self, class: &Shared) -> Result<bool> {
        let Some(mut polling) = self.polling.try_lock() else { return Ok(false) };
        let mut busy = false;
        let accepted = std::mem::take(&mut *self.accepted.lock());
        for (comm, lifeline) in accepted {
            self.add(class, comm, lifeline, None);
            busy = true;
        }
        let now = Instant::now();
        let poll_now = polling.is_none_or(|last| now.saturating_duration_since(last) >= POLL);
        if poll_now {
            *polling = Some(now);
        }
        // `step` and `retire` take this lock again, so it must not be held here.
        let count = self.connections.read().len() as u32;
        for n in 0..count {
            let Ok(connection) = self.connection(n) else { continue };
            if !connection.is_lost() {
                match self.step(class, n, &connection, poll_now) {
                    Ok(worked) => busy |= worked,
                    Err(error) => self.lose(class, n, error.detail()),
                }
            }
            if poll_now && connection.is_over(AFTER_BYE) {
                drop(connection);
                self.retire(class, n);
            }
        }
        Ok(busy)
    }

    /// Closes all connections. Waits until outgoing messages have been sent and the peers have
    /// ended their sides, for at most `LEAVING` and `ENDING`.
    fn close(&self, class: &Shared) {
        if let Some(door) = self.door.lock().take() {
            door.close();
        }
        self.client.finish();
        for (comm, lifeline) in std::mem::take(&mut *self.accepted.lock()) {
            self.add(class, comm, lifeline, None);
        }
        let all = std::mem::take(&mut *self.connections.write());
        let begun = Instant::now();
        let mut naps = Naps::new(Duration::from_micros(20), Duration::from_millis(1));
        while begun.elapsed() < ENDING {
            let mut open = 0;
            for connection in all.iter().flatten().filter(|c| !c.is_lost()) {
                // Incoming messages are discarded, but their senders wait until they are received.
                let taken = (0..PER_POLL).try_for_each(|_| connection.receive().map(drop));
                if taken.is_err() || connection.sent().is_err() || connection.poll_now().is_err() {
                    connection.lose();
                    continue;
                }
                if connection.all_sent() || begun.elapsed() > LEAVING {
                    connection.say_bye();
                }
                open += usize::from(!connection.is_ended());
            }
            if open == 0 {
                break;
            }
            std::thread::sleep(naps.take());
        }
        for (n, connection) in all.into_iter().enumerate() {
            let Some(connection) = connection else { continue };
            if connection.ends_since().is_none() && !connection.is_lost() {
                log::warn!("connection {n} to another job: the other side has not closed it");
            }
            connection.lose();
            self.moving.fail_of(n as u32, "the class is finalised");
            end(connection);
        }
    }

    fn refused(&self) -> u64 {
        self.door.lock().as_ref().map_or(0, Door::refused)
    }
}

/// Frees a connection, unless another thread still holds it and is about to find that it has ended.
fn end(connection: Arc<Connection>) {
    if let Some(connection) = Arc::into_inner(connection)
        && let Err(error) = connection.free()
    {
        log::warn!("{error}");
    }
}

fn open_door(
    engine: &Arc<Engine>,
    secret: Option<&[u8]>,
    accepted: Accepted,
) -> Result<(Door<Server>, String)> {
    if engine.thread_level() < ThreadLevel::Multiple {
        refuse!(
            OPNOTSUPPORTED,
            "listening for other jobs needs MPI_THREAD_MULTIPLE, but MPI was initialised below it"
        );
    }
    let server = Server::new()?;
    let several = engine.topology.real_nodes() > 1;
    let (socket, place) = interface::listen(&engine.config.rpc_listen, several)?;
    let token = Token::new()?;
    let own = format!("{place}/{}", token.text());
    log::info!("listening for other jobs at {place}");
    let joined = move |comm, lifeline| accepted.lock().push((comm, lifeline));
    let key = Key::new(&token, secret);
    let door = Door::open(socket, place, key, server, LIMITS, Box::new(joined))?;
    Ok((door, own))
}

#[cfg(test)]
mod tests;
