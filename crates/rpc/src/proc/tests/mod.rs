//! Tests of the codec: vectors shared with C, round trips of random values, malicious bytes.

mod random;

use super::*;
use portolan_engine::memory::large_buffer::LargeBuffer;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt::Debug;

const VECTORS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/proc_vectors.txt"));

struct Vector {
    line: usize,
    name: &'static str,
    method: Method,
    fields: Vec<(&'static str, &'static str)>,
    bytes: Vec<u8>,
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.extend(hex(&part[..2]));
        bytes.extend(part[2..].bytes());
    }
    bytes
}

fn vectors() -> Vec<Vector> {
    let lines = VECTORS.lines().enumerate().filter(|(_, l)| !l.starts_with('#'));
    lines
        .map(|(i, line)| {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            let fields = parts[2].split_whitespace();
            Vector {
                line: i + 1,
                name: parts[0],
                method: Method::from_name(parts[1]).expect("a method"),
                fields: fields.map(|f| f.split_once(':').unwrap_or((f, ""))).collect(),
                bytes: hex(parts[3]),
            }
        })
        .collect()
}

/// Encodes one field, or decodes and compares it.
fn field(proc: &mut Proc<'_>, kind: &str, value: &str) {
    macro_rules! one {
        ($ty:ty, $value:expr) => {{
            let value: $ty = $value;
            if proc.op() == Op::Encode {
                value.serialize(&mut Encoder::new(proc)).unwrap();
            } else {
                let came = <$ty>::deserialize(&mut Decoder::new(proc)).unwrap();
                assert_eq!(format!("{came:?}"), format!("{value:?}"));
            }
        }};
    }
    match kind {
        "i8" => one!(i8, value.parse().unwrap()),
        "u8" => one!(u8, value.parse().unwrap()),
        "i16" => one!(i16, value.parse().unwrap()),
        "u16" => one!(u16, value.parse().unwrap()),
        "i32" => one!(i32, value.parse().unwrap()),
        "u32" => one!(u32, value.parse().unwrap()),
        "i64" => one!(i64, value.parse().unwrap()),
        "u64" => one!(u64, value.parse().unwrap()),
        "f32" => one!(f32, value.parse().unwrap()),
        "f64" => one!(f64, value.parse().unwrap()),
        "bool" => one!(bool, value == "1"),
        "null" => one!(HgString, HgString(None)),
        "string" => {
            one!(HgString, HgString(Some(CString::new(unescape(value)).unwrap())));
        }
        "raw" => {
            let bytes = hex(value);
            if proc.op() == Op::Encode {
                proc.put(&bytes).unwrap();
            } else {
                assert_eq!(proc.take(bytes.len()).unwrap(), bytes);
            }
        }
        "bytes" => {
            let bytes = hex(value);
            if proc.op() == Op::Encode {
                use serde::Serializer;
                Encoder::new(proc).serialize_bytes(&bytes).unwrap();
            } else {
                let came: &[u8] = Deserialize::deserialize(&mut Decoder::new(proc)).unwrap();
                assert_eq!(came, bytes);
            }
        }
        other => panic!("a field of type {other}"),
    }
}

#[test]
fn vectors_hold_both_ways() {
    let all = vectors();
    assert!(all.len() > 60);
    for v in all {
        for room in [0, 1, v.bytes.len() / 2, v.bytes.len(), 4096] {
            let mut buf = vec![0xee; room];
            let mut proc = Proc::encoder(&mut buf, v.method);
            v.fields.iter().for_each(|(kind, value)| field(&mut proc, kind, value));
            assert_eq!(proc.finish(), Ok(v.bytes.len()), "line {}", v.line);
            assert_eq!(proc.encoded(), v.bytes, "line {}", v.line);
            assert_eq!(proc.overflow(), room < v.bytes.len());
        }
        let mut proc = Proc::decoder(&v.bytes, v.method);
        v.fields.iter().for_each(|(kind, value)| field(&mut proc, kind, value));
        assert_eq!(proc.finish(), Ok(v.bytes.len()), "line {}", v.line);
    }
}

