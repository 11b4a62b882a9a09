//! Authentication of connections.
//!
//! The key of a class is derived from the program's `auth_key`, or from the secret in the file
//! `PORTOLAN_RPC_SECRET_FILE`. A proof is an HMAC-SHA256 under that key. The greeting decides what it
//! covers ([`super::links::tcp_greeting::transcript`]).
//!
//! Proofs are compared in constant time. Keys are never logged.

use super::private_file::{self, Others};
use crate::failure::{Failure, Result, Status, refuse};
use hmac::{Hmac, KeyInit, Mac};
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

#[derive(Clone)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length")
}

impl Key {
    pub fn of_secret(secret: &[u8]) -> Key {
        let mut mac = hmac(secret);
        mac.update(b"portolan rpc key 4");
        Key(mac.finalize().into_bytes().into())
    }

    fn over(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = hmac(&self.0);
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }

    /// Returns a proof that covers these parts and their lengths.
    pub fn prove(&self, parts: &[&[u8]]) -> Proof {
        self.over(parts).finalize().into_bytes().into()
    }

    /// Verifies a proof in constant time.
    pub fn verify(&self, parts: &[&[u8]], proof: &[u8]) -> bool {
        self.over(parts).verify_slice(proof).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_proof_is_good_for_one_key_and_one_list_of_parts() {
        let key = Key::of_secret(b"a secret that two processes know");
        let proof = key.prove(&[b"ab", b"c", b""]);
        assert!(key.verify(&[b"ab", b"c", b""], &proof));
        assert!(!key.verify(&[b"ab", b"c", b""], &proof[..31]));
        let others: [&[&[u8]]; 4] =
            [&[b"a", b"bc", b""], &[b"ab", b"c"], &[b"ab", b"c", b"", b""], &[b"ab", b"d", b""]];
        for parts in others {
            assert!(!key.verify(parts, &proof));
        }
        for secret in [&b""[..], b"a secret that two processes knew"] {
            assert!(!Key::of_secret(secret).verify(&[b"ab", b"c", b""], &proof));
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
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
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
        let refused = site_secret(dir.path().to_str().unwrap()).unwrap_err();
        assert_eq!(refused.status(), Status::INVALID_ARG);
    }
}
