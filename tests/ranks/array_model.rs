//! The model of a distributed array: one `ndarray` that every rank keeps for itself.

use crate::rng::Rng;
use ndarray::{Array2, ArrayD, IxDyn};
use portolan::Runtime;
use portolan::array::{DistArray, Distribution, Options, Patch};

pub type Array<'rt> = DistArray<'rt, i64, IxDyn>;

/// The indices of a patch along each axis, in the order of the patch.
#[derive(Debug, Clone)]
pub struct Indices {
    pub patch: Patch,
    axes: Vec<Vec<usize>>,
}

impl Indices {
    pub fn random(rng: &mut Rng, shape: &[usize]) -> Indices {
        let steps: Vec<usize> =
            shape.iter().map(|_| if rng.one_in(3) { rng.range(1, 3) } else { 1 }).collect();
        if rng.one_in(4) {
            let ranges: Vec<_> = shape
                .iter()
                .map(|&n| {
                    let start = rng.below(3 * n + 1) as isize - n as isize;
                    // Each index occurs once, so that a put has one result.
                    start..start + rng.below(n + 1) as isize
                })
                .collect();
            let axes = ranges
                .iter()
                .zip(shape)
                .map(|(r, n)| r.clone().map(|i| i.rem_euclid(*n as isize) as usize).collect());
            return Indices { patch: Patch::periodic_of(&ranges), axes: axes.collect() };
        }
        let ranges: Vec<_> = shape
            .iter()
            .map(|&n| {
                let (a, b) = (rng.below(n + 1), rng.below(n + 1));
                a.min(b)..a.max(b)
            })
            .collect();
        let axes = ranges.iter().zip(&steps).map(|(r, s)| r.clone().step_by(*s).collect());
        let patch = Patch::from(&ranges[..]).every(&steps).expect("steps");
        Indices { axes: axes.collect(), patch }
    }

    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(Vec::len).collect()
    }

    pub fn each(&self, mut call: impl FnMut(&IxDyn, &IxDyn)) {
        for inside in ndarray::indices(IxDyn(&self.shape())) {
            let there: Vec<usize> = (0..self.axes.len()).map(|a| self.axes[a][inside[a]]).collect();
            call(&inside, &IxDyn(&there));
        }
    }

    pub fn of(&self, model: &ArrayD<i64>) -> ArrayD<i64> {
        let mut patch = ArrayD::zeros(self.shape());
        self.each(|i, there| patch[i] = model[there]);
        patch
    }
}

pub fn numbers(rng: &mut Rng, shape: &[usize]) -> ArrayD<i64> {
    ArrayD::from_shape_simple_fn(IxDyn(shape), || rng.below(2000) as i64 - 1000)
}

pub fn index(rng: &mut Rng, shape: &[usize]) -> IxDyn {
    IxDyn(&shape.iter().map(|&n| rng.below(n)).collect::<Vec<_>>())
}

/// Returns the first indices of some runs of elements, and the length of the runs.
pub fn runs(rng: &mut Rng, shape: &[usize]) -> (Array2<usize>, usize) {
    let all: usize = shape.iter().product();
    let most = [1, 3, 40][rng.below(3)];
    let len = rng.range(1, most.min(all));
    let mut starts = Array2::zeros((rng.range(1, 12), shape.len()));
    for mut start in starts.rows_mut() {
        let mut at = rng.below(all - len + 1);
        for (index, n) in start.iter_mut().zip(shape).rev() {
            (*index, at) = (at % n, at / n);
        }
    }
    (starts, len)
}

/// Returns the positions of the elements of runs, in row-major order.
pub fn places(starts: &Array2<usize>, len: usize, shape: &[usize]) -> Vec<usize> {
    let first = |start: ndarray::ArrayView1<'_, usize>| {
        start.iter().zip(shape).fold(0, |at, (index, n)| at * n + index)
    };
    starts.rows().into_iter().flat_map(|start| first(start)..first(start) + len).collect()
}

/// Returns options with a random distribution over at most `ranks` ranks, and ghost cells that the
/// distribution permits.
pub fn options(rng: &mut Rng, shape: &[usize], ranks: usize, name: &str) -> Options {
    let mut ghosts = vec![0; shape.len()];
    let distribution = match rng.below(5) {
        0 => Distribution::Block,
        1 => Distribution::Rows,
        2 => {
            let mut grid = vec![1; shape.len()];
            grid[rng.below(shape.len())] = rng.range(1, ranks);
            Distribution::Grid(grid)
        }
        3 => {
            let cut = rng.below(shape.len());
            let parts = rng.range(1, ranks);
            let starts = shape.iter().enumerate().map(|(axis, &n)| {
                let more = if axis == cut { parts - 1 } else { 0 };
                let mut starts: Vec<usize> = (0..more).map(|_| rng.below(n + 1)).collect();
                starts.push(0);
                starts.sort_unstable();
                starts
            });
            Distribution::Irregular(starts.collect())
        }
        _ => Distribution::block_cyclic(shape.iter().map(|_| rng.range(1, 4)).collect::<Vec<_>>()),
    };
    if matches!(distribution, Distribution::Rows) && shape.len() > 1 && rng.one_in(2) {
        // An axis that is not partitioned always has room.
        ghosts[1] = rng.range(1, 2);
    }
    Options::named(name).distribution(distribution).ghosts(ghosts)
}

pub fn shape(rng: &mut Rng) -> Vec<usize> {
    let ndim = rng.range(1, 6);
    (0..ndim).map(|_| rng.range(1, [0, 200, 30, 12, 6, 5, 4][ndim])).collect()
}

pub fn check(rt: &Runtime, array: &Array<'_>, model: &ArrayD<i64>, rng: &mut Rng, what: &str) {
    // Every rank checks a patch of its own.
    let mut own = Rng::new(rng.next(), &[rt.rank() as u64]);
    let part = Indices::random(&mut own, model.shape());
    let got = array.get(&part.patch).expect("get");
    assert_eq!(got, part.of(model), "{what}: {}", part.patch);
    let whole = array.get(array.whole()).expect("get");
    assert_eq!(&whole, model, "{what}: the whole array");
    let list: Vec<IxDyn> = (0..own.below(20)).map(|_| index(&mut own, model.shape())).collect();
    let gathered = array.gather(&list).expect("gather");
    let expected: Vec<i64> = list.iter().map(|i| model[i]).collect();
    assert_eq!(gathered, expected, "{what}: gather");
    let (starts, len) = runs(&mut own, model.shape());
    let mut gathered = vec![0; starts.nrows() * len];
    array.gather_runs(starts.view(), len, &mut gathered).expect("gather of runs");
    let flat = model.as_slice().expect("contiguous");
    let expected: Vec<i64> =
        places(&starts, len, model.shape()).iter().map(|at| flat[*at]).collect();
    assert_eq!(gathered, expected, "{what}: runs of {len} from {starts}");
}
