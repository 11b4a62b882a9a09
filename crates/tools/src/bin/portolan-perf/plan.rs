//! Communication patterns, and the number of messages that they produce.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The ranks that take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Rank 0 to the last rank.
    Pair,
    /// Each rank of the lower half to its partner in the upper half.
    Pairs,
    /// Rank 0 to all others in turn.
    OneToAll,
    /// All others to rank 0.
    AllToOne,
}

impl Pattern {
    pub fn words(self, ranks: usize) -> String {
        let last = ranks - 1;
        match self {
            Pattern::Pair if ranks == 1 => "rank 0 to itself".into(),
            Pattern::Pair => format!("rank 0 to rank {last}"),
            Pattern::Pairs => format!("{} pairs, rank i to rank i+{}", ranks / 2, ranks / 2),
            Pattern::OneToAll => format!("rank 0 to ranks 1-{last} in turn"),
            Pattern::AllToOne => format!("ranks 1-{last} to rank 0"),
        }
    }

    /// With fewer ranks, it has a single origin and target, like [`Pattern::Pair`].
    pub fn fits(self, ranks: usize) -> bool {
        match self {
            Pattern::Pair => true,
            Pattern::Pairs => ranks >= 4,
            Pattern::OneToAll | Pattern::AllToOne => ranks >= 3,
        }
    }

    /// Returns the targets of a rank in the order of their use.
    pub fn targets(self, rank: usize, ranks: usize) -> Vec<usize> {
        match self {
            Pattern::Pair if rank == 0 => vec![ranks - 1],
            Pattern::Pairs if rank < ranks / 2 => vec![rank + ranks / 2],
            Pattern::OneToAll if rank == 0 => (1..ranks).collect(),
            Pattern::AllToOne if rank > 0 => vec![0],
            _ => Vec::new(),
        }
    }

    pub fn origins(self, ranks: usize) -> Vec<usize> {
        (0..ranks).filter(|&rank| !self.targets(rank, ranks).is_empty()).collect()
    }

    /// Returns whether a rank is a target of any origin, even if only in later iterations.
    pub fn is_target(self, rank: usize, ranks: usize) -> bool {
        (0..ranks).any(|origin| self.targets(origin, ranks).contains(&rank))
    }

    /// Returns how many iterations target `rank` if every origin runs `n` iterations.
    pub fn inbound(self, rank: usize, ranks: usize, n: usize) -> usize {
        self.origins(ranks)
            .into_iter()
            .map(|origin| {
                let targets = self.targets(origin, ranks);
                let turns =
                    |place: usize| n / targets.len() + usize::from(place < n % targets.len());
                targets.iter().position(|&target| target == rank).map_or(0, turns)
            })
            .sum()
    }
}

/// Activity of the target during the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetActivity {
    /// It waits in a call of the library.
    Waits,
    /// It computes and does not call the library.
    Computes,
}

/// The type of the numbers in an accumulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[value(rename_all = "lower")]
#[serde(rename_all = "lowercase")]
pub enum NumberType {
    /// 32-bit integers.
    I32,
    /// 64-bit integers.
    I64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Complex numbers of single precision.
    C32,
    /// Complex numbers of double precision.
    C64,
}

impl NumberType {
    /// Returns the size of a number in bytes.
    pub fn size(self) -> usize {
        match self {
            NumberType::I32 | NumberType::F32 => 4,
            NumberType::I64 | NumberType::F64 | NumberType::C32 => 8,
            NumberType::C64 => 16,
        }
    }
}

/// The parameters of one measurement, which is one line of a table.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub pattern: Pattern,
    pub target: TargetActivity,
    pub element: NumberType,
    pub bytes: usize,
}

/// Largest number of operations in flight, as in the OSU bandwidth tests.
const WINDOW: usize = 64;
/// Largest number of bytes in flight, unless a single operation has more.
const WINDOW_BYTES: usize = 4 << 20;

impl Case {
    /// Returns the number of operations that a bandwidth test has in flight.
    pub fn window(&self) -> usize {
        (WINDOW_BYTES / self.bytes.max(1)).clamp(1, WINDOW)
    }
}

/// Returns the bytes of memory that a test touches with operations of up to `bytes` bytes.
pub fn region(bytes: usize) -> usize {
    bytes.max(WINDOW_BYTES)
}

/// Returns the number of online cores of this host. This includes cores outside the CPU affinity of
/// the rank, unless Linux does not list the online cores.
pub fn cores() -> usize {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let known = std::thread::available_parallelism().map_or(1, usize::from);
    online.and_then(|text| count(text.trim())).unwrap_or(known)
}

/// Counts the numbers in a list such as `0-3,6`. Returns `None` if the list is malformed.
fn count(list: &str) -> Option<usize> {
    list.split(',')
        .map(|run| {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            (last + 1).checked_sub(first)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_has_an_origin_and_a_target() {
        for pattern in Pattern::value_variants() {
            for ranks in (1..7).filter(|&ranks| pattern.fits(ranks)) {
                for n in [1, 5, 12] {
                    let sent = n * pattern.origins(ranks).len();
                    let received: usize = (0..ranks).map(|r| pattern.inbound(r, ranks, n)).sum();
                    assert_eq!(sent, received, "{pattern:?}, {ranks} ranks, {n}");
                }
                for rank in 0..ranks {
                    let gets_any = pattern.inbound(rank, ranks, ranks) > 0;
                    assert_eq!(
                        pattern.is_target(rank, ranks),
                        gets_any,
                        "{pattern:?}, rank {rank} of {ranks}"
                    );
                }
            }
        }
        assert_eq!(Pattern::OneToAll.inbound(1, 4, 4), 2);
        assert_eq!(Pattern::OneToAll.inbound(3, 4, 4), 1);
    }

    #[test]
    fn cores_are_counted() {
        assert_eq!((count("0-3,6"), count("0"), count("")), (Some(5), Some(1), None));
        assert!(cores() >= 1);
    }

    #[test]
    fn a_window_stays_in_its_region() {
        for bytes in [1, 8, 4096, 65536, 65537, 1 << 20, 64 << 20] {
            let case = Case {
                pattern: Pattern::Pair,
                target: TargetActivity::Waits,
                element: NumberType::F64,
                bytes,
            };
            assert!(case.window() * bytes <= region(bytes), "{bytes}");
            assert!((1..=64).contains(&case.window()));
        }
    }
}
