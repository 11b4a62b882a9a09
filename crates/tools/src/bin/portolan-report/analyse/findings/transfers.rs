//! Findings about a rank's own calls: short and strided transfers, fences, allocations.

use super::{ASSUMED, Finder, Finding};
use crate::analyse::patterns::{Large, SHORT_RUN, SMALL, Tally};
use crate::analyse::sums::Sums;
use crate::model::{bytes, count, percent, three, time};
use portolan_trace_format::kinds::Call;
use std::collections::BTreeMap;

/// A target is hot if it has at least this multiple of the mean bytes of a rank, and if on average
/// at least this number of ranks transfer at once.
const HOT_SHARE: f64 = 2.0;
const HOT_CROWD: f64 = 1.2;

/// The long transfers of all ranks to one target. Times are nanoseconds.
#[derive(Debug, Default)]
struct HotTarget {
    tally: Tally,
    /// The rank of the longest transfer.
    peak_of: u32,
    /// By origin: time, and the range of time with its transfers.
    origins: BTreeMap<u32, (u64, (u64, u64))>,
    /// Bytes by call site.
    sites: BTreeMap<Option<u32>, u64>,
}

impl HotTarget {
    fn add(&mut self, rank: usize, site: Option<u32>, large: &Large) {
        if large.tally.peak > self.tally.peak {
            self.peak_of = rank as u32;
        }
        self.tally.merge(&large.tally);
        let new = (0, (large.first, large.last));
        let (ns, range) = self.origins.entry(rank as u32).or_insert(new);
        *ns += large.tally.ns;
        *range = (range.0.min(large.first), range.1.max(large.last));
        *self.sites.entry(site).or_default() += large.tally.bytes;
    }

    /// Returns the time of each origin's transfers while another origin has transfers as well, and
    /// how many ranks are in one of them then, on average.
    fn crowd(&self) -> (BTreeMap<u32, f64>, f64) {
        let ranges = || self.origins.values().map(|(_, range)| *range);
        let (mut from, mut to): (Vec<u64>, Vec<u64>) = ranges().unzip();
        from.sort_unstable();
        to.sort_unstable();
        let (Some(&from), Some(&to)) = (from.get(1), to.len().checked_sub(2).map(|at| &to[at]))
        else {
            return (BTreeMap::new(), 0.0);
        };
        let shared = |(ns, (first, last)): (u64, (u64, u64))| {
            let inside = last.min(to).saturating_sub(first.max(from));
            ns as f64 * inside as f64 / (last - first).max(1) as f64
        };
        let origins: BTreeMap<u32, f64> =
            self.origins.iter().map(|(rank, of)| (*rank, shared(*of))).collect();
        let crowd = origins.values().sum::<f64>() / to.saturating_sub(from).max(1) as f64;
        (origins, crowd)
    }
}

