//! A socket during its greeting, which blocks under a deadline. TLS begins before the greeting.
//!
//! The server looks at the client's first byte, so both learn if only one side uses TLS.

use super::listener::Refusal;
use super::stream::Stream;
use super::tcp::Connected;
use super::tcp_greeting::{self as greeting, Binding};
use super::tls::{self, Session, Tls};
use crate::na::timed::Timed;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Time for a refused peer to read the reason.
const READING: Duration = Duration::from_secs(1);
const UNREAD: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Channel {
    socket: TcpStream,
    session: Option<Session>,
    end: Instant,
}

/// Waits until a refused peer has closed the socket. Bytes that were not read when this side closes
/// it would reset the connection, and the peer would not receive the reason.
fn say_goodbye(socket: &TcpStream) {
    let mut timed = Timed::new(socket, Instant::now() + READING);
    let (mut buffer, mut left) = ([0; 4096], UNREAD);
    let _ = socket.shutdown(Shutdown::Write);
    while let Ok(n @ 1..) = timed.read(&mut buffer) {
        left = left.saturating_sub(n);
        if left == 0 {
            break;
        }
    }
}

impl Channel {
    fn new(
        socket: TcpStream,
        time: Duration,
        begin: impl FnOnce(&mut Timed<'_>) -> Result<Option<Session>, Refusal>,
    ) -> Result<Channel, Refusal> {
        let end = Instant::now() + time;
        match begin(&mut Timed::new(&socket, end)) {
            Ok(session) => Ok(Channel { socket, session, end }),
            Err(refusal) => {
                if matches!(refusal, Refusal::Plain | Refusal::TlsOnly | Refusal::Tls(_)) {
                    say_goodbye(&socket);
                }
                Err(refusal)
            }
        }
    }

    /// Begins TLS, if used, on a connected socket. The greeting must complete within `time`. Fails
    /// if only one side uses TLS, or the peer's certificate is not accepted.
    pub fn as_client(
        socket: TcpStream,
        tls: Option<&Tls>,
        time: Duration,
    ) -> Result<Channel, Refusal> {
        Channel::new(socket, time, |timed| tls.map(|tls| tls.connect(timed)).transpose())
    }

    /// Begins TLS, if used, on an accepted socket, like [`Channel::as_client`].
    pub fn as_server(
        socket: TcpStream,
        tls: Option<&Tls>,
        time: Duration,
    ) -> Result<Channel, Refusal> {
        Channel::new(socket, time, |timed| {
            let first = timed.peek()?;
            match tls {
                None if first == tls::FIRST => {
                    greeting::decline(timed)?;
                    Err(Refusal::TlsOnly)
                }
                None => Ok(None),
                Some(_) if greeting::is_first(first) => {
                    greeting::decline(timed)?;
                    Err(Refusal::Plain)
                }
                Some(_) if first != tls::FIRST => Err(Refusal::Rubbish),
                Some(tls) => tls.accept(timed).map(Some),
            }
        })
    }

    pub fn extend(&mut self, time: Duration) {
        self.end = Instant::now() + time;
    }

    /// Returns what identifies this connection at both ends. `server` is the server's address.
    pub fn binding(&self, server: SocketAddr) -> Binding {
        match &self.session {
            None => Binding::of_address(server),
            Some(session) => Binding::of_tls(&session.binding()),
        }
    }

    pub fn into_stream(self) -> io::Result<Box<dyn Stream>> {
        let connected = Connected::new(self.socket)?;
        match self.session {
            None => Ok(Box::new(connected)),
            Some(session) => session.into_stream(connected),
        }
    }
}

impl Read for Channel {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut timed = Timed::new(&self.socket, self.end);
        match &mut self.session {
            None => timed.read(bytes),
            Some(session) => session.read(&mut timed, bytes),
        }
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut timed = Timed::new(&self.socket, self.end);
        match &mut self.session {
            None => timed.write(bytes),
            Some(session) => session.write(&mut timed, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
