//! Pulls of inputs and outputs that are too long for a message. The receiver pulls them from the
//! sender's registered memory, step by step, as contexts of the class make progress.

use super::{ClassShared, Pull, Purpose};
use crate::failure::{Result, Status};
use crate::hg::context::ContextShared;
use crate::hg::payload::Payload;
use crate::na::address::Peer;
use crate::na::limited::limited;
use crate::na::transfer::Transfer;
use crate::na::{Direction, Mem, Part, Permission};
use portolan_base::error::ErrorKind;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Pull {
    pub fn new(peer: Peer, remote: Arc<Mem>, purpose: Purpose) -> Pull {
        Pull { transfer: None, peer, remote, local: None, purpose }
    }
}

impl fmt::Debug for Pull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pull").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl ClassShared {
    /// Ends the pulls of outputs for a context being destroyed. Returns whether all have ended.
    pub(in crate::hg) fn drop_outputs_of(&self, context: &Arc<ContextShared>) -> bool {
        let mut under_way = false;
        for _ in 0..self.pulling.load(Ordering::Acquire) {
            let Some(mut pull) = self.pulls.lock().pop_front() else { break };
            let mine = matches!(&pull.purpose,
                Purpose::Output { origin, .. } if Arc::ptr_eq(origin.context(), context));
            let ended = match &mut pull.transfer {
                _ if !mine => None,
                None => Some(Status::CANCELED),
                Some(transfer) => {
                    transfer.cancel();
                    transfer.advance()
                }
            };
            match ended {
                None => {
                    under_way |= mine;
                    self.pulls.lock().push_back(pull);
                }
                Some(status) => self.end_pull(context, pull, status),
            }
        }
        !under_way
    }

    pub(super) fn enqueue(&self, pull: Pull) {
        self.na.wake_source.transfer_begins();
        // Counted first, because another thread may end the pull as soon as it is in the queue.
        self.pulling.fetch_add(1, Ordering::Release);
        self.pulls.lock().push_back(pull);
        self.na.notify();
    }

    pub(super) fn pull(&self, context: &Arc<ContextShared>) -> bool {
        let mut busy = false;
        let _handing = self.hand_over();
        for _ in 0..self.pulling.load(Ordering::Acquire) {
            let Some(mut pull) = self.pulls.lock().pop_front() else { break };
            let ended = match self.begin(&mut pull) {
                Ok(transfer) => transfer.advance(),
                Err(failure) => {
                    if failure.kind() != ErrorKind::State {
                        let from = self.na.text_of(&self.na.address(pull.peer));
                        limited!(Warn, "parameters cannot be pulled from {from}: {failure}");
                    }
                    Some(failure.status())
                }
            };
            if pull.transfer.as_ref().is_some_and(Transfer::is_moving) {
                busy = true;
                if matches!(pull.purpose, Purpose::Input { .. }) {
                    self.shares.moved(pull.peer);
                }
            }
            match ended {
                None => self.pulls.lock().push_back(pull),
                Some(status) => {
                    self.end_pull(context, pull, status);
                    busy = true;
                }
            }
        }
        busy
    }

    fn end_pull(&self, context: &Arc<ContextShared>, pull: Pull, status: Status) {
        self.pulling.fetch_sub(1, Ordering::Release);
        self.na.wake_source.transfer_ends();
        self.pulled(context, pull, status);
    }

    fn begin<'a>(&self, pull: &'a mut Pull) -> Result<&'a mut Transfer> {
        let transfer = match pull.transfer.take() {
            Some(transfer) => transfer,
            None => {
                let size = pull.remote.len();
                let local = Mem::for_a_while(size, Permission::ReadWrite)?;
                local.register();
                let transfer = Transfer::new(
                    &self.na,
                    Direction::Get,
                    pull.peer,
                    Part { mem: &local, offset: 0 },
                    Part { mem: &pull.remote, offset: 0 },
                    size,
                )?;
                pull.local = Some(local);
                transfer
            }
        };
        Ok(pull.transfer.insert(transfer))
    }

    fn pulled(&self, context: &Arc<ContextShared>, pull: Pull, ended: Status) {
        let len = pull.remote.len();
        let Pull { local, purpose, transfer, .. } = pull;
        drop(transfer);
        let body = local.map_or(Payload::Empty, Payload::Pulled);
        match purpose {
            Purpose::Input { request, function, source } => {
                self.shares.end_pull(source.peer, len);
                // The origin of a one-way call may reuse its input now, except for more data, which
                // is still to be acquired.
                let succeeded = ended == Status::SUCCESS;
                if !succeeded || !request.is_answered_by_call() {
                    self.answer_status(source.peer, request.token, ended);
                }
                if succeeded {
                    self.run_in(context, function, source, &request, body);
                }
            }
            Purpose::Output { origin, status, release, peer } => {
                self.release(peer, release);
                match ended {
                    Status::SUCCESS => origin.complete(status, body),
                    failed => origin.complete(failed, Payload::Empty),
                }
            }
        }
    }
}
