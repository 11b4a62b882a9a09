//! Requests at their target: what arrives becomes work of a context, within the share of its peer.

use super::shares::{Input, Overdue, Postponed};
use super::{ClassShared, Pull, Purpose};
use crate::failure::Status;
use crate::hg::context::{ContextShared, Work};
use crate::hg::payload::{PARAMETERS, Payload};
use crate::hg::target::{Function, Target};
use crate::hg::wire::{ANSWER, Answer, CallRequest, Parsed, REQUEST, context_of};
use crate::na::address::Peer;
use crate::na::class::Message;
use crate::na::limited::limited;
use crate::na::wire::Kind;
use crate::na::{Address, Mem};
use portolan_engine::am::Data;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

impl ClassShared {
    /// Returns a test of context numbers: whether a context with room in its queue would run a
    /// request. A request may also go to a context that does not exist, because the class then
    /// refuses it. `here` is the context that takes the requests, or `None` for any that takes
    /// some.
    pub(super) fn room(&self, here: Option<&ContextShared>) -> impl Fn(Option<u8>) -> bool + use<> {
        // The order of `context_for`.
        let all: SmallVec<[(u8, bool); 4]> = {
            let contexts = self.contexts.lock();
            let known = contexts.iter().filter_map(Weak::upgrade).filter(|known| known.accepts());
            known.map(|known| (known.id, known.has_room())).collect()
        };
        let here = here.map(|here| (here.id, here.has_room()));
        let anywhere = here.map_or(all.iter().any(|(_, room)| *room), |(_, room)| room);
        move |number| {
            let Some(number) = number else { return true };
            let found = here.iter().chain(&all).find(|(id, _)| *id == number);
            found.map_or(number != 0 || anywhere, |(_, room)| *room)
        }
    }

    /// Returns the context that runs a call for number `id`: `here` if it has that number, else the
    /// first context with that number that takes incoming calls, else `here` if `id` is 0.
    pub(in crate::hg) fn context_for(
        &self,
        here: &Arc<ContextShared>,
        id: u8,
    ) -> Option<Arc<ContextShared>> {
        if here.id == id {
            return Some(here.clone());
        }
        let contexts = self.contexts.lock();
        let mut known = contexts.iter().filter_map(Weak::upgrade);
        let found = known.find(|known| known.id == id && known.accepts());
        found.or_else(|| (id == 0).then(|| here.clone()))
    }

    pub(in crate::hg) fn answer_status(&self, to: Peer, token: u64, status: Status) {
        if to == Peer::Own {
            return self.answer_own(token, status, Payload::Empty, None);
        }
        if !self.na.is_open() {
            return;
        }
        let mut bytes = [0; ANSWER];
        Answer { status: status.0, long: false, more: false, release: 0 }.write(&mut bytes);
        let answered = self.na.answer(to, Kind::Reply, token, Data::Bytes(&bytes));
        match answered {
            Err(failure) if failure.status() == Status::HOSTUNREACH => {
                log::debug!("no response to a call: {failure}");
            }
            Err(failure) if !self.na.is_over() => {
                limited!(Error, "cannot respond to a call: {failure}");
            }
            _ => {}
        }
    }

    /// Turns arrived messages into work for a context. Returns whether anything happened. The
    /// messages for a context whose queue is full wait, and those for other contexts overtake them.
    pub(in crate::hg) fn step(&self, context: &Arc<ContextShared>) -> bool {
        let mut busy = false;
        while context.accepts() {
            let network = &self.na;
            let taken = if !self.numbered.load(Ordering::Acquire) {
                if context.has_room() { network.take_unexpected() } else { None }
            } else if network.has_unexpected() {
                let room = self.room(Some(context));
                network.take_unexpected_of(|message| room(context_of(&message.body)))
            } else {
                None
            };
            let Some(message) = taken else { break };
            if let Some(message) = self.shares.admit_request(message) {
                self.request(context, message);
            }
            busy = true;
        }
        if self.pulling.load(Ordering::Acquire) > 0 {
            busy |= self.pull(context);
        }
        if self.shares.has_changed() {
            busy |= self.take_held(context);
        }
        if (self.pulling.load(Ordering::Acquire) > 0 || self.shares.has_full())
            && let Some(overdue) = self.shares.overdue()
        {
            self.end_overdue(overdue);
        }
        busy
    }

    /// Lets what has waited for the share of its peer go on. Returns whether anything does.
    fn take_held(&self, context: &Arc<ContextShared>) -> bool {
        let (network, mut busy) = (&self.na, false);
        while context.accepts()
            && let Some(held) = self.shares.next(self.room(Some(context)))
        {
            match held {
                Postponed::Request(message) => self.request(context, message),
                Postponed::Input(pull, request) => {
                    network.took_unexpected(pull.peer, request);
                    self.enqueue(pull);
                }
                Postponed::Call(call) => call.context().clone().push(Work::Call(call)),
            }
            busy = true;
        }
        busy
    }

