//! The listener (`Door`): a socket, and a thread for each client that is being authenticated.
//!
//! A client (`Guest`) must authenticate itself within a time limit ([`LIMITS`]), and the number of
//! clients at a time is limited. When more connect, the client that has waited longest without a
//! proof is dropped, so silent clients cannot block others. An authenticated client waits, for a
//! limited time, for one of the accept slots ([`DESKS`]) at which MPI makes connections. MPI's
//! accept has no timeout, so it runs in its own thread, and is cancelled if the client does not
//! connect. Every accept uses a new port, so a port name that one client has received is useless to
//! others.
//!
//! Invariant: an accept slot is used by one accept at a time, and is returned by the thread that
//! was in MPI with it. An accept that cannot be cancelled therefore holds only its slot.

use super::greeting::{self, Greeted, Lifeline, Refusal};
use crate::failure::{Failure, Result, Status};
use crate::na::refusals::Refusals;
use crate::na::secret::{Key, Part, Proof};
use crate::na::timed::Timed;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Limits on the duration and the number of client authentications.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Time for a client to authenticate itself.
    pub greeting: Duration,
    /// Time that an authenticated client waits for an accept slot.
    pub turn: Duration,
    /// Time for MPI to connect the client, once it has a slot.
    pub meeting: Duration,
    /// Time for a cancelled accept to return.
    pub called_off: Duration,
    /// Maximum number of clients at a time.
    pub guests: usize,
}

/// The limits that every class uses.
pub(super) const LIMITS: Limits = Limits {
    greeting: Duration::from_secs(5),
    turn: Duration::from_secs(20),
    meeting: Duration::from_secs(10),
    called_off: Duration::from_secs(2),
    guests: 64,
};

/// Number of accept slots: connections that MPI makes at a time.
pub(super) const DESKS: usize = 4;
/// Pause before the next accept after a failed one, and time limit for sending a rejection.
const PAUSE: Duration = Duration::from_millis(20);
/// Stack size in bytes of threads that never enter MPI.
const STACK: usize = 256 << 10;

/// The operations that the listener needs from MPI; tests substitute them.
pub(super) trait Meet: Send + Sync + 'static {
    /// A port that a client connects to.
    type Port: Clone + Send + 'static;
    /// A connection.
    type Line: Send + 'static;
    /// Opens a port for one client and returns it with its name.
    fn open(&self) -> Result<(Self::Port, String)>;
    /// Waits for the client to connect. Only one call at a time may use a slot (`desk`).
    fn accept(&self, desk: usize, port: &Self::Port) -> Result<Self::Line>;
    /// Makes the accept that waits at a port fail, if MPI supports this.
    fn call_off(&self, port: &Self::Port);
    /// Closes a port that is no longer used.
    fn close(&self, port: Self::Port);
    /// Sends a proof and waits until `end` for the client's proof.
    fn exchange(&self, line: &Self::Line, mine: &Proof, end: Instant) -> Result<Vec<u8>>;
    /// Closes a connection that is not used.
    fn end(&self, line: Self::Line);
    /// Releases the resources once no more connections are accepted.
    fn finish(self);
}

/// A callback that receives each connection made, with its socket.
pub(super) type OnJoined<L> = Box<dyn Fn(L, Lifeline) + Send + Sync>;

struct Guest {
    stream: Arc<TcpStream>,
    proven: Arc<AtomicBool>,
    /// Whether the client was dropped in favour of others.
    dropped: Arc<AtomicBool>,
    number: u64,
}

struct Hall<M: Meet> {
    meet: M,
    key: Key,
    place: String,
    limits: Limits,
    stop: AtomicBool,
    guests: Mutex<Vec<Guest>>,
    /// Signalled when a client has left.
    left: Condvar,
    desks: Mutex<Vec<usize>>,
    desk_free: Condvar,
    refusals: Refusals,
    joined: OnJoined<M::Line>,
}

/// A listening socket. [`Door::close`] closes it.
pub(super) struct Door<M: Meet> {
    hall: Arc<Hall<M>>,
    socket: TcpListener,
    thread: Option<JoinHandle<()>>,
}

impl<M: Meet> Door<M> {
    /// Starts to listen. `place` is the published form of the socket's address (`HOST:PORT`).
    ///
    /// # Errors
    /// Returns `ADDRNOTAVAIL` if the accepting thread cannot be started.
    pub fn open(
        socket: TcpListener,
        place: String,
        key: Key,
        meet: M,
        limits: Limits,
        joined: OnJoined<M::Line>,
    ) -> Result<Door<M>> {
        let hall = Arc::new(Hall {
            meet,
            key,
            place,
            limits,
            stop: AtomicBool::new(false),
            guests: Mutex::default(),
            left: Condvar::new(),
            desks: Mutex::new((0..DESKS).collect()),
            desk_free: Condvar::new(),
            refusals: Refusals::default(),
            joined,
        });
        let failed = |e: io::Error| {
            Failure::new(Status::ADDRNOTAVAIL, format!("cannot listen for other jobs: {e}"))
        };
        let (there, theirs) = (hall.clone(), socket.try_clone().map_err(failed)?);
        let thread = std::thread::Builder::new()
            .name("portolan-accept".into())
            .stack_size(STACK)
            .spawn(move || there.receive(&theirs))
            .map_err(failed)?;
        Ok(Door { hall, socket, thread: Some(thread) })
    }

