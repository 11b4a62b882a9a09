//! Keyed digests of values that ranks or processes compare.
//!
//! A value that is too long for an exchange is compared by its digest. The key is a random number
//! that never leaves the library, so a program cannot choose two values with equal digests, and
//! two different values have equal digests with a probability of 2^-64. All that distinguishes the
//! values must be hashed.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};

/// Returns a new random key.
pub fn key() -> u64 {
    RandomState::new().hash_one(0)
}

/// Processes of the same build get the same digest of the same value and key.
pub fn keyed(key: u64, value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_and_the_value_decide() {
        assert_eq!(keyed(7, "a text"), keyed(7, "a text"));
        assert_ne!(keyed(7, "a text"), keyed(8, "a text"));
        assert_ne!(keyed(7, "a text"), keyed(7, "another text"));
        assert_ne!(key(), key());
    }
}
