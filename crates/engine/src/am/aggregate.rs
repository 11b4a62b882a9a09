//! Aggregation of many small items for many targets into few messages.
//!
//! An [`Aggregator`] collects items of one size for one handler, in one buffer per target. It sends
//! a buffer as one message: when it is full, in [`Aggregator::flush`], when it is older than a
//! millisecond, and in [`Am::quiesce`]. The progress thread, or without one a waiting call, checks
//! the age. The handler receives a whole batch per call.
//!
//! On the thread that pushes most often, a push is a few plain stores ([`BiasedLock`]). Age is
//! measured from the first check that finds items, so a push does not read the clock. A buffer goes
//! to a pool of the rank when its batch has been sent, so memory does not grow with the number of
//! handlers and targets ever used.

use super::{Am, Owner};
use super::{HandlerId, Hook};
use crate::core::handler;
use crate::error::{Result, fail};
use crate::memory::biased_lock::BiasedLock;
use crate::memory::buffer_pool::BufferPool;
use crate::thread::fast_tls;
use crate::trace::{self, Call, CallInfo, Cause};
use bytemuck::Pod;
use std::mem::size_of;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

fast_tls! {
    /// Number of batches that this thread is sending. A send runs completion handlers while it
    /// waits, and they must not wait for the batch in turn.
    static SENDING: u32 = 0;
}

/// Number of items that [`Aggregator::push_values`] adds under one lock.
const TOGETHER: usize = 64;
/// In bytes.
pub const DEFAULT_LIMIT: usize = 64 << 10;

