//! The counters of the statistics. Each thread updates its own counters with plain loads and
//! stores. A reader adds up the counters of all threads. Times are in ticks of the clock. Only a
//! sample of the short calls is timed ([`super::observer`]); its mean stands for all.

use parking_lot::Mutex;
use portolan_trace_format::kinds::{Call, Cause, PathTaken, Served};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

pub const CALLS: usize = Call::ALL.len();
pub const PATHS: usize = PathTaken::ALL.len();
pub const CAUSES: usize = Cause::ALL.len();
pub const SERVED: usize = Served::ALL.len();

/// The calls of one kind that took the same path.
#[derive(Debug, Default)]
pub struct CounterCell {
    calls: AtomicU64,
    bytes: AtomicU64,
    timed: AtomicU64,
    ticks: AtomicU64,
}

#[derive(Debug, Default)]
struct Timed {
    count: AtomicU64,
    ticks: AtomicU64,
    longest: AtomicU64,
}

/// Without a locked instruction, because only one thread writes the counter.
#[inline(always)]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

impl Timed {
    fn add(&self, ticks: u64) {
        add(&self.count, 1);
        add(&self.ticks, ticks);
        if ticks > self.longest.load(Ordering::Relaxed) {
            self.longest.store(ticks, Ordering::Relaxed);
        }
    }
}

#[derive(Debug)]
pub struct Counters {
    calls: [[CounterCell; PATHS]; CALLS],
    waits: [Timed; CAUSES],
    served: [Timed; SERVED],
    served_bytes: AtomicU64,
    delays: Timed,
    /// Ticks waited, by awaited rank. The lock costs little compared with a wait.
    waited_for: Mutex<HashMap<u32, u64>>,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            calls: std::array::from_fn(|_| std::array::from_fn(|_| CounterCell::default())),
            waits: std::array::from_fn(|_| Timed::default()),
            served: std::array::from_fn(|_| Timed::default()),
            served_bytes: AtomicU64::new(0),
            delays: Timed::default(),
            waited_for: Mutex::default(),
        }
    }
}

impl Counters {
    #[inline]
    pub fn call(&self, call: Call, path: PathTaken, bytes: u64, ticks: Option<u64>) {
        let cell = &self.calls[call as usize][path as usize];
        add(&cell.calls, 1);
        add(&cell.bytes, bytes);
        if let Some(ticks) = ticks {
            add(&cell.timed, 1);
            add(&cell.ticks, ticks);
        }
    }

    pub fn wait(&self, cause: Cause, peer: Option<u32>, ticks: u64) {
        self.waits[cause as usize].add(ticks);
        if let Some(peer) = peer {
            *self.waited_for.lock().entry(peer).or_default() += ticks;
        }
    }

    pub fn served(&self, kind: Served, bytes: u64, ticks: u64, waited: Option<u64>) {
        self.served[kind as usize].add(ticks);
        add(&self.served_bytes, bytes);
        if let Some(waited) = waited {
            self.delays.add(waited);
        }
    }

    /// `length` converts ticks to nanoseconds.
    pub(crate) fn add_to(&self, sum: &mut Sum, length: impl Fn(u64) -> u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (call, paths) in self.calls.iter().enumerate() {
            for (path, cell) in paths.iter().enumerate() {
                let (calls, timed) = (read(&cell.calls), read(&cell.timed));
                let total = &mut sum.calls[call][path];
                total.calls += calls;
                total.bytes += read(&cell.bytes);
                if timed > 0 {
                    let mean = length(read(&cell.ticks)) as f64 / timed as f64;
                    total.ns += (mean * calls as f64) as u64;
                }
            }
        }
        let timed = |of: &[Timed], to: &mut [Spent]| {
            for (timed, spent) in of.iter().zip(to) {
                spent.count += read(&timed.count);
                spent.ns += length(read(&timed.ticks));
                spent.longest = spent.longest.max(length(read(&timed.longest)));
            }
        };
        timed(&self.waits, &mut sum.waits);
        timed(&self.served, &mut sum.served);
        timed(std::slice::from_ref(&self.delays), std::slice::from_mut(&mut sum.delays));
        sum.served_bytes += read(&self.served_bytes);
        for (&rank, &ticks) in &*self.waited_for.lock() {
            *sum.waited_for.entry(rank).or_default() += length(ticks);
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    pub calls: u64,
    pub bytes: u64,
    pub ns: u64,
}

/// A number of occurrences, with times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    pub count: u64,
    pub ns: u64,
    pub longest: u64,
}

/// Of the counters of all threads of a rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sum {
    /// By kind and path.
    pub calls: [[Calls; PATHS]; CALLS],
    /// By cause.
    pub waits: [Spent; CAUSES],
    /// By kind.
    pub served: [Spent; SERVED],
    pub served_bytes: u64,
    /// Upper bounds of the delay between the arrival of a request and the start of its service.
    pub delays: Spent,
    /// Nanoseconds waited, by awaited rank.
    pub waited_for: HashMap<u32, u64>,
    pub naps: u64,
    /// Messages whose data stayed here until the target requested it.
    pub rendezvous: u64,
    pub aggregated_messages: u64,
    pub aggregated_items: u64,
    pub requests: u64,
}

