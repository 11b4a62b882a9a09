//! Processes that connect to each other without MPI and without a launcher: on one host through
//! shared memory (`na+sm`), and between hosts through TCP (`tcp`).
//!
//! Greeting: a thread of `listener` accepts, or one of `dialling` connects; `sm` or `tcp` greets
//! the peer, over a `channel` if it is a socket. The result is a `link`: a `stream` with `output`
//! and `input` frames. `serve` answers requests for memory.
//!
//! A connection is a stream of bytes in each direction, which carries frames: a message header and
//! a body. Its end is the only sign that a peer has gone, so a crash and a close look alike: what
//! the peer sent before is delivered, and then calls to it fail.
//!
//! One thread at a time reads ([`Links::poll`]). It visits only connections that the bell or the
//! poller has reported, so idle connections cost nothing. Threads without work sleep in the poller.
//!
//! A class over TCP may also have shared memory (`auto_sm`). Two such processes of one user on one
//! host meet over TCP, and then connect through shared memory.
//!
//! Looking an address up does not connect: the first message or transfer does. If the connection
//! ends, the next message connects again, under the same number. Calls wait only briefly for a
//! connection, so that a stopped peer does not stop its clients. A peer that connects has the
//! number of its address, if it proves the address ([`tcp`]).
//!
//! Bytes of registered memory that wait in the output of a connection are copied when the owner
//! withdraws the memory ([`super::memory`]).
//!
//! A forked child uses its copy of a class only in place of its parent (`fork`).
//!
//! Invariant: a connection whose stream may have bytes, room or an error is in `ready`, or the
//! poller or the bell will report it.

mod arrivals;
mod channel;
mod connect;
mod deferred_output;
mod dialling;
mod ending;
mod fork;
mod input;
mod link;
pub mod listener;
mod output;
mod peers;
mod poller;
mod serve;
mod sm;
mod stream;
mod tcp;
pub mod tcp_greeting;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;

use super::address::{Network, Peer, Scheme};
use super::class::{Plugin, Shared};
use super::memory::{InUse, Run};
use super::options::Options;
use super::plugin::{Capabilities, Chunk};
use super::secret::{self, Key};
use super::wire::{Head, Kind};
use crate::failure::{Failure, Result, Status, refuse};
use arrivals::Arrivals;
use connect::Networks;
use deferred_output::DeferredOutput;
use dialling::{Dialling, Kept};
use fork::Owner;
use link::Link;
use listener::{Opened, Who};
use parking_lot::Mutex;
use peers::Peers;
use poller::Poller;
use portolan_base::config::Config;
use portolan_base::process;
use portolan_engine::am::Data;
use portolan_engine::core::answers::AwaitedAnswers;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::memory::shm_export;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Size in bytes of the buffer that incoming bytes are read into.
const BUFFER: usize = 128 << 10;
/// Number of polls of shared memory between two checks of the poller, without and with TCP.
const CHECK_POLLER: [u32; 2] = [64, 8];

struct Polling {
    buffer: Vec<u8>,
    polls: u32,
}

pub(crate) struct Links {
    networks: Arc<Networks>,
    dialling: Dialling,
    polling: Mutex<Polling>,
    ready: Mutex<Vec<u32>>,
    any_ready: AtomicBool,
    must_collect: AtomicBool,
    owner: Owner,
    awaited: AwaitedAnswers,
    held: DeferredOutput,
}

