//! Accepting connections: one thread waits for clients, and a thread for each client greets it.
//!
//! Greetings have a time limit. If too many clients are being greeted, the oldest is dropped, so
//! silent clients cannot block others. The thread of a dropped client may take a second to end, if
//! it is one of the few that ask another process.
//!
//! Connections do not take the last descriptors of the process: a client whose socket is among
//! them is refused.

use super::stream::Stream;
use crate::na::limited::{Refusals, limited};
use parking_lot::Mutex;
use portolan_base::wait::Naps;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const GUESTS: usize = 64;
/// The share of the process's descriptors that connections leave to others, and its maximum.
const LEFT: (u64, u64) = (8, 64);
/// How long a client that was dropped tries again.
const AGAIN: Duration = Duration::from_secs(5);
/// The first pause after a failed accept, and the longest one.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];
/// Time after which an error that comes and goes is logged again.
const QUIET: Duration = Duration::from_secs(60);
const STACK: usize = 256 << 10;

#[derive(Debug)]
pub enum Refusal {
    Absent(io::Error),
    Silent,
    Left,
    Rubbish,
    OtherUser(u32),
    Unproven,
    Refused,
    Plain,
    TlsOnly,
    Tls(io::Error),
    Failed(io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Silent => "it sent nothing in time",
            Refusal::Left => "it closed the connection",
            Refusal::Rubbish => "it uses a different protocol",
            Refusal::OtherUser(user) => return write!(f, "it belongs to user {user}"),
            Refusal::Unproven => "it does not prove that it knows the key",
            Refusal::Refused => {
                "it refuses the proof: both sides need the same auth_key, or the same secret in \
                 PORTOLAN_RPC_SECRET_FILE. A server behind address translation, a proxy or a \
                 tunnel needs TLS too (PORTOLAN_RPC_TLS_DIR)"
            }
            Refusal::Plain => {
                "it does not use TLS, which this process demands: set PORTOLAN_RPC_TLS_DIR on both \
                 sides, or on none"
            }
            Refusal::TlsOnly => {
                "it uses TLS, and this process does not: set PORTOLAN_RPC_TLS_DIR on both sides, or \
                 on none"
            }
            Refusal::Tls(error) => {
                return write!(
                    f,
                    "TLS: {error}; both sides need valid certificates of the same authority \
                     (PORTOLAN_RPC_TLS_DIR)"
                );
            }
            Refusal::Absent(error) => return write!(f, "no process is reachable there: {error}"),
            Refusal::Failed(error) => return error.fmt(f),
        })
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        use io::ErrorKind::*;
        match error.kind() {
            TimedOut | WouldBlock => Refusal::Silent,
            UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe | NotConnected => {
                Refusal::Left
            }
            // The kernel does not return it, but TLS does.
            InvalidData => Refusal::Tls(error),
            _ => Refusal::Failed(error),
        }
    }
}

/// Makes a connection. Tries again for a while if the listening process closes it during the
/// greeting: it drops clients if many connect at a time.
pub(super) fn greeted(
    mut dial: impl FnMut() -> Result<Opened, Refusal>,
) -> Result<Opened, Refusal> {
    let end = Instant::now() + AGAIN;
    let mut naps = Naps::new(Duration::from_millis(1), Duration::from_millis(100));
    loop {
        match dial() {
            Err(Refusal::Left) if Instant::now() < end => std::thread::sleep(naps.take()),
            dialled => return dialled,
        }
    }
}

#[derive(Debug)]
pub(super) struct Opened {
    pub who: Who,
    pub stream: Box<dyn Stream>,
    pub name: String,
    pub life: u64,
}

#[derive(Debug)]
pub(super) enum Who {
    Known(u32),
    Proven,
    /// A peer that claims the given address, and connects from this one.
    Claims(String),
}

pub(super) trait Listen: Send + Sync + 'static {
    type Guest: Send + 'static;

    fn accept(&self) -> io::Result<Self::Guest>;

    fn stop(&self);

    fn socket(&self) -> BorrowedFd<'_>;

    /// Returns the client's socket.
    fn descriptor<'a>(&self, guest: &'a Self::Guest) -> BorrowedFd<'a>;

    /// Greets a client and passes the connection on. Calls `keep` once the client must not be
    /// dropped for later ones: before it learns that it is connected.
    fn greet(&self, guest: Self::Guest, keep: &dyn Fn()) -> Result<(), Refusal>;
}

struct Hall<L> {
    listen: L,
    stop: AtomicBool,
    guests: Mutex<VecDeque<(usize, OwnedFd)>>,
    inside: AtomicUsize,
    refusals: Refusals,
}

