//! A call at its target: input, source and answer.
//!
//! A call is answered once. If it is dropped without an answer, the answer is a failure: the error
//! of decoding the input if there was one, else `FAIL`.

use super::class::{ClassShared, OnAnswered};
use super::context::{ContextShared, Work};
use super::payload::{Encode, Kept, Payload, with_scratch};
use super::registry;
use super::wire::{ANSWER, Answer, CallRequest};
use crate::checksum::Method;
use crate::failure::{Result, Status, refuse};
use crate::na::Address;
use crate::na::address::Peer;
use crate::na::wire::Kind;
use crate::proc::Encoded;
use portolan_engine::am::Data;
use scopeguard::{ScopeGuard, guard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Runs a call at its server and answers through the target, now or later. If it returns a status
/// other than success, that status is the answer, unless the call was answered.
pub type Rpc = Arc<dyn Fn(Arc<Target>) -> Status + Send + Sync>;

pub type Function = registry::Function<Rpc>;
pub type Registry = registry::Registry<Rpc>;

#[derive(Debug)]
pub struct Target {
    context: Arc<ContextShared>,
    function: Arc<Function>,
    source: Address,
    origin_context: u8,
    token: u64,
    quiet: bool,
    more: bool,
    method: Method,
    body: Payload,
    answered: AtomicBool,
    /// Whether the origin of a one-way call knows how the acquisition of more data has ended.
    reported: AtomicBool,
    reason: AtomicI32,
}

impl Target {
    pub fn new(
        context: &Arc<ContextShared>,
        function: Arc<Function>,
        source: Address,
        request: &CallRequest,
        body: Payload,
    ) -> Arc<Target> {
        Arc::new(Target {
            context: context.clone(),
            function,
            source,
            origin_context: request.origin_context,
            token: request.token,
            quiet: request.quiet,
            more: request.more,
            method: request.method,
            body,
            answered: AtomicBool::new(false),
            reported: AtomicBool::new(false),
            reason: AtomicI32::new(Status::FAIL.0),
        })
    }

    fn class(&self) -> &Arc<ClassShared> {
        &self.context.class
    }

    pub fn context(&self) -> &Arc<ContextShared> {
        &self.context
    }

    pub fn function(&self) -> &Arc<Function> {
        &self.function
    }

    pub fn source(&self) -> Address {
        self.source
    }

    pub fn origin_context(&self) -> u8 {
        self.origin_context
    }

    pub fn is_own(&self) -> bool {
        self.source.peer == Peer::Own
    }

    pub fn method(&self) -> Method {
        self.method
    }

    pub fn input(&self) -> &[u8] {
        &self.body
    }

    /// Returns the length of the input if it was pulled, else 0.
    pub(super) fn pulled_bytes(&self) -> usize {
        if let Payload::Pulled(mem) = &self.body { mem.len() } else { 0 }
    }

    /// Sets the status that the origin receives if the call is dropped without an answer.
    pub fn set_failure(&self, status: Status) {
        self.reason.store(status.0, Ordering::Relaxed);
    }

    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns whether the input has more data, to be acquired before the call runs.
    pub fn has_more_input(&self) -> bool {
        self.more
    }

    /// Reports the end of the acquisition of more data to the origin of a one-way call, once.
    pub fn acquired(&self, status: Status) {
        if self.quiet && self.more && !self.reported.swap(true, Ordering::AcqRel) {
            self.class().answer_status(self.source.peer, self.token, status);
        }
    }

    /// Answers with a failure, unless the call was answered.
    pub(crate) fn answer_failure(&self, status: Status) {
        if self.answered.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.quiet {
            self.acquired(status);
        } else {
            self.class().answer_status(self.source.peer, self.token, status);
        }
    }

    /// Answers with an output. `then` runs in trigger when the answer has left, or, if the answer
    /// was too long for a message, when the origin has pulled it. Returns `INVALID_ARG` if the call
    /// was answered already, or the error of encoding or sending; the call is then still
    /// unanswered, and `then` does not run. An origin that has ended is not an error.
    pub fn answer(&self, encode: impl Encode, then: Option<OnAnswered>) -> Result<()> {
        self.answer_with(encode, then, false)
    }

    /// Like [`Target::answer`]. With `more`, the origin acquires more data than the output, and
    /// `then` runs when it has; returns `OVERFLOW` if the output does not fit a message.
    pub fn answer_with(
        &self,
        encode: impl Encode,
        then: Option<OnAnswered>,
        more: bool,
    ) -> Result<()> {
        self.class().check_open()?;
        if self.answered.swap(true, Ordering::AcqRel) {
            refuse!(INVALID_ARG, "the call was answered already");
        }
        let room = self.class().na.max_expected();
        // A proc function in C++ may throw an exception.
        let unwinds = guard((), |()| self.answered.store(false, Ordering::Release));
        let sent = with_scratch(room, |buffer| self.send(buffer, encode, then, more));
        ScopeGuard::into_inner(unwinds);
        if let Err(failure) = &sent {
            self.answered.store(false, Ordering::Release);
            self.set_failure(failure.status());
        }
        sent
    }

    fn send(
        &self,
        buffer: &mut [u8],
        encode: impl Encode,
        then: Option<OnAnswered>,
        more: bool,
    ) -> Result<()> {
        let encoded = encode(&mut buffer[ANSWER..], self.method)?;
        let (class, to) = (self.class(), self.source.peer);
        let run_later = |then: Option<OnAnswered>| {
            then.into_iter().for_each(|then| self.context.push(Work::Run(then)));
        };
        if self.quiet {
            run_later(then);
            return Ok(());
        }
        if more {
            let Encoded::Fits(len) = encoded else {
                refuse!(OVERFLOW, "an output with more data does not fit a message");
            };
            return self.send_more(&mut buffer[..ANSWER + len], then);
        }
        if to == Peer::Own {
            let body = Payload::own(encoded, &buffer[ANSWER..]);
            // The callback of the response runs before the callback of the forward, as in Mercury.
            run_later(then);
            class.answer_own(self.token, Status::SUCCESS, body, None);
            return Ok(());
        }
        let short = Answer { status: 0, long: false, more: false, release: 0 };
        let bytes = match encoded {
            Encoded::Fits(len) => {
                short.write(buffer);
                let body = Data::Bytes(&buffer[..ANSWER + len]);
                self.reply(body, None)?;
                run_later(then);
                return Ok(());
            }
            Encoded::Overflow(bytes) => bytes,
        };
        if bytes.len() + ANSWER <= class.na.max_expected() {
            let mut whole = vec![0; ANSWER];
            short.write(&mut whole);
            whole.extend_from_slice(&bytes);
            self.reply(Data::Owned(whole), None)?;
        } else {
            let kept = Kept::new(bytes)?;
            let handle = kept.handle();
            let release = class.promise(to, Some(kept), &self.context, then)?;
            let mut whole = vec![0; ANSWER];
            Answer { status: 0, long: true, more: false, release }.write(&mut whole);
            whole.extend_from_slice(&handle);
            return self.reply(Data::Owned(whole), Some(release));
        }
        run_later(then);
        Ok(())
    }
}

impl Target {
    /// Sends an output, before which the buffer has room for the head, and keeps `then` until the
    /// origin has acquired the rest.
    fn send_more(&self, buffer: &mut [u8], then: Option<OnAnswered>) -> Result<()> {
        let (class, to) = (self.class(), self.source.peer);
        let release = class.promise(to, None, &self.context, then)?;
        if to == Peer::Own {
            let output = Encoded::Fits(buffer.len() - ANSWER);
            let body = Payload::own(output, &buffer[ANSWER..]);
            class.answer_own(self.token, Status::SUCCESS, body, Some(release));
            return Ok(());
        }
        Answer { status: 0, long: false, more: true, release }.write(buffer);
        self.reply(Data::Bytes(buffer), Some(release))
    }

    /// Sends an answer. `promise` is the token of what it promises. If the origin has ended, the
    /// answer counts as received: an origin may also end just after.
    fn reply(&self, data: Data<'_>, promise: Option<u64>) -> Result<()> {
        let (class, to) = (self.class(), self.source.peer);
        let sent = class.na.answer(to, Kind::Reply, self.token, data);
        match (sent, promise) {
            (Err(failure), promise) if failure.status() == Status::HOSTUNREACH => {
                log::debug!("no answer to a call: {failure}");
                promise.into_iter().for_each(|token| class.released(to, token));
                Ok(())
            }
            (Err(failure), Some(token)) => {
                class.break_promise(token);
                Err(failure)
            }
            (sent, _) => sent,
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !*self.answered.get_mut() {
            self.answer_failure(Status(self.reason.load(Ordering::Relaxed)));
        }
    }
}
