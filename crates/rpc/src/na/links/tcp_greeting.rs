//! How two processes meet over TCP.
//!
//! | | from | contents |
//! |---|---|---|
//! | 1 | client | magic (8), flags (1), nonce (32), length (2) and text of its address |
//! | 2 | server | magic (8), flags (1), nonce (32) |
//! | 3 | client | its proof (32), or zeros without a key |
//! | 4 | server | verdict (1), its proof (32) or zeros, length (1) and name of its shared memory |
//! | 5 | client | the connection that it uses: 1 this socket, 2 shared memory |
//!
//! The flags are 1 for a key and 2 for the wish to use shared memory on one host (`auto_sm`). The
//! client's address is empty if it does not listen. The name of the shared memory is empty unless
//! both sides have the second flag, and step 5 is omitted if the name is empty.
//!
//! With a key, each side proves that it knows the key ([`crate::na::secret`]). A proof covers both
//! nonces and the client's address, and the server's also covers the name, so a proof cannot be
//! replayed. A side with a key refuses a peer without one.
//!
//! All lengths are fixed or bounded. The caller limits the time of every wait.

use super::door::Refusal;
use crate::na::secret::{Key, NONCE, Nonce, PROOF, Part, Proof, Transcript, random};
use std::io::{self, Read, Write};

const MAGIC: &[u8; 8] = b"ptlntcp\x02";
const FRONT: usize = 8 + 1 + NONCE;
const HAS_KEY: u8 = 1;
const SHARES: u8 = 2;
const WELCOME: u8 = 1;
const REFUSED: u8 = 2;
const STAYS: u8 = 1;
const MOVES: u8 = 2;
/// Maximum length of an address in bytes.
const PLACE: usize = 512;

/// The identity of this process.
#[derive(Debug, Default)]
pub struct Own {
    /// The address that it listens at, or nothing.
    pub place: String,
    /// The key that peers must know.
    pub key: Option<Key>,
    /// The name of its shared memory if peers on this host may use it.
    pub memory: Option<String>,
}

/// A client that was greeted.
#[derive(Debug, PartialEq, Eq)]
pub struct Client {
    /// The address that it listens at, or nothing.
    pub place: String,
    /// Whether it has connected through shared memory and closes the socket.
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

    fn front(&self, nonce: &Nonce) -> [u8; FRONT] {
        let mut bytes = [0; FRONT];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8] = self.flags();
        bytes[9..].copy_from_slice(nonce);
        bytes
    }

    fn prove(&self, part: Part, said: &Transcript<'_>, more: &[u8]) -> Proof {
        self.key.as_ref().map_or([0; PROOF], |key| key.prove(part, said, more))
    }

    fn verify(&self, part: Part, said: &Transcript<'_>, more: &[u8], proof: &Proof) -> bool {
        self.key.as_ref().is_none_or(|key| key.verify(part, said, more, proof))
    }
}

fn parse(bytes: &[u8; FRONT]) -> Result<(u8, Nonce), Refusal> {
    match (&bytes[..8] == MAGIC, bytes[8], bytes[9..].try_into()) {
        (true, flags @ 0..4, Ok(nonce)) => Ok((flags, nonce)),
        _ => Err(Refusal::Rubbish),
    }
}

fn nonce() -> Result<Nonce, Refusal> {
    random().map_err(|failure| Refusal::Failed(io::Error::other(failure.text().to_string())))
}

/// Greets a server. Returns the name of its shared memory if both sides may use it; the client must
/// then call [`choose`].
///
/// # Errors
/// Fails if the server refuses this process, does not prove that it knows the key, or does not
/// follow the protocol.
pub fn as_client(socket: &mut (impl Read + Write), own: &Own) -> Result<Option<String>, Refusal> {
    let client = nonce()?;
    let mut hello = own.front(&client).to_vec();
    let place = &own.place[..own.place.len().min(PLACE)];
    hello.extend((place.len() as u16).to_le_bytes());
    hello.extend(place.as_bytes());
    socket.write_all(&hello)?;
    let (flags, server) = parse(&take(socket)?)?;
    let has_key = flags & HAS_KEY != 0;
    if has_key != own.key.is_some() {
        return Err(if has_key { Refusal::Refused } else { Refusal::Unproven });
    }
    let said = Transcript { client: &client, server: &server, place };
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
    Ok(Some(memory).filter(|memory| !memory.is_empty()))
}

/// Tells a server whether this process has connected through its shared memory.
///
/// # Errors
/// Fails if the server has closed the socket.
pub fn choose(socket: &mut impl Write, moves: bool) -> Result<(), Refusal> {
    Ok(socket.write_all(&[if moves { MOVES } else { STAYS }])?)
}

/// Greets a client.
///
/// # Errors
/// Fails if the client does not prove that it knows the key, or does not follow the protocol.
pub fn as_server(socket: &mut (impl Read + Write), own: &Own) -> Result<Client, Refusal> {
    let server = nonce()?;
    let (flags, client) = parse(&take(socket)?)?;
    let len = usize::from(u16::from_le_bytes(take(socket)?));
    if len > PLACE {
        return Err(Refusal::Rubbish);
    }
    let place = text(socket, len)?;
    socket.write_all(&own.front(&server))?;
    if (flags & HAS_KEY != 0) != own.key.is_some() {
        return Err(Refusal::Unproven);
    }
    let said = Transcript { client: &client, server: &server, place: &place };
    let proof: Proof = take(socket)?;
    if !own.verify(Part::Client, &said, &[], &proof) {
        socket.write_all(&[REFUSED])?;
        return Err(Refusal::Unproven);
    }
    let memory = own.memory.as_deref().filter(|_| flags & SHARES != 0).unwrap_or_default();
    let mut verdict = vec![WELCOME];
    verdict.extend(own.prove(Part::Server, &said, memory.as_bytes()));
    verdict.push(memory.len() as u8);
    verdict.extend(memory.as_bytes());
    socket.write_all(&verdict)?;
    let moves = !memory.is_empty() && {
        match take(socket)? {
            [STAYS] => false,
            [MOVES] => true,
            _ => return Err(Refusal::Rubbish),
        }
    };
    Ok(Client { place, moves })
}
