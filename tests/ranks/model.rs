//! The model of transfers: plain loops over plain memory.
//!
//! An [`Item`] describes one transfer completely, so every rank can apply the transfers of all
//! ranks to its own copy of all memory, the [`Model`]. Arithmetic is exact (integers, and small
//! integers in the floating-point types), so the order of accumulates does not matter.

use crate::rng::Rng;
use num_complex::Complex;
use portolan_engine::path::kernel::Scale;
use portolan_engine::transfer::TransferKind;

/// Bytes around a local buffer that no transfer may touch.
const GUARD: usize = 24;

/// More blocks than one operation or one datatype of MPI takes.
const MANY: usize = 5000;

#[derive(Debug, Default)]
pub struct Model {
    /// By segment and world rank.
    pub pieces: Vec<Vec<Vec<u8>>>,
}

#[derive(Debug, Clone)]
pub enum Form {
    /// As `Shape::strided` takes them.
    Strided {
        /// Bytes of a block, then repetitions from the innermost level out.
        counts: Vec<usize>,
        /// Local strides in bytes.
        local: Vec<isize>,
        /// Remote strides in bytes.
        remote: Vec<isize>,
    },
    /// Blocks of one length at offsets from the starts.
    Vector {
        /// Bytes of a block.
        block: usize,
        /// Local offsets in bytes.
        local: Vec<usize>,
        /// Remote offsets in bytes.
        remote: Vec<usize>,
    },
}

#[derive(Debug, Clone)]
pub struct Item {
    pub kind: TransferKind,
    pub segment: usize,
    pub target: usize,
    /// Offset of the form's start in the target's part.
    pub at: usize,
    /// Offset of the form's start in the local buffer.
    pub local_at: usize,
    /// In bytes.
    pub local_len: usize,
    pub form: Form,
    pub seed: u64,
    /// The type of the elements that fill the source of a put.
    pub elements: Option<Scale>,
}

/// Returns strides that let no two blocks overlap, in any order of nesting and with either sign;
/// the offset of the start from the lowest byte; and the extent.
fn side(rng: &mut Rng, counts: &[usize], unit: usize, spread: usize) -> (Vec<isize>, usize, usize) {
    let (block, repeats) = counts.split_first().expect("a block");
    let mut order: Vec<usize> = (0..repeats.len()).collect();
    if rng.one_in(2) {
        rng.shuffle(&mut order);
    }
    let (mut strides, mut start, mut extent) = (vec![0isize; repeats.len()], 0, *block);
    for i in order {
        let n = repeats[i];
        if n <= 1 {
            // A stride that is never used may have any value.
            strides[i] = *rng.pick(&[0, -8, 3, 1 << 40]);
            continue;
        }
        let pad = if rng.one_in(3) { 0 } else { unit * rng.below(spread + 1) };
        let stride = extent + pad;
        if rng.one_in(8) {
            strides[i] = -(stride as isize);
            start += stride * (n - 1);
        } else {
            strides[i] = stride as isize;
        }
        extent += stride * (n - 1);
    }
    (strides, start, extent)
}

/// Returns a strided form whose remote side fits into `room` bytes; the remote start relative to
/// the lowest byte; the remote extent; the local start; and the local extent.
fn strided(rng: &mut Rng, room: usize, unit: usize) -> Option<(Form, usize, usize, usize, usize)> {
    for attempt in 0..12 {
        let levels = *rng.pick(&[0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7]);
        let longest = if levels == 0 { room } else { (room / 2).min(2000 >> levels.min(5)) };
        let most = (longest / unit).max(1);
        let block = unit
            * match levels {
                0 if rng.one_in(3) => (*rng.pick(&[1, 2, 4, 8])).min(most),
                _ => rng.range(1, most),
            };
        let most = if levels < 3 { 9 } else { 3 };
        let mut counts = vec![block];
        counts.extend((0..levels).map(|_| rng.range(1, most)));
        let mut spread = if attempt < 6 { 12 } else { 1 };
        let many = room / (2 * unit);
        if levels == 1 && many > MANY && rng.one_in(4) {
            (counts, spread) = (vec![unit, rng.range(MANY, many.min(3 * MANY))], 1);
        }
        let (remote, start, extent) = side(rng, &counts, unit, spread);
        if extent > room {
            continue;
        }
        let (local, local_start, local_extent) = side(rng, &counts, 1, spread);
        if rng.one_in(40) {
            let i = rng.below(counts.len());
            counts[i] = 0;
        }
        return Some((
            Form::Strided { counts, local, remote },
            start,
            extent,
            local_start,
            local_extent,
        ));
    }
    None
}