impl<L> Hall<L> {
    fn forget(&self, number: usize) {
        self.guests.lock().retain(|(guest, _)| *guest != number);
    }
}

pub(super) struct Listener<L: Listen> {
    hall: Arc<Hall<L>>,
    thread: Option<JoinHandle<()>>,
}

impl<L: Listen> Listener<L> {
    pub fn open(listen: L) -> io::Result<Listener<L>> {
        let hall = Arc::new(Hall {
            listen,
            stop: AtomicBool::new(false),
            guests: Mutex::default(),
            inside: AtomicUsize::new(0),
            refusals: Refusals::default(),
        });
        let thread = start(&hall)?;
        Ok(Listener { hall, thread: Some(thread) })
    }

    /// Accepts connections in a forked child, which lacks the threads. Fails like
    /// [`Listener::open`].
    pub fn reopen(&mut self) -> io::Result<()> {
        // The thread of the parent cannot be joined here, nor can its lock be waited for.
        std::mem::forget(self.thread.take());
        if let Some(mut guests) = self.hall.guests.try_lock() {
            guests.clear();
        }
        self.hall.inside.store(0, Ordering::Release);
        self.thread = Some(start(&self.hall)?);
        Ok(())
    }

    /// Closes the listener in a forked child whose parent accepts connections. The threads exist
    /// only there.
    pub fn leave_to_parent(mut self) {
        std::mem::forget(self.thread.take());
        release(self.hall.listen.socket());
        if let Some(mut guests) = self.hall.guests.try_lock() {
            guests.clear();
        }
        std::mem::forget(self); // a drop would shut the socket down
    }

    pub fn refused(&self) -> u64 {
        self.hall.refusals.total()
    }
}

