//! Many small items to many targets, in few messages.
//!
//! An [`Aggregator`] collects items of one size for one handler, a buffer for each
//! target. A buffer goes out as one message, the items bare one after the other,
//! when it is full, when asked ([`Aggregator::flush`]), when it is older than
//! `PORTOLAN_AGGREGATE_US` (the progress thread looks, and waiting calls where there
//! is none), and when the job comes to rest ([`Am::quiesce`]). The handler sees a
//! whole batch at once.
//!
//! A push is a few plain stores for the thread that pushes first, and mostly
//! ([`BiasedLock`]). The age of a buffer is counted from the check that first finds it filled, so
//! that a push needs no clock.
//!
//! A buffer exists from the first item to its batch's departure; then it goes to a pool that
//! all aggregators of a rank share. So kept memory does not grow with the number of handlers
//! and targets that were once used.

use super::{Am, Owner};
use super::{HandlerId, Hook};
use crate::core::handler;
use crate::error::{Result, fail};
use crate::memory::biased_lock::BiasedLock;
use crate::memory::buffer_pool::BufferPool;
use crate::trace::{self, About, Call, Cause};
use bytemuck::Pod;
use std::mem::size_of;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// Where a batch is full unless the face says otherwise.
pub(crate) const DEFAULT_LIMIT: usize = 64 << 10;

/// Collects items of one size for one handler.
pub struct Aggregator {
    handler: HandlerId,
    header: Vec<u8>,
    item: usize,
    /// Items of a full batch.
    limit: usize,
    ranks: usize,
    /// By target.
    buffers: BiasedLock<Vec<Buffer>>,
    spares: Arc<BufferPool>,
    /// Something may be collected.
    dirty: AtomicBool,
    /// Batches that were taken and are not sent yet.
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
    bytes: Vec<u8>,
    /// For how many more items there is room; 0 where nothing is collected.
    room: usize,
    /// How many batches were sent before.
    batch: u64,
    /// The batch that a check for old buffers has found filled, and when.
    seen: Option<(u64, Instant)>,
}

/// A batch that is to go.
type Batch = (Vec<u8>, usize);

