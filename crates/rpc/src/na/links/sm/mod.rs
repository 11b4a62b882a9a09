//! Processes of one user on one host, connected through shared memory (`na+sm`).
//!
//! An address is `na+sm://PID-N`, where `N` counts the classes of the process. Even a class that
//! does not listen has a Unix socket in the abstract namespace, so that a process with a memory
//! handle from a third one can use it. Everything disappears with the processes that use it.
//!
//! For a class over TCP (`auto_sm`), the name ends in a random number, and peers learn it over TCP.
//!
//! The owner of registered memory copies large data directly if the system permits access to the
//! peer's memory. Otherwise data passes through the ring.

mod bell;
mod greeting;
mod ring;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
mod shared;

use super::arrivals::Arrivals;
use super::listener::{self, Listen, Listener, Listening, Opened, Refusal};
use crate::failure::{Failure, Result, Status, refuse};
use crate::na::memory::Neighbours;
use bell::Bell;
use greeting::Own;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

static CLASSES: AtomicU32 = AtomicU32::new(0);

struct Mine {
    place: String,
    /// The address, after the name of the network.
    name: String,
    bell: Bell,
    file: OwnedFd,
    arrivals: Arc<Arrivals>,
}

impl Mine {
    fn own(&self) -> Own<'_> {
        let (bell, waker) = (self.file.as_fd(), self.arrivals.poller.waker());
        Own { bell, waker, name: &self.name }
    }
}

pub(super) struct Sm {
    mine: Arc<Mine>,
    /// `None` once the class does not listen.
    listening: Listening<Socket>,
    _neighbours: Neighbours,
}

pub(super) struct Socket {
    listener: UnixListener,
    mine: Arc<Mine>,
}

impl Listen for Socket {
    type Guest = UnixStream;

    fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().map(|(guest, _)| guest)
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    fn stop(&self) {
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
    }

    fn descriptor<'a>(&self, guest: &'a UnixStream) -> BorrowedFd<'a> {
        guest.as_fd()
    }

    fn greet(&self, guest: UnixStream, _: &dyn Fn()) -> std::result::Result<(), Refusal> {
        let peers = &self.mine.arrivals.peers;
        let mut number = None;
        let greeted = greeting::as_server(guest, &self.mine.own(), |name| {
            // Processes of one user trust each other.
            let n = *number.insert(peers.proven(name));
            (n, peers.life_for(name))
        });
        if greeted.is_err() {
            number.into_iter().for_each(|n| peers.give_up(n));
        }
        greeted.map(|opened| self.mine.arrivals.accept(opened))
    }
}

fn address(place: &str) -> io::Result<SocketAddr> {
    let user = rustix::process::geteuid().as_raw();
    SocketAddr::from_abstract_name(format!("portolan-sm/{user}/{place}"))
}

pub(super) fn check_place(place: &str) -> Result<()> {
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_number = |text: &str| is_digits(text) && text.parse::<u32>().is_ok();
    if !place.split_once('-').is_some_and(|(process, n)| is_number(process) && is_number(n)) {
        refuse!(INVALID_ARG, "'{place}' is not an address of shared memory; expected PID-N");
    }
    Ok(())
}

impl Sm {
    /// Creates the shared memory of a class, and starts to listen if requested. `chosen` is the
    /// address that the program has asked for, `name` the address of a class over TCP. Returns
    /// `ADDRNOTAVAIL` if another class has the chosen address.
    pub fn open(
        listen: bool,
        chosen: Option<&str>,
        name: Option<&str>,
        arrivals: Arc<Arrivals>,
    ) -> Result<Sm> {
        let failed = |e: io::Error| Failure::new(Status::NOMEM, format!("na+sm: {e}"));
        let bind = |place: &str| match listen {
            true => address(place).and_then(|at| UnixListener::bind_addr(&at)).map(Some),
            false => Ok(None),
        };
        let (place, listener) = match chosen {
            Some(place) => match bind(place) {
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                    refuse!(ADDRNOTAVAIL, "cannot listen at na+sm://{place}: {e}");
                }
                bound => (place.to_string(), bound.map_err(failed)?),
            },
            None => loop {
                let n = CLASSES.fetch_add(1, Ordering::Relaxed);
                let mut place = format!("{}-{n}", std::process::id());
                if name.is_some() {
                    let random = u64::from_ne_bytes(crate::na::secret::random()?);
                    place = format!("{place}-{random:016x}");
                }
                match bind(&place) {
                    // Another class has chosen this address.
                    Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
                    bound => break (place, bound.map_err(failed)?),
                }
            },
        };
        let name = name.unwrap_or(&place).to_string();
        let (bell, file) = Bell::create().map_err(failed)?;
        let mine = Arc::new(Mine { place, name, bell, file, arrivals });
        let open = |listener| Listener::open(Socket { listener, mine: mine.clone() });
        let listening = Listening::new(listener.map(open).transpose().map_err(failed)?);
        Ok(Sm { mine, listening, _neighbours: Neighbours::new() })
    }

    pub fn place(&self) -> &str {
        &self.mine.place
    }

    /// Connects to the process at `place`, which has the number `n`, and sends it `life`.
    pub fn dial(&self, place: &str, n: u32, life: u64) -> Result<Opened> {
        let dialled = listener::greeted(|| {
            let connect = |at| loop {
                match UnixStream::connect_addr(&at) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    connected => return connected,
                }
            };
            let socket = address(place).and_then(connect);
            let socket = socket.map_err(Refusal::Absent)?;
            greeting::as_client(socket, &self.mine.own(), (n, life))
        });
        match dialled {
            Ok(opened) => Ok(opened),
            Err(refusal) => refuse!(HOSTUNREACH, "na+sm://{place}: {refusal}"),
        }
    }

    /// Reports the indices, below `count()`, of peers whose connections may have bytes or room.
    #[inline]
    pub fn rung(&self, count: impl Fn() -> u32, report: impl FnMut(u32)) {
        self.mine.bell.take(count, report);
    }

    pub fn set_asleep(&self, asleep: bool) {
        self.mine.bell.set_asleep(asleep);
    }

    pub fn listening(&self) -> &Listening<Socket> {
        &self.listening
    }
}