fn vector(rng: &mut Rng, room: usize, unit: usize, adds: bool) -> Option<(Form, usize)> {
    let (longest, most) = if rng.one_in(12) { (2, 20_000) } else { (40, 60) };
    let block = unit * rng.range(1, (room / unit / 2).clamp(1, longest));
    let (mut remote, mut local, mut at, mut local_at) = (Vec::new(), Vec::new(), 0, 0);
    while at + block <= room && remote.len() < most {
        remote.push(at);
        local.push(local_at);
        // Often without a gap, so that adjacent blocks can be joined.
        at += block + if rng.one_in(2) { 0 } else { unit * rng.below(9) };
        local_at += block + if rng.one_in(2) { 0 } else { rng.below(9) };
    }
    if remote.is_empty() {
        return None;
    }
    if rng.one_in(3) {
        rng.shuffle(&mut remote);
    }
    if adds && rng.one_in(4) {
        // A block that occurs twice is added twice.
        let last = remote.len() - 1;
        remote[last] = remote[0];
    }
    Some((Form::Vector { block, local, remote }, local_at + block))
}

/// Draws an item of `kind` inside `from..to` of a part. Accumulates' elements, and blocks of `unit`
/// bytes, begin at `from`.
pub fn item(
    rng: &mut Rng,
    kind: TransferKind,
    (segment, target): (usize, usize),
    (from, to): (usize, usize),
    (unit, vectors): (usize, bool),
) -> Option<Item> {
    let unit = match kind {
        TransferKind::Accumulate(scale) => scale.element(),
        _ => unit,
    };
    let room = (to - from) / unit * unit;
    if room == 0 {
        return None;
    }
    let skew = GUARD + rng.below(9);
    let (form, at, local_at, local_extent) = if vectors {
        let adds = matches!(kind, TransferKind::Accumulate(_));
        let (form, local_extent) = vector(rng, room, unit, adds)?;
        (form, from, skew, local_extent)
    } else {
        let (form, start, extent, local_start, local_extent) = strided(rng, room, unit)?;
        let slack = rng.below((room - extent) / unit + 1) * unit;
        (form, from + slack + start, skew + local_start, local_extent)
    };
    let local_len = skew + local_extent + GUARD;
    let seed = rng.next();
    Some(Item { kind, segment, target, at, local_at, local_len, form, seed, elements: None })
}

/// Draws a scale of the given type, one of nine. The scale is often 1.
pub fn scale(rng: &mut Rng, which: usize) -> Scale {
    let one = rng.one_in(3);
    let small = |rng: &mut Rng| if one { 1.0 } else { *rng.pick(&[0.0, 2.0, -3.0, 5.0, -1.0]) };
    let pair = |rng: &mut Rng| {
        if one {
            (1.0, 0.0)
        } else {
            *rng.pick(&[(0.0, 1.0), (2.0, -1.0), (-3.0, 0.0), (0.0, 0.0)])
        }
    };
    match which {
        0 => Scale::Int(if one { 1 } else { rng.next() as i32 }),
        1 => Scale::Long(if one { 1 } else { rng.next() as i64 }),
        2 => Scale::Float(small(rng) as f32),
        3 => Scale::Double(small(rng)),
        6 => Scale::Byte(if one { 1 } else { rng.next() as i8 }),
        7 => Scale::Short(if one { 1 } else { rng.next() as i16 }),
        8 => Scale::Bool(rng.one_in(2)),
        4 => {
            let (re, im) = pair(rng);
            Scale::FloatComplex(Complex::new(re as f32, im as f32))
        }
        _ => {
            let (re, im) = pair(rng);
            Scale::DoubleComplex(Complex::new(re, im))
        }
    }
}

/// Remaining bytes do not change.
pub fn fill_elements(rng: &mut Rng, scale: Scale, out: &mut [u8]) {
    let mut small = || rng.below(101) as f64 - 50.0;
    for element in out.chunks_exact_mut(scale.element()) {
        match scale {
            Scale::Bool(_) => element[0] = u8::from(small() > 0.0),
            Scale::Byte(_) | Scale::Short(_) | Scale::Int(_) | Scale::Long(_) => {
                let bits = (small() as i64).wrapping_mul(0x0123_4567_89ab_cdef);
                let n = element.len();
                element.copy_from_slice(&bits.to_ne_bytes()[..n]);
            }
            Scale::Float(_) => element.copy_from_slice(&(small() as f32).to_ne_bytes()),
            Scale::Double(_) => element.copy_from_slice(&small().to_ne_bytes()),
            Scale::FloatComplex(_) => {
                element[..4].copy_from_slice(&(small() as f32).to_ne_bytes());
                element[4..].copy_from_slice(&(small() as f32).to_ne_bytes());
            }
            Scale::DoubleComplex(_) => {
                element[..8].copy_from_slice(&small().to_ne_bytes());
                element[8..].copy_from_slice(&small().to_ne_bytes());
            }
        }
    }
}

