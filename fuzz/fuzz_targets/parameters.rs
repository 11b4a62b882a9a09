//! Decodes arbitrary bytes as parameters. They either decode to a value that encodes to the same
//! bytes, or are rejected. The two bytes after a string, which are ignored, and the keys of a map
//! may differ. Decoding never allocates more than the input can justify.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_rpc::checksum::Method;
use portolan_rpc::proc::{HgString, Proc, from_slice, to_vec};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;

#[derive(Serialize, Deserialize)]
enum Tree {
    Leaf,
    Number(i64),
    Named { name: Vec<char>, value: f64 },
    Branch(Vec<Tree>),
    Boxed(Box<Tree>),
}

#[derive(Serialize, Deserialize)]
struct Open {
    path: Vec<u8>,
    flags: i32,
    mode: Option<u16>,
    sizes: Vec<u64>,
    pair: (u8, char, bool),
    wide: [i128; 2],
}

fn both_ways<T: Serialize + DeserializeOwned>(bytes: &[u8], method: Method, exact: bool) {
    if let Ok(value) = from_slice::<T>(bytes, method) {
        let again = to_vec(&value, method).expect("what was decoded can be encoded");
        if exact {
            assert_eq!(again, bytes);
        } else {
            let value: T = from_slice(&again, method).expect("what was encoded can be decoded");
            assert_eq!(to_vec(&value, method).unwrap(), again);
        }
    }
}

/// Runs the steps of a proc as C programs do, and continues after an error.
fn steps(bytes: &[u8], method: Method) {
    let (mut proc, mut depth) = (Proc::decoder(bytes, method), 0u32);
    for step in bytes.iter().rev() {
        let _ = match step % 6 {
            0 => proc.take_size().err(),
            1 => proc.take_text().err(),
            2 => proc.take_array::<4>().err(),
            3 => proc.take(usize::from(*step)).err(),
            4 => proc.enter().inspect(|()| depth += 1).err(),
            _ => {
                if depth > 0 {
                    depth -= 1;
                    proc.leave();
                }
                None
            }
        };
        assert_eq!(proc.used() + proc.left(), proc.size());
    }
    let _ = proc.finish();
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (which, method, bytes) = input;
    let method = Method::ALL[usize::from(method) % Method::ALL.len()];
    // Adds a valid trailer in half of the cases.
    let sealed = match which & 1 {
        0 => bytes.to_vec(),
        _ => {
            let mut proc = Proc::encoder(&mut [], method);
            proc.put(bytes).expect("bytes can be put");
            proc.finish().expect("a proc without faults ends");
            proc.encoded().to_vec()
        }
    };
    match which >> 1 & 7 {
        0 => both_ways::<Tree>(&sealed, method, true),
        1 => both_ways::<Open>(&sealed, method, true),
        2 => both_ways::<BTreeMap<String, Vec<u32>>>(&sealed, method, false),
        3 => both_ways::<Vec<HgString>>(&sealed, method, false),
        4 => both_ways::<Option<(String, Vec<Vec<u8>>)>>(&sealed, method, false),
        // Elements of size zero cannot be encoded, but a small number of them decodes.
        5 => drop(from_slice::<Vec<()>>(&sealed, method)),
        6 => both_ways::<HgString>(&sealed, method, false),
        _ => steps(&sealed, method),
    }
});
