//! How two processes meet over TCP.
//!
//! | | from | contents |
//! |---|---|---|
//! | 1 | client | magic (8), flags (1), life (8), nonce (32), length (2) and text of its address |
//! | 2 | server | magic (8), flags (1), life (8), nonce (32) |
//! | 3 | client | its proof (32), or zeros without a key |
//! | 4 | server | verdict (1), its proof (32) or zeros, length (1) and name of its shared memory |
//! | 5 | client | the connection that it uses: 1 this socket, 2 shared memory |
//! | 6 | server | 1, if the client uses this socket |
//!
//! The flags are 1 for a key and 2 for the wish to use shared memory on one host (`auto_sm`). The
//! life distinguishes a process from its successors ([`super::peers`]). The port of the client's
//! address is 0 if it does not listen. Unless both sides have flag 2, the name of the shared memory
//! is empty and the steps 5 and 6 are omitted.
//!
//! With a key, a side refuses a peer without one. A proof ([`crate::na::secret`]) covers the steps
//! 1 and 2, and the server's also covers the name, so a proof cannot be replayed.
//!
//! With TLS, everything is encrypted, and a proof also covers bytes of this TLS connection. If only
//! one side uses TLS, the server answers the client's first bytes with a plain step 2 with flag 8,
//! and closes the socket ([`decline`]), so that both sides know the reason.
//!
//! Processes with the same key trust each other's addresses. Without a key, the server connects to
//! the client's address between the steps 3 and 4, and asks the process there whether it has sent
//! this nonce to this server. The question is a step 1 with flag 4 and the server's own IP address
//! and port; the answer is one byte. A stranger cannot claim the address of another process, not
//! even by forwarding the greeting of a client of its own, because that client has connected to
//! another IP address or port.
//!
//! All lengths are fixed or bounded. The caller limits the time of every wait.

use super::door::Refusal;
use crate::na::secret::{Key, NONCE, Nonce, PROOF, Part, Proof, Transcript, random};
use crate::na::wire::number;
use parking_lot::Mutex;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};

const MAGIC: &[u8; 8] = b"ptlntcp\x05";
const FRONT: usize = 8 + 1 + 8 + NONCE;
const HAS_KEY: u8 = 1;
const SHARES: u8 = 2;
const ASKS: u8 = 4;
const TLS: u8 = 8;
const WELCOME: u8 = 1;
const REFUSED: u8 = 2;
const STAYS: u8 = 1;
const MOVES: u8 = 2;
const NO: u8 = 0;
const YES: u8 = 1;
const PLACE: usize = 512;

#[derive(Debug, Default)]
pub struct Own {
    pub place: String,
    pub key: Option<Key>,
    /// The name of its shared memory if peers on this host may use it.
    pub memory: Option<String>,
    pub dials: Dials,
}

/// The greetings of a process as a client: their nonces, and the servers' addresses.
#[derive(Debug, Default)]
pub struct Dials(Mutex<Vec<(Nonce, SocketAddr)>>);

#[derive(Debug)]
pub struct Dial<'a> {
    dials: &'a Dials,
    nonce: Nonce,
}

fn canonical(at: SocketAddr) -> (IpAddr, u16) {
    (at.ip().to_canonical(), at.port())
}

impl Dials {
    pub fn begin(&self, there: SocketAddr) -> Result<Dial<'_>, Refusal> {
        let nonce = nonce()?;
        self.0.lock().push((nonce, there));
        Ok(Dial { dials: self, nonce })
    }

    fn include(&self, nonce: &Nonce, there: SocketAddr) -> bool {
        let dials = self.0.lock();
        dials.iter().any(|(own, at)| own == nonce && canonical(*at) == canonical(there))
    }
}

