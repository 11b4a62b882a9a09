//! Reads the files of a job.
//!
//! **Invariant.** Only the index of a file is kept in memory: about 50 bytes per block, whatever
//! the size of the block. Events are read block by block and not kept.

mod index;

pub use index::BlockRef;

use crate::model::{TraceSpan, time};
use crate::symbols::Address;
use index::Index;
use portolan_trace_format::alignment::{Alignment, Sample};
use portolan_trace_format::event::{Event, Events};
use portolan_trace_format::format::{BLOCK_HEADER, Role, crc, rank_of};
use portolan_trace_format::metadata::Metadata;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Trace {
    /// Files, sorted by rank.
    pub files: Vec<RankFile>,
    /// Number of ranks in the job, with or without a file.
    pub ranks: usize,
    /// Names of the hosts, sorted by their first rank.
    pub hosts: Vec<String>,
    /// Nanoseconds from the first start to the last end; at least 1.
    pub wall: u64,
    /// Largest difference between the aligned clocks of two hosts, in nanoseconds.
    pub clock_bound: Option<u64>,
    /// Descriptions of missing and damaged data.
    pub problems: Vec<String>,
    /// Start of the job in nanoseconds since 1970, or 0 if unknown.
    pub started: u64,
    /// The return addresses of each call site, innermost first. All ranks share the numbers.
    pub chains: Vec<Vec<Address>>,
}

/// Maximum number of return addresses of a call site.
const MOST_ADDRESSES: usize = 64;

/// Ranks of a job start within this time, even if the clocks of their hosts differ.
const START_NS: u64 = 60_000_000_000;
/// Ranks with different programs or arguments start within this time, in nanoseconds.
const PROGRAMS_NS: u64 = 1_000_000_000;

/// Returns why a file belongs to another job than the first file, which has the same number of
/// ranks, or `None` if they may belong together.
fn other_job(first: &Metadata, meta: &Metadata) -> Option<String> {
    let known = first.started_wall > 0 && meta.started_wall > 0;
    let apart = if known { first.started_wall.abs_diff(meta.started_wall) } else { 0 };
    let programs_differ = first.program != meta.program;
    if apart <= if programs_differ { PROGRAMS_NS } else { START_NS } {
        return None;
    }
    let program = meta.program.join(" ");
    let other = if programs_differ { "another program, " } else { "" };
    Some(format!(
        "it is of {other}`{program}`, started {} apart from the first file",
        time(apart as f64)
    ))
}

/// Numbers the call sites of a file. Ranks of the same program have the same sites, although the
/// addresses at which they load it differ.
fn number_sites(
    index: &Index,
    known: &mut HashMap<Vec<Address>, u32>,
    chains: &mut Vec<Vec<Address>>,
) -> HashMap<u64, u32> {
    let chain = |site: &u64| {
        let next = |at: &u64| index.sites.get(at).and_then(|at| at.caller);
        let sites = std::iter::successors(Some(*site), next).take(MOST_ADDRESSES);
        let addresses = sites.map(|site| {
            let site = index.sites.get(&site)?;
            Some((index.strings.get(&site.module)?.clone(), site.address))
        });
        addresses.collect::<Option<Vec<Address>>>()
    };
    let mut sites: Vec<&u64> = index.sites.keys().collect();
    sites.sort_unstable();
    let numbered = sites.into_iter().filter_map(|site| {
        let chain = chain(site)?;
        let number = *known.entry(chain.clone()).or_insert_with(|| {
            chains.push(chain);
            chains.len() as u32 - 1
        });
        Some((*site, number))
    });
    numbered.collect()
}

/// A file of the job.
#[derive(Debug)]
pub struct RankFile {
    path: PathBuf,
    index: Index,
    pub rank: u32,
    /// Index of its host in [`Trace::hosts`].
    pub host: usize,
    /// Numbers of the call sites in [`Trace::chains`], by their numbers in the file.
    numbers: HashMap<u64, u32>,
    clock: Alignment,
    /// Start of the job in the clock of rank 0.
    origin: u64,
}

impl Deref for RankFile {
    type Target = Index;

    fn deref(&self) -> &Index {
        &self.index
    }
}