impl Finder<'_> {
    pub(super) fn small(&self) -> Option<Finding> {
        let ranks = &self.analysis.ranks;
        let by_rank = Sums::of(ranks.iter().enumerate().map(|(rank, totals)| {
            // The cost of a target that does not answer belongs to another finding.
            let of_target =
                |(peer, tally): (&u32, &Tally)| tally.saved * (1.0 - self.starved_part(*peer));
            (rank, totals.patterns.small.iter().map(of_target).sum())
        }));
        let (rank, worth) = by_rank.first()?;
        let of = &ranks[*rank].patterns;
        let (target, tally) = of.small.iter().max_by_key(|(peer, tally)| (tally.ns, **peer))?;
        let all = ranks.iter().flat_map(|r| r.patterns.small.values());
        let (n, size) = all.fold((0, 0), |(n, size), t| (n + t.count, size + t.bytes));
        let ((call, path), _) = of.small_calls.iter().max_by_key(|(key, n)| (**n, **key))?;
        let advice = match call {
            Call::Send => {
                "Send them as aggregated items (in Rust `Messages::batches`, in X10Lib aggregated asyncs), which are combined to messages of 64 KiB."
            }
            Call::Get | Call::GetNb => {
                "Fetch them through an aggregate handle (`ARMCI_SET_AGGREGATE_HANDLE`), by one vector get (`ARMCI_GetV`), or fetch the block that contains them at once."
            }
            _ => {
                "Issue them through an aggregate handle (`ARMCI_SET_AGGREGATE_HANDLE`) or by one vector put (`ARMCI_PutV`), which sends them together; in Rust, send them as items that the owner stores (`Messages::batches`)."
            }
        };
        let finding = Finding {
            kind: "small",
            title: format!(
                "Many short transfers, one by one: {} of {} on average",
                self.short_calls(),
                bytes(size as f64 / n.max(1) as f64)
            ),
            text: format!(
                "Rank {rank} alone makes {} transfers of at most {SMALL} bytes to rank {target}, without a fence or a barrier between them. They use the {} path and take {}, {} each.",
                count(tally.count),
                path.name(),
                time(tally.ns as f64),
                time(tally.ns as f64 / tally.count.max(1) as f64)
            ),
            advice: advice.into(),
            worth: *worth,
            sum: by_rank.sum(),
            at: (*rank as u32, tally.peak.1, tally.peak.2),
        };
        Some(finding.without(self.delayed_main(*rank)))
    }

    /// Detects a rank whose memory several others access at once, by long transfers.
    pub(super) fn hot(&self) -> Option<Finding> {
        let mut targets: BTreeMap<u32, HotTarget> = BTreeMap::new();
        for (rank, totals) in self.analysis.ranks.iter().enumerate() {
            for ((target, site), large) in &totals.patterns.large {
                targets.entry(*target).or_default().add(rank, *site, large);
            }
        }
        let all: u64 = targets.values().map(|of| of.tally.bytes).sum();
        let hot = targets.into_iter().filter_map(|(target, of)| {
            let (origins, crowd) = of.crowd();
            let is_hot = all > 0
                && of.tally.bytes as f64 >= HOT_SHARE * all as f64 / self.trace.ranks as f64;
            // The part of its time that each rank would save without the others.
            let saved = (1.0 - 1.0 / crowd) * (1.0 - self.starved_part(target));
            let costs = Sums::of(origins.into_iter().map(|(rank, ns)| (rank, ns * saved)));
            let sum = costs.sum();
            (is_hot && crowd >= HOT_CROWD).then_some(((target, of, costs, crowd), sum))
        });
        let by_target = Sums::of(hot);
        let ((target, of, costs, crowd), _) = by_target.first()?;
        let (worst, worth) = costs.first()?;
        let line = of.sites.iter().max_by_key(|(site, bytes)| (**bytes, **site));
        let line = line.and_then(|(site, moved)| {
            let line = self.analysis.sites.lines.get((*site)? as usize)?;
            Some(format!(
                " {} of these bytes are moved at `{line}`.",
                percent(*moved as f64, of.tally.bytes as f64)
            ))
        });
        let (_, from, to) = of.tally.peak;
        let finding = Finding {
            kind: "hot",
            title: format!("{} ranks access the memory of rank {target} at once", of.origins.len()),
            text: format!(
                "{} transfers moved {} from or to rank {target}, {} on average, which is {} of the bytes of all such transfers. They took {} in all, and rank {worst} lost most by them. On average {} ranks were in one of them.{}",
                count(of.tally.count),
                bytes(of.tally.bytes as f64),
                bytes(of.tally.bytes as f64 / of.tally.count.max(1) as f64),
                percent(of.tally.bytes as f64, all as f64),
                time(of.tally.ns as f64),
                three(*crowd),
                line.unwrap_or_default()
            ),
            advice: "Distribute the data over the ranks, so that each owns a part. If all ranks need the same data, fetch it once and keep it, or broadcast it.".into(),
            worth: *worth,
            sum: by_target.sum(),
            at: (of.peak_of, from, to),
        };
        Some(finding.without(self.delayed_anywhere()))
    }

    /// Returns the number of short transfers of each kind, the most frequent first.
    fn short_calls(&self) -> String {
        let mut kinds: BTreeMap<Call, u64> = BTreeMap::new();
        let ranks = self.analysis.ranks.iter();
        for ((call, _), n) in ranks.flat_map(|rank| &rank.patterns.small_calls) {
            *kinds.entry(*call).or_default() += n;
        }
        let mut kinds: Vec<(Call, u64)> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let kinds = kinds.iter().map(|(call, n)| format!("{} {}s", count(*n), call.name()));
        kinds.collect::<Vec<_>>().join(" and ")
    }

    pub(super) fn strided(&self) -> Option<Finding> {
        let calls = &self.analysis.calls;
        let by_rank = Sums::of(self.analysis.ranks.iter().enumerate().map(|(rank, totals)| {
            // The delays are excluded here, because an assumed bandwidth has none. A measured one has
            // the delays of the contiguous transfers.
            let prompt = 1.0 - self.delayed_main(rank);
            let of_path = totals.patterns.strided.iter().map(|(path, tally)| {
                let bytes = tally.bytes as f64;
                let contiguous = match calls.bandwidth(*path) {
                    Some(rate) => bytes / rate * prompt,
                    None => bytes / ASSUMED,
                };
                (tally.ns as f64 * prompt - contiguous).max(0.0)
            });
            (rank, of_path.sum())
        }));
        let (rank, worth) = *by_rank.first()?;
        let of = &self.analysis.ranks[rank].patterns;
        let (path, tally) = of.strided.iter().max_by_key(|(path, tally)| (tally.ns, **path))?;
        let run = tally.bytes as f64 / of.strided_blocks.max(1) as f64;
        let base = match calls.bandwidth(*path) {
            Some(rate) => format!("contiguous transfers reached {} GB/s on this path", three(rate)),
            None => format!(
                "{} GB/s are assumed for contiguous transfers, because there were none",
                three(ASSUMED)
            ),
        };
        Some(Finding {
            kind: "strided",
            title: format!("Strided transfers with runs of {}", bytes(run)),
            text: format!(
                "Rank {rank} moved {} with {} strided transfers on path {}, in runs of less than {SHORT_RUN} bytes: {} took {}, which is {} GB/s; {base}.",
                bytes(tally.bytes as f64), count(tally.count), path.name(), bytes(tally.bytes as f64), time(tally.ns as f64),
                three(tally.bytes as f64 / tally.ns.max(1) as f64)
            ),
            advice: "Turn the arrays so that the longest dimension is contiguous, fetch whole rows and use the needed part, or pack at the source.".into(),
            worth,
            sum: by_rank.sum(),
            at: (rank as u32, tally.peak.1, tally.peak.2),
        })
    }

    pub(super) fn fences(&self) -> Option<Finding> {
        let ranks = &self.analysis.ranks;
        let by_rank =
            Sums::of(ranks.iter().enumerate().map(|(rank, t)| (rank, t.patterns.fences.saved)));
        let (rank, worth) = *by_rank.first()?;
        let tally = &ranks[rank].patterns.fences;
        let n: u64 = ranks.iter().map(|t| t.patterns.fences.count).sum();
        let to_all = self.analysis.sum(|t| t.patterns.to_all);
        let all = if to_all > 0 {
            format!(
                " {} of them were to all ranks, and at most one had been written to.",
                count(to_all.min(n))
            )
        } else {
            String::new()
        };
        let finding = Finding {
            kind: "fences",
            title: format!("{} fences, of which few are needed", count(n)),
            text: format!(
                "Rank {rank} fences {} times with at most one transfer before each and nothing between them that another rank could observe or wait for; this takes {}, {} per fence.{all}",
                count(tally.count), time(tally.ns as f64), time(tally.ns as f64 / tally.count.max(1) as f64)
            ),
            advice: "Fence once after the last transfer, before the barrier or the message that notifies other ranks. Transfers to one location stay in order without a fence.".into(),
            worth,
            sum: by_rank.sum(),
            at: (rank as u32, tally.peak.1, tally.peak.2),
        };
        Some(finding.without(self.delayed_anywhere()))
    }

    pub(super) fn allocations(&self) -> Option<Finding> {
        let ranks = &self.analysis.ranks;
        let often = ranks.iter().enumerate().filter(|(_, t)| t.patterns.again >= 8);
        let by_rank = Sums::of(often.map(|(rank, t)| (rank, t.patterns.allocations.saved)));
        let (rank, worth) = *by_rank.first()?;
        let of = &ranks[rank].patterns;
        let tally = &of.allocations;
        let a_call = tally.ns / tally.count.max(1);
        let finding = Finding {
            kind: "allocation",
            title: format!("Memory is allocated {} times after it was freed", count(of.again)),
            text: format!(
                "Allocating and freeing is collective and maps pages anew. Rank {rank} does so {} times, which takes {} in all, {} per call.",
                count(tally.count), time(tally.ns as f64), time(a_call as f64)
            ),
            advice: "Allocate once before the loop, as much as the largest step needs, and free after it.".into(),
            worth,
            sum: by_rank.sum(),
            at: (rank as u32, tally.peak.1, tally.peak.2.max(tally.peak.1 + 8 * a_call)),
        };
        Some(finding.without(self.delayed_anywhere()))
    }
}
