//! The simulated network, which gives the guarantees of MPI and no others.
//!
//! Messages of one sender on one communicator arrive in order. Between senders and between
//! communicators, the seed decides the order. A receive takes the first message that matches it,
//! and a message takes the first receive. A short message may leave at once (*eager*). Any other
//! message leaves when it is matched (*rendezvous*): then either the sender transfers the bytes in
//! its own next call, or the receiver fetches them and notifies the sender, as the seed decides.
//! Data moves only inside MPI calls of the rank concerned, because MPI makes no progress by itself.
//!
//! Incorrect use of MPI ends the run: a receive buffer that is too short, a request that does not
//! exist, collectives that do not match. Objects that are left at the end are reported.

mod collectives;
mod messages;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub messages: u64,
    pub bytes: u64,
    pub collectives: u64,
    /// Maximum number of unmatched messages that lay at this rank.
    pub most_unexpected: usize,
}

#[derive(Debug)]
enum Body {
    Eager(Vec<u8>),
    /// The bytes are still at the sender: its request and their location.
    Long {
        request: u32,
        data: usize,
        len: usize,
    },
}

/// A message on its way, or arrived and unmatched.
#[derive(Debug)]
pub struct Message {
    /// World rank of the sender.
    pub source: usize,
    pub tag: i32,
    context: u32,
    body: Body,
}

impl Message {
    pub fn bytes(&self) -> usize {
        match &self.body {
            Body::Eager(bytes) => bytes.len(),
            Body::Long { len, .. } => *len,
        }
    }
}

#[derive(Debug)]
struct Posted {
    source: Option<usize>,
    tag: Option<i32>,
    request: u32,
}

/// An event that happens to a rank in its next MPI call after the event's time.
#[derive(Debug)]
enum Event {
    Arrive(Message),
    /// A receive is ready for the bytes of a send of this rank.
    Clear {
        request: u32,
        data: usize,
        len: usize,
        to: usize,
        receive: u32,
        tag: i32,
    },
    /// The bytes of a long message have arrived.
    Data {
        receive: u32,
        bytes: Vec<u8>,
        source: usize,
        tag: i32,
    },
    /// This rank fetches the bytes of a long message.
    Fetch {
        receive: u32,
        request: u32,
        data: usize,
        len: usize,
        source: usize,
        tag: i32,
    },
    Done {
        request: u32,
    },
    /// A collective is done. The event contains this rank's part of the result.
    Collect {
        request: u32,
        result: Arc<Vec<u8>>,
        from: usize,
        len: usize,
    },
}

#[derive(Debug, Default)]
struct Mailbox {
    events: BTreeMap<(u64, u64), Event>,
    /// Arrived and unmatched messages, by communicator.
    here: HashMap<u32, VecDeque<Message>>,
    posted: HashMap<u32, VecDeque<Posted>>,
    /// By sender and communicator: the arrival time of the last message on its way, and the number
    /// of messages on their way.
    flying: HashMap<(usize, u32), (u64, usize)>,
    unexpected: usize,
    /// Number of arrived and unmatched messages, by sender.
    behind: HashMap<usize, usize>,
}

/// Unmatched messages of one sender at a rank: the requests and answers that credits permit.
const MOST_BEHIND: usize = 2 * portolan_engine::path::two_sided::MOST_IN_FLIGHT as usize;

#[derive(Debug)]
struct Request {
    rank: usize,
    context: u32,
    kind: &'static str,
    /// Address and size in bytes of the buffer for a receive or a result.
    to: usize,
    room: usize,
    /// Source, tag and bytes, once the request is done.
    done: Option<(usize, i32, usize)>,
}

/// A reduction: combines the elements at the first pointer into those at the second. The third
/// argument is the number of elements.
pub type Combine = Arc<dyn Fn(*const u8, *mut u8, usize) + Send + Sync>;

#[derive(Clone)]
pub enum Kind {
    Barrier,
    Broadcast {
        root: usize,
    },
    Allgather,
    Reduce {
        root: Option<usize>,
        combine: Combine,
        count: usize,
    },
    Scan {
        exclusive: bool,
        combine: Combine,
        count: usize,
    },
    Gather {
        root: usize,
    },
    /// Every member passes a buffer of the same length. Only the root's is used.
    Scatter {
        root: usize,
    },
    Exchange,
    Dup,
    /// The members of a new communicator meet on it.
    Create,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Kind {
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Barrier => "a barrier",
            Kind::Broadcast { .. } => "a broadcast",
            Kind::Allgather => "an allgather",
            Kind::Reduce { .. } => "a reduction",
            Kind::Scan { .. } => "a scan",
            Kind::Gather { .. } => "a gather",
            Kind::Scatter { .. } => "a scatter",
            Kind::Exchange => "an exchange",
            Kind::Dup => "a duplication",
            Kind::Create => "a creation",
        }
    }
}

/// A collective that some members have begun.
#[derive(Debug)]
struct Collective {
    kind: Kind,
    len: usize,
    first: usize,
    /// The contribution and the request of each member, by its number.
    parts: BTreeMap<usize, (Vec<u8>, u32)>,
    entered: usize,
    result: Option<Arc<Vec<u8>>>,
}

#[derive(Debug)]
pub struct Communicator {
    /// World ranks of the members.
    pub members: Arc<Vec<usize>>,
    place: HashMap<usize, usize>,
    freed: usize,
    /// Number of collectives begun, by member.
    begun: Vec<u64>,
    collectives: BTreeMap<u64, Collective>,
}

