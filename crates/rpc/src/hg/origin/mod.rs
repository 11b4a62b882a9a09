//! A call at its origin. It can be forwarded repeatedly.

use super::class::{ClassShared, failure};
use super::context::{self, ContextShared, Work};
use super::payload::{Encode, Kept, Payload, with_scratch};
use super::target::{Function, Target};
use super::wire::{CallRequest, REQUEST};
use crate::failure::{Result, Status, refuse};
use crate::na::Address;
use crate::na::address::Peer;
use crate::na::wire::Kind;
use crate::proc::Encoded;
use parking_lot::Mutex;
use portolan_base::trace::{Call, CallInfo, PathTaken};
use portolan_base::wait::Deadline;
use scopeguard::{ScopeGuard, guard};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Runs in trigger when a call has ended.
pub type Then = Box<dyn FnOnce(&Arc<Origin>) + Send>;

struct CallState {
    target: Address,
    /// The number of the context that runs the call at the target.
    target_context: u8,
    /// Whether the target acquires more data than the input.
    more_input: bool,
    /// The peer and the token to release when the rest of an output with more data is acquired.
    more_output: Option<(Peer, u64)>,
    function: Arc<Function>,
    token: u64,
    kept: Option<Kept>,
    then: Option<Then>,
    /// Whether the callback of the last call has yet to run in trigger.
    callback_pending: bool,
    status: Status,
    body: Option<Arc<Payload>>,
}

/// The stages of a call. They are readable without the lock, and change only under the lock.
mod stage {
    pub(super) const IDLE: u8 = 0;
    pub(super) const UNDER_WAY: u8 = 1;
    /// The call has succeeded.
    pub(super) const DONE: u8 = 2;
    pub(super) const FAILED: u8 = 3;
}

#[derive(Debug)]
pub struct Output(Option<Arc<Payload>>);

impl Deref for Output {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |body| body)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Ending {
    pub status: Status,
    /// Whether the function answers its calls.
    pub answered: bool,
    /// Length of the encoded output.
    pub bytes: usize,
    /// Whether the output has more data to acquire.
    pub more_output: bool,
}

struct Sent {
    /// The target side of the call, if the call is to this process.
    own: Option<Arc<Target>>,
    /// Whether an answer will arrive.
    answered: bool,
}

/// A call at its origin.
pub struct Origin {
    context: Arc<ContextShared>,
    state: Mutex<CallState>,
    stage: AtomicU8,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Origin").field("stage", &self.stage).finish_non_exhaustive()
    }
}

impl Origin {
    /// Creates a call of a function at a target. Sends nothing.
    pub fn new(
        context: &Arc<ContextShared>,
        target: Address,
        function: Arc<Function>,
    ) -> Arc<Origin> {
        Arc::new(Origin {
            context: context.clone(),
            state: Mutex::new(CallState {
                target,
                target_context: 0,
                more_input: false,
                more_output: None,
                function,
                token: 0,
                kept: None,
                then: None,
                callback_pending: false,
                status: Status::SUCCESS,
                body: None,
            }),
            stage: AtomicU8::new(stage::IDLE),
        })
    }

    #[inline]
    fn is_at(&self, stage: u8) -> bool {
        self.stage.load(Ordering::Acquire) == stage
    }

    /// Returns `BUSY` unless the call can be forwarded.
    #[inline]
    fn check_free(&self, state: &CallState) -> Result<()> {
        if self.is_at(stage::UNDER_WAY) {
            refuse!(BUSY, "the call is under way; wait for it, or cancel it");
        }
        if state.callback_pending {
            refuse!(BUSY, "the call has ended, but its callback has not run; trigger it first");
        }
        Ok(())
    }

    fn class(&self) -> &Arc<ClassShared> {
        &self.context.class
    }

    pub fn context(&self) -> &Arc<ContextShared> {
        &self.context
    }

    pub fn function(&self) -> Arc<Function> {
        self.state.lock().function.clone()
    }

    pub fn set_target_context(&self, id: u8) {
        self.state.lock().target_context = id;
    }

    /// Prepares the next call: sets the number of the target's context, and whether the target
    /// acquires more data before it runs the call. Returns the function. Returns `BUSY` if the call
    /// is under way or its callback has not run.
    pub fn prepare(&self, target_context: u8, more_input: bool) -> Result<Arc<Function>> {
        let mut state = self.state.lock();
        self.check_free(&state)?;
        (state.target_context, state.more_input) = (target_context, more_input);
        Ok(state.function.clone())
    }

    /// Resets the call as if it had never been forwarded; requires exclusive access.
    pub(super) fn renew(&mut self, target: Address, function: Arc<Function>) {
        let state = self.state.get_mut();
        (state.target, state.target_context, state.function) = (target, 0, function);
        (state.more_input, state.more_output) = (false, None);
        state.status = Status::SUCCESS;
        *self.stage.get_mut() = stage::IDLE;
        self.clear();
    }

