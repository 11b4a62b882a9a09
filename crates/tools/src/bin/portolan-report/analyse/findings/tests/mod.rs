//! Tests each finding with a trace that has the fault, and with a similar one that does not.

use super::*;
use crate::run::AnalysedRun;
use crate::sample::{RankWriter, WRITER, metadata};
use portolan_trace_format::event::{Delays, Event, Place, SegmentKind, Usage};
use portolan_trace_format::format::Role;
use portolan_trace_format::kinds::{Call, Cause, Interface, MpiCall, PathTaken, Served};
use portolan_trace_format::metadata::Metadata;

mod mpi;
mod objects;

const MS: u64 = 1_000_000;

struct Rank {
    file: RankWriter,
    now: u64,
}

#[derive(Clone, Copy)]
struct With {
    path: PathTaken,
    blocks: u64,
    place: Option<Place>,
}

const MESSAGE: With = With { path: PathTaken::Message, blocks: 1, place: None };
const DIRECT: With = With { path: PathTaken::Direct, ..MESSAGE };

fn at(segment: u64, offset: u64) -> With {
    With { place: Some(Place { segment: Some(segment), offset }), ..MESSAGE }
}

impl Rank {
    fn compute(&mut self, ns: u64) {
        self.now += ns;
    }

    fn call(&mut self, call: Call, peer: impl Into<Option<u32>>, bytes: u64, ns: u64, with: With) {
        let event = Event::Call {
            begin: self.now,
            duration: ns,
            call,
            interface: Interface::Armci,
            path: with.path,
            peer: peer.into(),
            bytes,
            blocks: with.blocks,
            place: with.place,
            site: None,
        };
        self.file.put(0, Role::Program, event);
        self.now += ns;
    }

    /// Records a wait that begins together with the next call.
    fn wait(&mut self, cause: Cause, peer: impl Into<Option<u32>>, ns: u64, place: Option<Place>) {
        let wait = Event::Wait { begin: self.now, duration: ns, cause, peer: peer.into(), place };
        self.file.put(0, Role::Program, wait);
    }

    /// An MPI call on all ranks that ends at `end`, or at once if that is past.
    fn mpi(&mut self, call: MpiCall, peer: Option<u32>, end: u64) {
        let duration = end.saturating_sub(self.now).max(1000);
        let (begin, bytes, communicator, site) = (self.now, 8, 0, None);
        let event = Event::Mpi { begin, duration, call, peer, bytes, communicator, site };
        self.file.put(0, Role::Program, event);
        self.now += duration;
    }

    fn uses(&mut self, cpu: u64, delay: u64) {
        let delays = Some(Delays { main_cpu: cpu, main: delay, others: 0 });
        let usage = Usage { user: cpu, involuntary: delay / MS, delays, ..Usage::default() };
        self.file.put(WRITER, Role::Writer, Event::Usage { time: self.now, usage });
    }

    fn barrier(&mut self, end: u64) {
        let ns = end.saturating_sub(self.now).max(1);
        self.wait(Cause::Barrier, None, ns, None);
        self.call(Call::Barrier, None, 0, ns, With { path: PathTaken::None, ..MESSAGE });
    }

    /// The progress thread serves if `beside` is true, otherwise the thread of the program.
    fn serves(&mut self, beside: bool, origin: u32, begin: u64) {
        self.serves_after(beside, origin, begin, None);
    }

    fn serves_after(&mut self, beside: bool, origin: u32, begin: u64, waited: Option<u64>) {
        let (thread, role) = if beside { (1, Role::Progress) } else { (0, Role::Program) };
        let served = Event::Served {
            begin,
            duration: 500,
            kind: Served::Get,
            origin: Some(origin),
            bytes: 8,
            waited,
        };
        self.file.put(thread, role, served);
    }
}

/// Returns the findings of a synthetic program whose ranks run `rank`.
fn found(name: &str, ranks: u32, rank: impl Fn(u32, &mut Rank)) -> Vec<Finding> {
    found_with(name, ranks, |_| {}, rank)
}