impl Links {
    /// Creates the connections of a class, and starts to listen if requested. Returns
    /// `ADDRNOTAVAIL` if the class cannot listen at the place in `network`.
    pub fn open(
        network: Network<'_>,
        listen: bool,
        options: Options<'_>,
        config: &Config,
    ) -> Result<Links> {
        process::count_forks();
        let poller = Poller::new()
            .map_err(|e| Failure::new(Status::NOMEM, format!("{}: {e}", network.name)))?;
        let (peers, any) = (Peers::new()?, AtomicBool::new(false));
        let (accepted, dialled) = (Mutex::default(), Mutex::default());
        let arrivals = Arc::new(Arrivals { poller, peers, accepted, dialled, any });
        let (tcp, sm) = match network.scheme {
            // Memory of a class that does not listen may be reached too. Only a class that listens
            // can choose its address. Both are as in Mercury.
            Scheme::Sm => {
                let place = Some(network.place).filter(|at| listen && sm::check_place(at).is_ok());
                (None, Some(sm::Sm::open(true, place, None, arrivals.clone())?))
            }
            _ => {
                let file = secret::site_secret(&config.rpc_secret_file)?;
                let key = options.auth_key.or(file.as_deref()).map(Key::of_secret);
                let tls = tls::Tls::chosen(options.tls_dir, &config.rpc_tls_dir)?;
                let bound = tcp::bind(network.place, &config.rpc_listen, listen)?;
                let place = &*bound.1;
                let open = || sm::Sm::open(listen, None, Some(place), arrivals.clone());
                let sm = options.auto_sm.then(open).transpose()?;
                let memory = sm.as_ref().map(|sm| sm.place().to_string());
                (Some(tcp::Tcp::open(bound, key, tls, memory, arrivals.clone())?), sm)
            }
        };
        // As in Mercury, addresses over TCP have the network's name as the program wrote it.
        let name = if network.scheme == Scheme::Sm { "na+sm" } else { network.name }.into();
        Ok(Links {
            networks: Arc::new(Networks { name, tcp, sm, arrivals }),
            dialling: Dialling::default(),
            polling: Mutex::new(Polling { buffer: vec![0; BUFFER], polls: 0 }),
            ready: Mutex::default(),
            any_ready: AtomicBool::new(false),
            must_collect: AtomicBool::new(false),
            owner: Owner::this_process(),
            awaited: AwaitedAnswers::default(),
            held: DeferredOutput::default(),
        })
    }

    fn peers(&self) -> &Peers {
        &self.networks.arrivals.peers
    }

    /// Returns the part of the own address after the name of the network.
    fn place(&self) -> &str {
        match (&self.networks.tcp, &self.networks.sm) {
            (Some(tcp), _) => tcp.place(),
            (None, sm) => sm.as_ref().map_or("", |sm| sm.place()),
        }
    }

    fn add(&self, class: &Shared, opened: Opened, accepted: bool) {
        let Opened { who, stream, mut name, life } = opened;
        let n = match who {
            Who::Known(n) => n,
            Who::Proven => self.peers().proven(&name),
            Who::Claims(from) => {
                let n = self.peers().claimed(&name, &from);
                if self.peers().name_of(n).is_none_or(|given| *given != *name) {
                    name = from;
                }
                n
            }
        };
        if self.peers().are_outlived(n, life, accepted) {
            self.lose(class, n);
        }
        class.begin_flow(n);
        let link = Arc::new(Link::new(n, stream, name, accepted));
        self.peers().add(&link, life);
        if let Err(error) = self.networks.arrivals.poller.watch(link.stream.descriptor(), n) {
            link.break_off(format!("it cannot be watched: {error}"));
        }
        // Bytes may have arrived before the connection was watched.
        self.make_ready(n);
    }

    fn make_ready(&self, n: u32) {
        self.ready.lock().push(n);
        self.any_ready.store(true, Ordering::Release);
    }

    /// Lets the thread that polls visit a peer.
    fn call_poller(&self, n: u32) {
        self.make_ready(n);
        self.networks.arrivals.poller.wake();
    }

    /// Sends a frame over a connection.
    fn post(
        &self,
        link: &Arc<Link>,
        head: &Head,
        bytes: &[u8],
        memory: Option<(InUse, Vec<Run>)>,
    ) -> Result<()> {
        let hold = memory.is_none() && self.held.is_holding() && link.stream.is_costly();
        match link.post(head, bytes, memory, hold) {
            Ok(()) => {
                if hold {
                    self.held.add(link);
                }
                Ok(())
            }
            Err(why) => {
                // The thread that polls removes the connection.
                self.call_poller(link.number());
                refuse!(HOSTUNREACH, "{why}")
            }
        }
    }

