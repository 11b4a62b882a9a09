//! Making connections through MPI: accept, connect, and the proofs that follow.

use super::connection::exchange;
use super::greeting::{self, Greeted, Lifeline, Refusal};
use super::listener::{DESKS, LIMITS, Meet};
use crate::failure::{Failure, Result, Status};
use crate::na::secret::{Key, Part, Proof};
use crate::na::timed::Timed;
use parking_lot::Mutex;
use portolan_engine::mpi::Comm;
use portolan_engine::mpi::dynamic::{self, Port, Waiting};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval at which the watching thread checks a connection that is being made.
const WATCH: Duration = Duration::from_millis(50);

/// The server's side: a communicator for each accept slot.
pub(super) struct Server(Vec<Comm>);

impl Server {
    /// Creates the communicators of the accept slots.
    ///
    /// # Errors
    /// Fails if this MPI does not support ports.
    pub fn new() -> Result<Server> {
        Port::open()?.close()?;
        let desks =
            (0..DESKS).map(|_| dynamic::alone()).collect::<portolan_engine::error::Result<_>>()?;
        Ok(Server(desks))
    }
}

impl Meet for Server {
    type Port = Port;
    type Line = Comm;

    fn open(&self) -> Result<(Port, String)> {
        let port = Port::open()?;
        let name = port.name();
        Ok((port, name))
    }

    fn accept(&self, desk: usize, port: &Port) -> Result<Comm> {
        Ok(port.accept(&self.0[desk])?)
    }

    fn call_off(&self, port: &Port) {
        call_off(port, Waiting::Accept);
    }

    fn close(&self, port: Port) {
        if let Err(error) = port.close() {
            log::warn!("{error}");
        }
    }

    fn exchange(&self, line: &Comm, mine: &Proof, end: Instant) -> Result<Vec<u8>> {
        exchange(line, mine, end)
    }

    fn end(&self, line: Comm) {
        free(line);
    }

    fn finish(self) {
        self.0.into_iter().for_each(free);
    }
}

fn free(comm: Comm) {
    if let Err(error) = comm.free() {
        log::warn!("{error}");
    }
}

fn call_off(port: &Port, waiting: Waiting) {
    match port.call_off(waiting) {
        Ok(true) => log::debug!("cancelled MPI's {waiting:?}, because no peer connected"),
        Ok(false) => log::debug!("this MPI cannot be cancelled"),
        Err(error) => log::warn!("{error}"),
    }
}

/// The client's side.
pub(super) struct Client {
    alone: Mutex<Option<Comm>>,
    /// Whether other threads may call MPI while one connects.
    threads: bool,
}

impl Client {
    /// Creates the communicator for connecting. `threads` says whether other threads may call MPI.
    ///
    /// # Errors
    /// Returns MPI's errors.
    pub fn new(threads: bool) -> Result<Client> {
        Ok(Client { alone: Mutex::new(Some(dynamic::alone()?)), threads })
    }

    /// Frees the communicator. Later connection attempts fail.
    pub fn finish(&self) {
        if let Some(alone) = self.alone.lock().take() {
            free(alone);
        }
    }

    /// Connects to the server at `place` (`HOST:PORT`). Retries for a limited time while the server
    /// is busy.
    ///
    /// # Errors
    /// Returns `PERMISSION` if the key is refused or the server cannot prove that it knows it,
    /// `TIMEOUT` if the server does not respond, and otherwise `HOSTUNREACH` with the reason.
    pub(super) fn connect(&self, place: &str, key: &Key) -> Result<(Comm, Lifeline)> {
        let end = Instant::now() + LIMITS.greeting + LIMITS.turn;
        let mut pause = Duration::from_millis(20);
        loop {
            match self.try_to(place, key) {
                Ok(made) => return Ok(made),
                // Other clients may have been accepted first, or many outsiders are connecting.
                Err(Refusal::Busy | Refusal::Left) if Instant::now() + pause < end => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
                Err(why) => return Err(unreached(place, &why)),
            }
        }
    }