fn found_with(
    name: &str,
    ranks: u32,
    change: impl Fn(&mut Metadata),
    rank: impl Fn(u32, &mut Rank),
) -> Vec<Finding> {
    let directory = tempfile::Builder::new().prefix(name).tempdir().expect("it can be made");
    for number in 0..ranks {
        let mut meta = metadata(number, ranks, 0);
        change(&mut meta);
        let mut file = RankWriter::new(directory.path(), &meta).expect("it can be made");
        let segment = Event::Segment { segment: 7, bytes: 4, ranks: 4, kind: SegmentKind::Mutexes };
        file.put(WRITER, Role::Writer, segment);
        let mut one = Rank { file, now: 1000 * MS };
        rank(number, &mut one);
        one.file.end().expect("it can be written");
    }
    let run = AnalysedRun::read(directory.path()).expect("it can be read");
    assert!(run.trace.problems.is_empty(), "{:?}", run.trace.problems);
    run.findings
}

fn kinds(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.kind).collect()
}

/// Asserts that there is exactly one finding, of this kind and worth about this much. Returns it.
#[track_caller]
fn only(findings: &[Finding], kind: &str, worth: f64) -> Finding {
    assert_eq!(kinds(findings), [kind], "{findings:#?}");
    let finding = findings[0].clone();
    assert!((finding.worth / worth - 1.0).abs() < 0.1, "{} is not {worth}", finding.worth);
    assert!(finding.at.1 <= finding.at.2, "{finding:?}");
    finding
}

#[test]
fn many_short_puts_to_one_target() {
    let puts = |bytes: u64, with: With| {
        move |rank: u32, it: &mut Rank| {
            for _ in 0..2000 {
                if rank == 0 {
                    it.call(Call::Put, 1, bytes, 5_000, with);
                }
                it.compute(1_000);
            }
        }
    };
    let finding = only(&found("small", 2, puts(16, MESSAGE)), "small", 2000.0 * 5_000.0);
    assert!(finding.text.contains("2\u{202f}000 transfers") && finding.text.contains("to rank 1"));
    assert_eq!(finding.at.0, 0);
    // Each kind is counted, without the transfers that are not repeated.
    let kinds_of = found("small-kinds", 2, |rank, it| {
        for n in 0..3000 {
            let call = if n % 3 == 0 { Call::Put } else { Call::Get };
            it.call(call, 1 - rank, 16, 5_000, MESSAGE);
        }
        it.call(Call::Fence, 1 - rank, 0, 1_000, MESSAGE);
        (0..5).for_each(|_| it.call(Call::PutNb, 1 - rank, 16, 5_000, MESSAGE));
    });
    let both = ": 4\u{202f}000 gets and 2\u{202f}000 puts of 16 B on average";
    assert!(kinds_of[0].title.ends_with(both), "{}", kinds_of[0].title);
    // Long puts gain nothing, puts on a node are stores, buffered puts are aggregated already.
    assert_eq!(kinds(&found("small-long", 2, puts(64 << 10, MESSAGE))), [""; 0]);
    assert_eq!(kinds(&found("small-node", 2, puts(16, DIRECT))), [""; 0]);
    let buffered = With { path: PathTaken::Buffer, ..MESSAGE };
    assert_eq!(kinds(&found("small-aggregate", 2, puts(16, buffered))), [""; 0]);
    // The notification after each put makes it visible to the target, so puts must not be combined.
    let named = found("small-named", 2, |_, it| {
        for _ in 0..500 {
            it.call(Call::Put, 1, 16, 5_000, MESSAGE);
            it.call(Call::Notify, 1, 8, 5_000, MESSAGE);
        }
    });
    assert_eq!(kinds(&named), [""; 0]);
}