impl<L: Listen> Drop for Listener<L> {
    fn drop(&mut self) {
        self.hall.stop.store(true, Ordering::Release);
        self.hall.listen.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.hall.guests.lock().iter().for_each(|(_, socket)| drop_guest(socket));
        self.hall.refusals.record_rest();
        // The greetings of the dropped clients end now.
        while self.hall.inside.load(Ordering::Acquire) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The listener of a network, if its class listens and is open.
pub(super) struct Listening<L: Listen>(Mutex<Option<Listener<L>>>);

impl<L: Listen> Listening<L> {
    pub fn new(listener: Option<Listener<L>>) -> Listening<L> {
        Listening(Mutex::new(listener))
    }

    /// See [`Listener::reopen`].
    pub fn reopen(&self) -> io::Result<()> {
        self.0.lock().as_mut().map_or(Ok(()), Listener::reopen)
    }

    /// See [`Listener::leave_to_parent`]. A thread of the parent may hold the lock.
    pub fn leave_to_parent(&self) {
        let listener = self.0.try_lock().and_then(|mut listener| listener.take());
        listener.into_iter().for_each(Listener::leave_to_parent);
    }

    pub fn close(&self) {
        let listener = self.0.lock().take();
        drop(listener); // without the lock: it waits for its threads
    }

    pub fn refused(&self) -> u64 {
        self.0.lock().as_ref().map_or(0, Listener::refused)
    }
}

/// Replaces a descriptor by one of `/dev/null`, so that this process has no part in the socket any
/// more. The object that owns the descriptor still closes it.
fn release(descriptor: BorrowedFd<'_>) {
    if let Ok(null) = std::fs::File::open("/dev/null") {
        // SAFETY: both descriptors are open. The replaced one remains open and owned.
        unsafe { libc::dup3(null.as_raw_fd(), descriptor.as_raw_fd(), libc::O_CLOEXEC) };
    }
}

fn drop_guest(socket: &OwnedFd) {
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
}

/// Failed attempts to accept, for example for lack of descriptors. A lasting error is logged once,
/// an intermittent one again after [`QUIET`].
struct Trouble {
    naps: Naps,
    /// The number of the last error, and when it was logged.
    error: Option<(i32, Instant)>,
    lasts: bool,
}

impl Trouble {
    fn none() -> Trouble {
        Trouble { naps: Naps::new(PAUSES[0], PAUSES[1]), error: None, lasts: false }
    }

    /// Records a failed attempt. Returns the pause before the next one, and whether to log it.
    fn add(&mut self, error: &io::Error) -> (Duration, bool) {
        let (error, now) = (error.raw_os_error().unwrap_or_default(), Instant::now());
        let is_new = match self.error {
            Some((last, _)) if last != error => true,
            Some((_, logged)) => !self.lasts && now - logged > QUIET,
            None => true,
        };
        if is_new {
            self.error = Some((error, now));
        }
        self.lasts = true;
        (self.naps.take(), is_new)
    }

    fn end(&mut self) {
        self.naps.reset();
        self.lasts = false;
    }
}

/// Returns an error if one of the new descriptors is among the last of the process. The kernel
/// returns the lowest free number. Each can be the higher one, because other threads close some.
fn check_descriptors(new: [RawFd; 2]) -> io::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit.filter(|limit| new.iter().any(|fd| is_scarce(*fd as u64, *limit))) {
        None => Ok(()),
        Some(limit) => Err(io::Error::other(format!(
            "only a few of the {limit} descriptors that ulimit -n allows are left"
        ))),
    }
}

fn is_scarce(descriptor: u64, limit: u64) -> bool {
    let (share, most) = LEFT;
    descriptor >= limit - (limit / share).min(most)
}

fn start<L: Listen>(hall: &Arc<Hall<L>>) -> io::Result<JoinHandle<()>> {
    let own = hall.clone();
    let thread = std::thread::Builder::new().name("portolan-accept".into()).stack_size(STACK);
    thread.spawn(move || accept(&own))
}

fn accept<L: Listen>(hall: &Arc<Hall<L>>) {
    portolan_base::process::quiet_signals();
    let mut trouble = Trouble::none();
    for number in 0.. {
        let guest = hall.listen.accept();
        if hall.stop.load(Ordering::Acquire) {
            return;
        }
        let admitted = guest.and_then(|guest| {
            // To drop the client.
            let handle = hall.listen.descriptor(&guest).try_clone_to_owned()?;
            Ok((guest, handle))
        });
        let (guest, handle) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => {
                if error.kind() != io::ErrorKind::Interrupted {
                    let (pause, new) = trouble.add(&error);
                    if new {
                        log::warn!("connections cannot be accepted: {error}; trying again");
                    }
                    std::thread::sleep(pause);
                }
                continue;
            }
        };
        trouble.end();
        let numbers = [hall.listen.descriptor(&guest).as_raw_fd(), handle.as_raw_fd()];
        if let Err(error) = check_descriptors(numbers) {
            limited!(Warn, "a connection is refused: {error}");
            continue;
        }
        let mut guests = hall.guests.lock();
        if guests.len() >= GUESTS {
            guests.pop_front().iter().for_each(|(_, socket)| drop_guest(socket));
        }
        guests.push_back((number, handle));
        drop(guests);
        hall.inside.fetch_add(1, Ordering::AcqRel);
        let own = hall.clone();
        let spawned = std::thread::Builder::new()
            .name("portolan-greet".into())
            .stack_size(STACK)
            .spawn(move || greet(&own, guest, number));
        if let Err(error) = spawned {
            limited!(Warn, "a connection could not be accepted: {error}");
            leave(hall, number);
        }
    }
}

fn greet<L: Listen>(hall: &Hall<L>, guest: L::Guest, number: usize) {
    portolan_base::process::quiet_signals();
    if let Err(refusal) = hall.listen.greet(guest, &|| hall.forget(number))
        && !hall.stop.load(Ordering::Acquire)
    {
        hall.refusals.add(&refusal);
    }
    leave(hall, number);
}

fn leave<L: Listen>(hall: &Hall<L>, number: usize) {
    hall.forget(number);
    hall.inside.fetch_sub(1, Ordering::AcqRel);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_descriptors_are_scarce() {
        assert!(!is_scarce(55, 64) && is_scarce(56, 64));
        assert!(!is_scarce(1_000_000, 1 << 20) && is_scarce((1 << 20) - 64, 1 << 20));
        assert!(!is_scarce(3, 4) && is_scarce(0, 0), "small limits leave none");
    }

    #[test]
    fn a_lasting_error_is_logged_once() {
        let mut trouble = Trouble::none();
        let full = io::Error::from_raw_os_error(libc::EMFILE);
        let reports: Vec<(Duration, bool)> = (0..100).map(|_| trouble.add(&full)).collect();
        assert_eq!(reports[0], (PAUSES[0], true));
        assert!(
            reports[1..].iter().all(|(pause, new)| (PAUSES[0]..=PAUSES[1]).contains(pause) && !new)
        );
        assert_eq!(reports[99].0, PAUSES[1]);
        assert!(trouble.add(&io::Error::from_raw_os_error(libc::ENOBUFS)).1, "another error");
        assert!(trouble.add(&full).1);
        trouble.end();
        assert_eq!(trouble.add(&full), (PAUSES[0], false), "it comes and goes");
    }
}
