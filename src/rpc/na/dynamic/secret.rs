//! What a connection between jobs is proved by.
//!
//! A listening class has a token of 128 random bits, which is part of its address: a job that
//! was given the address has it. Sites may want more than an address that has leaked to be
//! needed; with `PORTOLAN_RPC_SECRET_FILE` both jobs must have the file's secret **as well**.
//! The key is made of both, and a proof is an HMAC-SHA256 under it, of the prover's part and of
//! everything that was said before ([`Transcript`]), so none can be used twice.
//!
//! Proofs are compared in constant time. Neither tokens nor keys are ever logged.

use crate::rpc::failure::{Failure, Result, Status, refuse};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// Bytes of a token.
const TOKEN: usize = 16;
/// Fewest and most bytes of a secret in a file.
const SECRET: std::ops::RangeInclusive<usize> = 16..=4096;
/// Bytes of a nonce.
pub(crate) const NONCE: usize = 32;
/// Bytes of a proof.
pub(crate) const PROOF: usize = 32;

/// A number that is used once.
pub(crate) type Nonce = [u8; NONCE];
/// A proof.
pub(crate) type Proof = [u8; PROOF];

/// Fills memory with random bytes of the system.
///
/// # Errors
/// `FAIL` where it has none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::new(Status::FAIL, format!("the system has no random bytes: {e}")))?;
    Ok(bytes)
}

/// The random part of a published address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token([u8; TOKEN]);

impl Token {
    /// A fresh one.
    ///
    /// # Errors
    /// As of [`random`].
    pub fn new() -> Result<Token> {
        Ok(Token(random()?))
    }

    /// Of its text.
    pub fn parse(text: &str) -> Option<Token> {
        if text.len() != 2 * TOKEN || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; TOKEN];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        Some(Token(bytes))
    }

    /// As it stands in an address.
    pub fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// The secret of a site, of its file; `None` where no file is named.
///
/// # Errors
/// `PERMISSION` where others could read or change it, `INVALID_ARG` where it is no file or too
/// short, `IO_ERROR` where it cannot be read.
pub(crate) fn site_secret(path: &str) -> Result<Option<Vec<u8>>> {
    if path.is_empty() {
        return Ok(None);
    }
    let failed = |e: std::io::Error| {
        Failure::new(Status::IO_ERROR, format!("PORTOLAN_RPC_SECRET_FILE={path}: {e}"))
    };
    // Waits for nobody, should it be a pipe; what was opened is what is checked.
    let open = || {
        use std::os::unix::fs::OpenOptionsExt;
        std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
    };
    let file = open().map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() {
        refuse!(INVALID_ARG, "PORTOLAN_RPC_SECRET_FILE={path}: this is no file");
    }
    if about.mode() & 0o077 != 0 {
        refuse!(
            PERMISSION,
            "PORTOLAN_RPC_SECRET_FILE={path}: its permissions are {:o}, so it is no secret of its \
             owner's; chmod 600 makes it one",
            about.mode() & 0o777
        );
    }
    let me = std::fs::metadata("/proc/self").map_err(failed)?.uid();
    if about.uid() != me && about.uid() != 0 {
        refuse!(
            PERMISSION,
            "PORTOLAN_RPC_SECRET_FILE={path}: it belongs to user {}, not to user {me} or root",
            about.uid()
        );
    }
    let mut secret = Vec::new();
    file.take(*SECRET.end() as u64 + 1).read_to_end(&mut secret).map_err(failed)?;
    secret.truncate(secret.trim_ascii_end().len());
    if !SECRET.contains(&secret.len()) {
        refuse!(
            INVALID_ARG,
            "PORTOLAN_RPC_SECRET_FILE={path}: a secret has {} to {} bytes",
            SECRET.start(),
            SECRET.end()
        );
    }
    Ok(Some(secret))
}

/// Whose proof it is, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
    /// The client's, that it may be told of MPI's port.
    Client = 1,
    /// The server's, that this is its port.
    Server = 2,
    /// The client's, over MPI: that it is the one that was told.
    ClientInside = 3,
    /// The server's, over MPI.
    ServerInside = 4,
}

/// What both sides have said, and where.
#[derive(Debug, Clone, Copy)]
pub struct Transcript<'a> {
    /// The client's nonce.
    pub client: &'a Nonce,
    /// The server's.
    pub server: &'a Nonce,
    /// Where the client believes to be connected to: a proof that was relayed from another
    /// place is none.
    pub place: &'a str,
}