    // -------------------------------------------------------------- progress

    /// Handles what the connections of a peer have, and removes the peer if they have ended.
    /// Returns whether anything happened.
    ///
    /// If one of two connections has ended, this side ends the other one too, but still reads what
    /// the peer has sent there, such as the last answers of a process that closes its class.
    fn visit(&self, class: &Shared, n: u32, buffer: &mut [u8]) -> bool {
        let (mut any, links) = (false, self.peers().connections(n));
        for link in links.iter().filter(|link| link.is_open()) {
            match self.step(class, link, buffer) {
                Ok(link::Step { busy, again }) => {
                    if again {
                        self.make_ready(n);
                    }
                    any |= busy;
                }
                Err(why) => {
                    link.break_off(why);
                    any = true;
                }
            }
        }
        match links.iter().filter(|link| link.is_open()).count() {
            0 if !links.is_empty() => {
                self.lose(class, n);
                true
            }
            open if open < links.len() => {
                links.iter().for_each(|link| link.stream.end_output());
                any
            }
            _ => any,
        }
    }

    fn visit_ready(&self, class: &Shared, buffer: &mut [u8]) -> bool {
        if !self.any_ready.load(Ordering::Relaxed) || !self.any_ready.swap(false, Ordering::AcqRel)
        {
            return false;
        }
        let mut ready = std::mem::take(&mut *self.ready.lock());
        ready.sort_unstable();
        ready.dedup();
        ready.into_iter().fold(false, |busy, n| self.visit(class, n, buffer) | busy)
    }

    /// Collects the events of the poller within `time`; results as in [`Poller::wait`].
    fn collect(&self, time: Duration) -> Option<bool> {
        self.networks.arrivals.poller.wait(time, |n| {
            self.peers().connections(n).iter().for_each(|link| link.stream.signalled());
            self.make_ready(n);
        })
    }
}

impl Plugin for Links {
    fn capabilities(&self) -> Capabilities {
        Capabilities { wakes: true, holds: self.networks.tcp.is_some() }
    }

    fn own_name(&self) -> Option<String> {
        Some(format!("{}://{}", self.networks.name, self.place()))
    }

    fn name_of(&self, n: u32) -> String {
        let name = self.peers().name_of(n);
        format!("{}://{}", self.networks.name, name.as_deref().unwrap_or("gone"))
    }

    fn connect(&self, place: &str) -> Result<Peer> {
        if self.place() == place {
            return Ok(Peer::Own);
        }
        match &self.networks.tcp {
            Some(_) => tcp::check_place(place)?,
            None => sm::check_place(place)?,
        }
        Ok(Peer::Remote(self.peers().look_up(place)))
    }

    fn is_of_this_process(&self, n: u32) -> Option<bool> {
        self.peers().is_of_this_process(n)
    }

    fn process_of(&self, n: u32) -> Option<u32> {
        self.peers().open(n)?.stream.process()
    }

    fn send(&self, class: &Shared, n: u32, head: &Head, body: Data<'_>) -> Result<()> {
        let body = match &body {
            Data::Bytes(bytes) => bytes,
            Data::Owned(bytes) => &bytes[..],
            Data::At(..) => refuse!(INVALID_ARG, "a message cannot be passed by address"),
        };
        self.check_ours(class)?;
        let link = match head.kind {
            Kind::Unexpected | Kind::Expected => {
                let kept = || Kept::Message { head: *head, body: body.to_vec() };
                let Some(link) = self.reach(class, n, kept)? else { return Ok(()) };
                link
            }
            _ => self.open_link(n)?,
        };
        self.post(&link, head, body, None)?;
        if link.take_behind_change() {
            class.fell_behind(Peer::Remote(n));
        }
        Ok(())
    }

    fn transfer(
        &self,
        class: &Shared,
        n: u32,
        chunk: Chunk,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        self.check_ours(class)?;
        let mut chunk = Some(chunk);
        let kept = || {
            let chunk = chunk.take().expect("a transfer is kept once");
            Kept::request(class.number, chunk, counter)
        };
        let Some(link) = self.reach(class, n, kept)? else { return Ok(()) };
        match chunk {
            Some(chunk) => self.request(class.number, &link, chunk, counter),
            None => Ok(()),
        }
    }

