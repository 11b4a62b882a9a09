//! Reports and traces show the program's line of each call of an array, and no line of the library,
//! whether the program has debug information or not.

use crate::child::{check_size, directory, step};
use crate::trace_file::{Read, trace_dir};
use ndarray::{Array2, array};
use portolan::Runtime;
use portolan::array::{Access, DistArray, Distribution, Matmul, Options};
use portolan_trace_format::event::{Event, SOURCE_LINE};
use std::collections::BTreeSet;

type Lines = BTreeSet<u32>;

/// Makes a call on one line, and remembers the line.
macro_rules! at {
    ($lines:ident: $($call:tt)*) => {{
        $lines.insert(line!());
        $($call)*.expect("a call")
    }};
}

fn calls(rt: &Runtime, lines: &mut Lines) {
    let (world, n) = (rt.world(), 4 * rt.size());
    let options = || Options::named("ghosts").ghosts([1, 1]);
    let mut a = at!(lines: DistArray::<f64, _>::zeros(&world, [n, n]));
    let mut b = at!(lines: DistArray::with(&world, [n, n], options()));
    let mut c = at!(lines: DistArray::from_elem(&world, [n, n], 1.0));
    let d = at!(lines: DistArray::from_shape_fn(&world, [n, n], |(i, j)| (i + j) as f64));
    let e = at!(lines: a.like::<f64>("e"));
    at!(lines: a.fill(2.0));
    at!(lines: b.fill_with(|(i, j)| (i * j) as f64));
    at!(lines: a.mapv_inplace(f64::sqrt));
    let f = at!(lines: a.mapv("f", |x| x as f32));
    at!(lines: a.zip_mut_with(&f, |x, y| *x += f64::from(*y)));
    at!(lines: a.scale(2.0));
    at!(lines: a.scaled_add(2.0, &d));
    at!(lines: a.assign(&b));
    let g = at!(lines: a.redistribute(Options::default().distribution(Distribution::block_cyclic([1, 1]))));
    at!(lines: c.transpose_from(&d));
    at!(lines: a.sum());
    at!(lines: a.dot(&d));
    at!(lines: a.dot(&g));
    at!(lines: a.norm());
    at!(lines: a.min());
    at!(lines: a.max());
    at!(lines: a.minimum());
    at!(lines: a.maximum());
    at!(lines: c.matmul(1.0, &a, &d, 0.0, Matmul::Summa));
    at!(lines: c.matmul(1.0, &a, &d, 0.0, Matmul::Tiles([4, 4])));
    at!(lines: b.update_ghosts());
    at!(lines: a.sync());
    one_sided(&a, n, lines);
    let mut tiles = at!(lines: a.tiles([4, 4]));
    while at!(lines: tiles.take()).is_some() {}
    at!(lines: tiles.reset());
    at!(lines: tiles.free());
    let (mut to, mut of) = (at!(lines: a.access()), at!(lines: b.access()));
    updates(&mut of, &mut to, lines);
    at!(lines: to.release());
    at!(lines: of.release());
    let path = directory().join("lines.npy");
    at!(lines: a.save(&path));
    let h = at!(lines: DistArray::<f64, ndarray::Ix2>::load(&world, &path, options()));
    for array in [a, b, c, d, e, g, h] {
        at!(lines: array.free());
    }
    at!(lines: f.free());
}

fn one_sided(a: &DistArray<'_, f64, ndarray::Ix2>, n: usize, lines: &mut Lines) {
    let mut whole = at!(lines: a.get(a.whole()));
    at!(lines: a.get_into(a.whole(), whole.view_mut()));
    at!(lines: a.put(a.whole(), &whole));
    at!(lines: a.accumulate(a.whole(), 1.0, &whole));
    let whole: Array2<f64> = at!(lines: a.start_get(a.whole())).wait().expect("get");
    let whole = at!(lines: a.start_put(a.whole(), whole)).wait().expect("put");
    at!(lines: a.start_accumulate(a.whole(), 1.0, whole)).wait().expect("accumulate");
    let all: Vec<[usize; 2]> = (0..n).map(|i| [i, n - 1 - i]).collect();
    let starts = array![[0, 0], [n - 1, 0]];
    let mut values = at!(lines: a.gather(&all));
    at!(lines: a.scatter(&all, &values));
    at!(lines: a.scatter_add(&all, 1.0, &values));
    values.resize(2 * n, 0.0);
    at!(lines: a.gather_runs(starts.view(), n, &mut values));
    at!(lines: a.scatter_runs(starts.view(), n, &values));
    at!(lines: a.scatter_add_runs(starts.view(), n, 1.0, &values));
    let rows = Array2::zeros((2, n));
    let rows = at!(lines: a.start_gather_runs(starts.view(), n, rows)).wait().expect("gather");
    let rows = at!(lines: a.start_scatter_runs(starts.view(), n, rows)).wait().expect("scatter");
    let added = at!(lines: a.start_scatter_add_runs(starts.view(), n, 1.0, rows));
    added.wait().expect("scatter");
    let (whole, mut copy) = (Array2::zeros((n, n)), Array2::zeros((n, n)));
    let scope = a.group().runtime().scope(|s| {
        at!(lines: s.get_patch(a, a.whole(), copy.view_mut()));
        at!(lines: s.put_patch(a, a.whole(), &whole));
        at!(lines: s.accumulate_patch(a, a.whole(), 1.0, &whole));
        Ok(())
    });
    scope.expect("a scope");
    at!(lines: a.sync());
}

type OneAccess<'a, 'rt> = Access<'a, 'rt, f64, ndarray::Ix2>;

fn updates(of: &mut OneAccess<'_, '_>, to: &mut OneAccess<'_, '_>, lines: &mut Lines) {
    at!(lines: of.update_ghosts());
    at!(lines: of.start_update()).interior();
    at!(lines: of.finish_update());
    let update = at!(lines: of.start_update());
    at!(lines: update.finish());
    at!(lines: of.stencil(to, |_, _, _| {}));
}

/// With messages to all ranks, each call has an event with a call site.
pub fn traced() {
    // SAFETY: the engine does not run yet, and no other thread exists.
    unsafe { std::env::set_var("PORTOLAN_TRACE", trace_dir()) };
    let rt = Runtime::init().expect("start");
    check_size(rt.size());
    let (me, mut lines) = (rt.rank(), Lines::new());
    step("calls");
    calls(&rt, &mut lines);
    lines.insert(line!() + 1);
    rt.finalize().expect("the end");
    step("the file");
    let read = Read::own(me);
    let mut shown = Lines::new();
    for event in read.events() {
        let Event::Site { module, address: SOURCE_LINE, .. } = *event else { continue };
        let place = &read.strings[&module];
        let (file, line) = place.rsplit_once(':').expect("a file and a line");
        assert!(file.ends_with("ranks/array_lines.rs"), "{place}");
        shown.insert(line.parse().expect("a number"));
    }
    assert_eq!(shown, lines, "lines of the trace, and of the program");
}

/// Rank 1 is late, and the watchdog names the call of rank 0 and its line.
pub fn waited_for() {
    let rt = Runtime::init().expect("start");
    let a = DistArray::<f64, _>::zeros(&rt.world(), [8]).expect("an array");
    if rt.rank() == 1 {
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
    a.sum().expect("a sum");
    a.free().expect("free");
    rt.finalize().expect("the end");
}
