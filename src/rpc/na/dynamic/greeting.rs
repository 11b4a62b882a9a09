//! What two jobs say to each other over the socket, before MPI connects them.
//!
//! | | from | bytes |
//! |---|---|---|
//! | 1 | client | `ptlnrpc` and version (8), nonce (32) |
//! | 2 | server | the same |
//! | 3 | client | its proof (32) |
//! | 4 | server | verdict (1): 1 welcome, 2 refused, 3 busy |
//! | | | if welcome: length (2) and name of MPI's port, proof of both (32) |
//! | 5 | client | `C`: it is about to connect |
//! | 6 | client | `J`: MPI has connected it |
//!
//! Then both prove once more, over MPI, that they are the two that talked here: a name of a port
//! can be guessed. The socket stays: its end says that the peer has vanished, and a `B` on it
//! that the peer ends the connection.
//!
//! Nothing is said about MPI before 3 was found right. All lengths are fixed or bounded, and
//! the caller gives a stream that ends at a deadline ([`Timed`]).

use super::secret::{Key, NONCE, Nonce, PROOF, Part, Proof, Transcript, random};
use crate::rpc::failure::Failure;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

const MAGIC: &[u8; 8] = b"ptlnrpc\x01";
const WELCOME: u8 = 1;
const REFUSED: u8 = 2;
const BUSY: u8 = 3;
const COMING: u8 = b'C';
const JOINED: u8 = b'J';
const BYE: u8 = b'B';
/// Longest name of a port.
const NAME: usize = 4096;

/// Why a connection comes to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The peer has said nothing for too long.
    Silent,
    /// The peer has closed the socket.
    Left,
    /// The peer speaks something else.
    Rubbish,
    /// Its proof is wrong.
    Unproven,
    /// We were refused.
    Refused,
    /// There is no room now.
    Busy,
    /// The class is finalised.
    Stopped,
    /// Something here has failed.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Silent => "it said nothing in time",
            Refusal::Left => "it closed the connection",
            Refusal::Rubbish => "it speaks another protocol",
            Refusal::Unproven => "it does not prove that it knows the token and the secret",
            Refusal::Refused => {
                "it refuses the proof: the address is not the one that was published, or \
                 PORTOLAN_RPC_SECRET_FILE does not hold the same secret in both jobs"
            }
            Refusal::Busy => "too many connect at a time",
            Refusal::Stopped => "the class is finalised",
            Refusal::Failed(why) => why,
        })
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal::Failed(failure.text.clone())
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

/// A socket on which every wait ends at a deadline, however the bytes trickle in.
#[derive(Debug)]
pub(crate) struct Timed<'a> {
    stream: &'a TcpStream,
    /// The deadline.
    pub end: Instant,
}

impl<'a> Timed<'a> {
    /// Until then.
    pub(crate) fn new(stream: &'a TcpStream, end: Instant) -> Timed<'a> {
        Timed { stream, end }
    }

    fn left(&self) -> io::Result<std::time::Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        let mut stream = self.stream;
        stream.read(bytes)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        let mut stream = self.stream;
        stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The nonces of a greeting whose client has proved itself, or is about to.
#[derive(Debug, Clone)]
pub struct Greeted {
    client: Nonce,
    server: Nonce,
}

impl Greeted {
    fn said<'a>(&'a self, place: &'a str) -> Transcript<'a> {
        Transcript { client: &self.client, server: &self.server, place }
    }

    /// What a side sends first over MPI.
    pub fn inside(&self, key: &Key, place: &str, part: Part) -> Proof {
        key.prove(part, &self.said(place), &[])
    }

    /// Whether these are the first bytes that the peer sends over MPI.
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

/// The server's side, to the client's proof. One that is wrong is told so.
///
/// # Errors
/// Whatever is not a client that knows the key.
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

/// Tells a client that there is no room.
pub(crate) fn send_away(with: &mut impl Write) {
    let _ = with.write_all(&[BUSY]);
}

/// Tells a client that has proved itself where to connect, and waits until it is about to.
///
/// # Errors
/// Where it does not come.
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

/// Waits until a client says that MPI has connected it.
///
/// # Errors
/// Where it does not say so.
pub(crate) fn await_joined(with: &mut impl Read) -> Result<(), Refusal> {
    if read_byte(with)? == JOINED { Ok(()) } else { Err(Refusal::Rubbish) }
}

/// The client's side, to its own proof.
///
/// # Errors
/// Where the peer does not answer as a server does.
pub fn introduce(with: &mut (impl Read + Write), key: &Key, at: &str) -> Result<Greeted, Refusal> {
    let client = random()?;
    with.write_all(&opening(&client))?;
    let server = read_opening(with)?;
    let greeted = Greeted { client, server };
    with.write_all(&key.prove(Part::Client, &greeted.said(at), &[]))?;
    Ok(greeted)
}

/// The name of MPI's port, from a server that knows the key.
///
/// # Errors
/// Where it does not, or refuses, or has no room.
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

/// Says that this client is about to connect.
///
/// # Errors
/// Where the server has gone.
pub(crate) fn say_coming(with: &mut impl Write) -> Result<(), Refusal> {
    Ok(with.write_all(&[COMING])?)
}

/// Says that MPI has connected this client.
///
/// # Errors
/// Where the server has gone.
pub(crate) fn say_joined(with: &mut impl Write) -> Result<(), Refusal> {
    Ok(with.write_all(&[JOINED])?)
}

/// What a connection's socket tells, once MPI carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// Nothing: the peer lives.
    None,
    /// The peer ends the connection.
    Bye,
    /// The peer has vanished.
    Gone,
}

/// The socket of a connection that MPI carries.
#[derive(Debug)]
pub(crate) struct Lifeline(TcpStream);

impl Lifeline {
    /// From now on nothing waits for it.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Lifeline> {
        stream.set_nonblocking(true)?;
        Ok(Lifeline(stream))
    }

    /// What there is now.
    pub(crate) fn sign(&self) -> Sign {
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

    /// Says that this side ends the connection.
    pub(crate) fn say_bye(&self) {
        let _ = (&self.0).write_all(&[BYE]);
    }

    /// Ends it, so that the peer sees it.
    pub(crate) fn cut(&self) {
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}
