//! Aggregation of many small items for many targets into few messages.
//!
//! An [`Aggregator`] collects items of one size for one handler, in one buffer per target. It sends
//! a buffer as one message: when it is full, in [`Aggregator::flush`], when it is older than a
//! millisecond, and in [`Am::quiesce`]. The progress thread, or without one a waiting call, checks
//! the age. The handler receives a whole batch per call.
//!
//! On the first thread that pushes, a push is a few plain stores ([`AppendLists`]). The progress
//! thread, which runs some of the handlers, is never that thread. Age is measured from the first
//! check that finds items, so a push does not read the clock. A buffer goes to a pool of the rank
//! when its batch has been sent, so memory does not grow with the number of handlers and targets
//! ever used.

use super::{Am, Owner};
use super::{HandlerId, Hook};
use crate::core::handler;
use crate::memory::pool::Pool;
use bytemuck::Pod;
use portolan_base::error::{Result, fail};
use portolan_base::sync::append_lists::{AppendLists, Batch};
use portolan_base::thread::{self, Role, fast_tls};
use portolan_base::trace::{self, Call, CallInfo, Cause};
use smallvec::SmallVec;
use std::mem::size_of;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

fast_tls! {
    /// Number of batches that this thread is sending. A send runs completion handlers while it
    /// waits, and they must not wait for the batch in turn.
    static SENDING: u32 = 0;
}

/// Number of items that [`Aggregator::push_values`] adds together.
const TOGETHER: usize = 64;
/// In bytes. With its headers, a batch is shorter than 64 KiB: MPI sends longer messages over TCP
/// only after the receiver has answered.
pub const DEFAULT_LIMIT: usize = 60 << 10;

pub struct Aggregator {
    handler: HandlerId,
    header: Vec<u8>,
    item: usize,
    limit: usize,
    lists: AppendLists,
    spares: Arc<Pool>,
    /// Batches that were taken from their buffers, under the lock of the lists, and not yet sent.
    sending: AtomicUsize,
    age: Duration,
    hook: OnceLock<Hook>,
    owner: Weak<dyn Owner>,
}

