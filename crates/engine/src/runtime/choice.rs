//! The choice between windows and messages between nodes, based on measurements at start.
//!
//! [`super::trial`] measures a pair of ranks for each kind of neighbourhood in the job. This module
//! only evaluates the results, so that its tests can pass recorded figures.
//!
//! **The rule.** Messages are used unless MPI's windows complete without any help of their target
//! and win clearly. Their cost, averaged over the classes of transfer, must be at most
//! 1/[`CLEARLY`] of the cost of messages, and in no class more than [`WORST`] times that cost. The
//! margins are wide, so that a disturbance does not change the choice. If a class could not be
//! measured undisturbed, messages are chosen. Accumulates are measured for information only: all
//! ranks must use one mechanism for them, so they always go by message.
//!
//! **One choice for all puts and gets.** With a choice for each class, a program that mixes classes
//! would have to complete one path before each use of the other, which made a sparse matrix product
//! up to twice as slow, and no program faster.

/// Windows must be at least this many times cheaper on average (geometric mean).
pub(super) const CLEARLY: f64 = 2.0;
/// Windows must not be more than this many times as expensive in any class.
pub(super) const WORST: f64 = 2.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    /// On one host that is partitioned into virtual nodes.
    Nodes,
    Hosts,
}

impl Between {
    fn name(self) -> &'static str {
        match self {
            Between::Nodes => "virtual nodes of one host",
            Between::Hosts => "two hosts",
        }
    }
}

/// A sample is a complete put and a complete get, or one accumulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferClass {
    Small,
    Large,
    Strided,
    Vector,
    Accumulate,
}

impl TransferClass {
    /// In the order of measurement and display.
    pub(super) const ALL: [TransferClass; 5] = [
        TransferClass::Small,
        TransferClass::Large,
        TransferClass::Strided,
        TransferClass::Vector,
        TransferClass::Accumulate,
    ];

    fn counts(self) -> bool {
        self != TransferClass::Accumulate
    }

    fn name(self) -> &'static str {
        match self {
            TransferClass::Small => "small",
            TransferClass::Large => "large",
            TransferClass::Strided => "strided",
            TransferClass::Vector => "vector",
            TransferClass::Accumulate => "accumulate",
        }
    }
}

/// The best undisturbed samples of a class, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    pub window: u64,
    pub message: u64,
}

