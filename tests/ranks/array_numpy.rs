//! Array files: NumPy reads files that ranks have written, and ranks read files of NumPy.

use crate::child;
use ndarray::{Dimension, IntoDimension, Ix1, Ix2, Ix3};
use portolan::Runtime;
use portolan::array::{DistArray, NpyElement, Options};
use portolan::num_complex::Complex;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks the elements of each file. Writes twice their values: in column order, with a longer
/// header, and in big-endian order.
const SCRIPT: &str = r#"
import sys, numpy as np
for path, descr, shape in zip(sys.argv[1::3], sys.argv[2::3], sys.argv[3::3]):
    a = np.load(path)
    shape = tuple(int(n) for n in shape.split("x"))
    assert a.dtype == np.dtype(descr) and a.shape == shape, (path, a.dtype, a.shape)
    want = np.zeros(shape)
    for axis, n in enumerate(shape):
        along = [1] * len(shape)
        along[axis] = n
        want = want * 10 + np.arange(n).reshape(along)
    assert (a == (want % 100).astype(descr)).all(), path
    np.save(path[:-4] + "-columns.npy", np.asfortranarray(a + a))
    with open(path[:-4] + "-long.npy", "wb") as f:
        np.lib.format.write_array(f, a + a, version=(2, 0))
    np.save(path[:-4] + "-swapped.npy", (a + a).astype(a.dtype.newbyteorder(">")))
"#;

fn python() -> Command {
    Command::new("python3")
}

pub fn missing() -> Option<String> {
    let found = python().args(["-c", "import numpy"]).output();
    let there = found.is_ok_and(|output| output.status.success());
    (!there).then(|| "python3 with numpy is not installed".into())
}

/// Returns the number at an index, as the script computes it.
fn number(index: &[usize]) -> f64 {
    (index.iter().fold(0, |n, i| n * 10 + i) % 100) as f64
}

fn save<T: NpyElement, D: Dimension>(
    rt: &Runtime,
    path: &Path,
    shape: D,
    of: impl Fn(f64) -> T,
) -> Vec<String> {
    let mut array = DistArray::<T, D>::zeros(&rt.world(), shape).expect("an array");
    array.fill_with(|index| of(number(index.into_dimension().slice()))).expect("fill");
    array.save(path).expect("save");
    let counts: Vec<String> = array.shape().iter().map(usize::to_string).collect();
    array.free().expect("free");
    vec![path.display().to_string(), T::DESCR.into(), counts.join("x")]
}

fn load<T: NpyElement + PartialEq, D: Dimension>(rt: &Runtime, path: &Path, of: impl Fn(f64) -> T) {
    for kind in ["columns", "long", "swapped"] {
        let path = path.with_extension("");
        let path = PathBuf::from(format!("{}-{kind}.npy", path.display()));
        let mut array =
            DistArray::<T, D>::load(&rt.world(), &path, Options::named(kind)).expect("load");
        let mut mine = array.access().expect("access");
        mine.for_each(|index, x| {
            let number = number(index.clone().into_dimension().slice());
            assert!(*x == of(2.0 * number), "{path:?} at {index:?}");
        });
        mine.release().expect("release");
        array.free().expect("free");
    }
}

pub fn files() {
    let rt = Runtime::init().expect("start");
    child::check_size(rt.size());
    let directory = child::directory();
    let path = |name: &str| directory.join(format!("numpy-{name}.npy"));
    let complex = |x: f64| Complex::new(x, 0.0);
    let words = [
        save(&rt, &path("f8"), Ix2(13, 7), |x| x),
        save(&rt, &path("i4"), Ix1(29), |x| x as i32),
        save(&rt, &path("u1"), Ix3(3, 4, 5), |x| x as u8),
        save(&rt, &path("c16"), Ix3(5, 2, 9), complex),
    ]
    .concat();
    rt.world().barrier().expect("barrier");
    if rt.rank() == 0 {
        let done = python().args(["-c", SCRIPT]).args(&words).output().expect("python3 runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    rt.world().barrier().expect("barrier");
    load::<f64, Ix2>(&rt, &path("f8"), |x| x);
    load::<i32, Ix1>(&rt, &path("i4"), |x| x as i32);
    load::<u8, Ix3>(&rt, &path("u1"), |x| x as u8);
    load::<Complex<f64>, Ix3>(&rt, &path("c16"), complex);
}
