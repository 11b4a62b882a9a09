//! The client's side as a state machine: `begin`, then [`AwaitsHello`], then [`AwaitsVerdict`].
//!
//! A state consumes a message of the server and yields the next message and state, so no step can
//! be omitted or repeated.

use super::hello::{ClientHello, ServerHello};
use super::own::Own;
use super::server::Verdict;
use super::transcript::{Binding, Transcript};
use crate::na::links::listener::Refusal;
use crate::na::secret::{Nonce, Proof};

/// A server that has accepted this client. If this client has a key, the server has proven that it
/// knows it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub life: u64,
    pub memory: Option<String>,
}

/// The client has sent its hello.
#[derive(Debug, Clone)]
pub struct AwaitsHello<'a> {
    own: &'a Own,
    binding: &'a Binding,
    client: ClientHello,
}

/// The client has sent its proof.
#[derive(Debug, Clone)]
pub struct AwaitsVerdict<'a> {
    own: &'a Own,
    said: Transcript<'a>,
}

/// Returns step 1, and the state after it.
pub fn begin<'a>(
    own: &'a Own,
    nonce: Nonce,
    life: u64,
    binding: &'a Binding,
) -> (ClientHello, AwaitsHello<'a>) {
    let client = ClientHello { offer: own.offer(), life, nonce, place: own.place.clone() };
    (client.clone(), AwaitsHello { own, binding, client })
}

impl<'a> AwaitsHello<'a> {
    /// Takes step 2. Returns step 3, and the state after it. Fails if one side has no key.
    pub fn hear(self, server: ServerHello) -> Result<(Proof, AwaitsVerdict<'a>), Refusal> {
        let AwaitsHello { own, binding, client } = self;
        match (server.offer.has_key, own.key.is_some()) {
            (true, false) => return Err(Refusal::Refused),
            (false, true) => return Err(Refusal::Unproven),
            _ => {}
        }
        let said = Transcript { client, server, binding };
        Ok((said.client_proof(own.key.as_ref()), AwaitsVerdict { own, said }))
    }
}

impl AwaitsVerdict<'_> {
    /// Takes step 4. Fails if the server refuses this client or does not prove the key, or offers
    /// shared memory that this client has not asked for.
    pub fn hear(self, verdict: Verdict) -> Result<Server, Refusal> {
        let Verdict::Welcome { proof, memory } = verdict else { return Err(Refusal::Refused) };
        let AwaitsVerdict { own, said } = self;
        if !said.verify_server(own.key.as_ref(), &memory, &proof) {
            return Err(Refusal::Unproven);
        }
        if !memory.is_empty() && own.memory.is_none() {
            return Err(Refusal::Rubbish);
        }
        let memory = Some(memory).filter(|memory| !memory.is_empty());
        Ok(Server { life: said.server.life, memory })
    }
}
