//! Counters with the status of each destination: the lists of `LAPI_Setcntr_wstatus`.
//!
//! A program that waits for one message or completion from each of several tasks passes a list of
//! the tasks and an array for their statuses. The array is written by `LAPI_Setcntr_wstatus`, and
//! when a call that waits for the counter or reads it returns, so it need not outlive these. The
//! list ends when the counter is set again, or when a wait returns and no entry is open.
//!
//! | status | meaning |
//! |---|---|
//! | `LAPI_MSG_INITIAL` | open: nothing has counted for the task, and it was not purged |
//! | `LAPI_MSG_RECVD` | the task has counted |
//! | `LAPI_MSG_PURGED` | the task was purged before it counted |
//! | `LAPI_MSG_PURGED_RCVD` | the task has counted and was purged, in either order |
//! | `LAPI_MSG_INVALID` | the task was purged before the call, or is not a task of the job |

use super::types::Counter;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::raw::{c_int, c_uint};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) const INITIAL: c_int = 0;
const RECVD: c_int = 1;
const PURGED: c_int = 2;
const PURGED_RCVD: c_int = 3;
pub(super) const INVALID: c_int = 4;

#[derive(Debug)]
pub(super) struct List {
    pub entries: Vec<(c_uint, c_int)>,
    pub array: *mut c_int,
    /// The purge count of the context when the list began or a wait for the counter last returned.
    pub purges: u32,
}

// SAFETY: the program keeps the array valid while calls use the counter. It is written once before
// the list is shared, and then only under the lock of all lists.
unsafe impl Send for List {}

impl List {
    fn change(&mut self, task: usize, one: bool, to: impl Fn(c_int) -> Option<c_int>) {
        for (other, status) in &mut self.entries {
            if *other as usize == task
                && let Some(next) = to(*status)
            {
                *status = next;
                if one {
                    return;
                }
            }
        }
    }

    fn notify(&self) {
        for (i, &(_, status)) in self.entries.iter().enumerate() {
            // SAFETY: the program's array has an element for each destination.
            unsafe { self.array.add(i).write(status) };
        }
    }

    fn is_open(&self) -> bool {
        self.entries.iter().any(|&(_, status)| status == INITIAL)
    }
}

/// The watched counters, keyed by their address.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    lists: Mutex<HashMap<usize, List>>,
    /// The number of lists, so that a thread that increments a counter can skip the lock.
    count: AtomicUsize,
}

impl Watched {
    #[inline]
    pub(crate) fn has(&self, counter: *const Counter) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.lists.lock().contains_key(&counter.addr())
    }

    /// Records that a counter is about to count for `task`.
    #[inline]
    pub(crate) fn counted(&self, counter: *const Counter, task: usize) {
        if self.count.load(Ordering::Acquire) > 0
            && let Some(list) = self.lists.lock().get_mut(&counter.addr())
        {
            list.change(task, true, |status| match status {
                INITIAL => Some(RECVD),
                PURGED => Some(PURGED_RCVD),
                _ => None,
            });
        }
    }

    pub(crate) fn purged(&self, task: usize) {
        for list in self.lists.lock().values_mut() {
            list.change(task, false, |status| match status {
                INITIAL => Some(PURGED),
                RECVD => Some(PURGED_RCVD),
                _ => None,
            });
        }
    }

    /// Returns the number of purges already reported for the counter, or `now` if it has no list.
    pub(crate) fn reported_purges(&self, counter: *const Counter, now: u32) -> u32 {
        match self.lists.lock().get(&counter.addr()) {
            Some(list) => list.purges,
            None => now,
        }
    }

    /// Updates the array when a call that reads the counter returns. If the call waited, ends the
    /// list if no entry is open. `purges` is the number that the call has reported, if any.
    #[inline]
    pub(crate) fn notify(&self, counter: *const Counter, waited: bool, purges: Option<u32>) {
        if self.count.load(Ordering::Acquire) > 0 {
            self.record_slowly(counter, waited, purges);
        }
    }

    #[cold]
    fn record_slowly(&self, counter: *const Counter, waited: bool, purges: Option<u32>) {
        let mut lists = self.lists.lock();
        if let Some(list) = lists.get_mut(&counter.addr()) {
            list.notify();
            list.purges = purges.unwrap_or(list.purges);
            if waited && !list.is_open() {
                lists.remove(&counter.addr());
                self.count.fetch_sub(1, Ordering::Release);
            }
        }
    }

    pub(crate) fn forget(&self, counter: *const Counter) {
        if self.count.load(Ordering::Acquire) > 0
            && self.lists.lock().remove(&counter.addr()).is_some()
        {
            self.count.fetch_sub(1, Ordering::Release);
        }
    }

    pub(super) fn watch(&self, counter: *const Counter, list: List) {
        list.notify();
        if self.lists.lock().insert(counter.addr(), list).is_none() {
            self.count.fetch_add(1, Ordering::Release);
        }
    }
}
