//! How two processes meet over TCP.
//!
//! | | from | message | contents |
//! |---|---|---|---|
//! | 1 | client | [`ClientHello`] | magic (8), flags (1), life (8), nonce (32), length (2), address |
//! | 2 | server | [`ServerHello`] | magic (8), flags (1), life (8), nonce (32) |
//! | 3 | client | [`Proof`] | its proof (32), or zeros without a key |
//! | 4 | server | [`Verdict`] | verdict (1), proof (32) or zeros, length (1), shared memory |
//! | 5 | client | [`choose`] | the connection that it uses: 1 this socket, 2 shared memory |
//! | 6 | server | | 1, if the client uses this socket |
//!
//! The flags are 1 for a key and 2 for the wish to use shared memory on one host (`auto_sm`). The
//! life distinguishes a process from its successors ([`super::peers`]). The client's address is
//! `HOST:PORT`, and its port is 0 if it does not listen. Unless both sides have flag 2, the name of
//! the shared memory is empty and the steps 5 and 6 are omitted.
//!
//! The modules [`client`] and [`server`] are the two sides as state machines without input and
//! output, and this file moves the bytes. `model` lets an attacker forward, replay, reflect, cut
//! and mix the messages of these state machines, and checks what each side may conclude:
//!
//! 1. With a key, a server admits a client only if a process with the key has made this greeting to
//!    this server's address, and has heard this server's hello.
//! 2. With a key, a client believes a server only if the server at the address that the client has
//!    dialled knows the key, and has admitted this client.
//! 3. Without a key, a client's address counts as proven only if the process there is greeting this
//!    server with this nonce.
//!
//! A proof covers the steps 1 and 2, the name of the shared memory, and the connection
//! ([`Binding`]): without TLS the address of the server as each side sees it, with TLS bytes of
//! this TLS connection. A process that forwards the messages of a client is not at the server's
//! address, so the proofs that it forwards are not valid. The same holds for address translation,
//! proxies and tunnels in front of the server: they need TLS if there is a key.
//!
//! If only one side uses TLS, the server answers the client's first bytes with a plain step 2 with
//! flag 8, and closes the socket ([`decline`]), so that both sides know the reason.
//!
//! Processes with the same key trust each other's addresses. Without a key, the server connects to
//! the client's address between the steps 3 and 4, and asks the process there whether it has sent
//! this nonce to this server. The [`Question`] is a step 1 with flag 4 and the server's own IP
//! address and port; the answer is one byte.
//!
//! All lengths are fixed or bounded. The caller limits the time of every wait.

pub mod client;
mod hello;
#[cfg(test)]
mod model;
mod own;
pub mod server;
pub mod transcript;

pub use client::Server;
pub use hello::{ClientHello, Question, ServerHello};
pub use own::{Dial, Dials, Own};
pub use server::Verdict;
pub use transcript::Binding;

use super::listener::Refusal;
use crate::na::secret::{Nonce, Proof};
use hello::{First, take};
use own::nonce;
use std::io::{self, Read, Write};
use std::net::SocketAddr;

const WELCOME: u8 = 1;
const STAYS: u8 = 1;
const MOVES: u8 = 2;
const NO: u8 = 0;
const YES: u8 = 1;

#[derive(Debug, PartialEq, Eq)]
pub struct Client {
    pub place: String,
    pub proven: bool,
    pub life: u64,
    pub moves: bool,
}

/// Returns whether a peer that begins with this byte sends this greeting, without TLS.
pub(super) fn is_first(byte: u8) -> bool {
    byte == hello::MAGIC[0]
}

/// Reports to a client that only one side uses TLS.
pub(super) fn decline(socket: &mut impl Write) -> io::Result<()> {
    socket.write_all(&ServerHello::declined())
}

/// Greets a server, and sends it `life`. If both sides may use shared memory, the client must then
/// call [`choose`]. Fails if the server refuses this process, does not prove that it knows the key,
/// or does not follow the protocol.
pub fn as_client(
    socket: &mut (impl Read + Write),
    own: &Own,
    dial: &Dial<'_>,
    life: u64,
    binding: &Binding,
) -> Result<Server, Refusal> {
    let (hello, state) = client::begin(own, dial.nonce, life, binding);
    socket.write_all(&hello.bytes())?;
    let (proof, state) = state.hear(ServerHello::read(socket)?)?;
    socket.write_all(&proof)?;
    state.hear(Verdict::read(socket)?)
}

