//! The seed and the number of rounds of a random test.

/// Returns the seed of this run, which it prints.
pub fn seed() -> u64 {
    let given = std::env::var("PORTOLAN_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64 % 1_000_000)
    });
    println!("PORTOLAN_TEST_SEED={seed}");
    seed
}

/// Returns the number of rounds: `full` in a full run, and a tenth of it otherwise.
pub fn rounds(full: usize) -> usize {
    if std::env::var_os("PORTOLAN_TEST_FULL").is_some() { full } else { full / 10 }
}