/// Rank 0 gets from rank 1, which computes if `computes`, and has a progress thread if `beside`.
fn gets(computes: bool, beside: bool) -> impl Fn(u32, &mut Rank) {
    move |rank, it| {
        for step in 0..50 {
            let begin = it.now;
            if rank == 0 {
                it.compute(MS / 2);
                it.wait(Cause::Answer, 1, 9 * MS, None);
                it.call(Call::Get, 1, 64 << 10, 9 * MS, MESSAGE);
                it.compute(MS / 2);
            } else {
                if computes && !beside {
                    it.compute(9 * MS);
                    it.serves(false, 0, it.now);
                    it.now += 500;
                    it.compute(MS - 500);
                } else if computes {
                    it.serves(true, 0, begin + MS * (step % 2 + 8));
                    it.compute(10 * MS);
                } else {
                    // Rank 1 is in calls all the time, and slow for another reason.
                    it.wait(Cause::Notify, None, 9 * MS, None);
                    it.serves(false, 0, begin + 9 * MS);
                    it.call(Call::NotifyWait, None, 0, 10 * MS, MESSAGE);
                }
            }
        }
    }
}

#[test]
fn waiting_for_a_rank_that_computes() {
    let finding = only(&found("starved", 2, gets(true, false)), "progress", 50.0 * 9.0 * MS as f64);
    assert!(finding.title.contains("rank 1") && finding.text.contains("of rank 0"));
    assert_eq!(kinds(&found("starved-thread", 2, gets(true, true))), [""; 0]);
    assert_eq!(kinds(&found("starved-serves", 2, gets(false, false))), [""; 0]);
}

#[test]
fn a_rank_that_answers_late() {
    // Rank 0 issues few gets, which wait for the progress thread of rank 1.
    let program = |waited: u64, took: u64| {
        move |rank: u32, it: &mut Rank| {
            for _ in 0..10 {
                let begin = it.now;
                if rank == 0 {
                    it.wait(Cause::Answer, 1, took, None);
                    it.call(Call::Get, 1, 64 << 10, took, MESSAGE);
                } else {
                    it.serves_after(true, 0, begin + waited, Some(waited));
                }
                it.now = begin + 10 * MS;
            }
        }
    };
    let finding =
        only(&found("late-owner", 2, program(4 * MS, 4 * MS)), "late", 10.0 * 4.0 * MS as f64);
    assert!(
        finding.title.contains("Rank 1") && finding.text.contains("of rank 0"),
        "{}",
        finding.text
    );
    assert!(finding.advice.contains("leave one core"), "{}", finding.advice);
    let parts = "rank 0, which waited longest, were: 100 % at the target, until it began to serve";
    assert!(finding.text.contains(parts), "{}", finding.text);
    // Rank 1 polls at once; the rest of the get takes long.
    assert_eq!(kinds(&found("late-not", 2, program(5_000, 4 * MS))), [""; 0]);
    // Rank 1 polls rarely, but no rank waits because of it.
    assert_eq!(kinds(&found("late-unseen", 2, program(4 * MS, 10_000))), [""; 0]);
}

#[test]
fn a_progress_thread_that_had_nothing_to_do_is_there() {
    let with_thread = |rank: u32, it: &mut Rank| gets(true, false)(rank, it);
    let files = |thread: u64| {
        found_with("thread-idle", 2, |meta| meta.progress_thread = thread, with_thread)
    };
    assert_eq!(kinds(&files(0)), ["progress"]);
    assert_eq!(kinds(&files(1)), [""; 0]);
}

