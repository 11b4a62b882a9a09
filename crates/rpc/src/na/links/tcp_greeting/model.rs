//! A model of the greeting: who can convince whom of what.
//!
//! The honest processes run the state machines [`client`] and [`server`]. The attacker carries all
//! messages between them, so it can forward, delay, drop, replay, reflect and mix them, and it adds
//! messages of its own that it makes from everything that it has seen. It does not know the keys.
//! The model explores every order of these messages, and checks the conclusions of each side (the
//! three claims of [`super`]).
//!
//! The clients that have dialled the address of the attacker, [`EVIL`], have been misled about the
//! address of a server, or it has ended and the attacker has taken its port.

use super::client::{self, AwaitsHello, AwaitsVerdict, Server};
use super::hello::{ClientHello, Offer, ServerHello};
use super::own::Own;
use super::server::{self, AwaitsProof, Verdict};
use super::transcript::Binding;
use crate::na::secret::{Key, Nonce, Proof};
use std::collections::HashSet;
use std::net::SocketAddr;

/// Where the attacker listens.
const EVIL: u16 = 6;

fn at(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

/// The honest processes, by the port where each listens: 1 and 2 share a key, 3 has another one,
/// and 4 and 5 have none.
fn process(port: u16) -> Own {
    let key = match port {
        1 | 2 => Some(Key::of_secret(b"one key")),
        3 => Some(Key::of_secret(b"another key")),
        _ => None,
    };
    let memory = port.is_multiple_of(2).then(|| format!("memory{port}"));
    Own { place: at(port).to_string(), key, memory, ..Own::default() }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Message {
    ClientHello(ClientHello),
    ServerHello(ServerHello),
    Proof(Proof),
    Verdict(Verdict),
}

#[derive(Debug, Clone)]
enum Stage<'a> {
    AwaitsClient,
    AwaitsHello(AwaitsHello<'a>),
    AwaitsVerdict(AwaitsVerdict<'a>),
    AwaitsProof(AwaitsProof<'a>),
    /// The end of a client, with its conclusion.
    Believes(Server),
    /// The end of a server, and whether it takes the client's address as proven.
    Admits(bool),
    Refuses,
}

/// A greeting of an honest process.
#[derive(Debug, Clone)]
struct Session<'a> {
    own: &'a Own,
    /// The address that a client has dialled, or where a server listens.
    server: SocketAddr,
    is_client: bool,
    nonce: Nonce,
    binding: &'a Binding,
    stage: Stage<'a>,
    said: Vec<Message>,
    heard: Vec<Message>,
}

/// A weakness that the protocol does not have, to show that the model finds what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weakness {
    None,
    /// Proofs do not cover the server's address.
    NoAddress,
    /// Servers repeat their random numbers.
    SameNonce,
}

impl<'a> Session<'a> {
    fn hear(&mut self, message: &Message, confirms: impl Fn(&ClientHello) -> bool) {
        self.heard.push(message.clone());
        let stage = std::mem::replace(&mut self.stage, Stage::Refuses);
        self.stage = match (stage, message) {
            (Stage::AwaitsClient, Message::ClientHello(hello)) => {
                let (own, binding) = (self.own, self.binding);
                let (hello, state) = server::answer(own, hello.clone(), self.nonce, 7, binding);
                self.said.push(Message::ServerHello(hello));
                state.map_or(Stage::Refuses, Stage::AwaitsProof)
            }
            (Stage::AwaitsHello(state), Message::ServerHello(hello)) => {
                match state.hear(hello.clone()) {
                    Ok((proof, state)) => {
                        self.said.push(Message::Proof(proof));
                        Stage::AwaitsVerdict(state)
                    }
                    Err(_) => Stage::Refuses,
                }
            }
            (Stage::AwaitsProof(state), Message::Proof(proof)) => match state.hear(proof) {
                Ok(admitted) => {
                    let proven = admitted.has_proven || confirms(&admitted.hello);
                    self.said.push(Message::Verdict(admitted.verdict));
                    Stage::Admits(proven)
                }
                Err(_) => Stage::Refuses,
            },
            (Stage::AwaitsVerdict(state), Message::Verdict(verdict)) => {
                state.hear(verdict.clone()).map_or(Stage::Refuses, Stage::Believes)
            }
            (stage, _) => unreachable!("{message:?} in {stage:?}"),
        };
    }

    /// Returns the messages that the attacker can send to this session.
    fn candidates(&self, seen: &[&Message]) -> Vec<Message> {
        let wanted = |message: &&&Message| {
            matches!(
                (&self.stage, message),
                (Stage::AwaitsClient, Message::ClientHello(_))
                    | (Stage::AwaitsHello(_), Message::ServerHello(_))
                    | (Stage::AwaitsProof(_), Message::Proof(_))
                    | (Stage::AwaitsVerdict(_), Message::Verdict(_))
            )
        };
        let mut all: Vec<Message> = seen.iter().filter(wanted).map(|&m| m.clone()).collect();
        let nonces = seen.iter().filter_map(|message| match message {
            Message::ClientHello(hello) => Some(hello.nonce),
            Message::ServerHello(hello) => Some(hello.nonce),
            _ => None,
        });
        let offers = [false, true].map(|has_key| Offer { has_key, shares: false });
        let proofs = || {
            let own = Key::of_secret(b"guessed").prove(&[]);
            let seen = seen.iter().filter_map(|message| match message {
                Message::Proof(proof) | Message::Verdict(Verdict::Welcome { proof, .. }) => {
                    Some(*proof)
                }
                _ => None,
            });
            seen.chain([[0; 32], own])
        };
        match &self.stage {
            Stage::AwaitsClient => {
                // Its own address, or that of an honest process.
                for (nonce, port) in nonces.chain([[99; 32]]).zip([EVIL, 1, 4, 2, 5].iter().cycle())
                {
                    all.extend(offers.map(|offer| {
                        let place = at(*port).to_string();
                        Message::ClientHello(ClientHello { offer, life: 7, nonce, place })
                    }));
                }
            }
            Stage::AwaitsHello(_) => {
                for nonce in nonces.chain([[99; 32]]) {
                    all.extend(
                        offers.map(|offer| {
                            Message::ServerHello(ServerHello { offer, life: 7, nonce })
                        }),
                    );
                }
            }
            Stage::AwaitsProof(_) => all.extend(proofs().map(Message::Proof)),
            Stage::AwaitsVerdict(_) => {
                all.extend(proofs().flat_map(|proof| {
                    ["", "memory2", "evil"].map(|memory| {
                        Message::Verdict(Verdict::Welcome { proof, memory: memory.into() })
                    })
                }));
            }
            _ => {}
        }
        let mut known = HashSet::new();
        all.retain(|message| known.insert(message.clone()));
        all
    }
}

/// Returns what is wrong with the conclusions of the honest processes.
fn wrong(sessions: &[Session<'_>]) -> Option<String> {
    let shares_key = |a: &Session<'_>, b: &Session<'_>| match (&a.own.key, &b.own.key) {
        (Some(a), Some(b)) => a.prove(&[]) == b.prove(&[]),
        _ => false,
    };
    let mut matched = HashSet::new();
    for (n, own) in sessions.iter().enumerate() {
        let partner = |other: &Session<'_>| {
            let agree = own.heard.first() == other.said.first();
            let agree = agree && other.heard.first() == own.said.first();
            agree && other.is_client != own.is_client && other.server == own.server
        };
        match &own.stage {
            Stage::Admits(_) if own.own.key.is_some() => {
                let of =
                    |(_, other): &(usize, &Session<'_>)| partner(other) && shares_key(own, other);
                match sessions.iter().enumerate().find(of) {
                    Some((client, _)) if matched.insert(client) => {}
                    Some(_) => return Some(format!("server {n} admits a replay")),
                    None => return Some(format!("server {n} admits nobody that has dialled it")),
                }
            }
            Stage::Admits(true) => {
                let of = |other: &Session<'_>| {
                    let Message::ClientHello(claim) = &own.heard[0] else { return false };
                    let asks = other.is_client && other.server == own.server;
                    asks && other.nonce == claim.nonce && other.own.place == claim.place
                };
                if !sessions.iter().any(of) {
                    return Some(format!("server {n} believes a false address"));
                }
            }
            Stage::Believes(server) if own.own.key.is_some() => {
                let of = |other: &Session<'_>| {
                    let admits = matches!(other.stage, Stage::Admits(true));
                    let Some(Message::Verdict(verdict)) = other.said.last() else { return false };
                    let Verdict::Welcome { memory, .. } = verdict else { return false };
                    let same = *memory == server.memory.clone().unwrap_or_default();
                    admits && same && shares_key(own, other) && partner(other)
                };
                if !sessions.iter().any(of) {
                    return Some(format!("client {n} believes in a false server"));
                }
            }
            _ => {}
        }
    }
    None
}

#[derive(Debug, Default)]
struct Explored {
    states: HashSet<Vec<Vec<Message>>>,
    wrong: Option<String>,
    /// Whether a client and a server have reached an end that both agree with.
    completes: bool,
}

fn explore(sessions: &[Session<'_>], explored: &mut Explored) {
    let state = sessions.iter().map(|session| session.heard.clone()).collect();
    if explored.wrong.is_some() || !explored.states.insert(state) {
        return;
    }
    explored.wrong = wrong(sessions).map(|what| {
        let heard = sessions.iter().map(|session| &session.heard);
        format!("{what}; the messages to each session: {:?}", heard.collect::<Vec<_>>())
    });
    explored.completes |= sessions.iter().any(|own| matches!(own.stage, Stage::Believes(_)))
        && sessions.iter().any(|own| matches!(own.stage, Stage::Admits(true)));
    let seen: Vec<&Message> = sessions.iter().flat_map(|session| &session.said).collect();
    // The process at an address is asked about its greetings, with its own memory of them.
    let dials: Vec<_> = sessions.iter().filter(|session| session.is_client).collect();
    for (n, session) in sessions.iter().enumerate() {
        for message in session.candidates(&seen) {
            let mut next = sessions.to_vec();
            next[n].hear(&message, |claim| {
                dials.iter().any(|dial| {
                    let at_claim = dial.own.place == claim.place && dial.own.key.is_none();
                    at_claim && dial.own.dials.include(&claim.nonce, session.server)
                })
            });
            // A refusal that says nothing new leads to the same as a message that is dropped.
            let silent = next[n].said.len() == session.said.len();
            if !(silent && matches!(next[n].stage, Stage::Refuses)) {
                explore(&next, explored);
            }
        }
    }
}

/// Explores what an attacker can do between these clients (a process, and the address that it
/// dials) and one greeting of each of these servers.
fn attacked(clients: &[(u16, u16)], servers: &[u16], weakness: Weakness) -> Explored {
    let all: Vec<Own> = (0..EVIL).map(process).collect();
    let bindings: Vec<Binding> = (0..=EVIL)
        .map(|port| match weakness {
            Weakness::NoAddress => Binding::none(),
            _ => Binding::of_address(at(port)),
        })
        .collect();
    let mut dials = Vec::new();
    let mut sessions = Vec::new();
    for (n, &(port, there)) in clients.iter().enumerate() {
        let (own, binding) = (&all[usize::from(port)], &bindings[usize::from(there)]);
        let nonce = [n as u8 + 1; 32];
        dials.push(own.dials.begin_with(nonce, at(there)));
        let (hello, state) = client::begin(own, nonce, 7, binding);
        sessions.push(Session {
            own,
            server: at(there),
            is_client: true,
            nonce,
            binding,
            stage: Stage::AwaitsHello(state),
            said: vec![Message::ClientHello(hello)],
            heard: Vec::new(),
        });
    }
    for (n, &port) in servers.iter().enumerate() {
        let nonce = if weakness == Weakness::SameNonce { 50 } else { n as u8 + 50 };
        sessions.push(Session {
            own: &all[usize::from(port)],
            server: at(port),
            is_client: false,
            nonce: [nonce; 32],
            binding: &bindings[usize::from(port)],
            stage: Stage::AwaitsClient,
            said: Vec::new(),
            heard: Vec::new(),
        });
    }
    let mut explored = Explored::default();
    explore(&sessions, &mut explored);
    explored
}

#[test]
fn nobody_is_convinced_of_anything_false() {
    /// The clients, the servers, and whether a greeting can complete.
    type Case = (&'static [(u16, u16)], &'static [u16], bool);
    let cases: [Case; 13] = [
        // A client with the key, whose messages the attacker carries to the right server.
        (&[(1, 2)], &[2], true),
        (&[(2, 1)], &[1], true),
        // A replay to a second greeting of the server.
        (&[(1, 2)], &[2, 2], true),
        // The client has dialled the attacker, which forwards to servers with the key.
        (&[(1, EVIL)], &[2, 1], false),
        (&[(2, EVIL)], &[1], false),
        // A client of each: the attacker mixes their messages.
        (&[(1, 2), (1, EVIL)], &[2], true),
        // A process in both roles: its messages are reflected.
        (&[(1, 2)], &[1], false),
        // Processes with another key and without one.
        (&[(3, 2)], &[2], false),
        (&[(4, 2)], &[2], false),
        (&[(1, 4)], &[4], false),
        // Without a key: the claim of an address is confirmed, or not.
        (&[(4, 5)], &[5], true),
        (&[(4, EVIL)], &[5], false),
        (&[(4, 5), (4, EVIL)], &[5], true),
    ];
    for (clients, servers, completes) in cases {
        let explored = attacked(clients, servers, Weakness::None);
        let states = explored.states.len();
        println!("{clients:?} {servers:?}: {states} states");
        assert_eq!(explored.wrong, None, "{clients:?} {servers:?}");
        assert_eq!(explored.completes, completes, "{clients:?} {servers:?}, {states} states");
    }
}

#[test]
fn without_the_address_in_the_proofs_a_greeting_can_be_forwarded() {
    let explored = attacked(&[(1, EVIL)], &[2], Weakness::NoAddress);
    assert!(explored.wrong.is_some_and(|what| what.contains("admits nobody that has dialled it")));
}

#[test]
fn without_new_random_numbers_a_greeting_can_be_replayed() {
    let explored = attacked(&[(1, 2)], &[2, 2], Weakness::SameNonce);
    assert!(explored.wrong.is_some_and(|what| what.contains("admits a replay")));
}
