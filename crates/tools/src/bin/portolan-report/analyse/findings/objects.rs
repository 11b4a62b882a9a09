//! Findings about mutexes and counters that several ranks use at once.

use super::{Finder, Finding, OFTEN, capital};
use crate::analyse::objects::{SharedObject, Use};
use crate::analyse::sums::Sums;
use crate::model::{count, three, time};
use portolan_trace_format::kinds::{Call, SegmentKind};

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

    /// Returns the object that costs most beyond the uncontended time of its calls. The array holds
    /// this cost, the cost of all objects, and the uncontended time of one call.
    fn hot(&self, call: Call, mutex: bool, least: u64) -> Option<(SharedObject, &Use, [f64; 3])> {
        let objects = self.analysis.objects.hottest();
        let met = objects.into_iter().filter(|(object, used)| {
            let ranks = used.origins.len() as u64;
            object.mutex == mutex && ranks >= 2 && used.calls >= least * ranks
        });
        let costs = Sums::of(met.map(|(object, used)| {
            let alone = used.alone(|path| self.analysis.calls.quick(call, path));
            let over = used.ns.max(used.waited) as f64 - alone;
            ((object, used, alone), over * (1.0 - self.starved_part(object.owner)))
        }));
        let ((object, used, alone), cost) = *costs.first()?;
        let sum = costs.all.iter().map(|(_, ns)| ns.max(0.0)).sum();
        Some((object, used, [cost, sum, alone / used.calls.max(1) as f64]))
    }

    /// Detects a mutex that ranks contend for.
    pub(super) fn locks(&self) -> Option<Finding> {
        let (object, used, [cost, sum, alone]) = self.hot(Call::Lock, true, 1)?;
        // With barely more than one rank at a time, the mutex is not contended.
        if used.crowd() < 1.2 {
            return None;
        }
        let (length, rank, begin) = used.longest;
        let (all, calls) = (used.ns.max(used.waited) as f64, used.calls.max(1) as f64);
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
                three(used.crowd())
            ),
            advice: "Hold it for less, spread the data over several mutexes, or replace the critical section: an accumulate or a fetch-and-add needs no mutex.".into(),
            worth: cost * used.worst.0 as f64 / all.max(1.0),
            sum,
            at: (rank, begin, begin + length),
        };
        Some(finding.without(self.delayed_anywhere()))
    }

    /// Detects a counter that ranks update concurrently.
    pub(super) fn counter(&self) -> Option<Finding> {
        let (object, used, [cost, sum, alone]) = self.hot(Call::Rmw, false, OFTEN)?;
        // A counter that ranks use one after the other is not hot.
        if used.crowd() < 1.2 {
            return None;
        }
        let (length, rank, begin) = used.longest;
        let a_call = used.ns / used.calls.max(1);
        let finding = Finding {
            kind: "counter",
            title: format!(
                "A hot counter: {} ranks, {} read-modify-writes of one word",
                used.origins.len(),
                count(used.calls)
            ),
            text: format!(
                "{} took {} in all, {} each; without contention such a call takes {}. On average {} ranks were in a call there.",
                capital(&self.place(&object)),
                time(used.ns as f64),
                time(a_call as f64),
                time(alone),
                three(used.crowd())
            ),
            advice: "Take several numbers with each fetch-and-add (tasks in chunks), or give each node its own counter, which takes numbers from the common one when it is exhausted.".into(),
            worth: cost * used.worst.0 as f64 / used.ns.max(1) as f64,
            sum,
            at: (rank, begin, begin + length.max(20 * a_call)),
        };
        Some(finding.without(self.delayed_anywhere()))
    }
}
