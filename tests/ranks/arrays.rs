//! Compares distributed arrays with a copy of the whole array on every rank.

use crate::array_model::{self as model, Indices};
use crate::child::{Ctx, refused, step};
use crate::rng::Rng;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayD, Axis, Dimension, Ix2, Ix3, IxDyn, LinalgScalar};
use portolan::array::{Boundary, DistArray, Extremum, Matmul, Options};
use portolan::internals::runtime;
use portolan::num_complex::Complex;
use portolan::{Element, ErrorKind, Group, Runtime};
use std::collections::BTreeSet;
use std::fmt::Debug;

pub fn random(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64, 77]);
    let rounds = match ctx.n {
        0..16 if ctx.quick => 6,
        0..16 => 14,
        _ => 2, // simulated ranks
    };
    rounds_of(&rt, &mut rng, rounds, |group, rng, round| sequence(&rt, group, rng, round));
}

/// Every third round is of some ranks, in reverse order, and the others of all.
fn rounds_of(
    rt: &Runtime,
    rng: &mut Rng,
    rounds: usize,
    mut body: impl FnMut(&Group<'_>, &mut Rng, usize),
) {
    let world = rt.world();
    let ranks: Vec<usize> = (0..rt.size()).rev().step_by(2).collect();
    let some = world.subgroup(&ranks).expect("a group");
    for round in 0..rounds {
        let mut draws = Rng::new(rng.next(), &[]);
        match &some {
            Some(group) if round % 3 == 1 => body(group, &mut draws, round),
            None if round % 3 == 1 => {}
            _ => body(&world, &mut draws, round),
        }
    }
    if let Some(group) = some {
        group.free().expect("free");
    }
    world.barrier().expect("barrier");
}

fn sequence(rt: &Runtime, group: &Group<'_>, rng: &mut Rng, round: usize) {
    let shape = model::shape(rng);
    let options = model::options(rng, &shape, group.size(), "random");
    step(format!("array_random {round}: {shape:?} {options:?}"));
    let mut array = model::Array::with(group, IxDyn(&shape), options).expect("an array");
    let mut double: ArrayD<i64> = ArrayD::zeros(shape.clone());
    for turn in 0..12 {
        let what = change(group, &mut array, &mut double, rng);
        array.sync().expect("sync");
        model::check(rt, &array, &double, rng, &format!("round {round}, turn {turn}, {what}"));
        array.sync().expect("sync");
    }
    assert_eq!(array.sum().expect("sum"), double.sum());
    assert_eq!(array.dot(&array).expect("dot"), double.iter().map(|x| x * x).sum::<i64>());
    let first = |best: i64| {
        let at = double.indexed_iter().find(|(_, x)| **x == best).expect("it is there").0;
        Some((best, (0..shape.len()).map(|a| at[a]).collect::<Vec<_>>()))
    };
    let least = double.iter().copied().min().expect("elements");
    let largest = double.iter().copied().max().expect("elements");
    let pair = |found: Extremum<i64>| (found.value, found.index);
    assert_eq!(array.min().expect("min").map(pair), first(least));
    assert_eq!(array.max().expect("max").map(pair), first(largest));
    let squares: f64 = double.iter().map(|x| (x * x) as f64).sum();
    assert!((array.norm().expect("norm") - squares.sqrt()).abs() <= 1e-9 * squares.sqrt());
    array.free().expect("free");
}

fn change(
    group: &Group<'_>,
    array: &mut model::Array<'_>,
    double: &mut ArrayD<i64>,
    rng: &mut Rng,
) -> &'static str {
    let (me, n, shape) = (group.rank(), group.size(), double.shape().to_vec());
    let actor = rng.below(n);
    match rng.below(8) {
        0..3 => {
            let part = Indices::random(rng, &shape);
            let new = model::numbers(rng, &part.shape());
            let (way, alpha) = (rng.below(6), rng.range(1, 3) as i64);
            part.each(|i, there| {
                let old = if way < 4 { 0 } else { double[there] };
                double[there] = old + if way < 4 { 1 } else { alpha } * new[i];
            });
            if me == actor {
                match way {
                    0 => array.put(&part.patch, &new).expect("put"),
                    1 => {
                        let pending = array.start_put(&part.patch, new.clone()).expect("put");
                        assert_eq!(pending.wait().expect("wait"), new);
                    }
                    // A view with the axes in reverse order, and the last one backwards.
                    2 => {
                        let last = Axis(shape.len() - 1);
                        let mut turned = new.view();
                        turned.invert_axis(last);
                        let turned = turned.reversed_axes().as_standard_layout().to_owned();
                        let mut view = turned.view().reversed_axes();
                        view.invert_axis(last);
                        array.put(&part.patch, &view).expect("put");
                    }
                    3 => {
                        let rt = group.runtime();
                        let (to, from) = (&*array, &new);
                        rt.scope(|s| s.put_patch(to, &part.patch, from).map(drop)).expect("put");
                    }
                    4 => array.accumulate(&part.patch, alpha, &new).expect("accumulate"),
                    _ => {
                        let pending = array.start_accumulate(&part.patch, alpha, new);
                        pending.expect("start").wait().expect("wait");
                    }
                }
            }
            "patch"
        }
        3 => {
            let list: BTreeSet<Vec<usize>> = (0..rng.below(30))
                .map(|_| ndarray::Dimension::slice(&model::index(rng, &shape)).to_vec())
                .collect();
            let list: Vec<IxDyn> = list.iter().map(|i| IxDyn(i)).collect();
            let values: Vec<i64> = list.iter().map(|_| rng.below(1000) as i64).collect();
            list.iter().zip(&values).for_each(|(i, v)| double[i] = *v);
            if me == actor {
                array.scatter(&list, &values).expect("scatter");
            }
            "scatter"
        }
        4 => {
            let (starts, len) = model::runs(rng, &shape);
            let values: Vec<i64> =
                (0..starts.nrows() * len).map(|_| rng.below(1000) as i64).collect();
            let places = model::places(&starts, len, &shape);
            let flat = double.as_slice_mut().expect("contiguous");
            places.iter().zip(&values).for_each(|(at, value)| flat[*at] += 2 * value);
            if me == actor {
                array.scatter_add_runs(starts.view(), len, 2, &values).expect("add of runs");
            }
            group.barrier().expect("barrier");
            let first = starts.slice(ndarray::s![..1, ..]);
            places.iter().zip(&values[..len]).for_each(|(at, value)| flat[*at] = *value);
            if me == (actor + 1) % n {
                array.scatter_runs(first, len, &values[..len]).expect("scatter of runs");
            }
            "runs"
        }
        5 => {
            let mut mine = array.access().expect("access");
            mine.local_mut().mapv_inplace(|x| x / 2);
            mine.for_each(|index, x| *x += index.slice().iter().sum::<usize>() as i64);
            mine.release().expect("release");
            for (index, x) in double.indexed_iter_mut() {
                *x = *x / 2 + (0..shape.len()).map(|a| index[a]).sum::<usize>() as i64;
            }
            "access"
        }
        6 => {
            array.scale(3).expect("scale");
            array.mapv_inplace(|x| x - 5).expect("map");
            double.mapv_inplace(|x| x * 3 - 5);
            "map"
        }
        _ => {
            let options = model::options(rng, &shape, n, "copy");
            let other = array.redistribute(options).expect("redistribute");
            array.fill(0).expect("fill");
            array.scaled_add(2, &other).expect("add");
            let backwards: Vec<usize> = shape.iter().rev().copied().collect();
            let options = model::options(rng, &backwards, n, "turned");
            let mut turned = model::Array::with(group, IxDyn(&backwards), options).expect("turned");
            turned.transpose_from(array).expect("transpose");
            double.mapv_inplace(|x| 2 * x);
            let whole = turned.get(turned.whole()).expect("get");
            assert_eq!(whole, double.view().reversed_axes(), "transpose");
            turned.free().expect("free");
            array.assign(&other).expect("copy");
            array.zip_mut_with(&other, |a, b| *a += b).expect("zip");
            let same = other.mapv("same", |x| x as f64).expect("map");
            assert_eq!(same.sum().expect("sum"), other.sum().expect("sum") as f64);
            same.free().expect("free");
            other.free().expect("free");
            "copies"
        }
    }
}