impl Aggregator {
    /// Collects items of `item` bytes (0 is legal: only their number travels) for
    /// `handler`. Its messages have `header` with the number of items behind it as
    /// eight bytes, and the items as data. A buffer is full at `limit` bytes (at
    /// least one item), or 8,192 items.
    ///
    /// # Errors
    /// `State` before handlers were registered, `Argument` for a header that leaves
    /// no room for the count.
    pub fn new(
        am: &Am,
        handler: HandlerId,
        header: &[u8],
        item: usize,
        limit: usize,
    ) -> Result<Arc<Aggregator>> {
        let most = super::MAX_HEADER - 8;
        if header.len() > most {
            fail!(Argument, "a header of {} bytes; batches have at most {most}", header.len());
        }
        let ranks = am.size();
        // Whole batches travel with their header, to the nearest and the farthest.
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

    /// Adds an item for `target`. The thread that pushes most often pays least.
    ///
    /// # Errors
    /// `Rank`; `Argument` where the item has another size; those of sending.
    #[inline]
    pub fn push(&self, am: &Am, target: usize, item: &[u8]) -> Result<()> {
        if item.len() != self.item {
            return self.wrong_size(item.len());
        }
        if self.put(target, item) { Ok(()) } else { self.put_first_or_last(am, target, item) }
    }

    /// [`Aggregator::push`] of a number or a plain structure.
    ///
    /// # Errors
    /// As for `push`.
    #[inline]
    pub fn push_value<T: Pod>(&self, am: &Am, target: usize, item: T) -> Result<()> {
        if size_of::<T>() != self.item {
            return self.wrong_size(size_of::<T>());
        }
        let item = bytemuck::bytes_of(&item);
        if self.put(target, item) { Ok(()) } else { self.put_first_or_last(am, target, item) }
    }

    #[cold]
    fn wrong_size(&self, bytes: usize) -> Result<()> {
        fail!(Argument, "an item of {bytes} bytes for batches of items of {}", self.item)
    }

    /// Adds an item that is neither the first of its batch nor the last, for the thread that
    /// pushes mostly; false where this is another case. Nothing else is done here: what a
    /// batch needs is out of the way of the pushes between.
    #[inline]
    fn put(&self, target: usize, item: &[u8]) -> bool {
        let put = self.buffers.owned(|buffers| match buffers.get_mut(target) {
            Some(buffer) if buffer.room > 1 => {
                buffer.bytes.extend_from_slice(item);
                buffer.room -= 1;
                true
            }
            _ => false,
        });
        put == Some(true)
    }

    #[cold]
    #[inline(never)]
    fn put_first_or_last(&self, am: &Am, target: usize, item: &[u8]) -> Result<()> {
        am.check_rank(target)?;
        let full = {
            let buffer = &mut self.buffers.lock()[target];
            if buffer.room == 0 {
                buffer.bytes = self.spares.take(self.limit * self.item);
                buffer.room = self.limit;
                self.dirty.store(true, Ordering::Relaxed);
            }
            buffer.bytes.extend_from_slice(item);
            buffer.room -= 1;
            (buffer.room == 0).then(|| self.take(buffer, self.limit))
        };
        match full {
            None => Ok(()),
            Some(batch) => self.send(am, target, batch),
        }
    }

    /// Sends what is collected. On return all items that were pushed before have been
    /// sent, also those that another thread was about to send (but not in a handler,
    /// which must not wait for that).
    ///
    /// # Errors
    /// Those of sending.
    pub fn flush(&self, am: &Am) -> Result<()> {
        self.send_collected(am, false).map(|_| ())
    }

    /// Sends what is collected, or what of it is old; true if anything was.
    fn send_collected(&self, am: &Am, aged: bool) -> Result<bool> {
        let sent = self.send_dirty(am, aged)?;
        if !aged && handler::running().is_none() {
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
            // Looked through without finding anything that could go: it may be empty.
            let buffers = self.buffers.lock();
            self.dirty.store(buffers.iter().any(|b| b.room > 0), Ordering::Relaxed);
        }
        Ok(any)
    }

    /// Takes what is collected for `target`, if it is old at `now` where a time is given;
    /// [`Aggregator::send`] is to follow.
    fn take_collected(&self, target: usize, now: Option<Instant>) -> Option<Batch> {
        let buffer = &mut self.buffers.lock()[target];
        if buffer.room == 0 {
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
        Some(self.take(buffer, self.limit - buffer.room))
    }

    /// Takes the buffer's batch, of this many items.
    fn take(&self, buffer: &mut Buffer, items: usize) -> Batch {
        self.sending.fetch_add(1, Ordering::Relaxed);
        buffer.batch += 1;
        buffer.room = 0;
        (std::mem::take(&mut buffer.bytes), items)
    }

    fn send(&self, am: &Am, target: usize, (bytes, items): Batch) -> Result<()> {
        let sent = self.send_bytes(am, target, &bytes, items);
        self.sending.fetch_sub(1, Ordering::Release);
        self.spares.give(bytes);
        sent
    }

    fn send_bytes(&self, am: &Am, target: usize, bytes: &[u8], items: usize) -> Result<()> {
        let always = &am.observer().always;
        trace::count(&always.batches, 1);
        trace::count(&always.items, items as u64);
        let about = About::new(Call::Aggregate).to(target).moves(bytes.len());
        am.observed(
            || About { blocks: items, ..about.by(am.about_message(target, 0).path) },
            || self.send_batch(am, target, bytes, items),
        )
    }

    /// Sends a batch to the rank that handles it.
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
            log::debug!("an aggregator outlives active messages: {error:#}");
        }
    }
}