    fn try_to(&self, place: &str, key: &Key) -> std::result::Result<(Comm, Lifeline), Refusal> {
        let stream = Arc::new(reach(place)?);
        let mut with = Timed::new(&stream, Instant::now() + LIMITS.greeting);
        let greeted = greeting::introduce(&mut with, key, place)?;
        with.end = Instant::now() + LIMITS.turn + LIMITS.greeting;
        let name = greeting::await_welcome(&mut with, key, place, &greeted)?;
        let port = Port::named(&name).map_err(|e| Refusal::Failed(e.to_string()))?;
        let guard = self.alone.lock();
        let Some(alone) = &*guard else { return Err(Refusal::Stopped) };
        with.end = Instant::now() + LIMITS.meeting;
        greeting::say_coming(&mut with)?;
        let watched = self.threads.then(|| Watch::begin(stream.clone(), port.clone()));
        let connected = port.connect(alone);
        let watch_ended = watched.is_some_and(Watch::end);
        drop(guard);
        let line = connected.map_err(|error| match watch_ended {
            true => Refusal::Failed("it disconnected while MPI connected to it".into()),
            false => Refusal::Failed(error.detail().to_string()),
        })?;
        match joined(&line, with, key, place, &greeted) {
            Ok(()) => {
                let kept = stream.try_clone().and_then(Lifeline::new)?;
                Ok((line, kept))
            }
            Err(why) => {
                free(line);
                Err(why)
            }
        }
    }
}

fn joined(
    line: &Comm,
    mut with: Timed<'_>,
    key: &Key,
    place: &str,
    greeted: &Greeted,
) -> std::result::Result<(), Refusal> {
    greeting::say_joined(&mut with)?;
    let mine = greeted.inside(key, place, Part::ClientInside);
    let theirs = exchange(line, &mine, Instant::now() + LIMITS.meeting)?;
    if greeted.is_inside(key, place, Part::ServerInside, &theirs) {
        Ok(())
    } else {
        Err(Refusal::Unproven)
    }
}

fn reach(place: &str) -> std::result::Result<TcpStream, Refusal> {
    let unreached = |e: std::io::Error| Refusal::Failed(format!("cannot reach it: {e}"));
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for at in place.to_socket_addrs().map_err(unreached)? {
        match TcpStream::connect_timeout(&at, LIMITS.greeting) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(unreached(last))
}

fn unreached(place: &str, why: &Refusal) -> Failure {
    let status = match why {
        Refusal::Refused | Refusal::Unproven => Status::PERMISSION,
        Refusal::Silent => Status::TIMEOUT,
        _ => Status::HOSTUNREACH,
    };
    Failure::new(status, format!("cannot connect to {place}: {why}"))
}

/// A thread that cancels MPI's connect if the server goes away in the meantime.
struct Watch(Arc<Mutex<Watched>>);

#[derive(Default)]
struct Watched {
    ended: bool,
    called_off: bool,
}

impl Watch {
    fn begin(stream: Arc<TcpStream>, port: Port) -> Watch {
        let state = Arc::new(Mutex::new(Watched::default()));
        let seen = state.clone();
        let end = Instant::now() + LIMITS.meeting;
        let spawned = std::thread::Builder::new().name("portolan-meet".into()).spawn(move || {
            portolan_engine::process::quiet_signals();
            // The socket may have become the non-blocking lifeline by the end of the loop.
            let _ = stream.set_read_timeout(Some(WATCH));
            let mut byte = [0];
            loop {
                if seen.lock().ended {
                    return;
                }
                let gone = match stream.peek(&mut byte) {
                    Ok(0) => true,
                    Ok(_) => {
                        std::thread::sleep(WATCH);
                        false
                    }
                    Err(e) => !matches!(
                        e.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ),
                };
                let mut state = seen.lock();
                if state.ended {
                    return;
                }
                if gone || Instant::now() > end {
                    state.called_off = true;
                    return call_off(&port, Waiting::Connect);
                }
            }
        });
        if let Err(error) = spawned {
            log::debug!("cannot start the thread that watches MPI's connect: {error}");
        }
        Watch(state)
    }

    /// Ends the watch after MPI has returned. Returns whether the connect was cancelled.
    fn end(self) -> bool {
        let mut state = self.0.lock();
        state.ended = true;
        state.called_off
    }
}