#[test]
fn strided_transfers_with_short_runs() {
    let strided = |blocks: u64, ns: u64| {
        move |rank: u32, it: &mut Rank| {
            for _ in 0..200 {
                if rank == 0 {
                    it.call(Call::Get, 1, 65536, ns, With { blocks, ..MESSAGE });
                    it.call(Call::Get, 1, 65536, 10_000, MESSAGE);
                }
                it.compute(20_000);
            }
        }
    };
    // Runs are 16 bytes long; a contiguous transfer of 64 KiB takes 10 µs.
    let finding = found("strided", 2, strided(4096, 300_000));
    assert_eq!(kinds(&finding), ["strided"]);
    assert!(finding[0].title.contains("runs of 16 B") && finding[0].worth > 200.0 * 100_000.0);
    assert_eq!(kinds(&found("strided-long", 2, strided(16, 12_000))), [""; 0]);
    assert_eq!(kinds(&found("strided-quick", 2, strided(4096, 10_000))), [""; 0]);
}

#[test]
fn a_fence_behind_each_put() {
    let program = |puts: u64, between: Option<Call>, sizes: [u64; 2]| {
        move |rank: u32, it: &mut Rank| {
            for n in 0..300 {
                if rank == 0 {
                    for _ in 0..puts {
                        it.call(Call::PutNb, 1, sizes[n % 2], 700, MESSAGE);
                    }
                    it.wait(Cause::Fence, None, 19_000, None);
                    it.call(Call::FenceAll, None, 0, 20_000, MESSAGE);
                    if let Some(call) = between {
                        it.call(call, 1, 8, 500, DIRECT);
                    }
                }
                it.compute(5_000);
            }
        }
    };
    let long = [4096, 4096];
    let finding = only(&found("fences", 2, program(1, None, long)), "fences", 300.0 * 20_000.0);
    assert!(finding.text.contains("to all ranks"), "{}", finding.text);
    assert_eq!(kinds(&found("fences-many", 2, program(20, None, long))), [""; 0]);
    assert_eq!(kinds(&found("fences-named", 2, program(1, Some(Call::Notify), long))), [""; 0]);
    assert_eq!(kinds(&found("fences-read", 2, program(1, Some(Call::Rmw), long))), [""; 0]);
    // Data and the flag after it need a fence between them.
    assert_eq!(kinds(&found("fences-flag", 2, program(1, None, [4096, 8]))), [""; 0]);
}

#[test]
fn ranks_that_outnumber_cores() {
    // Rank 2 comes late to barriers. It was ready all the time, but had a core for a tenth of it.
    let program = |cpu: u64, delay: u64| {
        move |rank: u32, it: &mut Rank| {
            it.uses(0, 0);
            for step in 0..20u64 {
                let begin = 1000 * MS + step * 10 * MS;
                it.now = begin;
                it.compute(if rank == 2 { 8 * MS } else { 3 * MS });
                it.barrier(begin + 8 * MS + 50_000);
            }
            it.uses(cpu, if rank == 2 { delay } else { 0 });
        }
    };
    let crowded = |meta: &mut Metadata| {
        (meta.cores, meta.usable_cores) = ("0-1".into(), 2);
    };
    let findings = found_with("cores", 4, crowded, program(16 * MS, 150 * MS));
    assert_eq!(findings[0].kind, "cores", "{findings:#?}");
    assert_eq!((findings[0].worth, findings[0].at.0), (150e6, 2));
    assert_eq!(findings[0].title, "4 ranks share 2 cores on node01");
    let worth = |findings: &[Finding], kind: &str| {
        findings.iter().find(|finding| finding.kind == kind).map_or(0.0, |finding| finding.worth)
    };
    // With a core each, the same times are the program's.
    let quiet = found("cores-quiet", 4, program(160 * MS, MS / 10));
    assert_eq!(kinds(&quiet), ["imbalance"]);
    assert!(worth(&findings, "imbalance") < 0.11 * worth(&quiet, "imbalance"), "{findings:#?}");
    // Other programs use the cores.
    let loaded = found("cores-loaded", 4, program(16 * MS, 150 * MS));
    assert_eq!(loaded[0].title, "Ranks wait for cores that other programs use");
}

