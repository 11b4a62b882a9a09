//! Options of a class.

use std::path::Path;

/// Options of a class. By default none is set.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Options<'a> {
    /// The secret that both sides of a TCP connection must know. Without it, the secret in
    /// `PORTOLAN_RPC_SECRET_FILE` is used, if there is one.
    pub auth_key: Option<&'a [u8]>,
    /// Whether the class, over TCP, uses shared memory to reach processes of the same user on the
    /// same host that also have this option.
    pub auto_sm: bool,
    /// The directory of the certificates for TLS over TCP: `ca.pem`, `cert.pem` and `key.pem`. Both
    /// sides of a connection authenticate themselves. Without this option, the directory in
    /// `PORTOLAN_RPC_TLS_DIR` is used, if there is one. Needs the feature `tls`.
    pub tls_dir: Option<&'a Path>,
}

impl<'a> Options<'a> {
    /// Sets the secret that both sides of a TCP connection must know.
    #[must_use]
    pub fn auth_key(self, secret: &'a [u8]) -> Options<'a> {
        Options { auth_key: Some(secret), ..self }
    }

    /// Sets whether a class over TCP uses shared memory on one host.
    #[must_use]
    pub fn auto_sm(self, use_it: bool) -> Options<'a> {
        Options { auto_sm: use_it, ..self }
    }

    /// Sets the directory of the certificates for TLS.
    #[must_use]
    pub fn tls_dir(self, dir: &'a Path) -> Options<'a> {
        Options { tls_dir: Some(dir), ..self }
    }
}