impl std::fmt::Debug for Aggregator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aggregator")
            .field("handler", &self.handler)
            .field("item", &self.item)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Aggregator {
    /// Items have `item` bytes; if 0, messages contain only their number. The header of each
    /// message is `header` and the number of items as an eight-byte integer. A batch is full at
    /// `limit` bytes, at the smallest eager limit of all targets, or at 8,192 items, but has room
    /// for at least one item. Fails with `State` before handlers were registered, and with
    /// `Argument` if `header` leaves no room for the number of items.
    pub fn new(
        am: &Am,
        handler: HandlerId,
        header: &[u8],
        item: usize,
        limit: usize,
    ) -> Result<Arc<Aggregator>> {
        let most = super::MAX_HEADER - 8;
        if header.len() > most {
            fail!(
                Argument,
                "a header of {} bytes exceeds the limit of {most} bytes for batches",
                header.len()
            );
        }
        let ranks = am.size();
        let room = (0..ranks).map(|r| am.eager_limit(r)).min().unwrap_or(limit);
        let limit = (limit.min(room) / item.max(1)).clamp(1, 8192);
        let aggregator = Arc::new(Aggregator {
            handler,
            header: header.to_vec(),
            item,
            limit,
            lists: AppendLists::new(ranks, item.max(1), limit),
            spares: am.state()?.spares.clone(),
            sending: AtomicUsize::new(0),
            hook: OnceLock::new(),
            owner: am.owner()?,
            age: am.config.aggregate_age,
        });
        let weak = Arc::downgrade(&aggregator);
        let hook: Hook = Arc::new(move |am: &Am, aged| match weak.upgrade() {
            Some(aggregator) => aggregator.send_collected(am, aged),
            None => Ok(()),
        });
        am.add_flush_hook(hook.clone())?;
        let _ = aggregator.hook.set(hook);
        Ok(aggregator)
    }

    /// Adds an item for `target`, and sends the batch if this fills it. Fails with `Rank` if
    /// `target` is outside the job, with `Argument` for an item of another size, or as the send.
    #[inline]
    pub fn push(&self, am: &Am, target: usize, item: &[u8]) -> Result<()> {
        if item.len() != self.item {
            return self.wrong_size(item.len());
        }
        if self.put(target, item) { Ok(()) } else { self.put_first_or_last(am, target, item) }
    }

    #[inline]
    pub fn push_value<T: Pod>(&self, am: &Am, target: usize, item: T) -> Result<()> {
        self.push(am, target, bytemuck::bytes_of(&item))
    }

    /// Adds items in order. The iterator may use this aggregator itself. Fails as
    /// [`Aggregator::push`], after adding the items before the one that failed.
    #[inline]
    pub fn push_values<T: Pod>(
        &self,
        am: &Am,
        items: impl IntoIterator<Item = (usize, T)>,
    ) -> Result<()> {
        if size_of::<T>() != self.item {
            return self.wrong_size(size_of::<T>());
        }
        let mut items = items.into_iter();
        loop {
            // The iterator is the caller's code, so it must not run under the lock.
            let mut added = 0;
            let refused = self.lists.appending(|lists| {
                items.by_ref().take(TOGETHER).find(|(target, item)| {
                    let appended = lists.append(*target, bytemuck::bytes_of(item));
                    added += usize::from(appended);
                    !appended
                })
            });
            match refused {
                Some(Some((target, item))) => {
                    self.put_first_or_last(am, target, bytemuck::bytes_of(&item))?;
                }
                Some(None) if added < TOGETHER => return Ok(()),
                Some(None) => {}
                None => {
                    let drawn: SmallVec<[(usize, T); TOGETHER]> =
                        items.by_ref().take(TOGETHER).collect();
                    self.put_locked(am, drawn.iter().map(|(r, i)| (*r, bytemuck::bytes_of(i))))?;
                    if drawn.len() < TOGETHER {
                        return Ok(());
                    }
                }
            }
        }
    }

    #[cold]
    fn wrong_size(&self, bytes: usize) -> Result<()> {
        fail!(Argument, "an item of {bytes} bytes in batches of {}-byte items", self.item)
    }

    /// Returns false for the first and last item of a batch, and on other threads.
    #[inline]
    fn put(&self, target: usize, item: &[u8]) -> bool {
        self.lists.appending(|lists| lists.append(target, item)) == Some(true)
    }

    #[cold]
    #[inline(never)]
    fn put_first_or_last(&self, am: &Am, target: usize, item: &[u8]) -> Result<()> {
        self.put_locked(am, std::iter::once((target, item)))
    }

    fn put_locked<'i>(
        &self,
        am: &Am,
        mut items: impl Iterator<Item = (usize, &'i [u8])>,
    ) -> Result<()> {
        while let Some((target, batch)) = self.fill(am, &mut items)? {
            self.send(am, target, batch)?;
            am.serve_between_batches()?;
        }
        Ok(())
    }

    /// Appends items under the lock until one fills its batch. Returns that batch and its target.
    fn fill<'i>(
        &self,
        am: &Am,
        items: &mut impl Iterator<Item = (usize, &'i [u8])>,
    ) -> Result<Option<(usize, Batch)>> {
        let mut lists = self.lists.lock();
        if thread::role() != Role::Progress {
            lists.claim();
        }
        for (target, item) in items {
            am.check_rank(target)?;
            let fresh = || self.spares.take_filled(self.limit * self.item.max(1));
            if let Some(batch) = lists.append(target, item, fresh) {
                self.sending.fetch_add(1, Ordering::Relaxed);
                return Ok(Some((target, batch)));
            }
        }
        Ok(None)
    }

    /// On return, all items pushed before have been sent, even if another thread was sending their
    /// batch. In a handler, which must not block, does not wait for other threads.
    pub fn flush(&self, am: &Am) -> Result<()> {
        self.send_collected(am, false)
    }

    /// With `aged`, sends only the old items.
    fn send_collected(&self, am: &Am, aged: bool) -> Result<()> {
        self.send_lists(am, aged)?;
        if !aged && handler::running().is_none() && SENDING.get() == 0 {
            am.wait_for(Cause::Message, &|| "batches that other threads send".into(), || {
                Ok(self.sending.load(Ordering::Acquire) == 0)
            })?;
        }
        Ok(())
    }

    /// Sends all batches even if a send fails, and returns the first error.
    fn send_lists(&self, am: &Am, aged: bool) -> Result<()> {
        if self.lists.is_empty() {
            return Ok(());
        }
        let now = aged.then(Instant::now);
        let (mut from, mut result) = (0, Ok(()));
        loop {
            let taken = self.take_from(&mut from, now);
            if taken.is_empty() {
                return result;
            }
            for (target, batch) in taken {
                let sent = self.send(am, target, batch);
                result = result.and(sent);
            }
        }
    }

    /// Takes some batches of the lists with indices of at least `from`, and sets `from` to the next
    /// index. With `now`, takes only old items. The caller sends the batches.
    fn take_from(&self, from: &mut usize, now: Option<Instant>) -> SmallVec<[(usize, Batch); 8]> {
        let mut taken = SmallVec::new();
        let mut lists = self.lists.lock();
        while taken.len() < taken.inline_size()
            && let Some(index) = lists.attached(*from)
        {
            *from = index + 1;
            if now.is_none_or(|now| lists.is_old(index, now, self.age))
                && let Some(batch) = lists.take(index)
            {
                self.sending.fetch_add(1, Ordering::Relaxed);
                taken.push((lists.target(index), batch));
            }
        }
        taken
    }

    fn send(&self, am: &Am, target: usize, (buffer, used): Batch) -> Result<()> {
        let bytes = &buffer[used];
        let sent = if bytes.is_empty() {
            Ok(())
        } else {
            let items = bytes.len() / self.item.max(1);
            SENDING.set(SENDING.get() + 1);
            let sent = self.send_bytes(am, target, &bytes[..items * self.item], items);
            SENDING.set(SENDING.get() - 1);
            sent
        };
        self.sending.fetch_sub(1, Ordering::Release);
        self.spares.give(buffer);
        sent
    }

    fn send_bytes(&self, am: &Am, target: usize, bytes: &[u8], items: usize) -> Result<()> {
        let always = &am.observer().always;
        trace::count(&always.batches, 1);
        trace::count(&always.items, items as u64);
        let call_info = CallInfo::new(Call::Aggregate).to(target).moves(bytes.len());
        // Pushes are not recorded, so the batch is, even if a fence sends it.
        let _included = am.observer().include_calls();
        am.observed(
            || CallInfo { blocks: items, ..call_info.by(am.call_info_of_message(target, 0).path) },
            || {
                let head = [&self.header[..], &(items as u64).to_ne_bytes()].concat();
                am.send_message(target, self.handler, &head, bytes)
            },
        )
    }
}

impl Drop for Aggregator {
    fn drop(&mut self) {
        if let (Some(owner), Some(hook)) = (self.owner.upgrade(), self.hook.get())
            && let Err(error) = owner.am().remove_flush_hook(hook)
        {
            log::debug!("an aggregator was dropped after active messages had ended: {error:#}");
        }
    }
}