/// Tests ghost cells of several widths, periodic or not, and a stencil over them.
pub fn ghosts(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64, 78]);
    let rounds = if ctx.quick { 4 } else { 10 };
    rounds_of(&rt, &mut rng, rounds, |group, rng, round| {
        // Wide enough for any grid of a few ranks, and for a cube of many.
        let least = 2 * ctx.n.min(5);
        let shape: Vec<usize> = (0..3).map(|_| rng.range(least, least + 5)).collect();
        let widths: Vec<usize> = (0..3).map(|_| rng.below(3)).collect();
        let periodic: Vec<bool> = (0..3).map(|_| rng.one_in(2)).collect();
        step(format!("array_ghosts {round}: {shape:?} {widths:?} {periodic:?}"));
        ghosts_of(group, &shape, &widths, &periodic);
    });
}

fn ghosts_of(group: &Group<'_>, shape: &[usize], widths: &[usize], periodic: &[bool]) {
    let end = |&periodic| if periodic { Boundary::Periodic } else { Boundary::Open };
    let ends: Vec<Boundary> = periodic.iter().map(end).collect();
    let options = Options::named("ghosts").ghosts(widths).boundaries(ends);
    let extents: [usize; 3] = shape.try_into().expect("three axes");
    let mut old = DistArray::<i64, Ix3>::with(group, extents, options).expect("an array");
    let mut new = old.like::<i64>("new").expect("an array");
    let value = |index: &[isize], step: i64| -> i64 {
        let mut number = 0;
        for (axis, (&i, &n)) in index.iter().zip(shape).enumerate() {
            let n = n as isize;
            if !(0..n).contains(&i) && !periodic[axis] {
                return -7; // never written
            }
            number = number * n as i64 + i.rem_euclid(n) as i64;
        }
        number * 10 + step
    };
    let mut mine = old.access().expect("access");
    mine.padded_mut().fill(-7);
    let start: Vec<isize> =
        mine.bounds().expect("blocks").iter().map(|r| r.start as isize).collect();
    for round in 0..3 {
        mine.for_each(|(i, j, k), x| {
            *x = value(&[i, j, k].map(|i| i as isize), round);
        });
        if round == 1 {
            let update = mine.start_update().expect("start");
            let at: Vec<isize> = start.clone();
            assert_eq!(update.interior()[[0, 0, 0]], value(&at, round), "the interior meanwhile");
            // The update is dropped here, so the next view waits for the rest of it.
        } else {
            mine.update_ghosts().expect("update");
        }
        for (index, x) in mine.padded().indexed_iter() {
            let index = [index.0, index.1, index.2];
            let global: Vec<isize> =
                (0..3).map(|a| start[a] + index[a] as isize - widths[a] as isize).collect();
            assert_eq!(*x, value(&global, round), "{global:?} in round {round}");
        }
    }
    let mut next = new.access().expect("access");
    mine.stencil(&mut next, |around, mut here, first| {
        for (index, x) in here.indexed_iter_mut() {
            let at = [index.0, index.1, index.2];
            let corner = [0, 1, 2].map(|a| at[a] + 2 * widths[a]);
            let global: Vec<isize> = (0..3).map(|a| (first[a] + at[a]) as isize).collect();
            assert_eq!(around[[0, 1, 2].map(|a| at[a] + widths[a])], value(&global, 2));
            *x = around[corner] - around[at];
        }
    })
    .expect("stencil");
    for (index, x) in next.local().indexed_iter() {
        let at = [index.0, index.1, index.2];
        let far = |sign: isize| -> i64 {
            let global: Vec<isize> =
                (0..3).map(|a| start[a] + at[a] as isize + sign * widths[a] as isize).collect();
            value(&global, 2)
        };
        assert_eq!(*x, far(1) - far(-1), "stencil at {at:?}");
    }
    mine.release().expect("release");
    next.release().expect("release");
    old.free().expect("free");
    new.free().expect("free");
}

