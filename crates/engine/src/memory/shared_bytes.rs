//! Copies from and to memory that other threads, ranks and the kernel may access concurrently.
//!
//! Threads of safe programs access such memory only through these functions. The accesses are
//! atomic and relaxed: a copy sees each aligned word of eight bytes in its range as a whole, and
//! every other byte individually. Concurrent copies are therefore no data race, but the result may
//! mix their data. A copy may see accesses by MPI, the kernel, other ranks and the engine's
//! transfers partially.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

const WORD: usize = size_of::<u64>();

/// Returns the number of bytes before the first aligned word, and of whole words after it.
fn split(address: usize, len: usize) -> (usize, usize) {
    let head = (address.wrapping_neg() % WORD).min(len);
    (head, (len - head) / WORD)
}

/// Returns how many bytes, at most 4, one access can copy: a power of two that divides the address
/// and does not exceed `len` (not 0).
#[inline]
fn step(address: usize, len: usize) -> usize {
    let aligned = 1 << (address | 4).trailing_zeros();
    aligned.min(1 << len.ilog2())
}

/// # Safety
/// `from` must be valid for atomic reads of `to.len()` bytes.
pub unsafe fn load(from: *const u8, to: &mut [u8]) {
    let (head, words) = split(from as usize, to.len());
    let (first, rest) = to.split_at_mut(head);
    let (middle, last) = rest.split_at_mut(words * WORD);
    // SAFETY: the caller guarantees the bytes, and `split` aligns the words within them.
    unsafe {
        load_part(from, first);
        let from = from.add(head);
        for (n, word) in middle.chunks_exact_mut(WORD).enumerate() {
            let value = (*from.add(n * WORD).cast::<AtomicU64>()).load(Relaxed);
            word.copy_from_slice(&value.to_ne_bytes());
        }
        load_part(from.add(words * WORD), last);
    }
}

/// # Safety
/// See [`load`], for less than a word.
#[inline]
unsafe fn load_part(mut from: *const u8, mut to: &mut [u8]) {
    while !to.is_empty() {
        let (now, rest) = to.split_at_mut(step(from as usize, to.len()));
        // SAFETY: the step is within the caller's bytes, and `from` is aligned to it.
        unsafe {
            match now.len() {
                4 => now.copy_from_slice(&(*from.cast::<AtomicU32>()).load(Relaxed).to_ne_bytes()),
                2 => now.copy_from_slice(&(*from.cast::<AtomicU16>()).load(Relaxed).to_ne_bytes()),
                _ => now[0] = (*from.cast::<AtomicU8>()).load(Relaxed),
            }
            from = from.add(now.len());
        }
        to = rest;
    }
}

/// # Safety
/// `to` must be valid for atomic writes of `from.len()` bytes.
pub unsafe fn store(from: &[u8], to: *mut u8) {
    let (head, words) = split(to as usize, from.len());
    let (first, rest) = from.split_at(head);
    let (middle, last) = rest.split_at(words * WORD);
    // SAFETY: the caller guarantees the bytes, and `split` aligns the words within them.
    unsafe {
        store_part(first, to);
        let to = to.add(head);
        for (n, word) in middle.chunks_exact(WORD).enumerate() {
            let value = u64::from_ne_bytes(word.try_into().expect("a word"));
            (*to.add(n * WORD).cast::<AtomicU64>()).store(value, Relaxed);
        }
        store_part(last, to.add(words * WORD));
    }
}

/// # Safety
/// See [`store`], for less than a word.
#[inline]
unsafe fn store_part(mut from: &[u8], mut to: *mut u8) {
    while !from.is_empty() {
        let (now, rest) = from.split_at(step(to as usize, from.len()));
        // SAFETY: the step is within the caller's bytes, and `to` is aligned to it.
        unsafe {
            match *now {
                [a, b, c, d] => {
                    (*to.cast::<AtomicU32>()).store(u32::from_ne_bytes([a, b, c, d]), Relaxed);
                }
                [a, b] => (*to.cast::<AtomicU16>()).store(u16::from_ne_bytes([a, b]), Relaxed),
                _ => (*to.cast::<AtomicU8>()).store(now[0], Relaxed),
            }
            to = to.add(now.len());
        }
        from = rest;
    }
}

/// # Safety
/// `from` must be valid for atomic reads of `len` bytes, `to` for writes. They may overlap.
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller guarantees that both ranges are valid for atomic accesses.
    unsafe {
        match len {
            0..=128 => copy_through::<128>(from, to, len),
            _ => copy_through::<4096>(from, to, len),
        }
    }
}

/// # Safety
/// See [`copy`].
#[inline]
unsafe fn copy_through<const N: usize>(from: *const u8, to: *mut u8, len: usize) {
    let mut buffer = [0; N];
    let mut done = 0;
    while done < len {
        let part = (len - done).min(N);
        // Overlapping bytes must be read before they are overwritten.
        let at = if (from as usize) < to as usize { len - done - part } else { done };
        // SAFETY: the part lies within the `len` bytes that the caller guarantees.
        unsafe {
            load(from.add(at), &mut buffer[..part]);
            store(&buffer[..part], to.add(at));
        }
        done += part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_place_is_copied_and_nothing_else() {
        let whole: Vec<u8> = (0..60).collect();
        for at in 0..9 {
            for len in 0..40 {
                let mut to = vec![0xff; 60];
                // SAFETY: `at + len` is less than 60, so the range lies within the vector.
                unsafe { store(&whole[5..5 + len], to.as_mut_ptr().add(at)) };
                assert_eq!(to[at..at + len], whole[5..5 + len]);
                assert!(to[..at].iter().chain(&to[at + len..]).all(|byte| *byte == 0xff));
                let mut back = vec![0; len];
                // SAFETY: `at + len` is less than 60, so the range lies within the vector.
                unsafe { load(to.as_ptr().add(at), &mut back) };
                assert_eq!(back, whole[5..5 + len]);
            }
        }
    }

    #[test]
    fn ranges_that_overlap_are_moved() {
        let len = if cfg!(miri) { 300 } else { 10_000 };
        let whole: Vec<u8> = (0..2 * len).map(|n| (n % 251) as u8).collect();
        for (from, to) in [(0, 3), (3, 0), (0, len / 2), (len / 2, 0), (7, 7), (0, len)] {
            let mut bytes = whole.clone();
            let base = bytes.as_mut_ptr();
            // SAFETY: both ranges lie within the vector.
            unsafe { copy(base.add(from), base.add(to), len) };
            assert_eq!(bytes[to..to + len], whole[from..from + len]);
        }
    }

    #[test]
    fn threads_copy_beside_each_other() {
        let memory: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
        let base = memory.as_ptr() as usize;
        let rounds = if cfg!(miri) { 3 } else { 1000 };
        std::thread::scope(|scope| {
            for value in [0x1111_1111_1111_1111u64, 0x2222_2222_2222_2222] {
                scope.spawn(move || {
                    let bytes = value.to_ne_bytes().repeat(64);
                    // SAFETY: the memory consists of 512 bytes of atomics that outlive the threads.
                    (0..rounds).for_each(|_| unsafe { store(&bytes, base as *mut u8) });
                });
            }
            scope.spawn(move || {
                let mut bytes = vec![0; 512];
                for _ in 0..rounds {
                    // SAFETY: the memory consists of 512 bytes of atomics that outlive the threads.
                    unsafe { load(base as *const u8, &mut bytes) };
                    for word in bytes.chunks_exact(8) {
                        assert!(word.iter().all(|byte| *byte == word[0]), "{word:?}");
                    }
                }
            });
        });
    }
}