impl Communicator {
    fn new(members: Vec<usize>) -> Communicator {
        let place = members.iter().enumerate().map(|(place, &rank)| (rank, place)).collect();
        let begun = vec![0; members.len()];
        let (members, collectives) = (Arc::new(members), BTreeMap::new());
        Communicator { members, place, freed: 0, begun, collectives }
    }

    /// Returns the number of a world rank in the communicator.
    pub fn place(&self, rank: usize) -> Option<usize> {
        self.place.get(&rank).copied()
    }
}

#[derive(Debug)]
pub struct Network {
    mail: Vec<Mailbox>,
    contexts: BTreeMap<u32, Communicator>,
    next_context: u32,
    groups: HashMap<u32, Arc<Vec<usize>>>,
    next_group: u32,
    requests: BTreeMap<u32, Request>,
    next_request: u32,
    matched: HashMap<u32, Message>,
    next_matched: u32,
    /// Creations that only some members have begun: the context and the number of these members.
    creations: HashMap<(u32, i32, Vec<usize>), (u32, usize)>,
    next_number: u64,
    pub traffic: Vec<Traffic>,
}

pub const WORLD: u32 = 1;

impl Network {
    pub fn new(ranks: usize) -> Network {
        Network {
            mail: (0..ranks).map(|_| Mailbox::default()).collect(),
            contexts: BTreeMap::from([(WORLD, Communicator::new((0..ranks).collect()))]),
            next_context: WORLD + 1,
            groups: HashMap::new(),
            next_group: 1,
            requests: BTreeMap::new(),
            next_request: 1,
            matched: HashMap::new(),
            next_matched: 1,
            creations: HashMap::new(),
            next_number: 0,
            traffic: vec![Traffic::default(); ranks],
        }
    }

    pub fn context(&self, context: u32) -> Option<&Communicator> {
        self.contexts.get(&context)
    }

    pub fn is_clean(&self) -> Result<(), String> {
        if let Some((id, request)) = self.requests.iter().next() {
            let Request { rank, kind, done, .. } = request;
            let count = self.requests.len();
            let done = if done.is_some() { "done" } else { "not done" };
            return Err(format!("{count} requests are left: {kind} of rank {rank} ({id}), {done}"));
        }
        if let Some((id, context)) = self.contexts.iter().find(|(id, _)| **id != WORLD) {
            let (ranks, freed) = (context.members.len(), context.freed);
            return Err(format!("communicator {id} of {ranks} ranks was freed by {freed} of them"));
        }
        for (rank, mail) in self.mail.iter().enumerate() {
            if let Some(event) = mail.events.values().next() {
                return Err(format!("rank {rank} never received {event:?}"));
            }
            if let Some(message) = mail.here.values().flatten().next() {
                return Err(format!("rank {rank} never received {message:?}"));
            }
        }
        if !self.matched.is_empty() || !self.groups.is_empty() {
            let (messages, groups) = (self.matched.len(), self.groups.len());
            return Err(format!("{messages} matched messages and {groups} groups are left"));
        }
        Ok(())
    }

    pub fn describe(&self, rank: usize) -> String {
        let mail = &self.mail[rank];
        let posted: usize = mail.posted.values().map(VecDeque::len).sum();
        let here: Vec<String> = mail
            .here
            .values()
            .flatten()
            .map(|m| format!("from {} tag {} {} bytes", m.source, m.tag, m.bytes()))
            .take(4)
            .collect();
        format!(
            "{} on the way, {} unmatched {here:?}, {posted} receives",
            mail.events.len(),
            mail.unexpected
        )
    }

    fn new_context(&mut self, members: Vec<usize>) -> u32 {
        let id = self.next_context;
        self.next_context += 1;
        self.contexts.insert(id, Communicator::new(members));
        id
    }

    pub fn new_group(&mut self, members: Arc<Vec<usize>>) -> u32 {
        let id = self.next_group;
        self.next_group += 1;
        self.groups.insert(id, members);
        id
    }

    pub fn group(&self, group: u32) -> Option<Arc<Vec<usize>>> {
        self.groups.get(&group).cloned()
    }

    pub fn free_group(&mut self, group: u32) -> bool {
        self.groups.remove(&group).is_some()
    }

    fn new_request(
        &mut self,
        (rank, context): (usize, u32),
        kind: &'static str,
        to: usize,
        room: usize,
    ) -> u32 {
        let id = self.next_request;
        self.next_request += 1;
        self.requests.insert(id, Request { rank, context, kind, to, room, done: None });
        id
    }

    fn finish(&mut self, request: u32, source: usize, tag: i32, bytes: usize) {
        if let Some(request) = self.requests.get_mut(&request) {
            request.done = Some((source, tag, bytes));
        }
    }

    /// Returns source, tag and bytes of the first matching message that waits here unmatched.
    pub fn find_message(
        &self,
        rank: usize,
        context: u32,
        source: Option<usize>,
        tag: Option<i32>,
    ) -> Option<(usize, i32, usize)> {
        let message = self.mail[rank].here.get(&context)?.iter().find(|m| fits(source, tag, m))?;
        Some((message.source, message.tag, message.bytes()))
    }

    fn take_here(
        &mut self,
        rank: usize,
        context: u32,
        source: Option<usize>,
        tag: Option<i32>,
    ) -> Option<Message> {
        let mail = &mut self.mail[rank];
        let here = mail.here.get_mut(&context)?;
        let at = here.iter().position(|m| fits(source, tag, m))?;
        mail.unexpected -= 1;
        let message = here.remove(at)?;
        *mail.behind.get_mut(&message.source)? -= 1;
        Some(message)
    }
}

fn fits(source: Option<usize>, tag: Option<i32>, message: &Message) -> bool {
    source.is_none_or(|source| source == message.source) && tag.is_none_or(|tag| tag == message.tag)
}