pub fn products(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64, 80]);
    for round in 0..if ctx.n < 16 { 3 } else { 1 } {
        let (m, k, n) = (rng.range(1, 60), rng.range(1, 600), rng.range(1, 60));
        step(format!("array_products {round}: {m} {k} {n}"));
        let mut make = |shape: [usize; 2], name: &str| {
            let options = model::options(&mut rng, &shape, ctx.n, name);
            let mut array =
                DistArray::<f64, Ix2>::with(&rt.world(), shape, options).expect("an array");
            let number = |(i, j): (usize, usize)| ((i * 7 + j * 3) % 11) as f64;
            array.fill_with(number).expect("fill");
            (array, Array2::from_shape_fn(shape, number))
        };
        let ((a, a2), (b, b2)) = (make([m, k], "a"), make([k, n], "b"));
        let ((mut c, c2), (mut d, _)) = (make([m, n], "c"), make([m, n], "d"));
        let (mut e, _) = make([m, n], "e");
        let expected = a2.dot(&b2) * 2.0 + &c2 * 3.0;
        c.matmul(2.0, &a, &b, 3.0, Matmul::Auto).expect("matmul");
        d.matmul(2.0, &a, &b, 3.0, Matmul::Tiles([16, 9])).expect("matmul");
        // The elements are integers, so the order of summation makes no difference.
        assert_eq!(c.get([0..m, 0..n]).expect("get"), expected);
        assert_eq!(d.get([0..m, 0..n]).expect("get"), expected);
        e.matmul(2.0, &a, &b, 3.0, Matmul::Summa).expect("matmul");
        assert_eq!(e.get([0..m, 0..n]).expect("get"), expected);
        // A factor of 0 ignores the old elements, even if they are NaN.
        let alone = a2.dot(&b2);
        for form in [Matmul::Auto, Matmul::Summa, Matmul::Tiles([7, 64])] {
            c.fill(f64::NAN).expect("fill");
            c.matmul(1.0, &a, &b, 0.0, form).expect("matmul");
            assert_eq!(c.get([0..m, 0..n]).expect("get"), alone, "{form:?}");
        }
        c.sync().expect("sync");
        if m != k {
            refused(
                ErrorKind::Argument,
                "factors that do not fit",
                c.matmul(1.0, &b, &a, 0.0, Matmul::Auto),
            );
        }
        for array in [a, b, c, d, e] {
            array.free().expect("free");
        }
    }
}

