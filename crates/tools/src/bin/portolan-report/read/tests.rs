use super::*;
use crate::sample::{self, Size};

/// A temporary directory with a sample trace.
struct TraceDirectory(tempfile::TempDir);

impl TraceDirectory {
    fn new(name: &str, size: Size) -> TraceDirectory {
        let place = tempfile::Builder::new().prefix(name).tempdir().expect("it can be made");
        sample::write(place.path(), size).expect("it can be written");
        TraceDirectory(place)
    }

    fn change(&self, rank: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.0.path().join(format!("rank-{rank:06}.ptrace"));
        let mut bytes = std::fs::read(&path).expect("it is there");
        change(&mut bytes);
        std::fs::write(&path, bytes).expect("it can be written");
    }

    fn open(&self) -> Trace {
        Trace::open(self.0.path()).expect("some of it can be read")
    }
}

fn spans(trace: &Trace) -> (usize, Vec<String>) {
    let (mut count, mut faults) = (0, trace.problems.clone());
    for file in &trace.files {
        let taken =
            file.stream(|_| true, |item| count += usize::from(matches!(item, StreamItem::Span(_))));
        faults.extend(taken.expect("the file can be read"));
    }
    (count, faults)
}

const SIZE: Size = Size { ranks: 2, events: 40_000, hosts: 2 };

#[test]
fn clocks_that_are_apart_are_brought_together() {
    let trace = TraceDirectory::new("clocks", SIZE).open();
    assert_eq!(trace.hosts, ["node01", "node02"]);
    assert!(trace.wall < 3_000_000_000, "the clocks of the hosts are 5 s apart");
    assert!(trace.clock_bound.is_some_and(|bound| (400..10_000).contains(&bound)));
    assert!(trace.problems.is_empty(), "{:?}", trace.problems);
    assert_eq!(trace.host_ranges(), [(0, 1), (1, 1)]);
}

type DamageBytes = fn(&mut Vec<u8>);

#[test]
fn what_is_damaged_is_named_and_the_rest_is_used() {
    let whole = spans(&TraceDirectory::new("whole", SIZE).open()).0;
    // The file ends early, like the file of a killed rank; bytes in the middle are lost; bytes are
    // added; a block header is invalid.
    let damages: [(&str, DamageBytes); 4] = [
        ("cut", |bytes| bytes.truncate(bytes.len() - 10_000)),
        ("lost", |bytes| drop(bytes.drain(90_000..90_100))),
        ("added", |bytes| drop(bytes.splice(90_000..90_000, [7; 300]))),
        ("head", |bytes| {
            let found = bytes.windows(8).enumerate().filter(|(_, w)| *w == b"\xF7PTBLK\r\n");
            let at = found.map(|(at, _)| at).nth(1).expect("there are blocks");
            bytes[at + 10] ^= 1;
        }),
    ];
    for (name, damage) in damages {
        let place = TraceDirectory::new(name, SIZE);
        place.change(1, damage);
        let (count, faults) = spans(&place.open());
        assert!(faults.iter().any(|f| f.starts_with("rank-000001.ptrace: ")), "{name}: {faults:?}");
        assert!(count < whole && count > whole / 2, "{name}: {count} of {whole}");
    }
}

