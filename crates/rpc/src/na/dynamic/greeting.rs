//! The protocol that two jobs use on the socket before MPI connects them.
//!
//! | | from | bytes |
//! |---|---|---|
//! | 1 | client | `ptlnrpc` and version (8), nonce (32) |
//! | 2 | server | the same |
//! | 3 | client | its proof (32) |
//! | 4 | server | verdict (1): 1 welcome, 2 refused, 3 busy |
//! | | | if welcome: length (2) and name of MPI's port, then the server's proof of the name (32) |
//! | 5 | client | `C`: it is about to connect |
//! | 6 | client | `J`: MPI has connected it |
//!
//! Both sides then prove over MPI that they are the processes that used the socket, because a
//! port's name can be guessed. The socket stays open: its end means that the peer has vanished, and
//! a `B` on it means that the peer ends the connection.
//!
//! The server reveals nothing about MPI before it has verified step 3. All lengths are fixed or
//! bounded, and the caller passes a stream with a deadline ([`crate::na::timed::Timed`]).

use crate::failure::Failure;
use crate::na::secret::{Key, NONCE, Nonce, PROOF, Part, Proof, Transcript, random};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;

const MAGIC: &[u8; 8] = b"ptlnrpc\x01";
const WELCOME: u8 = 1;
const REFUSED: u8 = 2;
const BUSY: u8 = 3;
const COMING: u8 = b'C';
const JOINED: u8 = b'J';
const BYE: u8 = b'B';
/// Maximum length of a port's name in bytes.
const NAME: usize = 4096;

/// The reason why a connection was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The peer did not send anything in time.
    Silent,
    /// The peer closed the socket.
    Left,
    /// The peer does not follow the protocol.
    Rubbish,
    /// The peer's proof is wrong.
    Unproven,
    /// The peer refused this side's proof.
    Refused,
    /// Too many clients connect at the moment.
    Busy,
    /// The class is finalised.
    Stopped,
    /// A local operation failed.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Silent => "it sent nothing in time",
            Refusal::Left => "it closed the connection",
            Refusal::Rubbish => "it uses a different protocol",
            Refusal::Unproven => "it does not prove that it knows the token and the secret",
            Refusal::Refused => {
                "it refuses the proof: the address is not the published one, or \
                 PORTOLAN_RPC_SECRET_FILE does not contain the same secret in both jobs"
            }
            Refusal::Busy => "too many simultaneous connection attempts",
            Refusal::Stopped => "the class is finalised",
            Refusal::Failed(why) => why,
        })
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal::Failed(failure.text().to_string())
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
            _ => Refusal::Failed(error.to_string()),
        }
    }
}

/// The nonces of a greeting, after the client has sent its proof.
#[derive(Debug, Clone)]
pub struct Greeted {
    client: Nonce,
    server: Nonce,
}

impl Greeted {
    fn said<'a>(&'a self, place: &'a str) -> Transcript<'a> {
        Transcript { client: &self.client, server: &self.server, place }
    }

    /// Returns the proof that the given side sends first over MPI.
    pub fn inside(&self, key: &Key, place: &str, part: Part) -> Proof {
        key.prove(part, &self.said(place), &[])
    }

    /// Checks the proof that the peer sends first over MPI.
    pub fn is_inside(&self, key: &Key, place: &str, part: Part, proof: &[u8]) -> bool {
        key.verify(part, &self.said(place), &[], proof)
    }
}

fn opening(nonce: &Nonce) -> [u8; 8 + NONCE] {
    let mut bytes = [0; 8 + NONCE];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..].copy_from_slice(nonce);
    bytes
}

fn read_opening(from: &mut impl Read) -> Result<Nonce, Refusal> {
    let mut magic = [0; 8];
    from.read_exact(&mut magic)?;
    if &magic != MAGIC {
        return Err(Refusal::Rubbish);
    }
    let mut nonce = [0; NONCE];
    from.read_exact(&mut nonce)?;
    Ok(nonce)
}

fn read_byte(from: &mut impl Read) -> Result<u8, Refusal> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Runs the server's side up to the client's proof. Reports a wrong proof to the client.
///
/// # Errors
/// Fails if the peer is not a client that knows the key.
pub fn examine(with: &mut (impl Read + Write), key: &Key, at: &str) -> Result<Greeted, Refusal> {
    let client = read_opening(with)?;
    let server = random()?;
    with.write_all(&opening(&server))?;
    let mut proof = [0; PROOF];
    with.read_exact(&mut proof)?;
    let greeted = Greeted { client, server };
    if !key.verify(Part::Client, &greeted.said(at), &[], &proof) {
        let _ = with.write_all(&[REFUSED]);
        return Err(Refusal::Unproven);
    }
    Ok(greeted)
}