/// Other element types use other kernels, and other routines of BLAS if it is available.
pub fn product_types(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64, 83]);
    for round in 0..if ctx.quick { 2 } else { 4 } {
        step(format!("array_product_types {round}"));
        product_of(&rt, &mut rng, |n| n as f64);
        product_of(&rt, &mut rng, |n| n as f32);
        product_of(&rt, &mut rng, |n| n as i64);
        product_of(&rt, &mut rng, |n| Complex::new(n as f32, 1.0 - n as f32));
        product_of(&rt, &mut rng, |n| Complex::new(2.0 - n as f64, n as f64));
    }
}

fn product_of<T>(rt: &Runtime, rng: &mut Rng, number: fn(usize) -> T)
where
    T: Element + LinalgScalar + PartialEq + Debug,
{
    let (m, k, n) = (rng.range(1, 90), rng.range(1, 90), rng.range(1, 90));
    let mut make = |shape: [usize; 2], name: &str| {
        let options = model::options(rng, &shape, rt.size(), name);
        let mut array = DistArray::<T, Ix2>::with(&rt.world(), shape, options).expect("an array");
        let at = |(i, j): (usize, usize)| number((i * 5 + j * 3) % 7);
        array.fill_with(at).expect("fill");
        (array, Array2::from_shape_fn(shape, at))
    };
    let ((a, a2), (b, b2)) = (make([m, k], "a"), make([k, n], "b"));
    for form in [Matmul::Summa, Matmul::Tiles([20, 30])] {
        let (mut c, mut expected) = make([m, n], "c");
        general_mat_mul(number(2), &a2, &b2, number(3), &mut expected);
        c.matmul(number(2), &a, &b, number(3), form).expect("matmul");
        // The elements are small integers, so the sums are exact.
        assert_eq!(c.get(c.whole()).expect("get"), expected, "{m} {k} {n}, {form:?}");
        c.free().expect("free");
    }
    a.free().expect("free");
    b.free().expect("free");
}

