//! A Fourier transform in two dimensions: transform the rows, transpose, transform the rows again.
//!
//! The matrix is distributed by rows, so each rank transforms its own rows. `transpose_from` turns
//! columns into rows. The transform of a sum of two waves has two peaks, and the inverse transform
//! must restore the input.
//!
//! Usage: fft_transpose [rows, 128] [columns, 192]

use ndarray::Ix2;
use portolan::Runtime;
use portolan::array::{DistArray, Distribution, Options};
use portolan::num_complex::Complex;
use std::error::Error;
use std::f64::consts::TAU;
use std::process::ExitCode;

type Matrix<'rt> = DistArray<'rt, Complex<f64>, Ix2>;

/// The sign of the exponent.
const FORWARD: f64 = -1.0;
const INVERSE: f64 = 1.0;

/// Returns the transform of the `n` elements at this stride, combined from `p` smaller transforms.
/// A program for large rows would call a library of transforms here.
fn fourier(x: &[Complex<f64>], stride: usize, n: usize, sign: f64) -> Vec<Complex<f64>> {
    let Some(p) = (2..=n).find(|p| n.is_multiple_of(*p)) else { return vec![x[0]] };
    let parts: Vec<_> =
        (0..p).map(|r| fourier(&x[r * stride..], p * stride, n / p, sign)).collect();
    let turned = |r: usize, k: usize| {
        let phase = sign * TAU * (r * k % n) as f64 / n as f64;
        parts[r][k % (n / p)] * Complex::from_polar(1.0, phase)
    };
    (0..n).map(|k| (0..p).map(|r| turned(r, k)).sum()).collect()
}

fn rows(matrix: &mut Matrix<'_>, sign: f64) -> portolan::Result<()> {
    let mut mine = matrix.access()?;
    for row in mine.local_mut().rows_mut() {
        let row = row.into_slice().expect("rows lie in a row");
        row.copy_from_slice(&fourier(row, 1, row.len(), sign));
    }
    mine.release()
}

/// Transforms `matrix` into `turned`, which has the axes exchanged.
fn transform(matrix: &mut Matrix<'_>, turned: &mut Matrix<'_>, sign: f64) -> portolan::Result<()> {
    rows(matrix, sign)?;
    turned.transpose_from(matrix)?;
    rows(turned, sign)
}

fn waves(rt: &Runtime, n: usize, m: usize) -> Result<(), Box<dyn Error>> {
    let by_rows = |name: &str| Options::named(name).distribution(Distribution::Rows);
    let mut field = Matrix::with(&rt.world(), [n, m], by_rows("field"))?;
    let mut turned = Matrix::with(&rt.world(), [m, n], by_rows("turned"))?;
    let (first, second) = ([3, 5], [n - 2, 1]);
    let value = |(i, j): (usize, usize)| {
        let wave = |k: [usize; 2], amplitude: f64| {
            let phase = (i * k[0]) as f64 / n as f64 + (j * k[1]) as f64 / m as f64;
            Complex::from_polar(amplitude, TAU * phase)
        };
        wave(first, 2.0) + wave(second, 1.0)
    };
    field.fill_with(value)?;
    transform(&mut field, &mut turned, FORWARD)?;

    let magnitudes = turned.mapv("magnitudes", |x| x.norm())?;
    let peak = magnitudes.max()?.ok_or("no elements")?;
    let all = (n * m) as f64;
    let other = turned.get_value([second[1], second[0]])?.norm();
    let energy = turned.norm()?;
    turned.sync()?;
    let peaks = peak.index == [first[1], first[0]]
        && (peak.value - 2.0 * all).abs() < 1e-6 * all
        && (other - all).abs() < 1e-6 * all
        && (energy - 5f64.sqrt() * all).abs() < 1e-6 * all;

    transform(&mut turned, &mut field, INVERSE)?;
    let mut original = field.like::<Complex<f64>>("original")?;
    original.fill_with(value)?;
    field.zip_mut_with(&original, |x, original| *x = *x / all - original)?;
    let error = field.norm()? / all.sqrt();
    if rt.rank() == 0 {
        println!(
            "fft_transpose: {n} by {m}, the peak is {:.1} at {:?}, back to {error:e}",
            peak.value, peak.index
        );
    }
    magnitudes.free()?;
    for array in [field, turned, original] {
        array.free()?;
    }
    if peaks && error < 1e-10 {
        Ok(())
    } else {
        Err(format!("peak {peak:?}, the other one {other}, back to {error:e}").into())
    }
}

fn main() -> ExitCode {
    let number =
        |i: usize, or: usize| std::env::args().nth(i).and_then(|a| a.parse().ok()).unwrap_or(or);
    portolan::run(|rt| waves(rt, number(1, 128), number(2, 192)))
}