impl Drop for Dial<'_> {
    fn drop(&mut self) {
        self.dials.0.lock().retain(|(nonce, _)| *nonce != self.nonce);
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Server {
    pub life: u64,
    pub memory: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Client {
    pub place: String,
    pub proven: bool,
    pub life: u64,
    pub moves: bool,
}

fn take<const N: usize>(socket: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    socket.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn text(socket: &mut impl Read, len: usize) -> Result<String, Refusal> {
    let mut bytes = vec![0; len];
    socket.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| Refusal::Rubbish)
}

impl Own {
    fn flags(&self) -> u8 {
        HAS_KEY * u8::from(self.key.is_some()) + SHARES * u8::from(self.memory.is_some())
    }

    fn prove(&self, part: Part, said: &Transcript<'_>, more: &[u8]) -> Proof {
        self.key.as_ref().map_or([0; PROOF], |key| key.prove(part, said, more))
    }

    fn verify(&self, part: Part, said: &Transcript<'_>, more: &[u8], proof: &Proof) -> bool {
        self.key.as_ref().is_none_or(|key| key.verify(part, said, more, proof))
    }
}

struct Front {
    flags: u8,
    life: u64,
    nonce: Nonce,
}

impl Front {
    fn bytes(&self) -> [u8; FRONT] {
        let mut bytes = [0; FRONT];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8] = self.flags;
        bytes[9..17].copy_from_slice(&self.life.to_le_bytes());
        bytes[17..].copy_from_slice(&self.nonce);
        bytes
    }

    fn parse(bytes: &[u8; FRONT]) -> Result<Front, Refusal> {
        match (&bytes[..8] == MAGIC, bytes[8], bytes[17..].try_into()) {
            (true, flags @ (0..=ASKS | TLS), Ok(nonce)) => {
                Ok(Front { flags, life: number(&bytes[9..17]), nonce })
            }
            _ => Err(Refusal::Rubbish),
        }
    }
}

fn with_text(front: &[u8; FRONT], text: &str) -> Vec<u8> {
    let text = &text.as_bytes()[..text.len().min(PLACE)];
    [front, &(text.len() as u16).to_le_bytes()[..], text].concat()
}

fn nonce() -> Result<Nonce, Refusal> {
    random().map_err(|failure| Refusal::Failed(io::Error::other(failure.text().to_string())))
}

/// Returns whether a peer that begins with this byte sends this greeting, without TLS.
pub(super) fn is_first(byte: u8) -> bool {
    byte == MAGIC[0]
}

/// Reports to a client that only one side uses TLS.
pub(super) fn decline(socket: &mut impl Write) -> io::Result<()> {
    socket.write_all(&Front { flags: TLS, life: 0, nonce: [0; NONCE] }.bytes())
}

/// Greets a server, and sends it `life`. The bytes `channel` belong to this TLS connection. If both
/// sides may use shared memory, the client must then call [`choose`]. Fails if the server refuses
/// this process, does not prove that it knows the key, or does not follow the protocol.
pub fn as_client(
    socket: &mut (impl Read + Write),
    own: &Own,
    dial: &Dial<'_>,
    life: u64,
    channel: &[u8],
) -> Result<Server, Refusal> {
    let client = Front { flags: own.flags(), life, nonce: dial.nonce }.bytes();
    socket.write_all(&with_text(&client, &own.place))?;
    let server = take(socket)?;
    let Front { flags, life, .. } = Front::parse(&server)?;
    if flags == TLS {
        return Err(Refusal::TlsOnly);
    }
    let has_key = flags & HAS_KEY != 0;
    if has_key != own.key.is_some() {
        return Err(if has_key { Refusal::Refused } else { Refusal::Unproven });
    }
    let said = Transcript { client: &client, server: &server, place: &own.place, channel };
    socket.write_all(&own.prove(Part::Client, &said, &[]))?;
    let [verdict] = take(socket)?;
    match verdict {
        WELCOME => {}
        REFUSED => return Err(Refusal::Refused),
        _ => return Err(Refusal::Rubbish),
    }
    let proof: Proof = take(socket)?;
    let [len] = take(socket)?;
    let memory = text(socket, len.into())?;
    if !own.verify(Part::Server, &said, memory.as_bytes(), &proof) {
        return Err(Refusal::Unproven);
    }
    if !memory.is_empty() && own.memory.is_none() {
        return Err(Refusal::Rubbish);
    }
    Ok(Server { life, memory: Some(memory).filter(|memory| !memory.is_empty()) })
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
    let question = Front { flags: ASKS, life: 0, nonce: *nonce }.bytes();
    socket.write_all(&with_text(&question, &here.to_string()))?;
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
    channel: &[u8],
) -> Result<Option<Client>, Refusal> {
    let client = take(socket)?;
    let Front { flags, life, nonce: sent } = Front::parse(&client)?;
    let len = usize::from(u16::from_le_bytes(take(socket)?));
    if len > PLACE {
        return Err(Refusal::Rubbish);
    }
    let place = text(socket, len)?;
    if flags == TLS {
        return Err(Refusal::Rubbish);
    }
    if flags == ASKS {
        let here = place.parse().map_err(|_| Refusal::Rubbish)?;
        let known = own.key.is_none() && own.dials.include(&sent, here);
        socket.write_all(&[if known { YES } else { NO }])?;
        return Ok(None);
    }
    let server = Front { flags: own.flags(), life: life_for(&place), nonce: nonce()? }.bytes();
    socket.write_all(&server)?;
    if (flags & HAS_KEY != 0) != own.key.is_some() {
        return Err(Refusal::Unproven);
    }
    let said = Transcript { client: &client, server: &server, place: &place, channel };
    let proof: Proof = take(socket)?;
    if !own.verify(Part::Client, &said, &[], &proof) {
        socket.write_all(&[REFUSED])?;
        return Err(Refusal::Unproven);
    }
    let proven = own.key.is_some() || confirms(&place, &sent);
    let memory = own.memory.as_deref().filter(|_| flags & SHARES != 0).unwrap_or_default();
    let mut verdict = vec![WELCOME];
    verdict.extend(own.prove(Part::Server, &said, memory.as_bytes()));
    verdict.push(memory.len() as u8);
    verdict.extend(memory.as_bytes());
    if memory.is_empty() {
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
        let own = Own { memory: Some("memory".into()), ..Own::default() };
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let guest = far.try_clone().unwrap();
        let drop_guest = || {
            if drops {
                guest.shutdown(std::net::Shutdown::Both).unwrap();
            }
        };
        std::thread::scope(|scope| {
            let server = || as_server(&mut far, &own, |_| 1, |_, _| true, drop_guest, &[]);
            let server = scope.spawn(server);
            let dial = own.dials.begin(([127, 0, 0, 1], 1).into()).unwrap();
            as_client(&mut near, &own, &dial, 1, &[]).unwrap();
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
