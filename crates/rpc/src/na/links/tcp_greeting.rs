//! How two processes meet over TCP.
//!
//! | | from | contents |
//! |---|---|---|
//! | 1 | client | magic (8), whether it has a key (1), nonce (32), length (2) and text of its address |
//! | 2 | server | magic (8), whether it has a key (1), nonce (32) |
//! | 3 | client | its proof (32), or zeros without a key |
//! | 4 | server | verdict (1), its proof (32), or zeros without a key |
//!
//! The client's address is empty if it does not listen. With a key, each side proves that it knows
//! the key ([`crate::na::secret`]); a proof covers both nonces and the client's address, so it
//! cannot be replayed. A side with a key refuses a peer without one.
//!
//! All lengths are fixed or bounded, and every wait has a time limit.

use super::door::Refusal;
use crate::na::secret::{Key, NONCE, Nonce, PROOF, Part, Proof, Transcript, random};
use crate::na::timed::Timed;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MAGIC: &[u8; 8] = b"ptlntcp\x01";
const FRONT: usize = 8 + 1 + NONCE;
const WELCOME: u8 = 1;
const REFUSED: u8 = 2;
/// Maximum length of an address in bytes.
const PLACE: usize = 512;
/// Time limit of a greeting.
const PATIENCE: Duration = Duration::from_secs(5);

/// The identity of this process.
#[derive(Debug)]
pub(super) struct Own {
    /// The address that it listens at, or nothing.
    pub place: String,
    /// The key that peers must know.
    pub key: Option<Key>,
}

fn take<const N: usize>(socket: &mut Timed<'_>) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    socket.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn front(key: Option<&Key>, nonce: &Nonce) -> [u8; FRONT] {
    let mut bytes = [0; FRONT];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8] = u8::from(key.is_some());
    bytes[9..].copy_from_slice(nonce);
    bytes
}

fn parse(bytes: &[u8; FRONT]) -> Result<(bool, Nonce), Refusal> {
    match (&bytes[..8] == MAGIC, bytes[8], bytes[9..].try_into()) {
        (true, has_key @ (0 | 1), Ok(nonce)) => Ok((has_key == 1, nonce)),
        _ => Err(Refusal::Rubbish),
    }
}

fn prove(key: Option<&Key>, part: Part, said: &Transcript<'_>) -> Proof {
    key.map_or([0; PROOF], |key| key.prove(part, said, &[]))
}

fn nonce() -> Result<Nonce, Refusal> {
    random().map_err(|failure| Refusal::Failed(io::Error::other(failure.text().to_string())))
}

/// Greets a server.
pub(super) fn as_client(socket: &TcpStream, own: &Own) -> Result<(), Refusal> {
    let mut socket = Timed::new(socket, Instant::now() + PATIENCE);
    let (key, client) = (own.key.as_ref(), nonce()?);
    let mut hello = front(key, &client).to_vec();
    let place = &own.place[..own.place.len().min(PLACE)];
    hello.extend((place.len() as u16).to_le_bytes());
    hello.extend(place.as_bytes());
    socket.write_all(&hello)?;
    let (server_has_key, server) = parse(&take(&mut socket)?)?;
    if server_has_key != key.is_some() {
        return Err(if server_has_key { Refusal::Refused } else { Refusal::Unproven });
    }
    let said = Transcript { client: &client, server: &server, place };
    socket.write_all(&prove(key, Part::Client, &said))?;
    let [verdict] = take(&mut socket)?;
    match verdict {
        WELCOME => {}
        REFUSED => return Err(Refusal::Refused),
        _ => return Err(Refusal::Rubbish),
    }
    let proof: Proof = take(&mut socket)?;
    let proven = key.is_none_or(|key| key.verify(Part::Server, &said, &[], &proof));
    if proven { Ok(()) } else { Err(Refusal::Unproven) }
}

/// Greets a client. Returns the address that it listens at, or nothing.
pub(super) fn as_server(socket: &TcpStream, own: &Own) -> Result<String, Refusal> {
    let mut socket = Timed::new(socket, Instant::now() + PATIENCE);
    let (key, server) = (own.key.as_ref(), nonce()?);
    let (client_has_key, client) = parse(&take(&mut socket)?)?;
    let len = usize::from(u16::from_le_bytes(take(&mut socket)?));
    if len > PLACE {
        return Err(Refusal::Rubbish);
    }
    let mut place = vec![0; len];
    socket.read_exact(&mut place)?;
    let place = String::from_utf8(place).map_err(|_| Refusal::Rubbish)?;
    socket.write_all(&front(key, &server))?;
    if client_has_key != key.is_some() {
        return Err(Refusal::Unproven);
    }
    let said = Transcript { client: &client, server: &server, place: &place };
    let proof: Proof = take(&mut socket)?;
    if !key.is_none_or(|key| key.verify(Part::Client, &said, &[], &proof)) {
        socket.write_all(&[REFUSED])?;
        return Err(Refusal::Unproven);
    }
    let mut verdict = vec![WELCOME];
    verdict.extend(prove(key, Part::Server, &said));
    socket.write_all(&verdict)?;
    Ok(place)
}
