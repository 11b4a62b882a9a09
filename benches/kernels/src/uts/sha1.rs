//! SHA-1 of at most 55 bytes, which is one block.

/// Panics if the message is longer.
pub fn sha1(message: &[u8]) -> [u8; 20] {
    let mut block = [0; 64];
    block[..message.len()].copy_from_slice(message);
    block[message.len()] = 0x80;
    assert!(message.len() < 56, "one block");
    block[56..].copy_from_slice(&(8 * message.len() as u64).to_be_bytes());
    let mut w = [0u32; 80];
    for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for t in 16..80 {
        w[t] = (w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16]).rotate_left(1);
    }
    const START: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let [mut a, mut b, mut c, mut d, mut e] = START;
    for (t, w) in w.iter().enumerate() {
        let (f, k) = match t / 20 {
            0 => ((b & c) | (!b & d), 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6u32),
        };
        let next =
            a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(k).wrapping_add(*w);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    let mut hash = [0; 20];
    for (bytes, (word, start)) in hash.chunks_exact_mut(4).zip([a, b, c, d, e].iter().zip(START)) {
        bytes.copy_from_slice(&word.wrapping_add(start).to_be_bytes());
    }
    hash
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_hash_of_the_standard() {
        let hash = super::sha1(b"abc");
        let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "a9993e364706816aba3e25717850c26c9cd0d89d");
    }
}
