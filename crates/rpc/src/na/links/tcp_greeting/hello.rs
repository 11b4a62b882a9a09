//! The first messages of both sides, and their bytes.
//!
//! Each message has exactly one encoding, so two sides that agree on the values agree on the bytes.

use crate::na::address::host_and_port;
use crate::na::links::listener::Refusal;
use crate::na::secret::{NONCE, Nonce};
use crate::na::wire::number;
use std::io::{self, Read};
use std::net::SocketAddr;

/// The last byte is the version of the greeting and of the messages.
pub(super) const MAGIC: &[u8; 8] = b"ptlntcp\x07";
const FRONT: usize = 8 + 1 + 8 + NONCE;
const HAS_KEY: u8 = 1;
const SHARES: u8 = 2;
const ASKS: u8 = 4;
const TLS: u8 = 8;
/// Maximum length in bytes of an address.
const PLACE: usize = 512;

/// The properties of a side that the other one must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Offer {
    pub has_key: bool,
    /// Whether it wishes to use shared memory on one host.
    pub shares: bool,
}

/// Step 1: a client introduces itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientHello {
    pub offer: Offer,
    pub life: u64,
    pub nonce: Nonce,
    /// The address that the client claims, `HOST:PORT`.
    pub place: String,
}

/// Step 2: the server introduces itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerHello {
    pub offer: Offer,
    pub life: u64,
    pub nonce: Nonce,
}

/// A server's question instead of step 1: has the process sent this nonce to the server at `here`?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub nonce: Nonce,
    pub here: SocketAddr,
}

/// The first message of a process that connects.
#[derive(Debug)]
pub enum First {
    Hello(ClientHello),
    Question(Question),
}

pub(super) fn take<const N: usize>(socket: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    socket.read_exact(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn text(socket: &mut impl Read, len: usize) -> Result<String, Refusal> {
    let mut bytes = vec![0; len];
    socket.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| Refusal::Rubbish)
}

fn front(flags: u8, life: u64, nonce: &Nonce) -> Vec<u8> {
    [MAGIC, &[flags][..], &life.to_le_bytes(), nonce].concat()
}

fn with_text(mut front: Vec<u8>, text: &str) -> Vec<u8> {
    let text = &text.as_bytes()[..text.len().min(PLACE)];
    front.extend((text.len() as u16).to_le_bytes());
    front.extend(text);
    front
}

fn read_front(socket: &mut impl Read) -> Result<(u8, u64, Nonce), Refusal> {
    let bytes: [u8; FRONT] = take(socket)?;
    match (&bytes[..8] == MAGIC, bytes[17..].try_into()) {
        (true, Ok(nonce)) => Ok((bytes[8], number(&bytes[9..17]), nonce)),
        _ => Err(Refusal::Rubbish),
    }
}

impl Offer {
    fn flags(self) -> u8 {
        HAS_KEY * u8::from(self.has_key) + SHARES * u8::from(self.shares)
    }

    fn parse(flags: u8) -> Result<Offer, Refusal> {
        match flags {
            0..=3 => Ok(Offer { has_key: flags & HAS_KEY != 0, shares: flags & SHARES != 0 }),
            _ => Err(Refusal::Rubbish),
        }
    }
}

impl ClientHello {
    pub fn bytes(&self) -> Vec<u8> {
        with_text(front(self.offer.flags(), self.life, &self.nonce), &self.place)
    }
}

impl Question {
    pub fn bytes(&self) -> Vec<u8> {
        with_text(front(ASKS, 0, &self.nonce), &self.here.to_string())
    }
}

impl First {
    /// Fails if the message is not of this protocol, or if the address is not `HOST:PORT`.
    pub fn read(socket: &mut impl Read) -> Result<First, Refusal> {
        let (flags, life, nonce) = read_front(socket)?;
        let len = usize::from(u16::from_le_bytes(take(socket)?));
        if len > PLACE {
            return Err(Refusal::Rubbish);
        }
        let place = text(socket, len)?;
        if flags == ASKS {
            let here = place.parse().map_err(|_| Refusal::Rubbish)?;
            return Ok(First::Question(Question { nonce, here }));
        }
        if host_and_port(&place).is_none() {
            return Err(Refusal::Rubbish);
        }
        Ok(First::Hello(ClientHello { offer: Offer::parse(flags)?, life, nonce, place }))
    }
}

impl ServerHello {
    pub fn bytes(&self) -> Vec<u8> {
        front(self.offer.flags(), self.life, &self.nonce)
    }

    /// Returns the bytes that report to a client that only one side uses TLS.
    pub fn declined() -> Vec<u8> {
        front(TLS, 0, &[0; NONCE])
    }

    pub fn read(socket: &mut impl Read) -> Result<ServerHello, Refusal> {
        match read_front(socket)? {
            (TLS, ..) => Err(Refusal::TlsOnly),
            (flags, life, nonce) => Ok(ServerHello { offer: Offer::parse(flags)?, life, nonce }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_host_and_port_are_accepted_as_an_address() {
        let read = |place: &str| {
            let offer = Offer { has_key: true, shares: false };
            let hello = ClientHello { offer, life: 7, nonce: [3; NONCE], place: place.into() };
            match First::read(&mut &hello.bytes()[..]) {
                Ok(First::Hello(read)) => {
                    assert_eq!(read, hello);
                    true
                }
                Ok(First::Question(_)) => panic!("a question"),
                Err(Refusal::Rubbish) => false,
                Err(other) => panic!("{other}"),
            }
        };
        for good in ["vm.4711.00c0ffee:0", "127.0.0.1:7", "[fe80::1%eth0]:65535", "a_b-c:1"] {
            assert!(read(good), "{good}");
        }
        let bad = [
            "",
            "x",
            ":1",
            "x:",
            "x:65536",
            "x:-1",
            "x:+1",
            "x:01",
            "x:1 ",
            " x:1",
            "x:0\0:0",
            "x\n:0",
            "x\x1b[31m:0",
            "x\u{7f}:0",
            "\u{202e}x:0",
            "x\u{85}:0",
            "a:b:1",
            "[x]:1",
            "[::1:1",
            "::1]:1",
            "[fe80::1%\n]:1",
            "tcp://x:1",
            "x;y:1",
            "%41:1",
        ];
        for bad in bad {
            assert!(!read(bad), "{bad:?}");
        }
    }

    #[test]
    fn each_message_has_one_encoding() {
        for flags in 0..=255 {
            let bytes = front(flags, 1, &[1; NONCE]);
            match ServerHello::read(&mut &bytes[..]) {
                Ok(hello) => assert_eq!(hello.bytes(), bytes),
                Err(Refusal::TlsOnly) => assert_eq!(flags, TLS),
                Err(refusal) => assert!(matches!(refusal, Refusal::Rubbish) && flags > 3),
            }
        }
    }
}
