//! The server's side as a state machine: [`answer`], then [`AwaitsProof`], then [`Admitted`].

use super::hello::{ClientHello, ServerHello, take, text};
use super::own::Own;
use super::transcript::{Binding, Transcript};
use crate::na::links::listener::Refusal;
use crate::na::secret::{Nonce, Proof};
use std::io::Read;

const WELCOME: u8 = 1;
const REFUSED: u8 = 2;

/// Step 4: the server's verdict about the client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// `memory` is the name of the server's shared memory, or empty.
    Welcome {
        proof: Proof,
        memory: String,
    },
    Refused,
}

impl Verdict {
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Verdict::Refused => vec![REFUSED],
            Verdict::Welcome { proof, memory } => {
                [&[WELCOME][..], proof, &[memory.len() as u8], memory.as_bytes()].concat()
            }
        }
    }

    pub fn read(socket: &mut impl Read) -> Result<Verdict, Refusal> {
        match take(socket)? {
            [WELCOME] => {
                let proof = take(socket)?;
                let [len] = take(socket)?;
                Ok(Verdict::Welcome { proof, memory: text(socket, len.into())? })
            }
            [REFUSED] => Ok(Verdict::Refused),
            _ => Err(Refusal::Rubbish),
        }
    }
}

/// The server has sent its hello.
#[derive(Debug, Clone)]
pub struct AwaitsProof<'a> {
    own: &'a Own,
    said: Transcript<'a>,
}

/// A client that may connect. If this server has a key, the client has proven that it knows it too,
/// and `hello.place` is its address. Otherwise the address is a claim.
#[derive(Debug, Clone)]
pub struct Admitted {
    pub hello: ClientHello,
    pub has_proven: bool,
    /// Step 4.
    pub verdict: Verdict,
    pub has_memory: bool,
}

/// Takes step 1. Returns step 2, and the state after it, which is a refusal if one side has no key:
/// the client learns that from step 2.
pub fn answer<'a>(
    own: &'a Own,
    client: ClientHello,
    nonce: Nonce,
    life: u64,
    binding: &'a Binding,
) -> (ServerHello, Result<AwaitsProof<'a>, Refusal>) {
    let server = ServerHello { offer: own.offer(), life, nonce };
    if client.offer.has_key != own.key.is_some() {
        return (server, Err(Refusal::Unproven));
    }
    let said = Transcript { client, server: server.clone(), binding };
    (server, Ok(AwaitsProof { own, said }))
}

impl AwaitsProof<'_> {
    /// Takes step 3. Fails if it does not prove the key; the client is then to be sent
    /// [`Verdict::Refused`].
    pub fn hear(self, proof: &Proof) -> Result<Admitted, Refusal> {
        let AwaitsProof { own, said } = self;
        let key = own.key.as_ref();
        if !said.verify_client(key, proof) {
            return Err(Refusal::Unproven);
        }
        let wanted = own.memory.as_deref().filter(|_| said.client.offer.shares);
        let memory = wanted.unwrap_or_default().to_string();
        let has_memory = !memory.is_empty();
        let verdict = Verdict::Welcome { proof: said.server_proof(key, &memory), memory };
        Ok(Admitted { hello: said.client, has_proven: key.is_some(), verdict, has_memory })
    }
}