/// New arrays are zero, whatever the memory held before, returned to the system or not.
pub fn zeros(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64, 82]);
    let large = 5 << 20; // too large to be kept for reuse
    for round in 0..12 {
        let n = if round == 5 { large } else { rng.range(1, 40_000) };
        step(format!("array_zeros {round}: {n}"));
        let used = |n: usize| {
            let options = Options::named("used").unfilled();
            let mut used = DistArray::<i64, _>::with(&rt.world(), [n], options).expect("used");
            used.fill(-1).expect("fill");
            used
        };
        let (first, second) = (used(n / 3 + 1), used(n));
        first.free().expect("free");
        let between = DistArray::<i64, _>::zeros(&rt.world(), [n / 4 + 1]).expect("an array");
        let last = DistArray::<i64, _>::zeros(&rt.world(), [n + 1000]).expect("an array");
        second.free().expect("free");
        let after = DistArray::<i64, _>::zeros(&rt.world(), [2 * n]).expect("an array");
        for array in [between, last, after] {
            let squares = array.norm().expect("norm");
            assert_eq!(squares, 0.0, "round {round}: {} elements", array.len());
            array.free().expect("free");
        }
    }
}

pub fn shared(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let options = Options::named("done").unfilled();
    let mut done = DistArray::<i64, Ix2>::with(&rt.world(), [37, 23], options).expect("an array");
    done.fill(0).expect("fill");
    let mut tiles = done.tiles([4, 5]).expect("tiles");
    for round in 1..=3 {
        let mut own_are_gone = false;
        while let Some(tile) = tiles.take().expect("take") {
            // Other ranks may already have taken all tiles of a late rank.
            assert!(tile.owner != ctx.me || !own_are_gone, "own tiles come first");
            own_are_gone |= tile.owner != ctx.me;
            let shape = (tile.ranges[0].len(), tile.ranges[1].len());
            done.accumulate(&tile, 1, &Array2::from_elem(shape, 1)).expect("accumulate");
            if round == 2 && ctx.me == 0 {
                std::thread::yield_now(); // lets the other ranks take tiles of this one
            }
        }
        done.sync().expect("sync");
        assert!(done.get(done.whole()).expect("get").iter().all(|n| *n == round));
        tiles.reset().expect("reset");
    }
    tiles.free().expect("free");
    refused(ErrorKind::Argument, "tiles without elements", done.tiles([0, 1]));
    done.free().expect("free");
}

pub fn files(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let world = rt.world();
    let directory = crate::child::directory();
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64, 81]);
    for round in 0..4 {
        let shape = model::shape(&mut rng);
        step(format!("array_files {round}: {shape:?}"));
        let path = directory.join(format!("array{round}.npy"));
        let options = model::options(&mut rng, &shape, ctx.n, "saved");
        let mut saved = model::Array::with(&world, IxDyn(&shape), options).expect("an array");
        saved.fill_with(|i| i.slice().iter().fold(1, |n, i| n * 31 + *i as i64)).expect("fill");
        saved.save(&path).expect("save");
        let options = model::options(&mut rng, &shape, ctx.n, "loaded");
        let loaded = model::Array::load(&world, &path, options).expect("load");
        let (one, two) = (saved.get(saved.whole()), loaded.get(loaded.whole()));
        assert_eq!(one.expect("get"), two.expect("get"));
        // The bytes after the header are the elements in row order.
        let bytes = std::fs::read(&path).expect("the file");
        let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let whole = loaded.get(loaded.whole()).expect("get");
        assert!(
            bytes[start..] == *bytemuck::cast_slice::<i64, u8>(whole.as_slice().expect("rows"))
        );
        world.barrier().expect("barrier");
        // Mark the same bytes as column order.
        if ctx.me == 0 {
            let text = String::from_utf8_lossy(&bytes[10..start]).replace("False", "True ");
            let mut turned = bytes[..10].to_vec();
            turned.extend(text.as_bytes());
            turned.extend(&bytes[start..]);
            std::fs::write(&path, turned).expect("write");
        }
        world.barrier().expect("barrier");
        let columns = model::Array::load(&world, &path, Options::named("columns")).expect("load");
        let backwards: Vec<usize> = shape.iter().rev().copied().collect();
        let flat = Array1::from_iter(whole.iter().copied());
        let expected =
            flat.into_shape_with_order(IxDyn(&backwards)).expect("as many").reversed_axes();
        assert_eq!(columns.get(columns.whole()).expect("get"), expected, "Fortran's order");
        refused(
            ErrorKind::Argument,
            "other elements",
            DistArray::<f64, IxDyn>::load(&world, &path, Options::default()),
        );
        refused(
            ErrorKind::Argument,
            "no file",
            model::Array::load(&world, directory.join("none.npy"), Options::default()),
        );
        for array in [saved, loaded, columns] {
            array.free().expect("free");
        }
        world.barrier().expect("barrier");
    }
}
