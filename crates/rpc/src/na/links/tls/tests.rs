//! Certificates for tests, and the processes that TLS refuses. The tests of all networks
//! (`super::super::tests`) run over TLS too.

use super::super::channel::Channel;
use super::super::stream::{Read as Received, run_of, total};
use super::super::tcp::Connected;
use super::{Session, Tls};
use crate::failure::Status;
use crate::na::memory::Run;
use crate::na::timed::Timed;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

static MADE: AtomicU32 = AtomicU32::new(0);

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

/// The directory of a process that has a certificate. It is removed with this value.
pub struct Member(TempDir);

impl Authority {
    pub fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        let name = format!("authority {}", MADE.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), certificate }
    }

    pub fn member(&self) -> Member {
        self.sign(|_| {})
    }

    /// Returns a member with an unusual certificate.
    pub fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> Member {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        let member = Member::empty();
        member.write("ca.pem", &self.certificate, 0o644);
        member.write("cert.pem", &certificate, 0o644);
        member.write("key.pem", &key.serialize_pem(), 0o600);
        member
    }
}

impl Member {
    fn empty() -> Member {
        Member(tempfile::tempdir().unwrap())
    }

    pub fn dir(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.dir().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

impl Member {
    pub fn copy_from(&self, other: &Member, files: &[&str]) {
        for file in files {
            std::fs::copy(other.dir().join(file), self.dir().join(file)).unwrap();
        }
    }
}

/// Connects to a server as a client that accepts it as `member` does, with another certificate or
/// without one. Returns the server's error.
pub fn refused_by(place: &str, member: &Member, certificate: Option<&Member>) -> String {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ClientConfig, ClientConnection, crypto::ring, version::TLS13};
    let config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(super::identity::members_of(member.dir()));
    let config = match certificate {
        None => config.with_no_client_auth(),
        Some(certificate) => {
            let path = |file| certificate.dir().join(file);
            let chain = vec![CertificateDer::from_pem_file(path("cert.pem")).unwrap()];
            let key = PrivateKeyDer::from_pem_file(path("key.pem")).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let name = super::NAME.try_into().unwrap();
    let mut session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(place).unwrap();
    let mut stream = rustls::Stream::new(&mut session, &mut socket);
    // The client has completed its part before the server refuses it.
    let greeted = stream.write_all(&[b'x'; 100]).and_then(|()| stream.read(&mut [0; 1]));
    greeted.unwrap_err().to_string()
}

/// Connects two processes with certificates. The first one is the client.
fn connected(tls: &Tls) -> (Session, TcpStream, Session, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let (client, server) = std::thread::scope(|scope| {
        let server = scope.spawn(|| tls.accept(&mut Timed::new(&far, end)).unwrap());
        let client = tls.connect(&mut Timed::new(&near, end)).unwrap();
        (client, server.join().unwrap())
    });
    (client, near, server, far)
}

#[test]
fn both_sides_of_a_connection_have_the_same_binding_and_others_another_one() {
    let member = Authority::new().member();
    let tls = Tls::chosen(Some(member.dir()), "").unwrap().unwrap();
    let (client, _near, server, _far) = connected(&tls);
    assert_eq!(client.binding(), server.binding());
    let (another, ..) = connected(&tls);
    assert_ne!(client.binding(), another.binding());
}

#[test]
fn both_sides_learn_why_a_certificate_is_refused() {
    let (one, two) = (Authority::new().member(), Authority::new().member());
    let [one, two] = [&one, &two].map(|member| Tls::chosen(Some(member.dir()), "").unwrap());
    let time = Duration::from_secs(60);
    for _ in 0..10 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let (client, server) = std::thread::scope(|scope| {
            let server = scope.spawn(|| Channel::as_server(far, one.as_ref(), time).unwrap_err());
            let client = Channel::as_client(near, two.as_ref(), time).unwrap_err();
            (client.to_string(), server.join().unwrap().to_string())
        });
        assert!(client.contains("UnknownIssuer"), "{client}");
        assert!(server.contains("UnknownCA"), "{server}");
    }
}

#[test]
fn bytes_survive_every_division_of_writes_and_reads() {
    let member = Authority::new().member();
    let tls = Tls::chosen(None, member.dir().to_str().unwrap()).unwrap().unwrap();
    let (client, near, server, far) = connected(&tls);
    // The socket takes little at a time, so portions are written in several parts.
    rustix::net::sockopt::set_socket_send_buffer_size(&near, 4096).unwrap();
    let writer = client.into_stream(Connected::new(near).unwrap()).unwrap();
    let reader = server.into_stream(Connected::new(far).unwrap()).unwrap();
    let sent: Vec<u8> = (0..3_000_000usize).map(|n| (n * 31 + n / 509) as u8).collect();
    let mut lens = [1, 22, 16_384, 3, 70_000, 300_000, 16_385, 500].into_iter().cycle();
    let mut rooms = [128 << 10, 1, 5, 4096, 20_000].into_iter().cycle();
    let (mut written, mut posted, mut got, mut refused) = (0, 0, Vec::new(), 0);
    let mut buffer = vec![0; 128 << 10];
    let end = Instant::now() + Duration::from_secs(60);
    while got.len() < sent.len() {
        assert!(Instant::now() < end, "{written} written, {} read", got.len());
        // Refused bytes are presented again, perhaps fewer at a time, as the output does.
        if written == posted {
            posted = (posted + lens.next().unwrap()).min(sent.len());
        }
        let middle = written + (posted - written) / 3;
        let parts = [run_of(&sent[written..middle]), run_of(&sent[middle..posted])];
        let parts = if refused % 3 == 1 && middle > written { &parts[..1] } else { &parts[..] };
        // SAFETY: the parts are borrowed.
        let now = unsafe { writer.write(parts) }.unwrap();
        refused += usize::from(now < total(parts));
        written += now;
        let into = Run { address: buffer.as_mut_ptr() as usize, len: rooms.next().unwrap() };
        // SAFETY: the run is part of the buffer.
        match unsafe { reader.read(&[into]) }.unwrap() {
            Received::Bytes(n) => got.extend_from_slice(&buffer[..n]),
            Received::Nothing => {}
            Received::End => panic!("nobody has ended the connection"),
        }
    }
    assert!(got == sent && refused > 0);
    writer.end_output();
    // SAFETY: there are no parts.
    assert!(unsafe { writer.write(&[]) }.is_err());
    let into = [Run { address: buffer.as_mut_ptr() as usize, len: 10 }];
    // SAFETY: the run is part of the buffer.
    let read = || unsafe { reader.read(&into) }.unwrap();
    while read() == Received::Nothing {
        assert!(Instant::now() < end);
    }
    assert_eq!(read(), Received::End);
}

#[test]
fn wrong_files_are_refused_by_name() {
    let (authority, another) = (Authority::new(), Authority::new());
    let refused = |member: &Member, status, why: &str| {
        let refused = Tls::chosen(Some(member.dir()), "").unwrap_err();
        assert_eq!(refused.status(), status, "{refused}");
        assert!(refused.text().contains(why), "{refused} lacks {why}");
        assert!(refused.text().contains(member.dir().to_str().unwrap()), "{refused}");
    };
    refused(&Member::empty(), Status::IO_ERROR, "ca.pem: ");
    let member = || authority.member();
    for (file, text, why) in [
        ("ca.pem", "", "ca.pem: it contains no certificate"),
        ("cert.pem", "text", "cert.pem: it contains no certificate"),
        ("key.pem", "text", "key.pem: "),
        ("cert.pem", "-----BEGIN CERTIFICATE-----\nAA", "cert.pem: "),
    ] {
        let member = member();
        member.write(file, text, 0o600);
        refused(&member, Status::INVALID_ARG, why);
    }
    for (file, mode) in [("key.pem", 0o640), ("ca.pem", 0o664), ("cert.pem", 0o646)] {
        let member = member();
        let text = std::fs::read_to_string(member.dir().join(file)).unwrap();
        member.write(file, &text, mode);
        refused(&member, Status::PERMISSION, &format!("{file}: its permissions are {mode:o}"));
    }
    let (foreign, other_key) = (member(), member());
    foreign.copy_from(&another.member(), &["cert.pem", "key.pem"]);
    refused(&foreign, Status::INVALID_ARG, "cert.pem: invalid peer certificate: UnknownIssuer");
    other_key.copy_from(&member(), &["key.pem"]);
    refused(&other_key, Status::INVALID_ARG, "cert.pem: keys may not be consistent");
    let expired = authority.sign(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    refused(
        &expired,
        Status::INVALID_ARG,
        "cert.pem: invalid peer certificate: certificate expired",
    );
}
