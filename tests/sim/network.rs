//! The simulated network: what MPI promises of messages, and no more.
//!
//! Messages of a sender on a communicator arrive in the order in which they were sent; between
//! senders, and between communicators, the seed decides. A receive takes the first message that
//! matches it, a message the first receive. A short message may leave at once (*eager*); any
//! other leaves when it is matched (*rendezvous*): then the sender gives the bytes away in its
//! own next call, or the receiver fetches them and tells the sender, as the seed decides. Nothing
//! moves but inside calls of MPI by the rank concerned: MPI makes no progress by itself.
//!
//! What a program does wrong with MPI ends the run: a receive that is too short, a request that
//! is no more, collectives that do not fit each other; and what is left at the end is told.

use crate::behaviour::Behaviour;
use crate::machine::Machine;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// What a rank has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub messages: u64,
    pub bytes: u64,
    pub collectives: u64,
    /// The most messages that lay at this rank, received by nobody.
    pub most_unexpected: usize,
}

#[derive(Debug)]
enum Body {
    Eager(Vec<u8>),
    /// The bytes are at the sender still: its request and where they are.
    Long {
        request: u32,
        data: usize,
        len: usize,
    },
}

/// A message on its way, or arrived and unmatched.
#[derive(Debug)]
pub struct Message {
    /// World rank.
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

/// What happens to a rank when it next calls MPI, once it is time.
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
    /// The bytes of a long message are here.
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
    /// A request is done.
    Done {
        request: u32,
    },
    /// A collective is done: the bytes of its result that are this rank's.
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
    /// Arrived and unmatched, by communicator.
    here: HashMap<u32, VecDeque<Message>>,
    posted: HashMap<u32, VecDeque<Posted>>,
    /// By sender and communicator: the arrival of the last message on its way, and how many are.
    flying: HashMap<(usize, u32), (u64, usize)>,
    unexpected: usize,
}

#[derive(Debug)]
struct Request {
    rank: usize,
    context: u32,
    kind: &'static str,
    /// Where a receive or a result goes, and its room.
    to: usize,
    room: usize,
    /// Source, tag and bytes, once it is done.
    done: Option<(usize, i32, usize)>,
}

/// A communicator.
#[derive(Debug)]
pub struct Context {
    /// World ranks.
    pub members: Arc<Vec<usize>>,
    place: HashMap<usize, usize>,
    freed: usize,
    /// By member: collectives begun.
    begun: Vec<u64>,
    collectives: BTreeMap<u64, Collective>,
}

impl Context {
    fn new(members: Vec<usize>) -> Context {
        let place = members.iter().enumerate().map(|(place, &rank)| (rank, place)).collect();
        let begun = vec![0; members.len()];
        let (members, collectives) = (Arc::new(members), BTreeMap::new());
        Context { members, place, freed: 0, begun, collectives }
    }

    /// The number of a world rank in it.
    pub fn place(&self, rank: usize) -> Option<usize> {
        self.place.get(&rank).copied()
    }
}

/// A reduction of MPI: elements of the second are combined into the third argument.
pub type Combine = Arc<dyn Fn(*const u8, *mut u8, usize) + Send + Sync>;

/// What a collective does.
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
    Dup,
    SplitByHost,
    /// Ranks meet on a communicator made for them.
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
            Kind::Dup => "a duplication",
            Kind::SplitByHost => "a split",
            Kind::Create => "a creation",
        }
    }
}

/// A collective that some have begun.
#[derive(Debug)]
struct Collective {
    kind: Kind,
    len: usize,
    first: usize,
    /// By member: what it gave, and its request.
    parts: BTreeMap<usize, (Vec<u8>, u32)>,
    entered: usize,
    result: Option<Arc<Vec<u8>>>,
}

/// The network, and the objects of MPI.
#[derive(Debug)]
pub struct Network {
    ranks_per_host: usize,
    mail: Vec<Mailbox>,
    contexts: BTreeMap<u32, Context>,
    next_context: u32,
    groups: HashMap<u32, Arc<Vec<usize>>>,
    next_group: u32,
    requests: BTreeMap<u32, Request>,
    next_request: u32,
    matched: HashMap<u32, Message>,
    next_matched: u32,
    /// Creations of communicators by some of their parent's ranks.
    creations: HashMap<(u32, i32, Vec<usize>), (u32, usize)>,
    next_number: u64,
    pub traffic: Vec<Traffic>,
}

