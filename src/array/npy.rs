//! Files in NumPy's `.npy` format. All ranks share one file, on a file system that all see, and
//! each reads and writes its own elements.
//!
//! The file consists of six magic bytes, two version bytes, the length of the header, the header (a
//! dictionary in Python syntax with the element type, the axis order and the shape), and the
//! elements without gaps.

use super::dist_array::DistArray;
use super::dist_array::Options;
use super::distribution::OwnBox;
use super::whole::SLAB;
use crate::in_call::{InCall, public};
use crate::reduce::Max;
use crate::{Element, Group};
use ndarray::{Axis, Dimension};
use num_complex::Complex;
use portolan_base::error::{Error, ErrorKind, Result, fail};
use portolan_base::thread::PublicCall;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// An element type that NumPy supports.
pub trait NpyElement: Element {
    /// NumPy's name of the type in a header, for little-endian data.
    const DESCR: &'static str;
}

/// Returns whether a type of a header is that of the elements in big-endian order.
fn is_swapped<T: NpyElement>(descr: &str) -> bool {
    descr.strip_prefix('>').is_some_and(|name| T::DESCR.strip_prefix('<') == Some(name))
}

/// Reverses the byte order of elements.
fn swap<T: NpyElement>(elements: &mut [T]) {
    let parts = if T::DESCR.contains('c') { 2 } else { 1 };
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(elements);
    bytes.chunks_exact_mut(size_of::<T>() / parts).for_each(<[u8]>::reverse);
}

macro_rules! npy {
    ($($ty:ty: $descr:literal;)+) => {
        $(impl NpyElement for $ty {
            const DESCR: &'static str = $descr;
        })+
    };
}

npy! {
    i8: "|i1";
    u8: "|u1";
    i16: "<i2";
    u16: "<u2";
    i32: "<i4";
    u32: "<u4";
    i64: "<i8";
    u64: "<u8";
    f32: "<f4";
    f64: "<f8";
    Complex<f32>: "<c8";
    Complex<f64>: "<c16";
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// In bytes. A longer header is invalid.
const MAX_HEADER: usize = 1 << 16;

/// The contents of a header, and the offset of the elements.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// The element type, in NumPy's notation.
    pub descr: String,
    /// Whether the first axis varies fastest.
    pub fortran_order: bool,
    /// Number of elements along each axis.
    pub shape: Vec<usize>,
    /// Offset of the first element in the file, in bytes.
    pub start: u64,
}

/// Returns the header of a file in which the last axis varies fastest.
pub fn encode(descr: &str, shape: &[usize]) -> Vec<u8> {
    let mut numbers: String = shape.iter().map(|n| format!("{n}, ")).collect();
    if shape.len() > 1 {
        numbers.truncate(numbers.len() - 2);
    }
    let dictionary =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({numbers}), }}");
    // The elements begin at a multiple of 64 bytes.
    let header = (10 + dictionary.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((header as u16).to_le_bytes());
    bytes.extend(dictionary.as_bytes());
    bytes.resize(10 + header - 1, b' ');
    bytes.push(b'\n');
    bytes
}

/// Returns the text that follows a key of the dictionary.
fn value<'a>(dictionary: &'a str, key: &str) -> Option<&'a str> {
    // A value may look like a key, so the key must be followed by a colon.
    [format!("'{key}'"), format!("\"{key}\"")].iter().find_map(|quoted| {
        dictionary.match_indices(quoted.as_str()).find_map(|(at, _)| {
            dictionary[at + quoted.len()..].trim_start().strip_prefix(':').map(str::trim_start)
        })
    })
}