    fn hold(&self, hold: bool) {
        self.held.hold(hold);
    }

    fn transmit(&self) {
        if self.owner.is_here() {
            self.held.transmit(|n| self.call_poller(n));
        }
    }

    fn poll(&self, class: &Shared) -> Result<bool> {
        if !self.is_ours(class)? {
            return Ok(false);
        }
        self.transmit();
        let Some(mut polling) = self.polling.try_lock() else { return Ok(false) };
        let Polling { buffer, polls } = &mut *polling;
        let mut busy = false;
        // Most polls find nothing, and a load is cheaper than a swap.
        if self.networks.arrivals.any.load(Ordering::Relaxed)
            && self.networks.arrivals.any.swap(false, Ordering::AcqRel)
        {
            let accepted = std::mem::take(&mut *self.networks.arrivals.accepted.lock());
            busy |= !accepted.is_empty();
            accepted.into_iter().for_each(|opened| self.add(class, opened, true));
            let dialled = std::mem::take(&mut *self.networks.arrivals.dialled.lock());
            for n in dialled {
                let dial = self.dialling.lock().get(n);
                if let Some(result) = dial.and_then(|dial| dial.take_result()) {
                    busy = true;
                    let _ = self.end_dial(class, n, result); // the callbacks have the error
                }
            }
        }
        *polls = polls.wrapping_add(1);
        let must = self.must_collect.load(Ordering::Relaxed);
        let every = match self.networks.sm {
            Some(_) => CHECK_POLLER[usize::from(self.networks.tcp.is_some())],
            None => 1,
        };
        if must || polls.is_multiple_of(every) {
            self.must_collect.store(false, Ordering::Relaxed);
            shm_export::drop_unused();
            // A peer that has woken the poller wakes it no more until the next sleep is prepared,
            // so a thread that was about to sleep must not.
            busy |= self.collect(Duration::ZERO) == Some(true);
        }
        if let Some(sm) = &self.networks.sm {
            let mut visit = |index| self.visit(class, self.peers().at(index), buffer);
            sm.rung(|| self.peers().count(), |index| busy |= visit(index));
        }
        Ok(self.visit_ready(class, buffer) | busy)
    }

    fn prepare_sleep(&self) {
        self.must_collect.store(true, Ordering::Relaxed);
        if let Some(sm) = self.networks.sm.as_ref().filter(|_| self.owner.is_here()) {
            sm.set_asleep(true);
        }
    }

    fn sleep(&self, nap: Duration) -> bool {
        if !self.owner.is_here() {
            self.owner.ends_within(nap);
            return true;
        }
        let slept = self.any_ready.load(Ordering::Acquire) || self.collect(nap).is_some();
        if slept && let Some(sm) = &self.networks.sm {
            sm.set_asleep(false);
        }
        slept
    }

    fn is_behind(&self, n: u32) -> bool {
        self.peers().connections(n).iter().any(|link| link.is_behind())
    }

    fn wake(&self) {
        self.networks.arrivals.poller.wake();
    }

    fn give_up(&self, n: u32, why: &str) {
        self.break_off(n, why);
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.networks.arrivals.poller.descriptor())
    }

    fn is_copy(&self) -> bool {
        !self.owner.is_here()
    }

    fn close(&self, class: &Shared) {
        if self.is_copy() { self.leave_to_parent() } else { self.end(class) }
    }

    fn refused(&self) -> u64 {
        let tcp = self.networks.tcp.as_ref().map_or(0, |tcp| tcp.listening().refused());
        tcp + self.networks.sm.as_ref().map_or(0, |sm| sm.listening().refused())
    }

    #[cfg(test)]
    fn describe(&self) -> String {
        let open = self.peers().all();
        open.iter().map(|link| format!("{:?}\n", link.stream)).collect()
    }
}

#[cfg(test)]
mod tests;
