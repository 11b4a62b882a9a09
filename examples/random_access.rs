//! RandomAccess of the HPC Challenge: updates random words of a distributed table by exclusive or.
//!
//! The updates are the powers of x in the field of polynomials over GF(2) modulo x^64 + x^2 + x +
//! 1, four for each word. The low bits of a power are also the number of the word that it updates.
//! Each rank computes its share of the powers and sends each one as an item to the owner of the
//! word. At the end the program repeats all updates, which must restore the table. (The official
//! rules allow a rank to hold back 1024 updates. Pass `8192 / ranks` as the last argument to
//! comply.)
//!
//! Usage: random_access [words, as a power of two, 22] [bytes of a batch, 65536]

use portolan::messages::{Delivery, Handlers, Item};
use portolan::reduce::Sum;
use std::error::Error;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A power of x, sent to the owner of the word.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Update(u64);

struct Table {
    words: Vec<AtomicU64>,
    /// Number of the first word.
    first: u64,
    /// The bits of an update that select the word.
    mask: u64,
}

impl Item for Update {
    fn apply(batch: &[Update], delivery: &Delivery<'_>) {
        let Table { words, first, mask } = delivery.state();
        let (words, first, mask) = (&words[..], *first, *mask);
        for Update(power) in batch {
            let word = &words[((power & mask) - first) as usize];
            // This is atomic, because a rank handles one batch at a time.
            word.store(word.load(Ordering::Relaxed) ^ power, Ordering::Relaxed);
        }
    }
}

/// Multiplies by x.
fn next(power: u64) -> u64 {
    (power << 1) ^ if power >> 63 == 1 { 7 } else { 0 }
}

fn times(a: u64, b: u64) -> u64 {
    (0..64).rev().fold(0, |sum, bit| next(sum) ^ if b >> bit & 1 == 1 { a } else { 0 })
}

/// Returns x to the power `n`.
fn power(n: u64) -> u64 {
    (0..64).rev().fold(1, |p, bit| {
        let square = times(p, p);
        if n >> bit & 1 == 1 { next(square) } else { square }
    })
}

/// The distribution of 2^`bits` words over the ranks.
#[derive(Clone, Copy)]
struct Spread {
    bits: u32,
    ranks: u64,
}

impl Spread {
    fn owner(self, word: u64) -> usize {
        ((word * self.ranks) >> self.bits) as usize
    }
    fn words(self, rank: usize) -> Range<u64> {
        let from = |rank: u64| (rank << self.bits).div_ceil(self.ranks);
        from(rank as u64)..from(rank as u64 + 1)
    }
}

fn argument(position: usize, default: usize) -> Result<usize, Box<dyn Error>> {
    match std::env::args().nth(position) {
        Some(text) => text.parse().map_err(|_| format!("'{text}' is no number").into()),
        None => Ok(default),
    }
}

fn main() -> ExitCode {
    portolan::run(|rt| -> Result<(), Box<dyn Error>> {
        let (bits, batch) = (argument(1, 22)?, argument(2, 64 << 10)?);
        if !(1..=40).contains(&bits) {
            return Err(format!("2 to the power of {bits} words: 1 to 40 are possible").into());
        }
        let spread = Spread { bits: bits as u32, ranks: rt.size() as u64 };
        let own = spread.words(rt.rank());
        let table = Arc::new(Table {
            words: own.clone().map(AtomicU64::new).collect(),
            first: own.start,
            mask: (1 << bits) - 1,
        });
        let messages =
            Handlers::new().state(table.clone()).item_with::<Update>(batch).register(rt)?;
        let updates = messages.batches::<Update>()?;

        let all = 4u64 << bits;
        let part = |rank: usize| all * rank as u64 / rt.size() as u64;
        let (from, to) = (part(rt.rank()), part(rt.rank() + 1));
        let world = rt.world();
        let pass = || -> portolan::Result<f64> {
            world.barrier()?;
            let begun = Instant::now();
            let mut update = power(from);
            for _ in from..to {
                update = next(update);
                updates.push(spread.owner(update & table.mask), Update(update))?;
            }
            messages.quiesce()?;
            Ok(begun.elapsed().as_secs_f64())
        };
        // Returns the number of words, over all ranks, that differ from their initial value.
        let changed = || {
            let was = |(word, was): &(&AtomicU64, u64)| word.load(Ordering::Relaxed) == *was;
            let mine = table.words.iter().zip(own.clone()).filter(|pair| !was(pair)).count();
            world.all_reduce_value(mine as i64, Sum)
        };

        let mut seconds = pass()?;
        let once = changed()?;
        seconds += pass()?;
        let wrong = changed()?;
        messages.free()?;
        if rt.rank() == 0 {
            println!(
                "random_access: {all} updates of 2^{bits} words on {} ranks, twice: {:.1} million \
                 updates a second, {once} words changed at first, {wrong} wrong at the end",
                rt.size(),
                2.0 * all as f64 / seconds / 1e6
            );
        }
        if once > 0 && wrong == 0 { Ok(()) } else { Err(format!("{wrong} words are wrong").into()) }
    })
}