#[test]
fn ranks_that_come_late_to_barriers() {
    let program = |late: u64| {
        move |rank: u32, it: &mut Rank| {
            for step in 0..20u64 {
                let begin = 1000 * MS + step * 10 * MS;
                it.now = begin;
                it.compute(if rank == 2 { late } else { 3 * MS });
                it.barrier(begin + late.max(3 * MS) + 50_000);
            }
        }
    };
    let finding =
        only(&found("late", 4, program(8 * MS)), "imbalance", 20.0 * 5.0 * 0.75 * MS as f64);
    assert!(finding.text.contains("Rank 2 was last at 20"), "{}", finding.text);
    assert_eq!(finding.at.0, 2);
    // All ranks arrive at once, so only the barrier itself takes time.
    assert_eq!(kinds(&found("late-even", 4, program(3 * MS))), [""; 0]);
}

#[test]
fn large_gets_from_one_rank() {
    // Three ranks fetch from one rank, or each from its neighbour.
    let program = |spread: bool, turns: bool| {
        move |rank: u32, it: &mut Rank| {
            if turns {
                it.compute(u64::from(rank) * 300 * MS);
            }
            for _ in 0..200 {
                let target = if spread { (rank + 1) % 4 } else { 0 };
                if target != rank {
                    it.call(Call::Get, target, 64 << 10, MS, MESSAGE);
                }
                it.compute(MS / 10);
            }
        }
    };
    // Each of the three would need a third of the time alone.
    let findings = found("hot", 4, program(false, false));
    let finding = only(&findings, "hot", 200.0 * MS as f64 * (1.0 - 1.1 / 3.0));
    assert!(finding.title.contains("memory of rank 0"), "{}", finding.title);
    assert!(finding.text.contains("600 transfers moved 37.5 MiB"), "{}", finding.text);
    assert_eq!(kinds(&found("hot-spread", 4, program(true, false))), [""; 0]);
    assert_eq!(kinds(&found("hot-turns", 4, program(false, true))), [""; 0]);
}

#[test]
fn memory_that_is_allocated_in_a_loop() {
    let program = |loops: bool| {
        move |_: u32, it: &mut Rank| {
            for _ in 0..50 {
                it.call(Call::Allocate, None, 1 << 20, 300_000, MESSAGE);
                if loops {
                    it.compute(MS);
                    it.call(Call::Free, None, 0, 200_000, MESSAGE);
                }
            }
            if !loops {
                it.compute(50 * MS);
                (0..50).for_each(|_| it.call(Call::Free, None, 0, 200_000, MESSAGE));
            }
        }
    };
    only(&found("allocate", 2, program(true)), "allocation", 49.0 * 500_000.0);
    assert_eq!(kinds(&found("allocate-first", 2, program(false))), [""; 0]);
}

#[test]
fn a_target_that_is_behind() {
    let program = |waits: u64| {
        move |rank: u32, it: &mut Rank| {
            for _ in 0..100 {
                if rank == 0 {
                    it.compute(500_000);
                    it.serves(true, 1, it.now);
                } else {
                    it.wait(Cause::Credit, 0, waits, None);
                    it.call(Call::PutNb, 0, 65536, waits + 5_000, MESSAGE);
                    it.compute(495_000 - waits);
                }
            }
        }
    };
    let findings = found("room", 2, program(300_000));
    only(&findings, "room", 100.0 * 300_000.0);
    assert_eq!(kinds(&found("room-short", 2, program(1_000))), [""; 0]);
}

#[test]
fn at_most_ten_and_the_dearest_first() {
    let findings = found("several", 2, |rank, it| {
        for _ in 0..400 {
            it.call(Call::PutNb, 1 - rank, 64, 9_000, MESSAGE);
            it.call(Call::Fence, 1 - rank, 0, 30_000, MESSAGE);
        }
        for _ in 0..400 {
            it.call(Call::Put, 1 - rank, 64, 9_000, MESSAGE);
        }
    });
    assert_eq!(kinds(&findings), ["fences", "small"]);
    assert!(findings[0].worth > findings[1].worth && findings.len() <= MOST);
}
