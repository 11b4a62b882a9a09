//! The origin's side: the transport of a message, and the time at which its memory may be reused.
//! Data up to the eager limit is copied, and the origin gets its signal at once. Longer data is
//! announced by an RTS. It has left when the target sends FIN, or MPI completes the send.

use super::Am;
use super::inbound::EagerMessage;
use super::over_mpi::AM_EAGER_LIMIT;
use super::shm_transport::FRAGMENT;
use super::state::{AmState, AwaitedSignal, sources_to};
use super::wire::{EagerHead, RecordHead, RecordKind, Source};
use super::{Data, HandlerId, MAX_HEADER, Signal, Signals};
use crate::core::handler;
use crate::core::peer::CompletionCounter;
use portolan_base::error::{Result, fail};
use portolan_base::trace::{self, Call, CallInfo, Cause, PathTaken};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Data<'_> {
    /// Fails with `Argument` for a null address or an impossible length.
    ///
    /// # Safety
    /// The memory of [`Data::At`] must be valid, unless its address is null.
    #[inline]
    pub unsafe fn bytes(&self) -> Result<&[u8]> {
        match self {
            Data::Bytes(bytes) => Ok(bytes),
            Data::Owned(bytes) => Ok(bytes),
            // Like `array::borrow`, but a test of the length alone is cheaper.
            Data::At(at, len) if at.is_null() || *len > isize::MAX as usize => match len {
                0 => Ok(&[]),
                _ => fail!(Argument, "{len} bytes at {at:p} for a message are no memory"),
            },
            // SAFETY: the caller guarantees the memory, and its length is possible.
            Data::At(at, len) => Ok(unsafe { std::slice::from_raw_parts(*at, *len) }),
        }
    }

    /// In bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.parts().1
    }

    #[inline]
    fn parts(&self) -> (*const u8, usize) {
        match self {
            Data::Bytes(bytes) => (bytes.as_ptr(), bytes.len()),
            Data::Owned(bytes) => (bytes.as_ptr(), bytes.len()),
            Data::At(at, len) => (*at, *len),
        }
    }
}

impl Am {
    /// Like [`Am::send_am`], but the data was copied or has left on return.
    #[inline]
    pub fn send_message(
        &self,
        target: usize,
        handler: HandlerId,
        header: &[u8],
        data: &[u8],
    ) -> Result<()> {
        self.observed_often(
            || data.len() <= FRAGMENT,
            |()| self.call_info_of_message(target, header.len() + data.len()),
            || {
                if self.send_to_node(target, handler, header, data)? {
                    return Ok(());
                }
                let signals = Signals::default();
                // SAFETY: without addresses in data or signals, nothing must outlive the call.
                unsafe { self.send_other(target, handler, header, Data::Bytes(data), signals) }
            },
        )
    }

    /// Sends a message as [`Am::send_message`] if it is short, `target` is another rank of the node
    /// and calls are not recorded. Otherwise returns false and sends nothing.
    #[inline]
    pub fn send_at_once(
        &self,
        target: usize,
        handler: HandlerId,
        header: &[u8],
        data: &[u8],
    ) -> Result<bool> {
        Ok(!self.is_observed() && self.send_to_node(target, handler, header, data)?)
    }

    pub(super) fn call_info_of_message(&self, target: usize, bytes: usize) -> CallInfo {
        let path = match self.started().and_then(|state| state.on_node(target)) {
            _ if target == self.rank() => PathTaken::None,
            Some(_) => PathTaken::Ring,
            None => PathTaken::Message,
        };
        CallInfo::new(Call::Send).to(target).moves(bytes).by(path)
    }

    /// Sends a message without an awaited completion to another rank of the node: the usual case. A
    /// short message is sent in one record, a longer one in fragments if its handler takes them and
    /// there is room. The data may be reused on return. Else returns false and sends nothing.
    #[inline(always)] // saves the copy of the result
    fn send_to_node(
        &self,
        target: usize,
        handler: HandlerId,
        header: &[u8],
        data: &[u8],
    ) -> Result<bool> {
        if let Some(state) = self.started()
            && target != self.rank()
            && let Some((node, index)) = state.on_node(target)
            && header.len() <= MAX_HEADER
            && data.len() <= node.eager_limit()
            && let Some(entry) = state.handlers.get(handler)
            && !entry.gone.load(Ordering::Relaxed)
        {
            if data.len() <= FRAGMENT {
                if entry.deferral.is_some() {
                    self.before_deferral(state, target)?;
                }
                let head = EagerHead::message(handler, header.len(), data.len(), 0);
                let parts = [head.bytes(), header, data];
                node.send(self, index, &parts, true, || handler::running().is_none())?;
                return Ok(true);
            }
            if entry.deferral.is_none() && entry.handler.takes_fragments() {
                let head = RecordHead::message(
                    RecordKind::EagerFirst,
                    handler,
                    header.len(),
                    data.len(),
                    0,
                );
                return node.send_in_fragments(index, &head, header, data);
            }
        }
        Ok(false)
    }