/// Tells a server whether this process has connected through its shared memory. Fails if the server
/// has dropped a client that has not.
pub fn choose(socket: &mut (impl Read + Write), moves: bool) -> Result<(), Refusal> {
    socket.write_all(&[if moves { MOVES } else { STAYS }])?;
    match moves || take(socket)? == [WELCOME] {
        true => Ok(()),
        false => Err(Refusal::Rubbish),
    }
}

/// Asks a process whether it has sent this nonce, as a client, to the server at `here`.
pub fn ask(
    socket: &mut (impl Read + Write),
    nonce: &Nonce,
    here: SocketAddr,
) -> Result<bool, Refusal> {
    socket.write_all(&Question { nonce: *nonce, here }.bytes())?;
    Ok(take(socket)? == [YES])
}

/// Greets a client, or answers a question about a greeting of this process and returns `None`.
/// `life_for` returns the life to send to a client with an address, and `confirms` checks a nonce
/// at an address. `keep` is called before the client learns that this socket is its connection.
/// Fails if the client does not prove the key, or violates the protocol.
pub fn as_server(
    socket: &mut (impl Read + Write),
    own: &Own,
    life_for: impl FnOnce(&str) -> u64,
    confirms: impl FnOnce(&str, &Nonce) -> bool,
    keep: impl FnOnce(),
    binding: &Binding,
) -> Result<Option<Client>, Refusal> {
    let client = match First::read(socket)? {
        First::Hello(client) => client,
        First::Question(Question { nonce, here }) => {
            let known = own.key.is_none() && own.dials.include(&nonce, here);
            socket.write_all(&[if known { YES } else { NO }])?;
            return Ok(None);
        }
    };
    let life = life_for(&client.place);
    let (hello, state) = server::answer(own, client, nonce()?, life, binding);
    socket.write_all(&hello.bytes())?;
    let state = state?;
    let proof: Proof = take(socket)?;
    let admitted = match state.hear(&proof) {
        Ok(admitted) => admitted,
        Err(refusal) => {
            socket.write_all(&Verdict::Refused.bytes())?;
            return Err(refusal);
        }
    };
    let ClientHello { place, nonce, life, .. } = admitted.hello;
    let proven = admitted.has_proven || confirms(&place, &nonce);
    let verdict = admitted.verdict.bytes();
    if !admitted.has_memory {
        keep();
        socket.write_all(&verdict)?;
        return Ok(Some(Client { place, proven, life, moves: false }));
    }
    socket.write_all(&verdict)?;
    let moves = match take(socket)? {
        [STAYS] => false,
        [MOVES] => true,
        _ => return Err(Refusal::Rubbish),
    };
    if !moves {
        keep();
        socket.write_all(&[WELCOME])?;
    }
    Ok(Some(Client { place, proven, life, moves }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Greets a client that could use shared memory, and stays. If `drops`, the server drops it
    /// until it keeps it. Returns how the greeting ends for the client.
    fn stay(drops: bool) -> Result<(), Refusal> {
        let own = Own { place: "x:0".into(), memory: Some("memory".into()), ..Own::default() };
        let binding = Binding::of_tls(b"this connection");
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let guest = far.try_clone().unwrap();
        let drop_guest = || {
            if drops {
                guest.shutdown(std::net::Shutdown::Both).unwrap();
            }
        };
        std::thread::scope(|scope| {
            let server = || as_server(&mut far, &own, |_| 1, |_, _| true, drop_guest, &binding);
            let server = scope.spawn(server);
            let dial = own.dials.begin(([127, 0, 0, 1], 1).into()).unwrap();
            as_client(&mut near, &own, &dial, 1, &binding).unwrap();
            let chosen = choose(&mut near, false);
            assert_eq!(server.join().unwrap().is_ok(), chosen.is_ok());
            chosen
        })
    }

    #[test]
    fn a_client_that_stays_learns_that_it_is_kept() {
        stay(false).unwrap();
        assert!(matches!(stay(true), Err(Refusal::Left)));
    }
}