pub struct Aggregator {
    handler: HandlerId,
    header: Vec<u8>,
    item: usize,
    limit: usize,
    ranks: usize,
    buffers: BiasedLock<Vec<Buffer>>,
    spares: Arc<BufferPool>,
    dirty: AtomicBool,
    /// Batches taken from their buffers and not yet sent.
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

#[derive(Debug, Default)]
struct Buffer {
    /// Places for all items of the batch except the last, or empty without a batch.
    bytes: Vec<u8>,
    /// Length of the places in use. An item without bytes has a place of one byte.
    used: usize,
    batch: u64,
    /// The batch that an age check has found, and the time of the first such check.
    seen: Option<(u64, Instant)>,
}

impl Buffer {
    /// Returns false for the first and the last item of a batch.
    #[inline]
    fn add(&mut self, item: &[u8]) -> bool {
        let end = self.used + item.len().max(1);
        let Some(place) = self.bytes.get_mut(self.used..end) else { return false };
        place[..item.len()].copy_from_slice(item);
        self.used = end;
        true
    }
}

type Batch = (Vec<u8>, usize);

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
            ranks,
            buffers: BiasedLock::new((0..ranks).map(|_| Buffer::default()).collect()),
            spares: am.state()?.spares.clone(),
            dirty: AtomicBool::new(false),
            sending: AtomicUsize::new(0),
            hook: OnceLock::new(),
            owner: am.owner()?,
            age: am.config.aggregate_age,
        });
        let weak = Arc::downgrade(&aggregator);
        let hook: Hook = Arc::new(move |am: &Am, aged| match weak.upgrade() {
            Some(aggregator) => aggregator.send_collected(am, aged),
            None => Ok(false),
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
        if size_of::<T>() != self.item {
            return self.wrong_size(size_of::<T>());
        }
        let item = bytemuck::bytes_of(&item);
        if self.put(target, item) { Ok(()) } else { self.put_first_or_last(am, target, item) }
    }

    /// Adds items in order, with one lock for many. The iterator may use this aggregator itself.
    /// Fails as [`Aggregator::push`], after adding the items before the one that failed.
    #[inline]
    pub fn push_values<T: Pod>(
        &self,
        am: &Am,
        items: impl IntoIterator<Item = (usize, T)>,
    ) -> Result<()> {
        if size_of::<T>() != self.item {
            return self.wrong_size(size_of::<T>());
        }
        // The iterator is the caller's code, so it runs outside the lock.
        let mut drawn = [(0, T::zeroed()); TOGETHER];
        let mut items = items.into_iter();
        loop {
            let mut count = 0;
            for (place, item) in drawn.iter_mut().zip(&mut items) {
                *place = item;
                count += 1;
            }
            self.put_values(am, &drawn[..count])?;
            if count < TOGETHER {
                return Ok(());
            }
        }
    }

    fn put_values<T: Pod>(&self, am: &Am, mut items: &[(usize, T)]) -> Result<()> {
        while !items.is_empty() {
            let added = self.buffers.with(|buffers| {
                let mut add = |(target, item): &(usize, T)| {
                    buffers.get_mut(*target).is_some_and(|b| b.add(bytemuck::bytes_of(item)))
                };
                items.iter().position(|item| !add(item)).unwrap_or(items.len())
            });
            items = &items[added..];
            if let Some(((target, item), rest)) = items.split_first() {
                self.put_first_or_last(am, *target, bytemuck::bytes_of(item))?;
                items = rest;
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong_size(&self, bytes: usize) -> Result<()> {
        fail!(Argument, "an item of {bytes} bytes in batches of {}-byte items", self.item)
    }

    /// Returns false for the first and last item of a batch, and if another thread owns the lock.
    #[inline]
    fn put(&self, target: usize, item: &[u8]) -> bool {
        let put =
            self.buffers.owned(|buffers| buffers.get_mut(target).is_some_and(|b| b.add(item)));
        put == Some(true)
    }

    #[cold]
    #[inline(never)]
    fn put_first_or_last(&self, am: &Am, target: usize, item: &[u8]) -> Result<()> {
        am.check_rank(target)?;
        let full = {
            let buffer = &mut self.buffers.lock()[target];
            if buffer.used == 0 {
                buffer.bytes = self.spares.take_filled(self.limit * self.place());
                buffer.bytes.truncate((self.limit - 1) * self.place());
                self.dirty.store(true, Ordering::Relaxed);
            }
            (!buffer.add(item)).then(|| {
                buffer.bytes.resize(self.limit * self.place(), 0);
                buffer.add(item);
                self.take(buffer)
            })
        };
        match full {
            None => Ok(()),
            Some(batch) => {
                self.send(am, target, batch)?;
                am.serve_between_batches()
            }
        }
    }

    /// On return, all items pushed before have been sent, even if another thread was sending their
    /// batch. In a handler, which must not block, does not wait for other threads.
    pub fn flush(&self, am: &Am) -> Result<()> {
        self.send_collected(am, false).map(|_| ())
    }

    /// With `aged`, sends only the old items. Returns whether there were any.
    fn send_collected(&self, am: &Am, aged: bool) -> Result<bool> {
        let sent = self.send_dirty(am, aged)?;
        if !aged && handler::running().is_none() && SENDING.get() == 0 {
            am.wait_for(Cause::Message, &|| "batches that other threads send".into(), || {
                Ok(self.sending.load(Ordering::Acquire) == 0)
            })?;
        }
        Ok(sent)
    }

    fn send_dirty(&self, am: &Am, aged: bool) -> Result<bool> {
        if !self.dirty.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let now = aged.then(Instant::now);
        let mut any = false;
        for target in 0..self.ranks {
            let batch = self.take_collected(target, now);
            if let Some(batch) = batch {
                any = true;
                self.send(am, target, batch)?;
            }
        }
        if !any {
            // If no batch could be taken, all buffers may be empty.
            let buffers = self.buffers.lock();
            self.dirty.store(buffers.iter().any(|b| b.used > 0), Ordering::Relaxed);
        }
        Ok(any)
    }

    /// With `now`, only a batch of the maximum age. The caller passes it to [`Aggregator::send`].
    fn take_collected(&self, target: usize, now: Option<Instant>) -> Option<Batch> {
        let buffer = &mut self.buffers.lock()[target];
        if buffer.used == 0 {
            return None;
        }
        if let Some(now) = now {
            let old = match buffer.seen {
                Some((batch, then)) if batch == buffer.batch => now - then >= self.age,
                _ => {
                    buffer.seen = Some((buffer.batch, now));
                    self.age.is_zero()
                }
            };
            if !old {
                return None;
            }
        }
        Some(self.take(buffer))
    }

    fn place(&self) -> usize {
        self.item.max(1)
    }

    fn take(&self, buffer: &mut Buffer) -> Batch {
        self.sending.fetch_add(1, Ordering::Relaxed);
        buffer.batch += 1;
        let items = std::mem::take(&mut buffer.used) / self.place();
        (std::mem::take(&mut buffer.bytes), items)
    }

    fn send(&self, am: &Am, target: usize, (bytes, items): Batch) -> Result<()> {
        SENDING.set(SENDING.get() + 1);
        let sent = self.send_bytes(am, target, &bytes[..items * self.item], items);
        SENDING.set(SENDING.get() - 1);
        self.sending.fetch_sub(1, Ordering::Release);
        self.spares.give(bytes);
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
            || self.send_batch(am, target, bytes, items),
        )
    }

    fn send_batch(&self, am: &Am, target: usize, bytes: &[u8], items: usize) -> Result<()> {
        let head = [&self.header[..], &(items as u64).to_ne_bytes()].concat();
        am.send_message(target, self.handler, &head, bytes)
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