    /// Ends the connections of peers that do not serve pulls, and refuses the calls of peers that
    /// do not pull.
    #[cold]
    fn end_overdue(&self, overdue: Overdue<Pull, Arc<Target>>) {
        let Overdue { silent, refused, patience } = overdue;
        for peer in silent {
            let why = format!("no byte of its inputs has arrived for {patience:?}");
            self.na.give_up(peer, &why);
        }
        if !refused.is_empty() {
            limited!(
                Warn,
                "{} calls are refused: their callers have pulled none of their outputs for \
                 {patience:?}",
                refused.len()
            );
        }
        self.refuse_held(refused, Status::NOMEM);
    }

    /// Answers what was held with a status.
    pub(super) fn refuse_held(&self, held: Vec<Postponed<Pull, Arc<Target>>>, status: Status) {
        for held in held {
            let (peer, request) = match held {
                Postponed::Call(call) => {
                    call.answer_failure(status);
                    continue;
                }
                Postponed::Input(pull, bytes) => {
                    self.na.took_unexpected(pull.peer, bytes);
                    let Purpose::Input { request, .. } = pull.purpose else { continue };
                    (pull.peer, request)
                }
                Postponed::Request(message) => {
                    self.na.took_unexpected(message.from.peer, message.body.len());
                    let parsed = CallRequest::parse(&message.body, message.word);
                    let Parsed::Request(request) = parsed else { continue };
                    (message.from.peer, request)
                }
            };
            if request.is_answered() {
                self.answer_status(peer, request.token, status);
            }
        }
    }

    /// Handles a request, which then counts no longer against the window of its peer, unless its
    /// input waits.
    fn request(&self, context: &Arc<ContextShared>, message: Message) {
        let (peer, bytes) = (message.from.peer, message.body.len());
        let Some((input, number)) = self.examine(context, message) else {
            return self.na.took_unexpected(peer, bytes);
        };
        let of = Input { len: input.remote.len(), context: number, request: bytes };
        if let Some(input) = self.shares.admit_input(peer, input, of) {
            self.na.took_unexpected(peer, bytes);
            self.enqueue(input);
        }
    }

    /// Queues or refuses a call. Returns its input if it is to be pulled first, and the number of
    /// its context.
    fn examine(&self, context: &Arc<ContextShared>, message: Message) -> Option<(Pull, u8)> {
        let Message { from, tag, word, body } = message;
        let request = match CallRequest::parse(&body, word) {
            Parsed::Request(request) => CallRequest { origin_context: tag as u8, ..request },
            Parsed::Broken(request) => {
                let from_text = self.na.text_of(&from);
                limited!(Warn, "a request from {from_text} uses a checksum that is unknown here");
                if request.is_answered() {
                    self.answer_status(from.peer, request.token, Status::PROTOCOL_ERROR);
                }
                return None;
            }
            Parsed::Rubbish => {
                let (bytes, from) = (body.len(), self.na.text_of(&from));
                limited!(Warn, "dropped {bytes} bytes from {from} that are not a request");
                return None;
            }
        };
        let function = self.functions.find(request.id, request.check);
        let Some(function) = function else {
            let number = u64::from(request.check) << 32 | u64::from(request.id);
            let caller = self.na.text_of(&from);
            limited!(Warn, "{caller} calls function {number:#x}, which is not registered");
            if request.is_answered() {
                self.answer_status(from.peer, request.token, Status::NO_MATCH);
            }
            return None;
        };
        if !request.long {
            let body = Payload::Bytes { bytes: body, start: REQUEST };
            self.run_in(context, function, from, &request, body);
            return None;
        }
        match Mem::from_bytes(&body[REQUEST..], PARAMETERS) {
            Ok(remote) => {
                let number = request.context;
                let purpose = Purpose::Input { request, function, source: from };
                Some((Pull::new(from.peer, remote, purpose), number))
            }
            Err(failure) => {
                let caller = self.na.text_of(&from);
                limited!(Warn, "an input from {caller} cannot be pulled: {failure}");
                if request.is_answered() {
                    self.answer_status(from.peer, request.token, failure.status());
                }
                None
            }
        }
    }

    pub(super) fn run_in(
        &self,
        here: &Arc<ContextShared>,
        function: Arc<Function>,
        from: Address,
        request: &CallRequest,
        body: Payload,
    ) {
        let Some(context) = self.context_for(here, request.context) else {
            let (caller, number) = (self.na.text_of(&from), request.context);
            limited!(Warn, "{caller} requests context {number}, which does not exist");
            if request.is_answered_by_call() {
                self.answer_status(from.peer, request.token, Status::NO_MATCH);
            }
            return;
        };
        let target = Target::new(&context, function, from, request, body);
        context.push(Work::Call(target));
    }
}