#[derive(Debug)]
pub enum StreamItem<'a> {
    Span(TraceSpan),
    /// Start of a region: time, thread, name.
    Begin(u64, u32, &'a str),
    /// End of the innermost region of a thread: time, thread.
    End(u64, u32),
    /// A mark that the program set: time, text.
    Mark(u64, &'a str),
}

/// Formats a list of ranks, for example "3, 5 to 9 and 12 more".
pub fn ranks_text(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let shown = runs.iter().take(6).map(|&(a, b)| match b - a {
        0 => a.to_string(),
        1 => format!("{a}, {b}"),
        _ => format!("{a} to {b}"),
    });
    let text = shown.collect::<Vec<_>>().join(", ");
    let rest: u32 = runs.iter().skip(6).map(|(a, b)| b - a + 1).sum();
    if rest > 0 { format!("{text} and {rest} more") } else { text }
}

/// Formats a list of ranks with its noun, for example "ranks 3, 5 to 9".
pub fn ranks_noun(ranks: &[u32]) -> String {
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", ranks_text(ranks))
}

impl Trace {
    /// Reads the indexes of all files in a directory. Fails if no file can be used.
    pub fn open(directory: &Path) -> Result<Trace, String> {
        let shown = directory.display();
        let entries =
            std::fs::read_dir(directory).map_err(|e| format!("cannot read {shown}: {e}"))?;
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in entries {
            let path = entry.map_err(|e| format!("cannot read {shown}: {e}"))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if rank_of(name).is_some() {
                paths.push(path);
            }
        }
        paths.sort();
        if paths.is_empty() {
            return Err(format!(
                "no trace in {shown}: run the program with PORTOLAN_TRACE={shown}, which writes rank-000000.ptrace and so on"
            ));
        }
        let mut problems = Vec::new();
        let mut indexes = Vec::new();
        for path in &paths {
            match Index::read(path) {
                Ok(index) => indexes.push((path, index)),
                Err(why) => problems.push(format!("{} is skipped: {why}", name_of(path))),
            }
        }
        let mut trace = Trace::of(indexes, problems)
            .map_err(|why| format!("no usable file in {shown}: {why}"))?;
        let second = directory.join("start-2");
        if second.is_dir() {
            trace.problems.push(format!(
                "the program started the library again: the trace of the second start is in {}",
                second.display()
            ));
        }
        Ok(trace)
    }

    fn of(indexes: Vec<(&PathBuf, Index)>, mut problems: Vec<String>) -> Result<Trace, String> {
        // The directory may also contain files of another job. Files are grouped by the number of
        // ranks of their job, and only the largest group is used. Within the group, the first file
        // determines the job.
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        for (_, index) in &indexes {
            *sizes.entry(index.meta.ranks).or_default() += 1;
        }
        let Some((&ranks, _)) = sizes.iter().max_by_key(|(_, files)| **files) else {
            return Err(problems.join("; "));
        };
        let mut hosts: BTreeMap<u64, Host> = BTreeMap::new();
        let (mut kept, mut first) = (Vec::new(), None);
        for (path, mut index) in indexes {
            if index.meta.ranks != ranks || index.meta.rank >= ranks.max(1) {
                problems.push(format!(
                    "{} is skipped: it is rank {} of a job of {} ranks, but the others belong to a job of {ranks}",
                    name_of(path), index.meta.rank, index.meta.ranks
                ));
                continue;
            }
            let first = first.get_or_insert_with(|| index.meta.clone());
            if let Some(why) = other_job(first, &index.meta) {
                problems.push(format!("{} is skipped: {why}", name_of(path)));
                continue;
            }
            for damage in index.damages.drain(..) {
                problems.push(format!("{}: {damage}", name_of(path)));
            }
            if index.dropped > 0 {
                problems.push(format!(
                    "{}: {} events were dropped: the disk was slow, or PORTOLAN_TRACE_BYTES was reached",
                    name_of(path),
                    index.dropped
                ));
            }
            let host = hosts.entry(index.meta.host_number).or_default();
            host.name.clone_from(&index.meta.host);
            host.samples.append(&mut index.samples);
            host.first_rank = host.first_rank.min(index.meta.rank);
            kept.push((path, index));
        }
        kept.sort_by_key(|(_, index)| index.meta.rank);
        let cut: Vec<u32> = kept
            .iter()
            .filter(|(_, index)| index.complete == Some(false))
            .map(|(_, index)| index.meta.rank as u32)
            .collect();
        if !cut.is_empty() {
            problems.push(format!(
                "the trace of {} is incomplete: {} still running, or ended by a signal, a crash or a full disk; up to the last half second is missing",
                ranks_noun(&cut),
                if cut.len() == 1 { "the rank is" } else { "the ranks are" }
            ));
        }
        if kept.iter().any(|(_, index)| index.meta.lacks_mpi > 0) {
            problems.push("MPI calls of this Fortran program are missing, because the Fortran interface of its MPI does not call the C functions that Portolan wraps; a rank that waits in such a call appears to work".into());
        }
        let missing: Vec<u32> = (0..ranks.min(1 << 24))
            .filter(|rank| kept.binary_search_by_key(rank, |(_, i)| i.meta.rank).is_err())
            .map(|rank| rank as u32)
            .collect();
        if !missing.is_empty() {
            problems.push(format!("the file of {} is missing", ranks_noun(&missing)));
        }
        let mut order: Vec<u64> = hosts.keys().copied().collect();
        order.sort_by_key(|number| hosts[number].first_rank);
        let names = order.iter().map(|number| hosts[number].name.clone()).collect();
        let clocks: HashMap<u64, Alignment> =
            hosts.into_iter().map(|(n, host)| (n, Alignment::new(host.samples))).collect();
        Trace::aligned(kept, ranks as usize, names, &order, &clocks, problems)
    }

    fn aligned(
        kept: Vec<(&PathBuf, Index)>,
        ranks: usize,
        hosts: Vec<String>,
        order: &[u64],
        clocks: &HashMap<u64, Alignment>,
        problems: Vec<String>,
    ) -> Result<Trace, String> {
        let (mut first, mut last, mut bound) = (u64::MAX, 0, None);
        for (_, index) in &kept {
            let clock = &clocks[&index.meta.host_number];
            let events = index.blocks.iter().filter(|b| b.role != Role::Writer);
            for (from, to) in events.map(|b| (b.first, b.last)) {
                first = first.min(clock.aligned(from));
                last = last.max(clock.aligned(to));
                bound = bound.max(clock.bound(to));
            }
        }
        let started = kept.iter().map(|(_, i)| i.meta.started_wall).filter(|t| *t > 0).min();
        let origin = if first == u64::MAX { 0 } else { first };
        let (mut known, mut chains) = (HashMap::new(), Vec::new());
        let files = kept
            .into_iter()
            .map(|(path, index)| RankFile {
                path: path.clone(),
                rank: index.meta.rank as u32,
                host: order.iter().position(|n| *n == index.meta.host_number).unwrap_or(0),
                clock: clocks[&index.meta.host_number].clone(),
                numbers: number_sites(&index, &mut known, &mut chains),
                index,
                origin,
            })
            .collect();
        let several = hosts.len() > 1;
        Ok(Trace {
            files,
            ranks: ranks.max(1),
            hosts,
            wall: last.saturating_sub(origin).max(1),
            clock_bound: bound.filter(|_| several),
            problems,
            started: started.unwrap_or(0),
            chains,
        })
    }

    /// Returns the number of recorded events, without dropped ones.
    pub fn events(&self) -> u64 {
        self.files.iter().map(RankFile::events).sum()
    }

    /// Returns the first rank and the length of each run of ranks on the same host.
    pub fn host_ranges(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32, usize)> = Vec::new();
        for file in &self.files {
            match ranges.last_mut() {
                Some((_, n, host)) if *host == file.host => *n += 1,
                _ => ranges.push((file.rank, 1, file.host)),
            }
        }
        ranges.into_iter().map(|(first, n, _)| (first, n)).collect()
    }
}