/// Reads a header, or returns the reason why it is invalid.
pub fn decode(reader: &mut impl Read) -> std::result::Result<Header, String> {
    let mut head = [0; 8];
    reader.read_exact(&mut head).map_err(|e| format!("no header: {e}"))?;
    if &head[..6] != MAGIC {
        return Err("it does not begin with the signature of .npy files".into());
    }
    let mut len = [0; 4];
    let wide = if head[6] >= 2 { 4 } else { 2 };
    reader.read_exact(&mut len[..wide]).map_err(|e| format!("no header: {e}"))?;
    let len = u32::from_le_bytes(len) as usize;
    if len > MAX_HEADER {
        return Err(format!("a header of {len} bytes"));
    }
    let mut text = vec![0; len];
    reader.read_exact(&mut text).map_err(|e| format!("the header ends early: {e}"))?;
    let text = String::from_utf8(text).map_err(|_| "the header is not text")?;
    let descr = value(&text, "descr").and_then(|v| {
        let quote = v.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        v[1..].split(quote).next()
    });
    let descr = descr
        .ok_or("the header has no simple element type; structured types are not supported")?
        .to_string();
    let order =
        value(&text, "fortran_order").ok_or("the header does not give the order of axes")?;
    let shape = value(&text, "shape")
        .and_then(|v| v.strip_prefix('(')?.split(')').next())
        .ok_or("the header has no shape")?;
    let shape = shape
        .split(',')
        .map(str::trim)
        .filter(|n| !n.is_empty())
        .map(|n| n.trim_end_matches('L').parse().map_err(|_| format!("'{n}' in the shape")))
        .collect::<std::result::Result<Vec<usize>, String>>()?;
    let fortran_order = order.starts_with("True");
    Ok(Header { descr, fortran_order, shape, start: (8 + wide + len) as u64 })
}

/// Fails on all ranks if one rank has failed.
fn agree<T>(group: &Group<'_>, mine: Result<T>) -> Result<T> {
    let failed = if mine.is_err() { group.rank() as i32 } else { -1 };
    let worst = group.all_reduce_value(failed, Max)?;
    let mine = mine?;
    if worst >= 0 {
        fail!(Argument, "rank {worst} of the group could not use the file; its error says why");
    }
    Ok(mine)
}

fn io_error(path: &Path, what: &str, error: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Argument,
        format!("the file {} cannot be {what}: {error}", path.display()),
    )
}

/// Returns the distance in the file between neighbouring elements along each axis, in elements.
fn file_strides(shape: &[usize], fortran: bool) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    let axes: Vec<usize> =
        if fortran { (0..shape.len()).collect() } else { (0..shape.len()).rev().collect() };
    let mut row = 1usize;
    for axis in axes {
        strides[axis] = row;
        // This overflows only if another axis is empty; then no stride is used.
        row = row.wrapping_mul(shape[axis]);
    }
    strides
}