impl Cost {
    fn ratio(self) -> f64 {
        self.window.max(1) as f64 / self.message.max(1) as f64
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trial {
    pub between: Between,
    pub pair: (usize, usize),
    /// Puts and gets complete while their target makes no MPI call.
    pub alone: bool,
    /// By class. `None` with too few undisturbed samples, or if windows do not complete alone.
    pub costs: [Option<Cost>; 5],
}

impl Trial {
    fn counted(&self) -> impl Iterator<Item = (TransferClass, Option<Cost>)> {
        TransferClass::ALL.into_iter().zip(self.costs).filter(|(class, _)| class.counts())
    }

    /// Returns whether windows should be used for this pair, and the reason.
    fn judge(&self) -> (bool, String) {
        if !self.alone {
            return (false, "MPI's windows wait for their target".into());
        }
        let mut product = 1.0;
        let mut worst = (TransferClass::Small, 0.0);
        let mut classes = 0;
        for (class, cost) in self.counted() {
            let Some(cost) = cost else { continue };
            let ratio = cost.ratio();
            product *= ratio;
            classes += 1;
            if ratio > worst.1 {
                worst = (class, ratio);
            }
        }
        if worst.1 > WORST {
            return (
                false,
                format!(
                    "MPI's windows cost over {WORST} times as much for {} transfers",
                    worst.0.name()
                ),
            );
        }
        if classes < self.counted().count() {
            return (false, "the ranks were too busy to measure MPI's windows".into());
        }
        // Equivalent to comparing the geometric mean with 1/`CLEARLY`. `powf` would link libm.
        let clearly: f64 = (0..classes).map(|_| 1.0 / CLEARLY).product();
        if product > clearly {
            return (false, format!("MPI's windows are not {CLEARLY} times cheaper"));
        }
        (
            true,
            format!(
                "MPI's windows need no help of their target, and are over {CLEARLY} times cheaper"
            ),
        )
    }

    pub(super) fn describe(&self) -> String {
        let mut text = format!("ranks {} and {}: MPI's windows ", self.pair.0, self.pair.1);
        if !self.alone {
            text.push_str("wait for their target");
            return text;
        }
        text.push_str("complete alone; us by window and by message:");
        for (n, (class, cost)) in TransferClass::ALL.into_iter().zip(self.costs).enumerate() {
            text.push_str(if n == 0 { " " } else { ", " });
            text.push_str(class.name());
            match cost {
                Some(c) => {
                    text.push_str(&format!(
                        " {:.1} {:.1}",
                        c.window as f64 / 1e3,
                        c.message as f64 / 1e3
                    ));
                }
                None => text.push_str(" (disturbed)"),
            }
        }
        text
    }

    pub(super) fn place(&self) -> &'static str {
        self.between.name()
    }
}

/// Windows span all ranks, so every kind of pair must favour them. Returns the reason too.
pub(super) fn choose(trials: &[Trial]) -> (bool, String) {
    let mut chosen = (false, String::from("there is no pair of ranks to measure"));
    for trial in trials {
        let (windows, why) = trial.judge();
        chosen = (windows, format!("{why} between {}", trial.place()));
        if !windows {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nanoseconds by window and by message for each class. Zeros mean a disturbed class.
    fn trial(between: Between, alone: bool, costs: [(u64, u64); 5]) -> Trial {
        let costs = costs.map(|(window, message)| (window > 0).then_some(Cost { window, message }));
        Trial { between, pair: (0, 1), alone, costs }
    }

    /// Recorded with Open MPI 4.1 between virtual nodes.
    const SHARED: [(u64, u64); 5] =
        [(4200, 3100), (14_800, 17_000), (208_000, 4100), (39_000, 4000), (4100, 1900)];
    /// A network that serves windows itself, several times cheaper than messages.
    const GOOD: [(u64, u64); 5] =
        [(2000, 9000), (20_000, 41_000), (6000, 11_000), (7000, 12_000), (9000, 9000)];

    #[test]
    fn windows_that_wait_for_their_target_are_not_used() {
        let (windows, why) = choose(&[trial(Between::Nodes, false, [(0, 0); 5])]);
        assert!(!windows && why.contains("wait for their target"), "{why}");
        // This holds even if the figures favour windows.
        assert!(!choose(&[trial(Between::Hosts, false, GOOD)]).0);
    }

    #[test]
    fn one_dear_class_is_enough_against_windows() {
        let (windows, why) = choose(&[trial(Between::Nodes, true, SHARED)]);
        assert!(!windows && why.contains("strided"), "{why}");
        // Disturbed other classes, or figures wrong by a factor of four, do not change the choice.
        let mut part = SHARED;
        part[0] = (0, 0);
        part[3] = (0, 0);
        assert_eq!(choose(&[trial(Between::Nodes, true, part)]), (windows, why.clone()));
        let off = SHARED.map(|(w, m)| (w, m * 4));
        assert_eq!(choose(&[trial(Between::Nodes, true, off)]).0, windows);
    }

    #[test]
    fn windows_that_win_clearly_are_used() {
        let (windows, why) = choose(&[trial(Between::Hosts, true, GOOD)]);
        assert!(windows && why.contains("no help"), "{why}");
        // An expensive accumulate does not matter.
        let mut dear = GOOD;
        dear[4] = (900_000, 1000);
        assert!(choose(&[trial(Between::Hosts, true, dear)]).0);
        // Messages win a tie.
        let ties = GOOD.map(|(w, _)| (w, w * 3 / 2));
        assert!(!choose(&[trial(Between::Hosts, true, ties)]).0);
    }

    #[test]
    fn what_was_disturbed_speaks_for_messages() {
        let mut part = GOOD;
        part[1] = (0, 0);
        let (windows, why) = choose(&[trial(Between::Hosts, true, part)]);
        assert!(!windows && why.contains("too busy"), "{why}");
    }

    #[test]
    fn every_kind_of_pair_has_to_be_for_windows() {
        let good = trial(Between::Nodes, true, GOOD);
        let bad = trial(Between::Hosts, false, [(0, 0); 5]);
        assert!(choose(&[good.clone(), trial(Between::Hosts, true, GOOD)]).0);
        assert!(!choose(&[good.clone(), bad.clone()]).0);
        assert!(!choose(&[bad, good]).0);
        assert!(!choose(&[]).0);
    }
}
