//! Feeds arbitrary bytes to both sides of the greeting over TCP: from a stranger to a class that
//! listens, and from a false server to a client. With a key both must be rejected, and the stranger
//! must learn nothing but a random number. Without a key, no claim of an address is believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_rpc::na::links::tcp_greeting::{Binding, Own, as_client, as_server, ask};
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
    let here = ([127, 0, 0, 1], 1).into();
    let binding = Binding::of_address(here);
    let key = Some(Key::of_secret(b"a secret that the stranger does not know"));
    let memory = Some("memory".into());
    let own = Own { place: "host:1".into(), key, memory, ..Own::default() };
    // Adds the opening bytes that all classes share, so that the input reaches the later checks.
    let opening = [b"ptlntcp\x07\x03", bytes].concat();
    let says = if polite { &opening } else { bytes };
    let mut guest = Stranger { says, told: Vec::new() };
    let believed = |_: &str, _: &_| panic!("a stranger is believed");
    let greeted = as_server(&mut guest, &own, |_| 7, believed, || (), &binding);
    assert!(!matches!(greeted, Ok(Some(_))), "a stranger is let in");
    assert!(guest.told.len() <= 50, "a stranger is told {} bytes", guest.told.len());

    let dial = own.dials.begin(here).expect("random bytes");
    let mut server = Stranger { says, told: Vec::new() };
    assert!(
        as_client(&mut server, &own, &dial, 7, &binding).is_err(),
        "a false server is believed"
    );

    // Without a key, a stranger may connect, but the address that it claims is not believed.
    let open = Own { place: "host:1".into(), ..Own::default() };
    let dial = open.dials.begin(here).expect("random bytes");
    let opening = [b"ptlntcp\x07\x00", bytes].concat();
    let says = if polite { &opening } else { bytes };
    let mut guest = Stranger { says, told: Vec::new() };
    if let Ok(Some(client)) = as_server(&mut guest, &open, |_| 7, |_, _| false, || (), &binding) {
        assert!(!client.proven && !client.moves, "a claim is believed");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]%".contains(&byte);
        assert!(client.place.bytes().all(is_plain), "the address {:?}", client.place);
    }
    let mut server = Stranger { says, told: Vec::new() };
    if let Ok(server) = as_client(&mut server, &open, &dial, 7, &binding) {
        assert_eq!(server.memory, None, "shared memory that was not asked for");
    }
    let mut asked = Stranger { says, told: Vec::new() };
    let _ = ask(&mut asked, &[3; 32], here);
});
