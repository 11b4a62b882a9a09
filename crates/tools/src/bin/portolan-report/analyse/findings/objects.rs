//! Findings about mutexes and counters that several ranks use at once.

use super::{Finder, Finding, OFTEN, capital};
use crate::analyse::objects::{SharedObject, Use};
use crate::analyse::sums::Sums;
use crate::model::{count, three, time};
use portolan_trace_format::kinds::{Call, SegmentKind};
use std::collections::HashMap;

/// Minimum mean number of ranks that wait for a contended mutex, from its first call to its last.
const CONTENDED: f64 = 0.2;

impl Finder<'_> {
    fn place(&self, object: &SharedObject) -> String {
        let kinds = self.trace.files.first().map(|file| &file.segments);
        match object.place.segment {
            None => format!("address {:#x} of rank {}", object.place.offset, object.owner),
            Some(segment) if object.mutex => {
                format!(
                    "mutex {} of set {segment}, owned by rank {}",
                    object.place.offset, object.owner
                )
            }
            Some(segment) => {
                let kind = kinds.and_then(|k| k.get(&segment)).copied();
                let what =
                    if kind == Some(SegmentKind::Mutexes) { "set of mutexes" } else { "segment" };
                format!(
                    "byte {} of {what} {segment}, owned by rank {}",
                    object.place.offset, object.owner
                )
            }
        }
    }

    /// Returns the mutex that ranks wait for longest, its cost, and the cost of all mutexes. All
    /// time in waits for a mutex is contention.
    fn hot_mutex(&self) -> Option<(SharedObject, &Use, [f64; 2])> {
        let objects = self.analysis.objects.hottest();
        let met = objects.into_iter().filter(|(object, used)| {
            let ranks = used.origins.len() as u64;
            object.mutex && ranks >= 2 && used.calls >= ranks
        });
        let costs = Sums::of(met.map(|(object, used)| {
            ((object, used), used.waited as f64 * (1.0 - self.starved_part(object.owner)))
        }));
        let ((object, used), cost) = *costs.first()?;
        Some((object, used, [cost, costs.sum()]))
    }

    pub(super) fn locks(&self) -> Option<Finding> {
        let (object, used, [cost, sum]) = self.hot_mutex()?;
        let waiting = used.waited as f64 / (used.last - used.first).max(1) as f64;
        if waiting < CONTENDED {
            return None;
        }
        let (length, rank, begin) = used.longest;
        let (all, calls) = (used.ns.max(used.waited) as f64, used.calls.max(1) as f64);
        let alone = used.ns.saturating_sub(used.waited) as f64 / calls;
        let finding = Finding {
            kind: "lock",
            title: format!("{} ranks contend for one mutex", used.origins.len()),
            text: format!(
                "{} was taken {} times by {} ranks, which spent {} on it, {} each; without contention it takes {}. On average {} ranks waited for it.",
                capital(&self.place(&object)),
                count(used.calls),
                used.origins.len(),
                time(all),
                time(all / calls),
                time(alone),
                three(waiting)
            ),
            advice: "Hold it for less, spread the data over several mutexes, or replace the critical section: an accumulate or a fetch-and-add needs no mutex.".into(),
            worth: cost * used.worst.0 as f64 / all.max(1.0),
            sum,
            at: (rank, begin, begin + length),
        };
        Some(finding.without(self.delayed_anywhere()))
    }

    /// Detects an owner whose counters several ranks update. The words of one owner count together,
    /// because a program may create a counter for each phase.
    pub(super) fn counter(&self) -> Option<Finding> {
        let mut owners: HashMap<u32, Words<'_>> = HashMap::new();
        for (object, used) in self.analysis.objects.hottest() {
            if object.mutex || used.origins.len() < 2 {
                continue;
            }
            let alone = used.alone(|path| self.analysis.calls.quick(Call::Rmw, path));
            owners.entry(object.owner).or_default().add(object, used, alone);
        }
        let costs = Sums::of(owners.into_iter().filter(|(_, words)| words.is_hot()).map(
            |(owner, words)| {
                let cost = words.cost * (1.0 - self.starved_part(owner));
                ((owner, words), cost)
            },
        ));
        let sum = costs.all.iter().map(|(_, ns)| ns.max(0.0)).sum();
        let ((owner, words), cost) = costs.first()?;
        let (object, used, _) = words.all.first()?;
        let (length, rank, begin) = used.longest;
        let a_call = words.ns / words.calls.max(1);
        let ranks = words.all.iter().map(|(_, used, _)| used.origins.len()).max().unwrap_or(0);
        let calls = count(words.calls);
        let (title, which) = match words.all.len() {
            1 => (
                format!("A hot counter: {ranks} ranks, {calls} read-modify-writes of one word"),
                capital(&self.place(object)),
            ),
            n => (
                format!("Hot counters of rank {owner}: {n} words, {calls} read-modify-writes"),
                format!("{n} words of rank {owner}, which up to {ranks} ranks update,"),
            ),
        };
        let mut text = format!(
            "{which} took {} in all, {} each; without contention such a call takes {}. On average {} ranks were in a call there.",
            time(words.ns as f64),
            time(a_call as f64),
            time(words.alone / words.calls.max(1) as f64),
            three(words.ns as f64 / words.span.max(1) as f64)
        );
        if words.all.len() > 1 {
            let parts = words.all.iter().take(3).map(|(object, used, _)| {
                format!("{} {}", self.place(object), time(used.ns as f64))
            });
            text += &format!(" The most expensive: {}.", parts.collect::<Vec<_>>().join("; "));
        }
        let finding = Finding {
            kind: "counter",
            title,
            text,
            advice: "Take several numbers with each fetch-and-add (tasks in chunks), or give each node its own counter, which takes numbers from the common one when it is exhausted.".into(),
            worth: words.worth * cost / words.cost.max(1.0),
            sum,
            at: (rank, begin, begin + length.max(20 * a_call)),
        };
        Some(finding.without(self.delayed_anywhere()))
    }
}

/// The words of one owner that several ranks update. Times are nanoseconds.
#[derive(Default)]
struct Words<'a> {
    /// The words with the most time first, each with its cost.
    all: Vec<(SharedObject, &'a Use, f64)>,
    calls: u64,
    ns: u64,
    /// Time of the calls without contention, and the time beyond it.
    alone: f64,
    cost: f64,
    /// Cost for the ranks that spent the most time at each word.
    worth: f64,
    /// Time from the first to the last call, summed over the words.
    span: u64,
    ranks: u64,
}

impl<'a> Words<'a> {
    fn add(&mut self, object: SharedObject, used: &'a Use, alone: f64) {
        let cost = (used.ns as f64 - alone).max(0.0);
        self.calls += used.calls;
        self.ns += used.ns;
        self.alone += alone;
        self.cost += cost;
        self.worth += cost * used.worst.0 as f64 / used.ns.max(1) as f64;
        self.span += used.last - used.first;
        self.ranks = self.ranks.max(used.origins.len() as u64);
        self.all.push((object, used, cost));
    }

    /// Returns whether ranks delay each other here: several of them at a time are in a call, or
    /// contention doubles the time of the calls. Few calls are never hot.
    fn is_hot(&self) -> bool {
        let crowded = self.ns as f64 / self.span.max(1) as f64 >= 1.2;
        self.calls >= OFTEN * self.ranks && (crowded || self.cost >= self.alone)
    }
}
