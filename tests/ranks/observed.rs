//! Transfers of the typed interface and of distributed arrays are counted like transfers of the
//! engine: one for each owner, and a wait if the program waits for them.

use crate::child::{check_size, step};
use portolan::stats::Stats;
use portolan::{Runtime, Segment, TransferPath};

/// Returns the name, the number and the bytes of each call since the last reset, except waits.
fn counted(stats: &Stats) -> Vec<(&'static str, u64, u64)> {
    let mut counted: Vec<(&'static str, u64, u64)> = Vec::new();
    for of in stats.calls().iter().filter(|of| of.call != "wait") {
        match counted.iter_mut().find(|(call, ..)| *call == of.call) {
            Some((_, calls, bytes)) => (*calls, *bytes) = (*calls + of.calls, *bytes + of.bytes),
            None => counted.push((of.call, of.calls, of.bytes)),
        }
    }
    counted
}

fn has_waited(stats: &Stats) -> bool {
    stats.calls().iter().any(|of| of.call == "wait" && of.calls > 0)
}

fn check(runtime: &Runtime, what: &str, wanted: &[(&'static str, u64, u64)], body: impl FnOnce()) {
    step(what);
    runtime.reset_stats();
    body();
    let stats = runtime.stats();
    assert_eq!(counted(&stats), wanted, "{what}");
    for of in stats.calls().iter().filter(|of| of.bytes > 0) {
        assert_ne!(of.path, "none", "{what}: {of:?}");
    }
}

pub fn typed() {
    // SAFETY: the engine does not run yet, and no other thread exists.
    unsafe { std::env::set_var("PORTOLAN_STATS", "1") };
    let runtime = Runtime::init().expect("start");
    check_size(runtime.size());
    let right = (runtime.rank() + 1) % runtime.size();
    let group = runtime.world();
    let segment: Segment<'_, f64> = group.allocate(64).expect("a segment");
    group.barrier().expect("barrier");
    check(&runtime, "blocking", &[("put", 1, 32), ("get", 1, 64), ("accumulate", 1, 8)], || {
        segment.put(right, 0, &[1.0; 4]).expect("put");
        segment.get(right, 0, &mut [0.0; 8]).expect("get");
        segment.accumulate(right, 9, 2.0, &[1.0]).expect("accumulate");
    });
    let nonblocking = [
        ("non-blocking put", 1, 32),
        ("non-blocking get", 1, 64),
        ("non-blocking accumulate", 1, 24),
    ];
    check(&runtime, "owned", &nonblocking, || {
        segment.start_put(right, 0, vec![1.0; 4]).expect("put").wait().expect("wait");
        segment.start_get(right, 0, vec![0.0; 8]).expect("get").wait().expect("wait");
        let added = segment.start_accumulate(right, 16, 1.0, vec![1.0; 3]).expect("accumulate");
        added.wait().expect("wait");
    });
    assert!(has_waited(&runtime.stats()));
    check(&runtime, "scope", &nonblocking, || {
        let (source, mut target) = ([3.0; 7], [0.0; 8]);
        let body = runtime.scope(|scope| {
            scope.put(&segment, right, 32, &source[..4])?;
            scope.get(&segment, right, 40, &mut target)?;
            scope.accumulate(&segment, right, 48, 1.0, &source[4..]).map(drop)
        });
        body.expect("transfers");
    });
    arrays(&runtime);
    performances(&runtime);
    group.barrier().expect("barrier");
    segment.free().expect("free");
    runtime.finalize().expect("the end");
}

/// A patch, or a list of elements, with several owners counts as one transfer to each owner.
fn arrays(runtime: &Runtime) {
    use portolan::array::{DistArray, Distribution, Options};
    let n = runtime.size();
    let options = Options::named("observed").distribution(Distribution::Rows);
    let rows = 2 * n;
    let array: DistArray<'_, f64, _> =
        DistArray::with(&runtime.world(), [rows, 8], options).expect("an array");
    array.sync().expect("sync");
    let (owners, bytes) = (n as u64, (rows * 8 * 8) as u64);
    let each = |one: &'static str, many: &'static str, bytes| {
        if n == 1 { [(one, 1, bytes)] } else { [(many, owners, bytes)] }
    };
    check(runtime, "patch", &each("get", "non-blocking get", bytes), || {
        array.get([0..rows, 0..8]).expect("get");
    });
    assert_eq!(has_waited(&runtime.stats()), n > 1);
    check(runtime, "columns", &each("put", "non-blocking put", bytes / 2), || {
        let columns = ndarray::Array2::from_elem((rows, 4), 1.0);
        array.put([0..rows, 2..6], &columns).expect("put");
    });
    check(runtime, "pending", &[("non-blocking accumulate", owners, bytes)], || {
        let all = ndarray::Array2::from_elem((rows, 8), 1.0);
        let pending = array.start_accumulate([0..rows, 0..8], 2.0, all).expect("accumulate");
        pending.wait().expect("wait");
    });
    let corners: Vec<[usize; 2]> = (0..rows).flat_map(|row| [[row, 0], [row, 7]]).collect();
    let bytes = corners.len() as u64 * 8;
    check(runtime, "gather", &[("non-blocking get", owners, bytes)], || {
        array.gather(&corners).expect("gather");
    });
    assert!(has_waited(&runtime.stats()));
    check(runtime, "scatter", &[("non-blocking put", owners, bytes)], || {
        array.scatter(&corners, &vec![1.0; corners.len()]).expect("scatter");
    });
    check(runtime, "scatter_add", &[("non-blocking accumulate", owners, bytes)], || {
        array.scatter_add(&corners, 1.0, &vec![1.0; corners.len()]).expect("scatter_add");
    });
    array.sync().expect("sync");
    array.free().expect("free");
}

/// A performance by messages starts them and waits for no answer.
fn performances(runtime: &Runtime) {
    use portolan::compose::Composer;
    let composer = Composer::new(runtime).expect("a composer");
    let segment: Segment<'_, f64> = runtime.world().allocate(64).expect("a segment");
    let right = (runtime.rank() + 1) % runtime.size();
    let mut simple = composer.simple(right).expect("simple");
    simple.add(&segment, 0..8, &segment, right, 16).expect("add");
    let mapped = simple.map().expect("map");
    composer.sync().expect("sync");
    step("performance");
    runtime.reset_stats();
    composer.perform(&mapped).expect("perform");
    let waits = runtime.stats().waits();
    let by_message = runtime.path_to(right).expect("a path") == TransferPath::Message;
    assert!(!by_message || waits.iter().all(|of| of.what != "fence"), "{waits:?}");
    composer.wait_for(1).expect("wait");
    composer.sync().expect("sync");
    composer.free().expect("free");
    segment.free().expect("free");
}
