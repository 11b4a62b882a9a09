//! Messages: how they are sent, matched, and written into receives.

use super::{Body, Event, MOST_BEHIND, Message, Posted, fits};
use crate::behaviour::Behaviour;
use crate::machine::Machine;
use std::sync::Arc;

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

    pub(super) fn happen_later(&mut self, rank: usize, event: Event) {
        let time = self.now + self.delay();
        self.happen(rank, time, event);
    }

    /// Returns the world ranks of a communicator's members. Fails the run if it does not exist.
    pub fn members(&self, context: u32) -> Arc<Vec<usize>> {
        match self.network.context(context) {
            Some(context) => context.members.clone(),
            None => {
                self.fail(&format!("communicator {context} is used, but was freed or never made"))
            }
        }
    }

    /// Sends to a world rank, always eagerly if `buffered`. Returns the request.
    pub fn send(
        &mut self,
        (from, to): (usize, usize),
        context: u32,
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
            // SAFETY: the caller of the MPI send keeps `data` valid for reads of `len` bytes.
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

    /// Begins a receive from a world rank. Returns the request.
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

    /// Removes the first matching message that has arrived and is unmatched. Returns its number,
    /// its source, its tag and its length in bytes.
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

    pub fn matched_bytes(&self, id: u32) -> usize {
        match self.network.matched.get(&id) {
            Some(message) => message.bytes(),
            None => self.fail(&format!("matched message {id} is received twice, or is none")),
        }
    }

    /// Begins the receive of a message that a probe has removed. Returns the request. If the
    /// message exceeds `room` bytes, the request is done at once and nothing is copied.
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
            // The caller gets MPI_ERR_TRUNCATE, and the send completes.
            if let Body::Long { request, .. } = message.body {
                self.happen_later(message.source, Event::Done { request });
            }
            self.network.finish(request, message.source, message.tag, room);
        } else {
            self.fill(rank, request, message);
        }
        request
    }

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
        // SAFETY: the caller of the receive keeps its buffer of `room` bytes valid until it is
        // done, and the message is not longer.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        self.network.finish(receive, source, tag, bytes.len());
    }

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
                    // SAFETY: the sender keeps the bytes valid until its request is done.
                    let bytes = unsafe { std::slice::from_raw_parts(data as *const u8, len) };
                    let bytes = bytes.to_vec();
                    self.network.finish(request, rank, tag, len);
                    self.happen_later(to, Event::Data { receive, bytes, source: rank, tag });
                }
                Event::Data { receive, bytes, source, tag } => {
                    self.store(receive, &bytes, source, tag);
                }
                Event::Fetch { receive, request, data, len, source, tag } => {
                    // SAFETY: the sender keeps the bytes valid until its request ends, later.
                    let bytes = unsafe { std::slice::from_raw_parts(data as *const u8, len) };
                    self.store(receive, bytes, source, tag);
                    self.happen_later(source, Event::Done { request });
                }
                Event::Done { request } => self.network.finish(request, rank, 0, 0),
                Event::Collect { request, result, from, len } => {
                    let to = self.network.requests.get(&request).map_or(0, |request| request.to);
                    if to != 0 {
                        // SAFETY: the caller of the collective keeps room for its result at `to`
                        // until the request is done.
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
        let behind = mail.behind.entry(source).or_default();
        *behind += 1;
        let too_many = *behind > MOST_BEHIND;
        let most = &mut self.network.traffic[rank].most_unexpected;
        *most = (*most).max(mail.unexpected);
        if too_many {
            self.fail(&format!("rank {rank} has not received {MOST_BEHIND} messages of {source}"));
        }
    }

    /// Tests a request. If it is done, removes it and returns the source's rank in the
    /// communicator, the tag and the number of bytes.
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

    /// Cancels a receive if no message has matched it.
    pub fn cancel(&mut self, rank: usize, request: u32) {
        for posted in self.network.mail[rank].posted.values_mut() {
            if let Some(at) = posted.iter().position(|p| p.request == request) {
                posted.remove(at);
                return self.network.finish(request, rank, 0, 0);
            }
        }
    }
}
