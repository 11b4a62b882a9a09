//! Authentication of connections.
//!
//! The key of a class is derived from the program's `auth_key`, or from the secret in the file
//! `PORTOLAN_RPC_SECRET_FILE`. A proof is an HMAC-SHA256, under that key, of the prover's role and
//! of everything sent before ([`Transcript`]), which includes random numbers of both sides, so a
//! proof cannot be replayed. Over TLS it also covers the connection.
//!
//! Proofs are compared in constant time. Keys are never logged.

use super::private_file::{self, Others};
use crate::failure::{Failure, Result, Status, refuse};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;

/// Permitted size of a secret file in bytes, without trailing white space.
const SECRET: std::ops::RangeInclusive<usize> = 16..=4096;
pub(crate) const NONCE: usize = 32;
pub(crate) const PROOF: usize = 32;

pub(crate) type Nonce = [u8; NONCE];
pub(crate) type Proof = [u8; PROOF];

/// Returns random bytes from the operating system, or `FAIL` if it cannot provide them.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::new(Status::FAIL, format!("the system has no random bytes: {e}")))?;
    Ok(bytes)
}

/// Reads the site's secret from a file. Returns `None` if the path is empty. Returns `PERMISSION`
/// if the file's mode or owner lets other users read or change it, `INVALID_ARG` if it is not a
/// regular file or has the wrong size, and `IO_ERROR` if it cannot be read.
pub(crate) fn site_secret(path: &str) -> Result<Option<Vec<u8>>> {
    if path.is_empty() {
        return Ok(None);
    }
    let name = format!("PORTOLAN_RPC_SECRET_FILE={path}");
    let mut secret = private_file::read(&name, path.as_ref(), Others::None, *SECRET.end())?;
    secret.truncate(secret.trim_ascii_end().len());
    if !SECRET.contains(&secret.len()) {
        refuse!(INVALID_ARG, "{name}: a secret has {} to {} bytes", SECRET.start(), SECRET.end());
    }
    Ok(Some(secret))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
    /// The process that has connected.
    Client = 1,
    /// The process that listens.
    Server = 2,
}

/// The bytes that both sides have sent before the proofs.
#[derive(Debug, Clone, Copy)]
pub struct Transcript<'a> {
    /// The client's first bytes, which include its nonce.
    pub client: &'a [u8],
    /// The server's first bytes, which include its nonce.
    pub server: &'a [u8],
    /// The address that the client claims.
    pub place: &'a str,
    /// Bytes that belong to this TLS connection only, or none without TLS. A proof therefore cannot
    /// be passed on through another connection.
    pub channel: &'a [u8],
}

#[derive(Clone)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    <Hmac<Sha256> as Mac>::new_from_slice(key).expect("HMAC takes keys of any length")
}

impl Key {
    pub fn of_secret(secret: &[u8]) -> Key {
        let mut mac = hmac(secret);
        mac.update(b"portolan rpc key 3");
        Key(mac.finalize().into_bytes().into())
    }

    fn over(&self, part: Part, said: &Transcript<'_>, more: &[u8]) -> Hmac<Sha256> {
        let mut mac = hmac(&self.0);
        mac.update(&[part as u8]);
        for part in [said.client, said.server, said.place.as_bytes(), said.channel] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.update(more);
        mac
    }

    /// Returns a proof, which also covers `more`.
    pub fn prove(&self, part: Part, said: &Transcript<'_>, more: &[u8]) -> Proof {
        self.over(part, said, more).finalize().into_bytes().into()
    }

    /// Verifies a proof in constant time.
    pub fn verify(&self, part: Part, said: &Transcript<'_>, more: &[u8], proof: &[u8]) -> bool {
        self.over(part, said, more).verify_slice(proof).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_proof_is_good_for_one_key_part_and_transcript() {
        let key = Key::of_secret(b"a secret that two processes know");
        let (c, s): (Nonce, Nonce) = (random().unwrap(), random().unwrap());
        let said = Transcript { client: &c, server: &s, place: "host:1", channel: b"" };
        let proof = key.prove(Part::Client, &said, b"x");
        assert!(key.verify(Part::Client, &said, b"x", &proof));
        assert!(!key.verify(Part::Server, &said, b"x", &proof));
        assert!(!key.verify(Part::Client, &said, b"y", &proof));
        assert!(!key.verify(Part::Client, &said, b"x", &proof[..31]));
        let elsewhere = Transcript { place: "host:2", ..said };
        assert!(!key.verify(Part::Client, &elsewhere, b"x", &proof));
        let later = Transcript { server: &c, ..said };
        assert!(!key.verify(Part::Client, &later, b"x", &proof));
        let another = Transcript { channel: &s, ..said };
        assert!(!key.verify(Part::Client, &another, b"x", &proof));
        for secret in [&b""[..], b"a secret that two processes knew"] {
            assert!(!Key::of_secret(secret).verify(Part::Client, &said, b"x", &proof));
        }
    }

    /// Test case 2 of RFC 4231: the MAC agrees with other implementations.
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
        assert_eq!(site_secret(text).unwrap_err().status(), Status::IO_ERROR);
        write(b"0123456789abcdef\n", 0o600);
        assert_eq!(site_secret(text).unwrap(), Some(b"0123456789abcdef".to_vec()));
        write(b"0123456789abcdef\n", 0o640);
        let refused = site_secret(text).unwrap_err();
        assert_eq!(refused.status(), Status::PERMISSION);
        assert!(refused.text().contains(text) && refused.text().contains("chmod 600"));
        write(b"0123456789abcde\n", 0o600);
        assert_eq!(site_secret(text).unwrap_err().status(), Status::INVALID_ARG);
        write(&[b'x'; 5000], 0o600);
        assert_eq!(site_secret(text).unwrap_err().status(), Status::INVALID_ARG);
        assert_eq!(site_secret(dir.to_str().unwrap()).unwrap_err().status(), Status::INVALID_ARG);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