    /// Returns the number of refused connections.
    pub(super) fn refused(&self) -> u64 {
        self.hall.refusals.total()
    }

    /// Stops listening, disconnects the clients that are being authenticated, and waits until their
    /// threads have ended, for a few seconds at most.
    pub(super) fn close(mut self) {
        let hall = &self.hall;
        hall.stop.store(true, Ordering::SeqCst);
        // Each of these two wakes the thread that waits in `accept`.
        if let Ok(socket) = self.socket.try_clone() {
            let _ = TcpStream::from(OwnedFd::from(socket)).shutdown(Shutdown::Both);
        }
        if let Ok(at) = self.socket.local_addr() {
            let _ = TcpStream::connect_timeout(&at, Duration::from_millis(200));
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error!("the thread that accepts connections panicked");
        }
        drop(hall.desks.lock());
        hall.desk_free.notify_all();
        let end = Instant::now() + hall.limits.called_off * 2;
        let mut guests = hall.guests.lock();
        for guest in guests.iter() {
            let _ = guest.stream.shutdown(Shutdown::Both);
        }
        while !guests.is_empty() {
            if hall.left.wait_until(&mut guests, end).timed_out() {
                log::warn!("{} connecting peers have not disconnected in time", guests.len());
                break;
            }
        }
        drop(guests);
        hall.refusals.record_rest();
        // If a thread is still in MPI, it keeps using these resources.
        if let Some(hall) = Arc::into_inner(self.hall) {
            hall.meet.finish();
        }
    }
}

