//! A proof covers everything that both sides have said, and the connection that carries it.
//!
//! Each side takes the [`Binding`] from its own socket and does not send it, so a third process
//! that forwards messages between two connections cannot make the bindings agree.

use super::hello::{ClientHello, ServerHello};
use crate::na::secret::{Key, PROOF, Proof};
use std::net::{IpAddr, SocketAddr};

/// Identifies a connection at both of its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding(Vec<u8>);

/// Returns an address without the differences between IPv4 and IPv4 in IPv6, and without the number
/// of the interface, which each host chooses.
pub(super) fn canonical(at: SocketAddr) -> (IpAddr, u16) {
    (at.ip().to_canonical(), at.port())
}

/// Identifies the running kernel and the network namespace of this thread. Empty if the system does
/// not say.
fn this_host() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = std::fs::read_link("/proc/thread-self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), network.display())
}

impl Binding {
    /// Returns the binding of a connection without TLS: the address of the server that the client's
    /// socket is connected to, which is the local address of the server's socket. It is numeric and
    /// has no wildcards. Every host has the same loopback addresses, so these include the host.
    pub fn of_address(server: SocketAddr) -> Binding {
        let (ip, port) = canonical(server);
        let host = if ip.is_loopback() { this_host() } else { String::new() };
        Binding(format!("address {ip} {port} {host}").into_bytes())
    }

    /// Returns the binding of a TLS connection: bytes that only its two sides can compute.
    pub fn of_tls(exported: &[u8]) -> Binding {
        Binding([b"tls ", exported].concat())
    }

    #[cfg(test)]
    pub fn none() -> Binding {
        Binding(Vec::new())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Role {
    Client = 1,
    Server = 2,
}

/// The steps 1 and 2, and the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript<'a> {
    pub client: ClientHello,
    pub server: ServerHello,
    pub binding: &'a Binding,
}

impl Transcript<'_> {
    /// Calls `with` with the parts that a proof of this role covers.
    fn parts<T>(&self, role: Role, memory: &str, with: impl FnOnce(&[&[u8]]) -> T) -> T {
        let (client, server) = (self.client.bytes(), self.server.bytes());
        with(&[&[role as u8], &client, &server, &self.binding.0, memory.as_bytes()])
    }

    fn prove(&self, key: Option<&Key>, role: Role, memory: &str) -> Proof {
        key.map_or([0; PROOF], |key| self.parts(role, memory, |parts| key.prove(parts)))
    }

    fn verify(&self, key: Option<&Key>, role: Role, memory: &str, proof: &Proof) -> bool {
        key.is_none_or(|key| self.parts(role, memory, |parts| key.verify(parts, proof)))
    }

    /// Returns the client's proof, or zeros without a key.
    pub fn client_proof(&self, key: Option<&Key>) -> Proof {
        self.prove(key, Role::Client, "")
    }

    /// Verifies the client's proof in constant time. Without a key, every proof is valid.
    pub fn verify_client(&self, key: Option<&Key>, proof: &Proof) -> bool {
        self.verify(key, Role::Client, "", proof)
    }

    /// Returns the server's proof, which also covers the name of its shared memory.
    pub fn server_proof(&self, key: Option<&Key>, memory: &str) -> Proof {
        self.prove(key, Role::Server, memory)
    }

    /// Verifies the server's proof, like [`Transcript::verify_client`].
    pub fn verify_server(&self, key: Option<&Key>, memory: &str, proof: &Proof) -> bool {
        self.verify(key, Role::Server, memory, proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_a_connection_see_the_same_binding() {
        use std::net::{TcpListener, TcpStream};
        for (listen, dial) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("0.0.0.0:0", "127.0.0.1"),
            ("0.0.0.0:0", "127.0.0.2"),
            ("0.0.0.0:0", "0.0.0.0"),
            ("0.0.0.0:0", "localhost"),
            ("[::]:0", "127.0.0.1"),
            ("[::]:0", "::1"),
        ] {
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let port = listener.local_addr().unwrap().port();
            let Ok(client) = TcpStream::connect((dial, port)) else { continue };
            let (server, _) = listener.accept().unwrap();
            let seen = [client.peer_addr().unwrap(), server.local_addr().unwrap()];
            let [dialled, own] = seen.map(Binding::of_address);
            assert_eq!(dialled, own, "{listen} {dial}");
            let text = String::from_utf8(own.0).unwrap();
            assert!(text.contains("net:["), "loopback of which host? {text}");
        }
        let at = |text: &str| Binding::of_address(text.parse().unwrap());
        assert_eq!(at("192.0.2.1:7"), at("[::ffff:192.0.2.1]:7"));
        assert_eq!(at("[fe80::1%1]:7"), at("[fe80::1%2]:7"));
        assert_ne!(at("192.0.2.1:7"), at("192.0.2.1:8"));
        assert_ne!(at("192.0.2.1:7"), at("192.0.2.2:7"));
    }
}