#[test]
fn a_parameter_not_decoded_is_found_by_the_checksum() {
    for v in vectors().iter().filter(|v| v.method != Method::None) {
        for missing in 1..=v.fields.len() {
            let mut proc = Proc::decoder(&v.bytes, v.method);
            let fields = &v.fields[..v.fields.len() - missing];
            fields.iter().for_each(|(kind, value)| field(&mut proc, kind, value));
            let fault = proc.flush().unwrap_err();
            assert!(
                matches!(fault, Fault::Length { .. } | Fault::Checksum { .. }),
                "line {}: {fault}",
                v.line
            );
        }
        let mut proc = Proc::decoder(&v.bytes, v.method);
        v.fields.iter().for_each(|(kind, value)| field(&mut proc, kind, value));
        proc.take(1).unwrap(); // one byte too many
        assert!(proc.flush().is_err(), "line {}", v.line);
    }
}

#[test]
fn any_damage_is_found_by_the_checksum() {
    for v in vectors().iter().filter(|v| v.method != Method::None) {
        let body = v.bytes.len() - 8 - v.method.size();
        let mut bytes = v.bytes.clone();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut proc = Proc::decoder(&bytes, v.method);
            proc.take(body).unwrap();
            assert!(proc.finish().is_err(), "line {} bit {bit}", v.line);
            drop(proc);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct FunctionIn {
    func_param1: i32,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct OpenIn {
    path: String,
    flags: i32,
    mode: u32,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Numbers {
    a: i8,
    b: u8,
    c: i16,
    d: u16,
    e: i32,
    f: u32,
    g: i64,
    h: u64,
    i: f32,
    j: f64,
    k: bool,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Inner {
    name: String,
    size: u64,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Nested {
    first: i32,
    inner: Inner,
    second: i64,
    other: Inner,
    last: HgString,
}

/// Checks that the derived type has the bytes of all vectors with this name.
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, value: &T) {
    let lines: Vec<Vector> = vectors().into_iter().filter(|v| v.name == name).collect();
    assert_eq!(lines.len(), Method::ALL.len());
    for v in lines {
        assert_eq!(to_vec(value, v.method).as_ref(), Ok(&v.bytes), "line {}", v.line);
        assert_eq!(from_slice::<T>(&v.bytes, v.method).as_ref(), Ok(value), "line {}", v.line);
    }
}

#[test]
fn derived_structs_have_the_bytes_of_c() {
    same("function_in", &FunctionIn { func_param1: -77 });
    same("open_in", &OpenIn { path: "/tmp/a file".into(), flags: 577, mode: 420 });
    let numbers = Numbers {
        a: -8,
        b: 200,
        c: -1600,
        d: 60000,
        e: -32_000_000,
        f: 4_000_000_000,
        g: -6_400_000_000_000,
        h: 18_000_000_000_000_000_000,
        i: 0.5,
        j: -0.125,
        k: true,
    };
    same("numbers", &numbers);
    let nested = Nested {
        first: 1,
        inner: Inner { name: "inner".into(), size: 2 },
        second: -3,
        other: Inner { name: "inner 2".into(), size: 4 },
        last: HgString(None),
    };
    same("nested", &nested);
    same("empty", &());
}

#[derive(Debug, Serialize, Deserialize, PartialEq, Clone)]
enum Shape {
    Nothing,
    Line(f64),
    Box(i32, i32),
    Named { name: String, tags: Vec<String> },
    Group(Vec<Shape>),
}

#[derive(Debug, Serialize, Deserialize, PartialEq, Clone)]
struct Everything {
    shapes: Vec<Shape>,
    maybe: Option<Box<Shape>>,
    map: BTreeMap<u16, Vec<u8>>,
    pair: (char, [u32; 3]),
    text: HgString,
    wide: (i128, u128),
    unit: (),
}

#[test]
fn forms_of_the_table() {
    let bytes = |v: &[u8]| Ok::<_, Fault>(v.to_vec());
    let none = Method::None;
    assert_eq!(to_vec(&Some(7u8), none), bytes(&[1, 7]));
    assert_eq!(to_vec(&None::<u8>, none), bytes(&[0]));
    assert_eq!(to_vec(&vec![1u8, 2], none), bytes(&[2, 0, 0, 0, 0, 0, 0, 0, 1, 2]));
    assert_eq!(to_vec(&[1u8, 2], none), bytes(&[1, 2]));
    assert_eq!(to_vec(&Shape::Line(0.0), none), bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(to_vec(&Shape::Nothing, none), bytes(&[0; 4]));
    assert_eq!(to_vec(&'A', none), bytes(&[65, 0, 0, 0]));
    let map = BTreeMap::from([(1u8, 2u8), (3, 4)]);
    assert_eq!(to_vec(&map, none), bytes(&[2, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]));
    assert_eq!(to_vec("a", none), bytes(&[2, 0, 0, 0, 0, 0, 0, 0, 97, 0, 0, 0]));
    let flags = [2, 0, 0, 0, 0, 0, 0, 0, 97, 0, 1, 255]; // any flags
    assert_eq!(from_slice::<&str>(&flags, none), Ok("a"));
    assert!(matches!(from_slice::<&str>(&flags[..11], none), Err(Fault::Overflow { .. })));
    assert_eq!(to_slice(&[9u16; 2], &mut [0; 4], none), Ok(Encoded::Fits(4)));
    match to_slice(&[9u8; 2], &mut [0; 1], none) {
        Ok(Encoded::Overflow(bytes)) => assert_eq!(*bytes, [9, 9]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_has_no_form_is_refused() {
    for &method in Method::ALL {
        assert!(matches!(to_vec("a\0b", method), Err(Fault::Protocol(_))));
        assert!(matches!(to_vec(&vec![(), ()], method), Err(Fault::Protocol(_))));
    }
    let mut deep = Shape::Nothing;
    for _ in 0..100 {
        deep = Shape::Group(vec![deep]);
    }
    assert!(matches!(to_vec(&deep, Method::None), Err(Fault::Protocol(_))));
}

#[test]
fn bytes_that_lie_are_refused() {
    fn refused<T: DeserializeOwned + Debug>(bytes: &[u8]) -> Fault {
        from_slice::<T>(bytes, Method::None).unwrap_err()
    }
    let count = |n: u64, rest: &[u8]| [&n.to_le_bytes()[..], rest].concat();
    for n in [2, 9, u64::MAX, u64::MAX - 7, 1 << 63, 1 << 32, isize::MAX as u64] {
        let bytes = count(n, b"\0");
        assert!(matches!(refused::<String>(&bytes), Fault::Overflow { .. }), "{n}");
        assert!(matches!(refused::<HgString>(&bytes), Fault::Overflow { .. }), "{n}");
        assert!(matches!(refused::<Vec<u64>>(&bytes), Fault::Overflow { .. }), "{n}");
        assert!(matches!(refused::<Vec<()>>(&bytes), Fault::Overflow { .. }), "{n}");
        assert!(matches!(refused::<BTreeMap<(), ()>>(&bytes), Fault::Overflow { .. }), "{n}");
    }
    assert!(matches!(refused::<String>(&count(2, b"ab")), Fault::Protocol(_))); // not terminated
    assert!(matches!(refused::<String>(&count(3, b"a\0\0")), Fault::Protocol(_))); // ends early
    assert!(matches!(refused::<String>(&count(2, b"\xff\0\0\0")), Fault::Protocol(_)));
    assert!(matches!(refused::<String>(&count(0, b"")), Fault::Protocol(_))); // null
    assert!(matches!(refused::<bool>(&[2]), Fault::Protocol(_)));
    assert!(matches!(refused::<Option<u8>>(&[2, 0]), Fault::Protocol(_)));
    assert!(matches!(refused::<char>(&0xd800u32.to_le_bytes()), Fault::Protocol(_)));
    assert!(matches!(refused::<Shape>(&[5, 0, 0, 0]), Fault::Protocol(_))); // no such variant
    assert!(matches!(refused::<u8>(&[1, 2]), Fault::Protocol(_))); // one byte too many
    assert!(matches!(refused::<u64>(&[0; 7]), Fault::Overflow { .. }));
    let mut bytes = Vec::new();
    for _ in 0..if cfg!(miri) { 2000 } else { 100_000 } {
        bytes.extend([4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
    assert!(matches!(refused::<Shape>(&bytes), Fault::Protocol(_)));
}

#[test]
fn the_first_fault_stays() {
    let mut proc = Proc::decoder(&[1, 2, 3], Method::None);
    let fault = proc.take(4).unwrap_err();
    assert_eq!(proc.take(1).unwrap_err(), fault);
    assert_eq!(proc.finish().unwrap_err(), fault);
    let mut proc = Proc::decoder(&[1], Method::None);
    assert!(matches!(proc.put(&[1]), Err(Fault::Argument(_))));
    let mut proc = Proc::encoder(&mut [], Method::Crc16);
    proc.flush().unwrap();
    proc.flush().unwrap();
    assert!(matches!(proc.put(&[1]), Err(Fault::Argument(_))));
}

#[test]
fn growth_keeps_bytes_and_checksum() {
    let big: Vec<u32> = (0..if cfg!(miri) { 2000 } else { 100_000 }).collect();
    let bytes = to_vec(&big, Method::Crc32c).unwrap();
    assert_eq!(from_slice::<Vec<u32>>(&bytes, Method::Crc32c), Ok(big));
    let mut buf = [0; 16];
    let mut proc = Proc::encoder(&mut buf, Method::Adler32);
    proc.put(&[1; 10]).unwrap();
    let _ = proc.checksum().value(); // sums the bytes so far
    let place = proc.reserve(20).unwrap();
    assert!(proc.overflow() && proc.size() >= 4096);
    // SAFETY: `reserve` has reserved 20 bytes at `place`.
    unsafe { place.write_bytes(2, 20) };
    proc.check_in_place(place, 20).unwrap();
    proc.finish().unwrap();
    let mut expected = Proc::encoder(&mut [], Method::Adler32);
    expected.put(&[&[1; 10][..], &[2; 20]].concat()).unwrap();
    expected.finish().unwrap();
    assert_eq!(proc.encoded(), expected.encoded());
    assert!(matches!(Proc::decoder(&[], Method::None).set_size(1), Err(Fault::Overflow { .. })));
    let mut proc = Proc::encoder(&mut [], Method::None);
    assert!(matches!(proc.reserve(usize::MAX), Err(Fault::Memory(_))));
}

#[test]
fn undoing_frees_and_ends() {
    let mut proc = Proc::decoder(&[5], Method::None);
    proc.begin_undo();
    proc.begin_undo();
    assert_eq!(proc.op(), Op::Free);
    proc.end_undo();
    assert_eq!(proc.op(), Op::Free);
    proc.end_undo();
    assert_eq!(proc.op(), Op::Decode);
    assert_eq!(proc.take(1), Ok(&[5][..]));
    assert_eq!(Proc::freer().finish(), Ok(0));
}

/// Allocates extra buffers that other processes may read, as a rank of a node does.
fn lent(size: usize) -> Option<LargeBuffer> {
    LargeBuffer::lent(size)
}

#[test]
#[cfg_attr(miri, ignore = "maps shared memory")]
fn a_lent_buffer_is_not_given_to_who_would_free_it() {
    let mut proc = Proc::encoder(&mut [], Method::Crc64);
    proc.set_source(lent);
    proc.put(&[3; 100_000]).unwrap();
    let before = proc.position();
    let at = proc.extra().unwrap();
    assert!(proc.size() >= 100_000 && proc.extra() == Some(at), "it moves once");
    assert_ne!(proc.position(), before);
    proc.set_extra_is_mine(false).unwrap();
    proc.finish().unwrap();
    // SAFETY: the proc has given away the buffer, of 100,000 bytes and a trailer of 16.
    let all = unsafe { std::slice::from_raw_parts(at, 100_016) };
    assert_eq!(*Overflow::copy(proc.encoded(), lent).unwrap(), *all);
    assert!(proc.take_encoded().is_none(), "it is somebody else's");
    drop(proc);
    // SAFETY: the test owns the buffer, and the proc that used it is gone.
    unsafe { portolan_engine::memory::large_buffer::free(at) };

    let mut room = [0; 8];
    let mut proc = Proc::encoder(&mut room, Method::None);
    proc.set_source(lent);
    proc.put(&[4; 70_000]).unwrap();
    let overflow = proc.take_encoded().unwrap();
    assert_eq!(*overflow, [4; 70_000]);
    assert!(overflow.into_parts().0.shm_key().is_some());
    assert!(!proc.overflow() && proc.encoded().is_empty());
}
