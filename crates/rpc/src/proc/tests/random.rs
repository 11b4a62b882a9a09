//! Tests with random values, which survive a round trip, and random bytes, which are either refused
//! or decoded to a value of the same encoded length.

use super::*;

struct Random(fastrand::Rng);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
    }

    fn text(&mut self) -> String {
        (0..self.below(20)).filter_map(|_| char::from_u32(1 + self.below(0x900) as u32)).collect()
    }

    fn shape(&mut self, depth: u32) -> Shape {
        match self.below(if depth < 5 { 5 } else { 4 }) {
            0 => Shape::Nothing,
            1 => Shape::Line(self.next() as i64 as f64 / 3.0),
            2 => Shape::Box(self.next() as i32, self.next() as i32),
            3 => Shape::Named {
                name: self.text(),
                tags: (0..self.below(4)).map(|_| self.text()).collect(),
            },
            _ => Shape::Group((0..self.below(4)).map(|_| self.shape(depth + 1)).collect()),
        }
    }

    fn everything(&mut self) -> Everything {
        let text =
            CString::new((0..self.below(9)).map(|_| 1 + self.below(255) as u8).collect::<Vec<_>>());
        Everything {
            shapes: (0..self.below(6)).map(|_| self.shape(0)).collect(),
            maybe: (self.below(2) == 0).then(|| Box::new(self.shape(0))),
            map: (0..self.below(5))
                .map(|_| (self.next() as u16, vec![7; self.below(99) as usize]))
                .collect(),
            pair: ('x', [self.next() as u32; 3]),
            text: HgString((self.below(3) > 0).then(|| text.unwrap())),
            wide: (i128::from(self.next() as i64) << 40, u128::from(self.next()) << 60),
            unit: (),
        }
    }
}

#[test]
fn random_values_go_round() {
    let mut random = Random(fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15));
    for i in 0..if cfg!(miri) { 20 } else { 2000 } {
        let value = random.everything();
        let method = Method::ALL[i % Method::ALL.len()];
        let bytes = to_vec(&value, method).unwrap();
        assert_eq!(from_slice::<Everything>(&bytes, method).as_ref(), Ok(&value), "{i}");
        let mut buf = vec![0; random.below(2 * bytes.len() as u64 + 1) as usize];
        match to_slice(&value, &mut buf, method).unwrap() {
            Encoded::Fits(len) => assert_eq!(&buf[..len], bytes),
            Encoded::Overflow(all) => assert_eq!(*all, *bytes),
        }
        let cut = random.below(bytes.len() as u64) as usize;
        assert!(from_slice::<Everything>(&bytes[..cut], method).is_err(), "{i} cut at {cut}");
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random(fastrand::Rng::with_seed(0xdead_beef_cafe_f00d));
    let (mut accepted, tries) = (0, if cfg!(miri) { 100 } else { 30_000 });
    for i in 0..tries {
        let bytes: Vec<u8> = if i % 2 == 0 {
            // A valid encoding with some damage.
            let mut bytes = to_vec(&random.everything(), Method::None).unwrap();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = if random.below(2) == 0 { random.next() as u8 } else { 0xff };
            }
            bytes
        } else {
            // Small numbers, so that counts are often plausible.
            (0..random.below(200)).map(|_| (random.next() as u8) >> random.below(8)).collect()
        };
        if let Ok(value) = from_slice::<Everything>(&bytes, Method::None) {
            // An accepted value encodes to the same number of bytes.
            if value.map.len() as u64 == count_of_map(&bytes, &value) {
                let again = to_vec(&value, Method::None).unwrap();
                assert_eq!(again.len(), bytes.len());
                accepted += 1;
            }
        }
        let _ = from_slice::<Vec<Vec<String>>>(&bytes, Method::None);
        let _ = from_slice::<Nested>(&bytes, Method::Crc16);
        let _ = from_slice::<Vec<Option<Shape>>>(&bytes, Method::Crc64);
    }
    assert!(accepted > tries / 30, "damage hardly ever hits numbers: {accepted}");
}

/// Returns the number of entries that the bytes of a map announce. The decoded map has fewer if a
/// key occurs twice.
fn count_of_map(bytes: &[u8], value: &Everything) -> u64 {
    let head = to_vec(&(&value.shapes, &value.maybe), Method::None).unwrap().len();
    u64::from_le_bytes(bytes[head..head + 8].try_into().unwrap())
}