impl<M: Meet> Hall<M> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Accepts clients until the listener is closed.
    fn receive(self: &Arc<Self>, socket: &TcpListener) {
        portolan_engine::process::quiet_signals();
        let mut number = 0;
        while !self.stopped() {
            match socket.accept() {
                Ok(_) if self.stopped() => break,
                Ok((stream, from)) => {
                    number += 1;
                    self.take_in(stream, from, number);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    // No file descriptor is free, or the client has already left.
                    if self.stopped() {
                        break;
                    }
                    log::debug!("a connection cannot be accepted: {e}");
                    self.make_room(0);
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    /// If there are more than `most` clients, drops the one that has waited longest without a
    /// proof.
    fn make_room(&self, most: usize) {
        let guests = self.guests.lock();
        let waiting = |guest: &&Guest| {
            !guest.proven.load(Ordering::SeqCst) && !guest.dropped.load(Ordering::SeqCst)
        };
        if guests.iter().filter(|guest| !guest.dropped.load(Ordering::SeqCst)).count() > most
            && let Some(guest) = guests.iter().find(waiting)
        {
            guest.dropped.store(true, Ordering::SeqCst);
            let _ = guest.stream.shutdown(Shutdown::Both);
        }
    }

    fn take_in(self: &Arc<Self>, stream: TcpStream, from: SocketAddr, number: u64) {
        self.make_room(self.limits.guests - 1);
        let mut guests = self.guests.lock();
        // Clients that were dropped leave quickly, but their threads must be limited too.
        if guests.len() >= 2 * self.limits.guests {
            drop(guests);
            self.refusals.add(Some(&from), &Refusal::Busy);
            return greeting::send_away(&mut Timed::new(&stream, Instant::now() + PAUSE));
        }
        let _ = stream.set_nodelay(true);
        let (stream, proven, dropped) = (Arc::new(stream), Arc::default(), Arc::default());
        let guest = Guest { stream, proven, dropped, number };
        let (stream, proven) = (guest.stream.clone(), guest.proven.clone());
        let dropped = guest.dropped.clone();
        guests.push(guest);
        drop(guests);
        let hall = self.clone();
        let spawned = std::thread::Builder::new().name("portolan-greet".into()).spawn(move || {
            portolan_engine::process::quiet_signals();
            match hall.greet(&stream, &proven) {
                Ok((line, lifeline)) => (hall.joined)(line, lifeline),
                Err(_) if hall.stopped() => {}
                Err(_) if dropped.load(Ordering::SeqCst) => {
                    hall.refusals.add(Some(&from), &Refusal::Busy);
                }
                Err(why) => hall.refusals.add(Some(&from), &why),
            }
            hall.leave(number);
        });
        if let Err(error) = spawned {
            self.leave(number);
            self.refusals.add(Some(&from), &Refusal::from(error));
        }
    }

    fn leave(&self, number: u64) {
        let mut guests = self.guests.lock();
        guests.retain(|guest| guest.number != number);
        drop(guests);
        self.left.notify_all();
    }

    /// Handles one client, from its first byte until MPI has connected it.
    fn greet(
        self: &Arc<Self>,
        stream: &Arc<TcpStream>,
        proven: &AtomicBool,
    ) -> std::result::Result<(M::Line, Lifeline), Refusal> {
        let mut with = Timed::new(stream, Instant::now() + self.limits.greeting);
        let greeted = greeting::examine(&mut with, &self.key, &self.place)?;
        proven.store(true, Ordering::SeqCst);
        let Some(desk) = self.take_desk(Instant::now() + self.limits.turn) else {
            with.end = Instant::now() + PAUSE;
            greeting::send_away(&mut with);
            return Err(if self.stopped() { Refusal::Stopped } else { Refusal::Busy });
        };
        with.end = Instant::now() + self.limits.meeting;
        let line = self.meet_at(desk, stream, &mut with, &greeted)?;
        let kept = stream.try_clone().and_then(Lifeline::new);
        match (self.is_the_same(&line, &greeted, with.end), kept) {
            (Ok(()), Ok(lifeline)) if !self.stopped() => Ok((line, lifeline)),
            (same, kept) => {
                let _ = stream.shutdown(Shutdown::Both);
                self.meet.end(line);
                same?;
                kept?;
                Err(Refusal::Stopped)
            }
        }
    }

    /// Checks that the process that MPI connected is the authenticated client. Another process
    /// could have guessed the port's name.
    fn is_the_same(
        &self,
        line: &M::Line,
        greeted: &Greeted,
        end: Instant,
    ) -> std::result::Result<(), Refusal> {
        let mine = greeted.inside(&self.key, &self.place, Part::ServerInside);
        let exchanged = self.meet.exchange(line, &mine, end);
        if greeted.is_inside(&self.key, &self.place, Part::ClientInside, &exchanged?) {
            Ok(())
        } else {
            Err(Refusal::Unproven)
        }
    }

    fn take_desk(&self, end: Instant) -> Option<usize> {
        let mut desks = self.desks.lock();
        loop {
            if self.stopped() {
                return None;
            }
            if let Some(desk) = desks.pop() {
                return Some(desk);
            }
            if self.desk_free.wait_until(&mut desks, end).timed_out() {
                return desks.pop();
            }
        }
    }

    fn give_desk(&self, desk: usize) {
        self.desks.lock().push(desk);
        self.desk_free.notify_one();
    }

    /// Sends the client the name of a port, and waits for it to connect through MPI.
    fn meet_at(
        self: &Arc<Self>,
        desk: usize,
        stream: &Arc<TcpStream>,
        with: &mut Timed<'_>,
        greeted: &Greeted,
    ) -> std::result::Result<M::Line, Refusal> {
        let (port, name) = self.meet.open().inspect_err(|_| self.give_desk(desk))?;
        if let Err(why) = greeting::welcome(with, &self.key, &self.place, greeted, &name) {
            self.meet.close(port);
            self.give_desk(desk);
            return Err(why);
        }
        let (sender, receiver) = mpsc::channel();
        let (hall, at, socket) = (self.clone(), port.clone(), stream.clone());
        let spawned = std::thread::Builder::new().name("portolan-meet".into()).spawn(move || {
            portolan_engine::process::quiet_signals();
            let accepted = hall.meet.accept(desk, &at);
            hall.meet.close(at);
            hall.give_desk(desk);
            if accepted.is_err() {
                let _ = socket.shutdown(Shutdown::Both);
            }
            // If the receiver has given up, the connection is not used.
            if let Err(mpsc::SendError(Ok(line))) = sender.send(accepted) {
                hall.meet.end(line);
            }
        });
        if let Err(error) = spawned {
            self.meet.close(port);
            self.give_desk(desk);
            return Err(error.into());
        }
        let why = match greeting::await_joined(with) {
            Ok(()) => {
                let left = with.end.saturating_duration_since(Instant::now());
                match receiver.recv_timeout(left) {
                    Ok(Ok(line)) => return Ok(line),
                    Ok(Err(failure)) => return Err(failure.into()),
                    Err(_) => Refusal::Silent,
                }
            }
            Err(why) => why,
        };
        // MPI may have connected the client, or have failed, while this thread waited for the
        // client.
        let ended = match receiver.try_recv() {
            Ok(Err(failure)) => return Err(failure.into()),
            Ok(connected) => Some(connected),
            Err(_) => {
                self.meet.call_off(&port);
                receiver.recv_timeout(self.limits.called_off).ok()
            }
        };
        match ended {
            Some(Ok(line)) => self.meet.end(line),
            Some(Err(_)) => {}
            None => log::warn!(
                "MPI still waits for a peer that has disconnected; it times out by itself"
            ),
        }
        Err(why)
    }
}
