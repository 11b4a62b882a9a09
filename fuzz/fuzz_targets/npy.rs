//! Decodes arbitrary `.npy` headers. An accepted header has the correct offset of the first
//! element, and its fields survive encoding and decoding.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan::internals::array::npy::{Header, decode, encode};

fuzz_target!(|input: (&[u8], bool, &[u8])| {
    let (text, wide, noise) = input;
    let _ = decode(&mut &noise[..]);
    // Uses the input as the text of an otherwise valid header.
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([if wide { 2 } else { 1 }, 0]);
    match wide {
        true => file.extend((text.len() as u32).to_le_bytes()),
        false => file.extend((text.len() as u16).to_le_bytes()),
    }
    file.extend(text);
    let head = file.len() as u64;
    file.extend(noise);
    let Ok(header) = decode(&mut &file[..]) else { return };
    if text.len() <= usize::from(u16::MAX) || wide {
        assert_eq!(header.start, head);
    }
    // `encode` writes C order only and encloses the type in single quotes.
    if header.fortran_order || header.descr.contains(['\'', '"']) || header.shape.is_empty() {
        return;
    }
    let written = encode(&header.descr, &header.shape);
    let again = decode(&mut &written[..]).expect("our own header");
    assert_eq!(again, Header { start: written.len() as u64, ..header });
});