    /// Returns when the transport has the message. The handler of a message to the calling rank has
    /// run by then, unless the caller is a handler itself or has locked the handlers. Fails with
    /// `Rank` if `target` is outside the job, and with `Argument` for an unknown handler, a header
    /// longer than [`MAX_HEADER`] or null data. Nothing is sent in these cases.
    ///
    /// # Safety
    /// The memory of [`Data::At`] must stay valid and unchanged as described there. A
    /// [`Signal::Count`] must outlive the message.
    pub unsafe fn send_am(
        &self,
        target: usize,
        handler: HandlerId,
        header: &[u8],
        data: Data<'_>,
        signals: Signals,
    ) -> Result<()> {
        let len = data.len();
        self.observed_often(
            || len <= FRAGMENT,
            |()| self.call_info_of_message(target, header.len() + len),
            || {
                // SAFETY: the caller guarantees the data.
                let bytes = unsafe { data.bytes() }?;
                if let Signal::None = signals.completion
                    && self.send_to_node(target, handler, header, bytes)?
                {
                    signals.origin.notify(self);
                    return Ok(());
                }
                // SAFETY: the caller upholds the contract, which `send_other` shares.
                unsafe { self.send_other(target, handler, header, data, signals) }
            },
        )
    }

    /// # Safety
    /// See [`Am::send_am`].
    unsafe fn send_other(
        &self,
        target: usize,
        handler: HandlerId,
        header: &[u8],
        data: Data<'_>,
        signals: Signals,
    ) -> Result<()> {
        let state = self.state()?;
        self.check_rank(target)?;
        if header.len() > MAX_HEADER {
            fail!(
                Argument,
                "a header of {} bytes exceeds the limit of {MAX_HEADER} bytes; pass the rest as data",
                header.len()
            );
        }
        match state.handlers.get(handler).filter(|e| !e.gone.load(Ordering::Relaxed)) {
            None => fail!(Argument, "no handler has the number {}", handler.0),
            Some(entry) if entry.deferral.is_some() => self.before_deferral(state, target)?,
            Some(_) => {}
        }
        let Signals { origin, completion } = signals;
        let token = match completion {
            Signal::None => 0,
            signal => state.tokens.lock().insert(AwaitedSignal::Completion(signal)),
        };
        // SAFETY: the caller upholds the contract of `send_am`.
        let sent = unsafe { self.send_slow_path(target, handler, header, data, origin, token) };
        if sent.is_err() && token != 0 {
            state.tokens.lock().remove(token);
        }
        sent
    }