    /// Drops the state of the last call; requires exclusive access.
    pub(super) fn clear(&mut self) {
        let state = self.state.get_mut();
        (state.token, state.callback_pending) = (0, false);
        (state.kept, state.then, state.body) = (None, None, None);
    }

    /// Makes the call as if it had not been forwarded. Returns false if it has ended meanwhile.
    fn take_back(&self, token: u64) -> bool {
        self.class().forget(token);
        let mut state = self.state.lock();
        if self.is_done() {
            return false;
        }
        (state.kept, state.then, state.callback_pending) = (None, None, false);
        self.stage.store(stage::IDLE, Ordering::Release);
        true
    }

    /// Encodes the input and sends the request. The token of the answer is registered before the
    /// request leaves, so that the answer finds it. Returns `BUSY` if the call is under way,
    /// `INVALID_ARG` if the class is finalised or the context is destroyed, `ADDRNOTAVAIL` if the
    /// target is an address of another class, `AGAIN` if too many one-way calls to the target have
    /// not left, or the error of encoding or sending. Nothing has been sent then.
    pub fn forward(self: &Arc<Origin>, encode: impl Encode, then: Option<Then>) -> Result<()> {
        let class = self.class();
        class.check_open()?;
        class.na.attend()?;
        let traced = class.na.engine().and_then(|engine| engine.observer().enter(|| false));
        let (target, request) = {
            let mut state = self.state.lock();
            self.check_free(&state)?;
            let target = state.target;
            let peer = class.na.peer(&target)?;
            // A one-way call needs no token.
            let (quiet, more) = (state.function.is_quiet(), state.more_input);
            state.token = if quiet && !more { 0 } else { class.expect(self, peer) };
            // Checked after `expect`: a thread that destroys the context sets its stage before it
            // searches the calls, so either it finds this call or this check fails.
            if let Err(failure) = self.context.check_open() {
                class.forget(state.token);
                return Err(failure);
            }
            (state.callback_pending, state.then) = (then.is_some(), then);
            self.stage.store(stage::UNDER_WAY, Ordering::Release);
            let request = CallRequest {
                id: state.function.id,
                check: state.function.check,
                method: class.method,
                token: state.token,
                quiet,
                long: false,
                more,
                context: state.target_context,
                origin_context: self.context.id,
            };
            (target, request)
        };
        let token = request.token;
        let room = class.na.max_unexpected();
        // An exception of a proc function in C++ takes the call back, as a failure does.
        let unwinds = guard((), |()| {
            self.take_back(token);
        });
        let sent = with_scratch(room, |buffer| self.send(target, request, buffer, encode));
        ScopeGuard::into_inner(unwinds);
        let Sent { own, answered } = match sent {
            Ok(sent) => sent,
            Err(failure) => {
                // Otherwise the peer was lost or the call cancelled meanwhile; the callback says
                // so.
                return if self.take_back(token) { Err(failure) } else { Ok(()) };
            }
        };
        if let Some(traced) = traced {
            let call_info = CallInfo::new(Call::Rpc);
            traced.leave(&match target.peer {
                Peer::Rank(rank) => call_info.to(rank as usize).by(PathTaken::Message),
                _ => call_info,
            });
        }
        if let Some(own) = own {
            if class.inline.load(Ordering::Relaxed) {
                context::enter(own);
            } else {
                own.context().push(Work::Call(own.clone()));
            }
        }
        if !answered {
            self.complete(Status::SUCCESS, Payload::Empty);
        }
        Ok(())
    }

    /// Sends the request, or builds the target side of a call to this process. The token of the
    /// request is 0 if no answer is expected.
    fn send(
        self: &Arc<Origin>,
        target: Address,
        mut request: CallRequest,
        buffer: &mut [u8],
        encode: impl Encode,
    ) -> Result<Sent> {
        let class = self.class();
        let encoded = encode(&mut buffer[REQUEST..], class.method)?;
        let token = request.token;
        if target.peer == Peer::Own {
            let body = Payload::own(encoded, &buffer[REQUEST..]);
            let Some(context) = class.context_for(&self.context, request.context) else {
                refuse!(NO_MATCH, "this process has no context {}", request.context);
            };
            let mut function = self.function();
            if function.rpc.is_none() {
                // The function was a client's when the call was made, and may be served by now.
                function = class.functions.find(request.id, request.check).unwrap_or(function);
            }
            let call = Target::new(&context, function, target, &request, body);
            return Ok(Sent { own: Some(call), answered: request.is_answered() });
        }
        let (len, kept) = match encoded {
            Encoded::Fits(len) => (len, None),
            Encoded::Overflow(bytes) => {
                let kept = Kept::new(bytes)?;
                let handle = kept.handle();
                buffer[REQUEST..REQUEST + handle.len()].copy_from_slice(&handle);
                (handle.len(), Some(kept))
            }
        };
        request.long = kept.is_some();
        if let Some(kept) = kept {
            request.token = self.keep(target.peer, token, kept);
        }
        request.write(buffer);
        let body = &buffer[..REQUEST + len];
        let beside = (u32::from(request.origin_context), request.token);
        let sent = class.na.send(target.peer, Kind::Unexpected, beside, body, || (0, None));
        if sent.is_err() {
            class.forget(request.token);
        }
        sent.map(|_| Sent { own: None, answered: request.is_answered() })
    }