fn combine(scale: Scale, source: &[u8], target: &mut [u8]) {
    fn each<T: bytemuck::Pod>(source: &[u8], target: &mut [u8], f: impl Fn(T, T) -> T) {
        let n = std::mem::size_of::<T>();
        for (x, y) in source.chunks_exact(n).zip(target.chunks_exact_mut(n)) {
            let sum = f(bytemuck::pod_read_unaligned(y), bytemuck::pod_read_unaligned(x));
            y.copy_from_slice(bytemuck::bytes_of(&sum));
        }
    }
    match scale {
        Scale::Bool(s) => each(source, target, |y: u8, x: u8| y | u8::from(s && x != 0)),
        Scale::Byte(s) => each(source, target, |y: i8, x: i8| y.wrapping_add(s.wrapping_mul(x))),
        Scale::Short(s) => each(source, target, |y: i16, x: i16| y.wrapping_add(s.wrapping_mul(x))),
        Scale::Int(s) => each(source, target, |y: i32, x: i32| y.wrapping_add(s.wrapping_mul(x))),
        Scale::Long(s) => each(source, target, |y: i64, x: i64| y.wrapping_add(s.wrapping_mul(x))),
        Scale::Float(s) => each(source, target, |y: f32, x: f32| y + s * x),
        Scale::Double(s) => each(source, target, |y: f64, x: f64| y + s * x),
        Scale::FloatComplex(s) => each(source, target, |y: Complex<f32>, x| y + s * x),
        Scale::DoubleComplex(s) => each(source, target, |y: Complex<f64>, x| y + s * x),
    }
}

impl Item {
    /// Returns `(local, remote, bytes)` of each block, as offsets in the buffer and in the part.
    pub fn blocks(&self) -> Vec<(usize, usize, usize)> {
        match &self.form {
            Form::Vector { block, local, remote } => local
                .iter()
                .zip(remote)
                .map(|(l, r)| (self.local_at + l, self.at + r, *block))
                .collect(),
            Form::Strided { counts, local, remote } => {
                let (block, repeats) = counts.split_first().expect("a block");
                if counts.contains(&0) {
                    return Vec::new();
                }
                let mut all = vec![(self.local_at as isize, self.at as isize)];
                for ((&n, &l), &r) in repeats.iter().zip(local).zip(remote).rev() {
                    let rows = |&(x, y): &(isize, isize)| {
                        (0..n as isize).map(move |i| (x + i * l, y + i * r)).collect::<Vec<_>>()
                    };
                    all = all.iter().flat_map(rows).collect();
                }
                all.into_iter().map(|(l, r)| (l as usize, r as usize, *block)).collect()
            }
        }
    }

    /// Before the transfer.
    pub fn local(&self) -> Vec<u8> {
        let mut rng = Rng::new(self.seed, &[]);
        let elements = match self.kind {
            TransferKind::Get => return vec![0xa5; self.local_len],
            TransferKind::Put => self.elements,
            TransferKind::Accumulate(scale) => Some(scale),
        };
        let mut buffer = rng.bytes(self.local_len);
        if let Some(scale) = elements {
            for (l, _, n) in self.blocks() {
                fill_elements(&mut rng, scale, &mut buffer[l..l + n]);
            }
        }
        buffer
    }

    /// Applies the transfer to the model, and returns the local buffer after it.
    pub fn apply(&self, model: &mut Model) -> Vec<u8> {
        let mut local = self.local();
        let piece = &mut model.pieces[self.segment][self.target];
        for (l, r, n) in self.blocks() {
            match self.kind {
                TransferKind::Put => piece[r..r + n].copy_from_slice(&local[l..l + n]),
                TransferKind::Get => local[l..l + n].copy_from_slice(&piece[r..r + n]),
                TransferKind::Accumulate(scale) => {
                    combine(scale, &local[l..l + n], &mut piece[r..r + n])
                }
            }
        }
        local
    }
}
