//! Feeds arbitrary bytes to both sides of the greeting over TCP: from a stranger to a class that
//! listens, and from a false server to a client. Both must be rejected, and the stranger must learn
//! nothing but a random number.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_rpc::na::links::tcp_greeting::{Own, as_client, as_server};
use portolan_rpc::na::secret::Key;
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

fuzz_target!(|input: (bool, &[u8])| {
    let (polite, bytes) = input;
    let key = Some(Key::of_secret(b"a secret that the stranger does not know"));
    let own = Own { place: "host:1".into(), key, memory: Some("memory".into()) };
    // Adds the opening bytes, which all classes share, so that the input reaches the checks behind
    // them.
    let opening = [b"ptlntcp\x02\x03", bytes].concat();
    let says = if polite { &opening } else { bytes };
    let mut guest = Stranger { says, told: Vec::new() };
    assert!(as_server(&mut guest, &own).is_err(), "a stranger is let in");
    assert!(guest.told.len() <= 42, "a stranger is told {} bytes", guest.told.len());

    let mut server = Stranger { says, told: Vec::new() };
    assert!(as_client(&mut server, &own).is_err(), "a false server is believed");
});