/// The context of `MPI_COMM_WORLD`.
pub const WORLD: u32 = 1;

impl Network {
    pub fn new(ranks: usize, ranks_per_host: usize) -> Network {
        Network {
            ranks_per_host,
            mail: (0..ranks).map(|_| Mailbox::default()).collect(),
            contexts: BTreeMap::from([(WORLD, Context::new((0..ranks).collect()))]),
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

    pub fn context(&self, context: u32) -> Option<&Context> {
        self.contexts.get(&context)
    }

    /// What of MPI is left, if anything is.
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

    /// Where a rank stands, for a report.
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
        self.contexts.insert(id, Context::new(members));
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

    /// The source, tag and length of a message that has arrived and that nobody has received.
    pub fn look(
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
        here.remove(at)
    }
}

fn fits(source: Option<usize>, tag: Option<i32>, message: &Message) -> bool {
    source.is_none_or(|source| source == message.source) && tag.is_none_or(|tag| tag == message.tag)
}

impl Machine {
    fn delay(&mut self) -> u64 {
        let (least, most) = self.behaviour.delay;
        let delay = least + self.rng.below(most - least + 1);
        if self.rng.one_in(self.behaviour.late_every) { delay * 100 } else { delay }
    }

    fn happen(&mut self, rank: usize, time: u64, event: Event) {
        let number = self.network.next_number;
        self.network.next_number += 1;
        self.network.mail[rank].events.insert((time, number), event);
    }

    fn happen_later(&mut self, rank: usize, event: Event) {
        let time = self.now + self.delay();
        self.happen(rank, time, event);
    }

    /// The members of a communicator of which `rank` is one.
    pub fn members(&self, context: u32) -> Arc<Vec<usize>> {
        match self.network.context(context) {
            Some(context) => context.members.clone(),
            None => {
                self.fail(&format!("communicator {context} is used, but was freed or never made"))
            }
        }
    }

    /// Begins a send of the bytes at `data` to a world rank; eager for sure where it is to be
    /// `buffered`.
    pub fn send(
        &mut self,
        from: usize,
        context: u32,
        to: usize,
        tag: i32,
        data: *const u8,
        len: usize,
        buffered: bool,
    ) -> u32 {
        let request = self.network.new_request((from, context), "a send", 0, 0);
        let traffic = &mut self.network.traffic[from];
        traffic.messages += 1;
        traffic.bytes += len as u64;
        let Behaviour { eager, long_every, .. } = self.behaviour;
        let eager = len <= eager && !self.rng.one_in(long_every) || buffered;
        let body = if eager {
            // SAFETY: the caller of MPI_Isend gives so many bytes.
            let bytes = unsafe { std::slice::from_raw_parts(data, len) }.to_vec();
            if self.rng.one_in(2) {
                self.network.finish(request, from, tag, len);
            } else {
                self.happen_later(from, Event::Done { request });
            }
            Body::Eager(bytes)
        } else {
            Body::Long { request, data: data as usize, len }
        };
        let soonest = self.now + self.delay();
        let flying = self.network.mail[to].flying.entry((from, context)).or_default();
        flying.0 = flying.0.max(soonest);
        flying.1 += 1;
        let time = flying.0;
        self.trace(
            "send",
            (from as u64) << 32 | to as u64,
            (len as u64) << 24 | tag as u64 & 0xff_ffff,
        );
        self.happen(to, time, Event::Arrive(Message { source: from, tag, context, body }));
        request
    }

    /// Begins a receive from a world rank.
    pub fn receive(
        &mut self,
        rank: usize,
        context: u32,
        source: Option<usize>,
        tag: Option<i32>,
        to: *mut u8,
        room: usize,
    ) -> u32 {
        let request = self.network.new_request((rank, context), "a receive", to as usize, room);
        match self.network.take_here(rank, context, source, tag) {
            Some(message) => self.fill(rank, request, message),
            None => {
                let posted = self.network.mail[rank].posted.entry(context).or_default();
                posted.push_back(Posted { source, tag, request });
            }
        }
        request
    }

    /// Takes a message out that has arrived and that nobody has received.
    pub fn probe(
        &mut self,
        rank: usize,
        context: u32,
        source: Option<usize>,
        tag: Option<i32>,
    ) -> Option<(u32, usize, i32, usize)> {
        let message = self.network.take_here(rank, context, source, tag)?;
        let id = self.network.next_matched;
        self.network.next_matched += 1;
        let found = (id, message.source, message.tag, message.bytes());
        self.network.matched.insert(id, message);
        Some(found)
    }

    /// The length of a message that a probe has taken out.
    pub fn matched_bytes(&self, id: u32) -> usize {
        match self.network.matched.get(&id) {
            Some(message) => message.bytes(),
            None => self.fail(&format!("matched message {id} is received twice, or is none")),
        }
    }

    /// Begins the receive of such a message; bytes for which there is no room are dropped.
    pub fn receive_matched(&mut self, rank: usize, id: u32, to: *mut u8, room: usize) -> u32 {
        let bytes = self.matched_bytes(id);
        let message = self.network.matched.remove(&id).expect("looked at above");
        let request = self.network.new_request(
            (rank, message.context),
            "a matched receive",
            to as usize,
            room,
        );
        if bytes > room {
            // The caller gets MPI_ERR_TRUNCATE; the sender is done.
            if let Body::Long { request, .. } = message.body {
                self.happen_later(message.source, Event::Done { request });
            }
            self.network.finish(request, message.source, message.tag, room);
        } else {
            self.fill(rank, request, message);
        }
        request
    }

    /// A message has found its receive.
    fn fill(&mut self, rank: usize, receive: u32, message: Message) {
        let Message { source, tag, body, .. } = message;
        match body {
            Body::Eager(bytes) => self.store(receive, &bytes, source, tag),
            Body::Long { request, data, len } => {
                let event = if self.rng.one_in(2) {
                    let clear = Event::Clear { request, data, len, to: rank, receive, tag };
                    return self.happen_later(source, clear);
                } else {
                    Event::Fetch { receive, request, data, len, source, tag }
                };
                self.happen_later(rank, event);
            }
        }
    }

    /// The bytes of a message go where its receive wants them.
    fn store(&mut self, receive: u32, bytes: &[u8], source: usize, tag: i32) {
        let Some(request) = self.network.requests.get(&receive) else {
            self.fail("a message comes for a receive that is no more");
        };
        let (to, room) = (request.to, request.room);
        if bytes.len() > room {
            self.fail(&format!(
                "a message of {} bytes from rank {source}, tag {tag}, comes into a receive of {room}",
                bytes.len()
            ));
        }
        // SAFETY: the caller of the receive keeps so many bytes for it until it is done.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        self.network.finish(receive, source, tag, bytes.len());
    }

    /// What is to happen to a rank by now happens.
    pub fn progress(&mut self, rank: usize) {
        while let Some(entry) = self.network.mail[rank].events.first_entry() {
            if entry.key().0 > self.now {
                return;
            }
            let event = entry.remove();
            self.is_busy();
            match event {
                Event::Arrive(message) => self.arrive(rank, message),
                Event::Clear { request, data, len, to, receive, tag } => {
                    // SAFETY: the sender keeps the bytes until its request is done.
                    let bytes = unsafe { std::slice::from_raw_parts(data as *const u8, len) };
                    let bytes = bytes.to_vec();
                    self.network.finish(request, rank, tag, len);
                    self.happen_later(to, Event::Data { receive, bytes, source: rank, tag });
                }
                Event::Data { receive, bytes, source, tag } => {
                    self.store(receive, &bytes, source, tag);
                }
                Event::Fetch { receive, request, data, len, source, tag } => {
                    // SAFETY: as for Clear.
                    let bytes = unsafe { std::slice::from_raw_parts(data as *const u8, len) };
                    self.store(receive, bytes, source, tag);
                    self.happen_later(source, Event::Done { request });
                }
                Event::Done { request } => self.network.finish(request, rank, 0, 0),
                Event::Collect { request, result, from, len } => {
                    let to = self.network.requests.get(&request).map_or(0, |request| request.to);
                    if to != 0 {
                        // SAFETY: the caller of the collective keeps room for its result.
                        unsafe {
                            std::ptr::copy_nonoverlapping(
                                result[from..].as_ptr(),
                                to as *mut u8,
                                len,
                            );
                        }
                    }
                    self.network.finish(request, rank, 0, len);
                }
            }
        }
    }

    fn arrive(&mut self, rank: usize, message: Message) {
        let (source, context) = (message.source, message.context);
        self.trace("arrive", (source as u64) << 32 | rank as u64, message.bytes() as u64);
        let mail = &mut self.network.mail[rank];
        if let Some(flying) = mail.flying.get_mut(&(source, context)) {
            flying.1 -= 1;
            if flying.1 == 0 {
                mail.flying.remove(&(source, context));
            }
        }
        let posted = mail.posted.entry(context).or_default();
        if let Some(at) = posted.iter().position(|p| fits(p.source, p.tag, &message)) {
            let request = posted.remove(at).expect("it was found").request;
            return self.fill(rank, request, message);
        }
        mail.here.entry(context).or_default().push_back(message);
        mail.unexpected += 1;
        let most = &mut self.network.traffic[rank].most_unexpected;
        *most = (*most).max(mail.unexpected);
    }

    /// Whether a request is done: its source in the communicator, its tag and bytes; it is then
    /// no more.
    pub fn test(&mut self, rank: usize, request: u32) -> Option<(usize, i32, usize)> {
        match self.network.requests.get(&request) {
            Some(found) if found.rank == rank => {
                let (source, tag, bytes) = found.done?;
                let context = self.network.context(found.context);
                let source = context.and_then(|context| context.place(source)).unwrap_or(source);
                self.network.requests.remove(&request);
                Some((source, tag, bytes))
            }
            Some(_) => self.fail(&format!("request {request} is another rank's")),
            None => self.fail(&format!("request {request} is tested, but is no more")),
        }
    }

    /// Takes a receive back, if nothing has matched it.
    pub fn cancel(&mut self, rank: usize, request: u32) {
        for posted in self.network.mail[rank].posted.values_mut() {
            if let Some(at) = posted.iter().position(|p| p.request == request) {
                posted.remove(at);
                return self.network.finish(request, rank, 0, 0);
            }
        }
    }

    /// Frees a communicator, as far as one rank is concerned.
    pub fn free_context(&mut self, rank: usize, id: u32) {
        self.members(id);
        let posted = self.network.mail[rank].posted.remove(&id);
        if posted.is_some_and(|posted| !posted.is_empty()) {
            self.fail(&format!("communicator {id} is freed while a receive waits on it"));
        }
        let context = self.network.contexts.get_mut(&id).expect("looked at above");
        context.freed += 1;
        if context.freed < context.members.len() {
            return;
        }
        self.network.contexts.remove(&id);
        for rank in 0..self.ranks {
            let left = self.network.mail[rank].here.remove(&id);
            if let Some(message) = left.and_then(|mut here| here.pop_front()) {
                self.fail(&format!(
                    "communicator {id} is freed, but rank {rank} never received {message:?}"
                ));
            }
        }
    }

    /// Begins a creation of a communicator by some ranks of `parent`: the context on which
    /// they meet is one of their own.
    pub fn meeting(&mut self, parent: u32, tag: i32, members: &[usize]) -> u32 {
        let key = (parent, tag, members.to_vec());
        if let Some((context, entered)) = self.network.creations.get_mut(&key) {
            let context = *context;
            *entered += 1;
            if *entered == members.len() {
                self.network.creations.remove(&key);
            }
            return context;
        }
        let context = self.network.new_context(members.to_vec());
        if members.len() > 1 {
            self.network.creations.insert(key, (context, 1));
        }
        context
    }

    /// Begins a collective: what the caller gives, and where its result goes.
    pub fn enter(&mut self, rank: usize, id: u32, kind: Kind, give: Vec<u8>, to: *mut u8) -> u32 {
        let name = kind.name();
        let request = self.network.new_request((rank, id), name, to as usize, give.len());
        let traffic = &mut self.network.traffic[rank];
        traffic.collectives += 1;
        self.trace("collective", rank as u64, u64::from(id));
        self.members(id);
        let context = self.network.contexts.get_mut(&id).expect("looked at above");
        let Some(place) = context.place(rank) else {
            self.fail(&format!("{name} on a communicator of which the rank is no member"));
        };
        let (index, len, size) = (context.begun[place], give.len(), context.members.len());
        context.begun[place] += 1;
        let new = || Collective {
            kind: kind.clone(),
            len,
            first: rank,
            parts: BTreeMap::new(),
            entered: 0,
            result: None,
        };
        let collective = context.collectives.entry(index).or_insert_with(new);
        if collective.kind.name() != name || collective.len != len {
            let why = format!(
                "{name} of {len} bytes where rank {} has begun {} of {}",
                collective.first,
                collective.kind.name(),
                collective.len
            );
            self.fail(&why);
        }
        collective.entered += 1;
        let all = collective.entered == size;
        collective.parts.insert(place, (give, request));
        let parts = match &collective.kind {
            Kind::Broadcast { root } => {
                if place == *root {
                    let (bytes, _) = &collective.parts[root];
                    collective.result = Some(Arc::new(bytes.clone()));
                }
                collective.result.is_some()
            }
            Kind::Reduce { root: Some(root), .. } if !all => {
                // Whoever gives only is done.
                if place != *root {
                    let part = collective.parts.get_mut(&place).expect("inserted above");
                    let request = std::mem::replace(&mut part.1, 0);
                    self.happen_later(rank, Event::Done { request });
                }
                return request;
            }
            _ => all,
        };
        if parts {
            self.complete(id, index, size, all);
        }
        request
    }

    /// The result of a collective is known: it is on its way to those who have entered.
    fn complete(&mut self, id: u32, index: u64, size: usize, all: bool) {
        let context = self.network.contexts.get_mut(&id).expect("a collective is on it");
        let members = context.members.clone();
        let mut collective = context.collectives.remove(&index).expect("it was entered");
        let parts = std::mem::take(&mut collective.parts);
        let (len, kind) = (collective.len, collective.kind.clone());
        let result = match (&collective.result, &kind) {
            (Some(result), _) => result.clone(),
            (None, Kind::Allgather) => {
                Arc::new(parts.values().flat_map(|(bytes, _)| bytes.iter().copied()).collect())
            }
            (None, Kind::Reduce { combine, count, .. }) => {
                let mut all = parts.values();
                let mut sum = all.next().map(|(bytes, _)| bytes.clone()).unwrap_or_default();
                all.for_each(|(bytes, _)| combine(bytes.as_ptr(), sum.as_mut_ptr(), *count));
                Arc::new(sum)
            }
            (None, Kind::Dup) => {
                let made = self.network.new_context(members.to_vec());
                Arc::new(made.to_ne_bytes().to_vec())
            }
            (None, Kind::Create) => Arc::new(id.to_ne_bytes().to_vec()),
            (None, Kind::SplitByHost) => {
                let host = self.network.ranks_per_host;
                let mut made: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
                members.iter().for_each(|&rank| made.entry(rank / host).or_default().push(rank));
                let made: BTreeMap<usize, u32> = made
                    .into_iter()
                    .map(|(host, ranks)| (host, self.network.new_context(ranks)))
                    .collect();
                Arc::new(
                    members.iter().flat_map(|rank| made[&(rank / host)].to_ne_bytes()).collect(),
                )
            }
            (None, Kind::Barrier | Kind::Broadcast { .. }) => Arc::new(Vec::new()),
        };
        for (place, (_, request)) in parts {
            if request == 0 {
                continue;
            }
            let (from, len) = match &kind {
                Kind::Allgather => (0, len * size),
                Kind::SplitByHost => (place * 4, 4),
                Kind::Dup | Kind::Create => (0, 4),
                Kind::Barrier => (0, 0),
                Kind::Broadcast { root } if *root == place => (0, 0),
                Kind::Reduce { root: Some(root), .. } if *root != place => (0, 0),
                Kind::Broadcast { .. } | Kind::Reduce { .. } => (0, len),
            };
            let result = result.clone();
            self.happen_later(members[place], Event::Collect { request, result, from, len });
        }
        if !all {
            let context = self.network.contexts.get_mut(&id).expect("as above");
            context.collectives.insert(index, collective);
        }
    }
}