#[derive(Debug)]
struct Host {
    name: String,
    samples: Vec<Sample>,
    first_rank: u64,
}

impl Default for Host {
    fn default() -> Host {
        Host { name: String::new(), samples: Vec::new(), first_rank: u64::MAX }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl RankFile {
    pub fn events(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.events)).sum()
    }

    pub fn threads(&self) -> BTreeMap<u32, Role> {
        let blocks = self.blocks.iter().filter(|block| block.role != Role::Writer);
        blocks.map(|block| (block.thread, block.role)).collect()
    }

    pub fn at(&self, time: u64) -> u64 {
        self.clock.aligned(time).saturating_sub(self.origin)
    }

    pub fn range(&self, block: &BlockRef) -> (u64, u64) {
        (self.at(block.first), self.at(block.last))
    }

    /// Passes the events of the blocks that `wanted` selects to `take`. Returns descriptions of the
    /// damaged blocks, which are skipped. Fails if the file cannot be read.
    pub fn stream(
        &self,
        wanted: impl Fn(&BlockRef) -> bool,
        mut take: impl FnMut(StreamItem<'_>),
    ) -> Result<Vec<String>, String> {
        let name = name_of(&self.path);
        let failed = |e: std::io::Error| format!("cannot read {name}: {e}");
        let file = File::open(&self.path).map_err(failed)?;
        let (mut payload, mut faults) = (Vec::new(), Vec::new());
        for block in self.blocks.iter().filter(|b| b.role != Role::Writer && wanted(b)) {
            payload.resize(block.bytes as usize, 0);
            file.read_exact_at(&mut payload, block.at + BLOCK_HEADER as u64).map_err(failed)?;
            if crc(&payload) != block.checksum {
                faults.push(format!(
                    "{name}: a block of {} events at {} is damaged and skipped",
                    block.events, block.at
                ));
                continue;
            }
            let from = (self.rank, block.thread, block.role);
            for event in Events::new(&payload, block.first) {
                match event {
                    Ok(event) => self.hand_on(&event, from, &mut take),
                    Err(fault) => {
                        faults.push(format!("{name}: a block at {}: {fault}", block.at));
                        break;
                    }
                }
            }
        }
        Ok(faults)
    }

    fn hand_on(
        &self,
        event: &Event<'_>,
        from: (u32, u32, Role),
        take: &mut impl FnMut(StreamItem<'_>),
    ) {
        let text = |string: &u64| self.strings.get(string).map_or("?", String::as_str);
        if let Some(mut span) = TraceSpan::of(event, from, |time| self.at(time)) {
            if let Event::Call { site: Some(site), .. } | Event::Mpi { site: Some(site), .. } =
                event
            {
                span.site = self.numbers.get(site).copied();
            }
            return take(StreamItem::Span(span));
        }
        match event {
            Event::RegionBegin { time, string } => {
                take(StreamItem::Begin(self.at(*time), from.1, text(string)));
            }
            Event::RegionEnd { time } => take(StreamItem::End(self.at(*time), from.1)),
            Event::Mark { time, string } => take(StreamItem::Mark(self.at(*time), text(string))),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
