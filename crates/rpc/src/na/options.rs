//! Options of a class.

/// Options of a class. The default is none.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Options<'a> {
    /// The secret that both sides of a TCP connection must know. Without it, the secret in
    /// `PORTOLAN_RPC_SECRET_FILE` is used, if there is one.
    pub auth_key: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Sets the secret that both sides of a TCP connection must know.
    #[must_use]
    pub fn auth_key(self, secret: &'a [u8]) -> Options<'a> {
        Options { auth_key: Some(secret) }
    }
}