impl Sum {
    /// The longest times remain, but are zero if nothing was counted since `before`.
    pub fn since(mut self, before: &Sum) -> Sum {
        let spent = |now: &mut Spent, then: &Spent| {
            now.count = now.count.saturating_sub(then.count);
            now.ns = now.ns.saturating_sub(then.ns);
            if now.count == 0 {
                now.longest = 0;
            }
        };
        for (now, then) in self.calls.as_flattened_mut().iter_mut().zip(before.calls.as_flattened())
        {
            now.calls = now.calls.saturating_sub(then.calls);
            now.bytes = now.bytes.saturating_sub(then.bytes);
            now.ns = now.ns.saturating_sub(then.ns);
        }
        self.waits.iter_mut().zip(&before.waits).for_each(|(now, then)| spent(now, then));
        self.served.iter_mut().zip(&before.served).for_each(|(now, then)| spent(now, then));
        spent(&mut self.delays, &before.delays);
        for (now, then) in [
            (&mut self.served_bytes, before.served_bytes),
            (&mut self.naps, before.naps),
            (&mut self.rendezvous, before.rendezvous),
            (&mut self.aggregated_messages, before.aggregated_messages),
            (&mut self.aggregated_items, before.aggregated_items),
            (&mut self.requests, before.requests),
        ] {
            *now = now.saturating_sub(then);
        }
        for (rank, ns) in &mut self.waited_for {
            *ns = ns.saturating_sub(before.waited_for.get(rank).copied().unwrap_or(0));
        }
        self.waited_for.retain(|_, ns| *ns > 0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_were_not_timed_have_the_mean_of_those_that_were() {
        let counters = Counters::default();
        for n in 0..10 {
            counters.call(Call::Put, PathTaken::Direct, 8, (n % 5 == 0).then_some(20 + n));
        }
        counters.wait(Cause::Lock, Some(3), 40);
        counters.wait(Cause::Lock, None, 60);
        counters.served(Served::Get, 100, 7, Some(9));
        let sum_now = || {
            let mut sum = Sum::default();
            counters.add_to(&mut sum, |ticks| ticks * 2);
            sum
        };
        let sum = sum_now();
        // Two of the ten calls were timed, with 20 and 25 ticks.
        let puts = sum.calls[Call::Put as usize][PathTaken::Direct as usize];
        assert_eq!(puts, Calls { calls: 10, bytes: 80, ns: 450 });
        assert_eq!(sum.waits[Cause::Lock as usize], Spent { count: 2, ns: 200, longest: 120 });
        assert_eq!(sum.waited_for, HashMap::from([(3, 80)]));
        assert_eq!(sum.delays, Spent { count: 1, ns: 18, longest: 18 });
        counters.wait(Cause::Lock, Some(3), 5);
        let later = sum_now().since(&sum);
        assert_eq!(later.waits[Cause::Lock as usize].count, 1);
        assert_eq!(later.waited_for, HashMap::from([(3, 10)]));
        assert_eq!(later.calls, Sum::default().calls);
    }
}