#[test]
fn a_file_may_end_anywhere() {
    let place = TraceDirectory::new("anywhere", Size { ranks: 1, events: 300, hosts: 1 });
    let path = place.0.path().join("rank-000000.ptrace");
    let bytes = std::fs::read(&path).expect("it is there");
    for length in (0..bytes.len()).step_by(37) {
        std::fs::write(&path, &bytes[..length]).expect("it can be written");
        if let Ok(trace) = Trace::open(place.0.path()) {
            let (_, faults) = spans(&trace);
            assert!(!faults.is_empty(), "{length} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn a_file_that_ends_at_a_whole_block_is_incomplete() {
    let place = TraceDirectory::new("blocks", SIZE);
    let whole = place.open();
    assert_eq!((whole.problems.len(), whole.files[1].complete), (0, Some(true)));
    for block in whole.files[1].blocks.iter().skip(1).rev() {
        place.change(1, |bytes| bytes.truncate(block.at as usize));
        let trace = place.open();
        let [problem] = &trace.problems[..] else { panic!("{:?}", trace.problems) };
        assert!(problem.starts_with("the trace of rank 1 is incomplete: "), "{problem}");
    }
}

#[test]
fn files_of_version_1_are_read() {
    let place = TraceDirectory::new("version", SIZE);
    for rank in 0..2 {
        place.change(rank, |bytes| {
            bytes[8] = 1;
            let last = bytes.windows(8).rposition(|w| w == b"\xF7PTBLK\r\n").expect("blocks");
            bytes.truncate(last);
        });
    }
    let trace = place.open();
    assert_eq!((trace.problems.len(), trace.files[1].complete), (0, None));
    assert!(spans(&trace).0 > 0);
}

#[test]
fn files_of_another_job_are_left_out() {
    let place = TraceDirectory::new("other", Size { ranks: 3, events: 3000, hosts: 1 });
    let old = TraceDirectory::new("old", Size { ranks: 9, events: 3000, hosts: 1 });
    std::fs::copy(
        old.0.path().join("rank-000008.ptrace"),
        place.0.path().join("rank-000008.ptrace"),
    )
    .expect("a copy");
    let trace = place.open();
    assert_eq!((trace.files.len(), trace.ranks), (3, 3));
    assert!(trace.problems[0].contains("rank 8 of a job of 9 ranks"), "{:?}", trace.problems);
    let none = Trace::open(Path::new("/no/such/place")).expect_err("there is none");
    assert!(none.contains("/no/such/place"));
}

/// Replaces rank 1's file by one with other metadata. Returns the used files and the problems.
fn two_files(name: &str, change: impl FnOnce(&mut Metadata)) -> (usize, Vec<String>) {
    let place = TraceDirectory::new(name, SIZE);
    let mut meta = sample::metadata(1, 2, 1);
    change(&mut meta);
    sample::RankWriter::new(place.0.path(), &meta)
        .and_then(|file| file.end())
        .expect("it is written");
    let trace = place.open();
    (trace.files.len(), trace.problems)
}

#[test]
fn files_of_another_job_of_the_same_size_are_left_out() {
    const SECOND: u64 = 1_000_000_000;
    let (files, problems) = two_files("later", |meta| meta.started_wall += 61 * SECOND);
    assert_eq!(files, 1);
    assert!(
        problems[0].starts_with("rank-000001.ptrace is skipped: ")
            && problems[0].contains("61.0 s apart"),
        "{problems:?}"
    );
    let (files, problems) = two_files("program", |meta| {
        meta.program = vec!["./other".into(), "7".into()];
        meta.started_wall -= 2 * SECOND;
    });
    assert_eq!(files, 1);
    assert!(problems[0].contains("it is of another program, `./other 7`"), "{problems:?}");
    // A job may consist of several programs, and the clocks of its hosts may differ.
    assert_eq!(two_files("several", |meta| meta.program = vec!["./other".into()]).0, 2);
    assert_eq!(two_files("clock", |meta| meta.started_wall -= 50 * SECOND).0, 2);
    assert_eq!(two_files("unknown", |meta| meta.started_wall = 0).0, 2);
}

#[test]
fn a_second_start_is_named() {
    let place = TraceDirectory::new("again", SIZE);
    std::fs::create_dir(place.0.path().join("start-2")).expect("it can be made");
    let [problem] = &place.open().problems[..] else { panic!("one problem") };
    assert!(problem.contains("second start is in ") && problem.ends_with("start-2"), "{problem}");
}

#[test]
fn a_synthetic_trace_replaces_no_trace() {
    let place = TraceDirectory::new("kept", SIZE);
    let why = sample::write(place.0.path(), SIZE).expect_err("there is a trace");
    assert!(why.contains("contains a trace"), "{why}");
}

#[test]
fn ranks_are_listed_in_short() {
    assert_eq!(ranks_text(&[0]), "0");
    assert_eq!(ranks_text(&[0, 1, 5, 6, 7, 9]), "0, 1, 5 to 7, 9");
    assert_eq!(ranks_text(&[0, 2, 4, 6, 8, 10, 12, 13]), "0, 2, 4, 6, 8, 10 and 2 more");
}

#[test]
fn a_program_whose_mpi_calls_are_not_recorded_is_named() {
    let directory = tempfile::tempdir().expect("it can be made");
    let metadata = Metadata { lacks_mpi: 1, ..sample::metadata(0, 1, 0) };
    let file = sample::RankWriter::new(directory.path(), &metadata).expect("it can be made");
    file.end().expect("it can be written");
    let trace = Trace::open(directory.path()).expect("it can be read");
    assert!(trace.problems.iter().any(|p| p.contains("Fortran")), "{:?}", trace.problems);
}
