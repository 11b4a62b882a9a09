//! Replaces `tls` in a library without that feature: refuses TLS, and its types have no values.

use super::listener::Refusal;
use super::stream::Stream;
use super::tcp::Connected;
use crate::failure::{Result, refuse};
use crate::na::timed::Timed;
use std::convert::Infallible;
use std::io;
use std::path::Path;

/// The first byte of a client that uses TLS.
pub(super) const FIRST: u8 = 22;

#[derive(Debug)]
pub(super) struct Tls(Infallible);

#[derive(Debug)]
pub(super) struct Session(Infallible);

impl Tls {
    pub fn chosen(option: Option<&Path>, variable: &str) -> Result<Option<Tls>> {
        let (name, dir) = match option {
            Some(dir) => ("tls_dir", dir),
            None => ("PORTOLAN_RPC_TLS_DIR", Path::new(variable)),
        };
        if dir.as_os_str().is_empty() {
            return Ok(None);
        }
        refuse!(
            OPNOTSUPPORTED,
            "{name}={}: this library was built without TLS; build it with the feature 'tls' \
             (scripts/install.sh --tls)",
            dir.display()
        )
    }

    pub fn connect(&self, _: &mut Timed<'_>) -> std::result::Result<Session, Refusal> {
        match self.0 {}
    }

    pub fn accept(&self, _: &mut Timed<'_>) -> std::result::Result<Session, Refusal> {
        match self.0 {}
    }
}

impl Session {
    pub fn binding(&self) -> Vec<u8> {
        match self.0 {}
    }

    pub fn read(&mut self, _: &mut Timed<'_>, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }

    pub fn write(&mut self, _: &mut Timed<'_>, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    pub fn into_stream(self, _: Connected) -> io::Result<Box<dyn Stream>> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use crate::failure::Status;
    use crate::na::{Class, Options};
    use std::path::Path;

    #[test]
    fn a_request_for_tls_is_an_error() {
        let options = Options::default().tls_dir(Path::new("/certificates"));
        let refused = Class::with("tcp", true, options).unwrap_err();
        assert_eq!(refused.status(), Status::OPNOTSUPPORTED);
        assert!(refused.text().contains("tls_dir=/certificates"), "{refused}");
        let refused = super::Tls::chosen(None, "/certificates").unwrap_err();
        assert!(refused.text().contains("PORTOLAN_RPC_TLS_DIR=/certificates"), "{refused}");
        assert!(super::Tls::chosen(None, "").unwrap().is_none());
    }
}