impl<'rt, T: NpyElement, D: Dimension> DistArray<'rt, T, D> {
    /// Saves the array to the file `path`, which is overwritten. `numpy.load` and
    /// [`DistArray::load`] can read the file. Collective: each rank writes its own elements.
    ///
    /// # Errors
    /// Returns `Argument` on all ranks if one rank cannot write the file. The error of that rank
    /// states the reason.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        public("DistArray::save", || self.save_inner(path.as_ref()))
    }

    fn save_inner(&self, path: &Path) -> Result<()> {
        self.sync_inner()?;
        let header = encode(T::DESCR, self.shape());
        let begin = || -> std::io::Result<()> {
            let file = File::create(path)?;
            file.set_len((header.len() + self.len() * size_of::<T>()) as u64)?;
            file.write_all_at(&header, 0)
        };
        let begun = if self.group().rank() == 0 { begin() } else { Ok(()) };
        agree(self.group(), begun.map_err(|e| io_error(path, "made", e)))?;
        let written = self.write_own(path, header.len() as u64);
        agree(self.group(), written)
    }

    fn write_own(&self, path: &Path, start: u64) -> Result<()> {
        let strides = file_strides(self.shape(), false);
        let last = Axis(self.ndim() - 1);
        let failed = |e| io_error(path, "written", e);
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        for slab in self.own_boxes().iter().flat_map(|b| b.slabs(SLAB)) {
            let copy = self.slab(&slab)?;
            let at = |global: &[Range<usize>], index: &[usize]| {
                let each = global.iter().zip(index).zip(&strides);
                start
                    + each.map(|((r, i), s)| (r.start + i) * s).sum::<usize>() as u64
                        * size_of::<T>() as u64
            };
            let whole_rows =
                slab.global[1..].iter().zip(&self.shape()[1..]).all(|(r, n)| r.len() == *n);
            if let Some(elements) = copy.as_slice().filter(|_| whole_rows) {
                let at = at(&slab.global, &vec![0; self.ndim()]);
                file.write_all_at(bytemuck::cast_slice(elements), at).map_err(failed)?;
                continue;
            }
            let copy = copy.into_dyn();
            let mut counts: Vec<usize> = copy.shape().to_vec();
            counts[last.index()] = 1;
            for (index, row) in ndarray::indices(counts).into_iter().zip(copy.lanes(last)) {
                let elements = row.as_slice().expect("rows of a fresh array lie in a row");
                let at = at(&slab.global, index.slice());
                file.write_all_at(bytemuck::cast_slice(elements), at).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Creates an array from the file `path`, with the distribution of `options`. Collective: each
    /// rank reads its own elements. The file may be in either byte order.
    ///
    /// ```no_run
    /// # use portolan::array::{DistArray, Options};
    /// # fn load(rt: &portolan::Runtime) -> portolan::Result<()> {
    /// let a = DistArray::<f64, ndarray::Ix2>::load(&rt.world(), "a.npy", Options::named("a"))?;
    /// # a.free()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `Argument` on all ranks if one rank cannot read the file, or if the file has another
    /// element type or number of axes. Also returns the errors of [`DistArray::with`].
    #[track_caller]
    pub fn load(
        group: &Group<'rt>,
        path: impl AsRef<Path>,
        options: Options,
    ) -> Result<DistArray<'rt, T, D>> {
        let call = PublicCall::enter("DistArray::load");
        let path = path.as_ref();
        let opened = agree(group, Self::open(path)).in_call(call.name())?;
        let (file, header) = opened;
        let shape = super::dist_array::dimension::<D>(&header.shape);
        let mut made = DistArray::with(group, shape, options).in_call(call.name())?;
        let read = made.read_own(path, &file, &header);
        if let Err(error) = agree(group, read) {
            made.free().in_call(call.name())?;
            return Err(error.in_call(call.name()));
        }
        Ok(made)
    }

    fn open(path: &Path) -> Result<(File, Header)> {
        let mut file = File::open(path).map_err(|e| io_error(path, "opened", e))?;
        let header = decode(&mut file).map_err(|e| io_error(path, "read", e))?;
        if header.descr != T::DESCR && !is_swapped::<T>(&header.descr) {
            fail!(
                Argument,
                "the file {} has elements of type '{}', the array '{}'",
                path.display(),
                header.descr,
                T::DESCR
            );
        }
        if D::NDIM.is_some_and(|n| n != header.shape.len()) || header.shape.is_empty() {
            fail!(
                Argument,
                "the file {} has the shape {:?}, which is not one of the array's dimension",
                path.display(),
                header.shape
            );
        }
        let wanted = header.shape.iter().try_fold(size_of::<T>(), |n, m| n.checked_mul(*m));
        let found = file.metadata().map_err(|e| io_error(path, "read", e))?.len();
        if wanted.is_none_or(|n| header.start.saturating_add(n as u64) > found) {
            fail!(
                Argument,
                "the file {} has {found} bytes, too few for the shape {:?}",
                path.display(),
                header.shape
            );
        }
        Ok((file, header))
    }

    #[track_caller]
    fn read_own(&mut self, path: &Path, file: &File, header: &Header) -> Result<()> {
        let strides = file_strides(self.shape(), header.fortran_order);
        // The axis along which elements are adjacent in the file.
        let fast = if header.fortran_order { 0 } else { self.ndim() - 1 };
        let swapped = is_swapped::<T>(&header.descr);
        let boxes = self.own_boxes();
        let mut read = Ok(());
        let mut mine = self.access_inner()?;
        let mut view = mine.local_mut();
        for OwnBox { global, local } in boxes {
            let part = view.slice_each_axis_mut(|a| local[a.axis.index()].clone().into());
            let mut part = part.into_dyn();
            let mut counts = part.shape().to_vec();
            let mut row = vec![T::zeroed(); counts[fast]];
            counts[fast] = 1;
            for (index, mut lane) in
                ndarray::indices(counts).into_iter().zip(part.lanes_mut(Axis(fast)))
            {
                let each = global.iter().zip(index.slice()).zip(&strides);
                let at = each.map(|((r, i), s)| (r.start + i) * s).sum::<usize>() * size_of::<T>();
                let bytes = bytemuck::cast_slice_mut(&mut row);
                if let Err(e) = file.read_exact_at(bytes, header.start + at as u64) {
                    read = Err(io_error(path, "read", e));
                    break;
                }
                if swapped {
                    swap(&mut row);
                }
                lane.assign(&ndarray::aview1(&row));
            }
        }
        mine.release()?;
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        for (descr, shape) in [
            ("<f8", vec![7]),
            ("<f8", vec![3, 4]),
            ("<f8", vec![1, 2, 3, 4, 5, 6]),
            ("<f8", vec![0, 3]),
            ("fortran_order", vec![7]), // a value that looks like a key
            ("descr", vec![7]),
        ] {
            let bytes = encode(descr, &shape);
            assert_eq!(bytes.len() % 64, 0);
            let header = decode(&mut &bytes[..]).expect("our own header");
            let start = bytes.len() as u64;
            let descr = descr.to_string();
            assert_eq!(header, Header { descr, fortran_order: false, shape, start });
        }
    }

    #[test]
    fn damaged_headers_are_refused() {
        let good = encode("<f8", &[3, 4]);
        for end in 0..good.len() {
            assert!(decode(&mut &good[..end]).is_err(), "cut at {end}");
        }
        let with = |text: &str| {
            let mut bytes = MAGIC.to_vec();
            bytes.extend([1, 0]);
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.as_bytes());
            decode(&mut &bytes[..])
        };
        assert!(with("{'descr': '<f8', 'fortran_order': True, 'shape': (3L, 4L), }").is_ok());
        assert!(with("{\"shape\": (), \"descr\": \"<f8\", \"fortran_order\": False}").is_ok());
        for bad in [
            "",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f8', 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': False}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (x,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        ] {
            assert!(with(bad).is_err(), "{bad}");
        }
        let mut damaged = good.clone();
        damaged[0] = 0;
        assert!(decode(&mut &damaged[..]).is_err());
    }

    #[test]
    fn big_endian_elements_are_swapped() {
        assert!(is_swapped::<f64>(">f8") && is_swapped::<Complex<f32>>(">c8"));
        assert!(!is_swapped::<f64>("<f8") && !is_swapped::<f64>(">i8") && !is_swapped::<u8>("|u1"));
        let mut numbers = [f64::from_bits(1.5f64.to_bits().swap_bytes()), 0.0];
        swap(&mut numbers);
        assert_eq!(numbers, [1.5, 0.0]);
        let halves = |x: f32| f32::from_bits(x.to_bits().swap_bytes());
        let mut pair = [Complex::new(halves(2.0), halves(-1.0))];
        swap(&mut pair);
        assert_eq!(pair, [Complex::new(2.0, -1.0)]);
    }

    #[test]
    fn strides_of_both_orders() {
        assert_eq!(file_strides(&[2, 3, 4], false), [12, 4, 1]);
        assert_eq!(file_strides(&[2, 3, 4], true), [1, 2, 6]);
    }
}