    /// The arguments were checked. `token` names the awaited completion, or is 0.
    ///
    /// # Safety
    /// See [`Am::send_am`].
    unsafe fn send_slow_path(
        &self,
        target: usize,
        handler: HandlerId,
        header: &[u8],
        data: Data<'_>,
        origin: Signal,
        token: u64,
    ) -> Result<()> {
        let state = self.state()?;
        let (at, len) = data.parts();
        let may_wait = handler::running().is_none();
        // SAFETY: the caller guarantees the data.
        let bytes = unsafe { data.bytes() }?;
        if target == self.rank() {
            let head = RecordHead::message(RecordKind::Eager, handler, header.len(), len, token);
            self.counted(state, target, || self.send_locally(state, &head, header, bytes))?;
            origin.notify(self);
            return Ok(());
        }
        let on_node = state.on_node(target);
        if len <= on_node.map_or(AM_EAGER_LIMIT, |(node, _)| node.eager_limit()) {
            let head = EagerHead::message(handler, header.len(), len, token);
            let parts = [head.bytes(), header, bytes];
            match on_node {
                Some((node, index)) => node.send(self, index, &parts, true, || may_wait)?,
                None => self.counted(state, target, || self.send_eager(target, &parts))?,
            }
            origin.notify(self);
            return Ok(());
        }
        trace::count(&self.observer().always.rendezvous, 1);
        // The data stays at its address for a while, so the call waits if it is borrowed.
        let (keep, waits) = match data {
            Data::Owned(bytes) => (Some(bytes), None),
            Data::At(..) => (None, None),
            Data::Bytes(bytes) if !may_wait => (Some(bytes.to_vec()), None),
            Data::Bytes(_) => {
                let counter = Arc::new(CompletionCounter::default());
                counter.begin();
                (None, Some(counter))
            }
        };
        let at = keep.as_ref().map_or(at, |bytes| bytes.as_ptr());
        let (signal, after) = match &waits {
            Some(counter) => (Signal::Counter(counter.clone()), origin),
            None => (origin, Signal::None),
        };
        let awaited = AwaitedSignal::Source { signal, _keep: keep, target };
        let name = state.tokens.lock().insert(awaited);
        let head = RecordHead::message(RecordKind::Rts, handler, header.len(), len, token);
        let source = Source { address: at as u64, token: name };
        let parts = [bytemuck::bytes_of(&head), bytemuck::bytes_of(&source), header];
        let sent = match on_node {
            Some((node, index)) => node.send(self, index, &parts, true, || may_wait),
            None => self.counted(state, target, || {
                // SAFETY: until the data has left, the caller or token keeps it, or this waits.
                unsafe { self.send_rndv(target, &parts, (at, len), name) }
            }),
        };
        if let Err(error) = sent {
            state.tokens.lock().remove(name);
            return Err(error);
        }
        if let Some(counter) = waits {
            let what = || format!("{len} bytes of an active message to be sent to rank {target}");
            self.wait_for(trace::Awaited::of(Cause::Rendezvous, target), &what, || {
                counter.check()
            })?;
        }
        after.notify(self);
        Ok(())
    }

    /// Counts a message before it leaves. The node's rings count their own.
    #[inline]
    fn counted(
        &self,
        state: &AmState,
        target: usize,
        send: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let count = &state.sent[target % state.sent.len()];
        count.fetch_add(1, Ordering::AcqRel);
        let sent = send();
        if sent.is_err() {
            count.fetch_sub(1, Ordering::AcqRel);
        }
        sent
    }

    fn send_locally(
        &self,
        state: &AmState,
        head: &RecordHead,
        header: &[u8],
        data: &[u8],
    ) -> Result<()> {
        if handler::running().is_some() || super::lock::has_locked() {
            state.local.lock().push_back(EagerMessage::new(head, header, data));
            state.sent_locally.fetch_add(1, Ordering::Release);
            return Ok(());
        }
        // Another thread may run handlers, or may have locked them.
        let mut dispatch = None;
        self.wait_for(Cause::Message, &|| "the lock of this rank's handlers".into(), || {
            dispatch = state.dispatch.try_lock();
            Ok(dispatch.is_some())
        })?;
        state.arrive_eager(self, self.rank(), head, header, data)?;
        drop(dispatch);
        // A thread that polled for other messages meanwhile found the lock taken.
        state.poll_again(self);
        Ok(())
    }

    /// In bytes.
    #[inline]
    pub fn eager_limit(&self, target: usize) -> usize {
        if target == self.rank() {
            return usize::MAX;
        }
        let on_node = self.started().and_then(|state| state.on_node(target));
        on_node.map_or(AM_EAGER_LIMIT, |(node, _)| node.eager_limit())
    }

    /// Waits until the data of all messages sent to `target` is in place there and inline handlers
    /// have run, but not for handlers on the completion thread.
    pub fn fence_messages(&self, target: usize) -> Result<()> {
        let state = self.state()?;
        self.check_rank(target)?;
        if target == self.rank() {
            return self.wait_for(Cause::Fence, &|| "messages to this rank itself".into(), || {
                Ok(state.sent_locally.load(Ordering::Acquire) == 0)
            });
        }
        if let Some((node, index)) = state.on_node(target) {
            let mut sources = sources_to(&state.tokens.lock(), target);
            let mut written = node.written(index);
            let what = || format!("messages to rank {target} to be handled");
            self.wait_for(trace::Awaited::of(Cause::Fence, target), &what, || {
                if written.is_none() {
                    written = node.written(index);
                }
                let tokens = state.tokens.lock();
                sources.retain(|&token| tokens.get(token).is_some());
                Ok(sources.is_empty() && written.is_some_and(|w| node.taken(index) >= w))
            })?;
        }
        self.fence(target)
    }

    pub fn fence_all_messages(&self) -> Result<()> {
        for target in 0..self.size() {
            self.fence_messages(target)?;
        }
        Ok(())
    }
}
