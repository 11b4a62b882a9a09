//! TLS for connections over TCP (feature `tls`), by the crate `rustls`.
//!
//! **Who may connect.** Both sides prove that they have a certificate of the same authority. A side
//! without TLS is refused ([`super::channel`]).
//!
//! **Names are not compared**, because a scheduler chooses the hosts of a service. An authority
//! stands for one service, as an `auth_key` does, and its members trust each other. An authority
//! that also signs certificates for others is unsuitable.
//!
//! **What TLS does not replace.** The greeting runs inside TLS, unchanged. Proofs of the `auth_key`
//! also cover a value derived from the keys of this TLS connection, so a member without the key
//! cannot relay the proofs of two others.
//!
//! **Shared memory** (`auto_sm`) does not avoid the authentication: its name contains a random
//! number and is sent only inside TLS. A process of the same user could find the name in `/proc`,
//! but it could also read the key.
//!
//! TLS 1.3 is the only version, because both sides are this library. Sessions are not resumed, so
//! every connection verifies certificates. The handshake blocks, and runs on the threads of the
//! greeting within its time limit.

mod identity;
mod sealed;
#[cfg(test)]
pub(super) mod tests;

use super::listener::Refusal;
use super::stream::Stream;
use super::tcp::Connected;
use super::tcp_greeting as greeting;
use crate::failure::Result;
use crate::na::timed::Timed;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// The first byte of a client that uses TLS: the type of a handshake record.
pub(super) const FIRST: u8 = 22;
/// The label of the value that identifies a connection. RFC 5705 requires the beginning.
const LABEL: &[u8] = b"EXPORTER-portolan-rpc";
/// A name that is not sent or compared; the interface of the crate requires one.
const NAME: &str = "portolan";

#[derive(Debug)]
pub(super) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

/// A TLS connection whose handshake is complete.
#[derive(Debug)]
pub(super) struct Session {
    connection: Connection,
    binding: [u8; 32],
}

/// Returns an error of TLS as one that becomes [`Refusal::Tls`].
fn failed(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Tls {
    /// Loads the certificates in the directory that the program's options or else the environment
    /// name. Returns `None` if neither does. Fails like [`identity::load`].
    pub fn chosen(option: Option<&Path>, variable: &str) -> Result<Option<Tls>> {
        match (option, variable) {
            (Some(dir), _) => identity::load("tls_dir", dir).map(Some),
            (None, "") => Ok(None),
            (None, dir) => identity::load("PORTOLAN_RPC_TLS_DIR", dir.as_ref()).map(Some),
        }
    }

    /// Begins TLS with a server. Fails if the server does not use TLS, if its certificate is not
    /// accepted, or if it does not follow the protocol.
    pub fn connect(&self, timed: &mut Timed<'_>) -> std::result::Result<Session, Refusal> {
        let name = ServerName::try_from(NAME).expect("a name");
        let made = ClientConnection::new(self.client.clone(), name).map_err(failed)?;
        let mut connection = Connection::from(made);
        while connection.wants_write() {
            connection.write_tls(timed)?;
        }
        if greeting::is_first(timed.peek()?) {
            return Err(Refusal::Plain);
        }
        Ok(Session::new(connection, timed)?)
    }

    /// Begins TLS with a client. Fails like [`Tls::connect`].
    pub fn accept(&self, timed: &mut Timed<'_>) -> std::result::Result<Session, Refusal> {
        let made = ServerConnection::new(self.server.clone()).map_err(failed)?;
        Ok(Session::new(made.into(), timed)?)
    }
}

impl Session {
    fn new(mut connection: Connection, timed: &mut Timed<'_>) -> io::Result<Session> {
        // A call also returns if it has waited in vain; the next one fails then.
        while connection.is_handshaking() {
            if connection.complete_io(timed)? == (0, 0) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let binding = connection.export_keying_material([0; 32], LABEL, None).map_err(failed)?;
        Ok(Session { connection, binding })
    }

    /// Returns bytes that only the two sides of this connection can compute.
    pub fn binding(&self) -> Vec<u8> {
        self.binding.to_vec()
    }

    pub fn read(&mut self, timed: &mut Timed<'_>, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            self.connection.complete_io(timed)?;
        }
    }

    pub fn write(&mut self, timed: &mut Timed<'_>, bytes: &[u8]) -> io::Result<usize> {
        let written = self.connection.writer().write(bytes)?;
        while self.connection.wants_write() {
            self.connection.write_tls(timed)?;
        }
        Ok(written)
    }

    /// Returns the connection after its greeting. Cannot fail, unlike in `no_tls`.
    pub fn into_stream(self, socket: Connected) -> io::Result<Box<dyn Stream>> {
        Ok(Box::new(sealed::Sealed::new(self.connection, socket)))
    }
}
