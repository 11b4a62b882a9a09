//! The certificates and the key of this process, from a directory:
//!
//! | file | contents |
//! |---|---|
//! | `ca.pem` | certificates of the authority |
//! | `cert.pem` | the certificate of this process, and intermediate ones |
//! | `key.pem` | its private key |
//!
//! The own certificate is verified when it is loaded, so that a wrong or expired one is reported
//! here and not by peers.

use super::Tls;
use crate::failure::{Failure, Result, Status};
use crate::na::private_file::{self, Others};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, DigitallySignedStruct, PeerIncompatible, RootCertStore, ServerConfig,
    SignatureScheme,
};
use std::path::Path;
use std::sync::Arc;

const MOST: usize = 1 << 20;

/// Accepts certificates of the authority, for any name.
#[derive(Debug)]
struct Members {
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Members {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let certificate = ParsedCertificate::try_from(certificate)?;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::ServerDoesNotSupportTls12Or13.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Loads the certificates in `dir`, which the option or variable `option` names. Returns
/// `PERMISSION` if other users can read the key or change a file, `IO_ERROR` if a file cannot be
/// read, and `INVALID_ARG` if the contents are invalid, or if the certificate does not belong to
/// the authority or the key, or has expired.
pub(super) fn load(option: &str, dir: &Path) -> Result<Tls> {
    let name = |file: &str| format!("{option}={}: {file}", dir.display());
    let read = |file: &str, others| private_file::read(&name(file), &dir.join(file), others, MOST);
    let invalid = |file: &str, why: &dyn std::fmt::Display| {
        Failure::new(Status::INVALID_ARG, format!("{}: {why}", name(file)))
    };
    let certificates = |file: &str| {
        let bytes = read(file, Others::Read)?;
        let found: std::result::Result<Vec<_>, pem::Error> =
            CertificateDer::pem_slice_iter(&bytes).collect();
        match found {
            Ok(found) if found.is_empty() => Err(invalid(file, &"it contains no certificate")),
            Ok(found) => Ok(found),
            Err(error) => Err(invalid(file, &error)),
        }
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca.pem")? {
        roots.add(certificate).map_err(|error| invalid("ca.pem", &error))?;
    }
    let roots = Arc::new(roots);
    let chain = certificates("cert.pem")?;
    let key = PrivateKeyDer::from_pem_slice(&read("key.pem", Others::None)?)
        .map_err(|error| invalid("key.pem", &error))?;

    let provider = Arc::new(ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let members = Arc::new(Members { roots: roots.clone(), algorithms });
    let unnamed = ServerName::try_from(super::NAME).expect("a name");
    members
        .verify_server_cert(&chain[0], &chain[1..], &unnamed, &[], UnixTime::now())
        .map_err(|error| invalid("cert.pem", &error))?;
    Ok(Tls {
        client: client(&provider, members, &chain, &key).map_err(|e| invalid("cert.pem", &e))?,
        server: server(&provider, roots, chain, key).map_err(|e| invalid("cert.pem", &e))?,
    })
}

fn client(
    provider: &Arc<CryptoProvider>,
    members: Arc<Members>,
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
) -> std::result::Result<Arc<ClientConfig>, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .dangerous() // Names are not compared: the module `tls` gives the reason.
        .with_custom_certificate_verifier(members)
        .with_client_auth_cert(chain.to_vec(), key.clone_key())?;
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(Arc::new(config))
}

fn server(
    provider: &Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> std::result::Result<Arc<ServerConfig>, rustls::Error> {
    let members = WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(members)
        .with_single_cert(chain, key)?;
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Returns the verifier of servers that a process with the certificates in `dir` uses.
#[cfg(test)]
pub(super) fn members_of(dir: &Path) -> Arc<dyn ServerCertVerifier> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(dir.join("ca.pem")).unwrap()).unwrap();
    let algorithms = ring::default_provider().signature_verification_algorithms;
    Arc::new(Members { roots: Arc::new(roots), algorithms })
}
