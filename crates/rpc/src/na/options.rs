//! Options of a class.

/// Options of a class. The default is none.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Options<'a> {
    /// The secret that both sides of a TCP connection must know. Without it, the secret in
    /// `PORTOLAN_RPC_SECRET_FILE` is used, if there is one.
    pub auth_key: Option<&'a [u8]>,
    /// Whether the class, over TCP, uses shared memory to reach processes of the same user on the
    /// same host that also have this option.
    pub auto_sm: bool,
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
}
