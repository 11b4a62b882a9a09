//! Feeds arbitrary bytes to both sides of the handshake: from a stranger to a class that listens
//! for other jobs, and from a false server to a client. Both must be rejected, and the stranger
//! must learn nothing about MPI.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_rpc::na::dynamic::greeting::{await_welcome, examine, introduce};
use portolan_rpc::na::secret::{Key, Token};
use std::io::{Read, Result, Write};

/// A socket whose peer sends the bytes of `says`.
struct Stranger<'a> {
    says: &'a [u8],
    told: Vec<u8>,
}

impl Read for Stranger<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        self.says.read(bytes)
    }
}

impl Write for Stranger<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.told.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

fuzz_target!(|input: (bool, &[u8], &str)| {
    let (polite, bytes, text) = input;
    let key = Key::new(&Token::new().expect("random bytes"), None);
    // Adds the opening bytes, which all classes share, so that the input reaches the checks behind
    // them.
    let opening = [b"ptlnrpc\x01", bytes].concat();
    let says = if polite { &opening } else { bytes };
    let mut guest = Stranger { says, told: Vec::new() };
    assert!(examine(&mut guest, &key, "host:1").is_err(), "a stranger is let in");
    assert!(guest.told.len() <= 41, "a stranger is told {} bytes", guest.told.len());

    let mut server = Stranger { says, told: Vec::new() };
    if let Ok(greeted) = introduce(&mut server, &key, "host:1") {
        let told = await_welcome(&mut server, &key, "host:1", &greeted);
        assert!(told.is_err(), "a false server is believed");
    }
    if let Some(token) = Token::parse(text) {
        assert!(token.text().eq_ignore_ascii_case(text));
    }
});
