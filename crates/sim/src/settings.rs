//! The engine's settings for a seed.

use crate::dice::Dice;
use portolan_base::config::{AmChoice, Config, PathChoice, SplitChoice};
use std::time::Duration;

/// The limits are small, so that a short program reaches them.
pub fn draw(dice: &mut Dice) -> Config {
    let path = if dice.one_in(3) { PathChoice::Message } else { PathChoice::Auto };
    Config {
        path,
        node_size: dice.pick(&[0, 1, 1, 2, 4]),
        progress_thread: dice.pick(&[false, false, true]),
        spin: dice.pick(&[1, 3]),
        arena_bytes: 1 << 20,
        chunk_bytes: dice.pick(&[4 << 10, 16 << 10, 256 << 10]),
        flight_bytes: dice.pick(&[64 << 10, 8 << 20]),
        am: dice.pick(&[AmChoice::Auto, AmChoice::Auto, AmChoice::Mpi]),
        am_ring_bytes: dice.pick(&[16 << 10, 64 << 10]),
        aggregate_age: Duration::from_micros(dice.pick(&[0, 50, 1000])),
        split: dice.pick(&[SplitChoice::Off, SplitChoice::On]),
        watchdog: Duration::ZERO,
        launcher_check: false,
        ..Config::default()
    }
}