/// What proofs are made with.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    // Keys of any length are possible; the error is for other algorithms.
    <Hmac<Sha256> as Mac>::new_from_slice(key).expect("HMAC takes keys of any length")
}

impl Key {
    /// Of the token of an address and the site's secret, if there is one.
    pub fn new(token: &Token, secret: Option<&[u8]>) -> Key {
        let mut mac = hmac(&token.0);
        mac.update(b"portolan rpc key 1");
        // One without a secret is another than one with an empty secret.
        mac.update(&[u8::from(secret.is_some())]);
        mac.update(secret.unwrap_or_default());
        Key(mac.finalize().into_bytes().into())
    }

    fn over(&self, part: Part, said: &Transcript<'_>, more: &[u8]) -> Hmac<Sha256> {
        let mut mac = hmac(&self.0);
        mac.update(&[part as u8]);
        mac.update(said.client);
        mac.update(said.server);
        mac.update(&(said.place.len() as u64).to_le_bytes());
        mac.update(said.place.as_bytes());
        mac.update(more);
        mac
    }

    /// A proof; `more` is what it vouches for besides.
    pub fn prove(&self, part: Part, said: &Transcript<'_>, more: &[u8]) -> Proof {
        self.over(part, said, more).finalize().into_bytes().into()
    }

    /// Whether a proof is right, in constant time.
    pub fn verify(&self, part: Part, said: &Transcript<'_>, more: &[u8], proof: &[u8]) -> bool {
        self.over(part, said, more).verify_slice(proof).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn tokens_come_back_and_differ() {
        let (a, b) = (Token::new().unwrap(), Token::new().unwrap());
        assert!(a != b);
        assert_eq!(Token::parse(&a.text()), Some(a));
        for bad in ["", "00", &"g".repeat(32), &"é".repeat(16), &"0".repeat(33), &"+1".repeat(16)]
        {
            assert_eq!(Token::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_proof_is_good_for_one_key_part_and_transcript() {
        let (token, other) = (Token::new().unwrap(), Token::new().unwrap());
        let key = Key::new(&token, None);
        let (c, s) = (random().unwrap(), random().unwrap());
        let said = Transcript { client: &c, server: &s, place: "host:1" };
        let proof = key.prove(Part::Client, &said, b"x");
        assert!(key.verify(Part::Client, &said, b"x", &proof));
        assert!(!key.verify(Part::Server, &said, b"x", &proof));
        assert!(!key.verify(Part::Client, &said, b"y", &proof));
        assert!(!key.verify(Part::Client, &said, b"x", &proof[..31]));
        let elsewhere = Transcript { place: "host:2", ..said };
        assert!(!key.verify(Part::Client, &elsewhere, b"x", &proof));
        let later = Transcript { server: &c, ..said };
        assert!(!key.verify(Part::Client, &later, b"x", &proof));
        for key in [
            Key::new(&other, None),
            Key::new(&token, Some(b"")),
            Key::new(&token, Some(b"of the site, at length")),
        ] {
            assert!(!key.verify(Part::Client, &said, b"x", &proof));
        }
    }

    /// RFC 4231's second test: the MAC is the one that others compute.
    #[test]
    fn the_mac_is_hmac_sha256() {
        let mut mac = hmac(b"Jefe");
        mac.update(b"what do ya want for nothing?");
        let want = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let got: String = mac.finalize().into_bytes().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_secret_file_is_checked() {
        let dir = std::env::temp_dir().join(format!("portolan-secret-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("secret");
        let text = path.to_str().unwrap();
        let write = |bytes: &[u8], mode| {
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        assert_eq!(site_secret("").unwrap(), None);
        assert_eq!(site_secret(text).unwrap_err().status, Status::IO_ERROR);
        write(b"0123456789abcdef\n", 0o600);
        assert_eq!(site_secret(text).unwrap(), Some(b"0123456789abcdef".to_vec()));
        for mode in [0o640, 0o604, 0o620, 0o602, 0o610] {
            write(b"0123456789abcdef\n", mode);
            let refused = site_secret(text).unwrap_err();
            assert_eq!(refused.status, Status::PERMISSION);
            assert!(refused.text.contains(text) && refused.text.contains("chmod 600"));
        }
        write(b"0123456789abcde\n", 0o600);
        assert_eq!(site_secret(text).unwrap_err().status, Status::INVALID_ARG);
        write(&[b'x'; 5000], 0o600);
        assert_eq!(site_secret(text).unwrap_err().status, Status::INVALID_ARG);
        assert_eq!(site_secret(dir.to_str().unwrap()).unwrap_err().status, Status::INVALID_ARG);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