/// Tells a client that the server is busy.
pub(crate) fn send_away(with: &mut impl Write) {
    let _ = with.write_all(&[BUSY]);
}

/// Sends an authenticated client the name of the port, and waits until it is about to connect.
///
/// # Errors
/// Fails if the client does not announce that it will connect.
pub(crate) fn welcome(
    with: &mut (impl Read + Write),
    key: &Key,
    at: &str,
    greeted: &Greeted,
    name: &str,
) -> Result<(), Refusal> {
    let Some(len) = u16::try_from(name.len()).ok().filter(|&n| usize::from(n) <= NAME) else {
        return Err(Refusal::Failed("the name of MPI's port is too long".into()));
    };
    let mut bytes = vec![WELCOME];
    bytes.extend(len.to_le_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend(key.prove(Part::Server, &greeted.said(at), name.as_bytes()));
    with.write_all(&bytes)?;
    if read_byte(with)? == COMING { Ok(()) } else { Err(Refusal::Rubbish) }
}

/// Waits until the client reports that MPI has connected it.
///
/// # Errors
/// Fails if it does not report this.
pub(crate) fn await_joined(with: &mut impl Read) -> Result<(), Refusal> {
    if read_byte(with)? == JOINED { Ok(()) } else { Err(Refusal::Rubbish) }
}

/// Runs the client's side up to its own proof.
///
/// # Errors
/// Fails if the peer does not follow the server's side of the protocol.
pub fn introduce(with: &mut (impl Read + Write), key: &Key, at: &str) -> Result<Greeted, Refusal> {
    let client = random()?;
    with.write_all(&opening(&client))?;
    let server = read_opening(with)?;
    let greeted = Greeted { client, server };
    with.write_all(&key.prove(Part::Client, &greeted.said(at), &[]))?;
    Ok(greeted)
}

/// Returns the name of the MPI port, received from a server that has proved that it knows the key.
///
/// # Errors
/// Fails if the server does not know the key, refuses the client, or is busy.
pub fn await_welcome(
    with: &mut impl Read,
    key: &Key,
    at: &str,
    greeted: &Greeted,
) -> Result<String, Refusal> {
    match read_byte(with)? {
        WELCOME => {}
        REFUSED => return Err(Refusal::Refused),
        BUSY => return Err(Refusal::Busy),
        _ => return Err(Refusal::Rubbish),
    }
    let mut len = [0; 2];
    with.read_exact(&mut len)?;
    let len = usize::from(u16::from_le_bytes(len));
    if len > NAME {
        return Err(Refusal::Rubbish);
    }
    let mut name = vec![0; len];
    with.read_exact(&mut name)?;
    let mut proof = [0; PROOF];
    with.read_exact(&mut proof)?;
    if !key.verify(Part::Server, &greeted.said(at), &name, &proof) {
        return Err(Refusal::Unproven);
    }
    String::from_utf8(name).map_err(|_| Refusal::Rubbish)
}

/// Announces that this client is about to connect through MPI.
///
/// # Errors
/// Fails if the server has closed the socket.
pub(crate) fn say_coming(with: &mut impl Write) -> Result<(), Refusal> {
    Ok(with.write_all(&[COMING])?)
}

/// Reports that MPI has connected this client.
///
/// # Errors
/// Fails if the server has closed the socket.
pub(crate) fn say_joined(with: &mut impl Write) -> Result<(), Refusal> {
    Ok(with.write_all(&[JOINED])?)
}

/// The state of a connection's socket, once MPI carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// Nothing was received: the peer is alive.
    None,
    /// The peer ends the connection.
    Bye,
    /// The peer has vanished.
    Gone,
}

/// The socket of a connection whose messages MPI carries.
#[derive(Debug)]
pub(crate) struct Lifeline(TcpStream);

impl Lifeline {
    /// Wraps a socket and makes it non-blocking.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn new(stream: TcpStream) -> io::Result<Lifeline> {
        stream.set_nonblocking(true)?;
        Ok(Lifeline(stream))
    }

    /// Returns the current state without blocking.
    pub fn sign(&self) -> Sign {
        let mut byte = [0];
        loop {
            match (&self.0).read(&mut byte) {
                Ok(1) if byte[0] == BYE => return Sign::Bye,
                Ok(_) => return Sign::Gone,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Sign::None,
                Err(_) => return Sign::Gone,
            }
        }
    }

    /// Announces that this side ends the connection.
    pub(crate) fn say_bye(&self) {
        let _ = (&self.0).write_all(&[BYE]);
    }

    /// Shuts the socket down, which the peer notices.
    pub fn cut(&self) {
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}