    /// Keeps an input until the target has pulled it, which an answer reports even for a one-way
    /// call. Returns the token of that answer.
    fn keep(self: &Arc<Origin>, peer: Peer, token: u64, kept: Kept) -> u64 {
        let token = if token == 0 { self.class().expect(self, peer) } else { token };
        let mut state = self.state.lock();
        (state.token, state.kept) = (token, Some(kept));
        token
    }

    /// Ends the call. A second end, for example after a cancellation, changes nothing.
    pub(super) fn complete(self: &Arc<Origin>, status: Status, body: Payload) {
        let then = {
            let mut state = self.state.lock();
            if !self.is_at(stage::UNDER_WAY) {
                return;
            }
            (state.status, state.kept) = (status, None);
            state.body = (!body.is_empty()).then(|| Arc::new(body));
            let stage = if status == Status::SUCCESS { stage::DONE } else { stage::FAILED };
            self.stage.store(stage, Ordering::Release);
            state.then.take()
        };
        match then {
            Some(then) => self.context.push(Work::Ended(self.clone(), then)),
            None => self.context.call_ended(),
        }
    }

    /// Marks the callback as run; the callback itself may forward the call again.
    pub(super) fn callback_ran(&self) {
        self.state.lock().callback_pending = false;
    }

    #[inline]
    pub fn is_done(&self) -> bool {
        self.stage.load(Ordering::Acquire) >= stage::DONE
    }

    /// Returns whether the call is under way or its callback has yet to run.
    pub fn is_under_way(&self) -> bool {
        self.check_free(&self.state.lock()).is_err()
    }

    /// Ends the call as cancelled, unless it has ended. The server may still run it.
    pub fn cancel(self: &Arc<Origin>) {
        let (token, kept, target) = {
            let mut state = self.state.lock();
            if !self.is_at(stage::UNDER_WAY) {
                return;
            }
            (state.token, state.kept.take(), state.target)
        };
        let unsent = self.class().na.withdraw_call(target.peer, token);
        self.class().abandon(token, kept.filter(|_| !unsent));
        self.complete(Status::CANCELED, Payload::Empty);
    }

    /// Makes progress until the call has ended or the time is over, and runs incoming calls
    /// meanwhile. Returns whether the call has ended.
    pub fn wait(self: &Arc<Origin>, timeout: Duration) -> Result<bool> {
        if self.is_done() {
            return Ok(true);
        }
        let mut deadline = Deadline::after(timeout);
        loop {
            if self.is_at(stage::IDLE) {
                refuse!(INVALID_ARG, "the call was never forwarded");
            }
            let came = self.context.wait(&mut deadline, || self.is_done())?;
            if self.is_done() {
                return Ok(true);
            }
            if !came {
                return Ok(false);
            }
            self.context.trigger(1);
            // Incoming calls may arrive without end.
            if deadline.is_over() {
                return Ok(self.is_done());
            }
        }
    }

    /// Returns the status of the last call that has ended, or `SUCCESS` if none has.
    pub fn status(&self) -> Status {
        self.state.lock().status
    }

    pub fn ending(&self) -> Ending {
        let state = self.state.lock();
        Ending {
            status: state.status,
            answered: !state.function.is_quiet(),
            bytes: state.body.as_ref().map_or(0, |body| body.len()),
            more_output: state.more_output.is_some(),
        }
    }

    /// Checks that the call has succeeded. Fails like [`Origin::output`].
    pub fn outcome(&self) -> Result<()> {
        if self.is_at(stage::DONE) { Ok(()) } else { self.output().map(drop) }
    }

    /// Returns the encoded output. Returns `INVALID_ARG` if the call has not ended, and a failure
    /// with its status if it has failed.
    pub fn output(&self) -> Result<Output> {
        let state = self.state.lock();
        if !self.is_done() {
            refuse!(INVALID_ARG, "the call has not ended; wait for it");
        }
        if state.status != Status::SUCCESS {
            return Err(failure(state.status, &state.function));
        }
        Ok(Output(state.body.clone()))
    }

    pub(in crate::hg) fn set_more(&self, peer: Peer, release: u64) {
        self.state.lock().more_output = Some((peer, release));
    }

    /// Notifies the target that the rest of the output is acquired.
    pub fn acquired(&self) {
        let more = self.state.lock().more_output.take();
        match more {
            Some((Peer::Own, token)) => self.class().released(Peer::Own, token),
            Some((peer, token)) => self.class().release(peer, token),
            None => {}
        }
    }
}
