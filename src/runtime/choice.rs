//! Windows or messages between nodes: the decision, from what was measured at start.
//!
//! [`super::trial`] measures a pair of ranks for each kind of neighbourhood that the job
//! has; this module only judges, so that its tests can hand it recorded figures.
//!
//! **The rule.** Messages, unless MPI's windows complete without any help of their target,
//! and win clearly: in the mean over the classes of transfer they cost at most
//! 1/[`CLEARLY`] of what messages cost, and in none more than [`WORST`] times as much. The
//! margins are wide, so that no disturbance turns the choice; what could not be measured
//! undisturbed speaks for messages. Accumulates are measured for people to see, but do
//! not count: they go to the owner by message either way, because all ranks have to use
//! one mechanism for them, on a node as well.
//!
//! **One choice for all puts and gets.** A choice by class would make programs that mix the classes
//! complete one path before each use of the other. Measured between virtual nodes with
//! Open MPI, contiguous transfers by windows (which are about as fast by themselves) and
//! all others by messages made a sparse matrix product of Global Arrays' shape 1.5 to 2
//! times slower than messages alone, and no program faster.

/// Windows have to be this many times cheaper in the mean.
pub(super) const CLEARLY: f64 = 2.0;
/// In no class may they be more than this many times dearer.
pub(super) const WORST: f64 = 2.0;

/// What two ranks of different nodes have between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    /// They are on one host that was cut into virtual nodes.
    Nodes,
    /// They are on two hosts.
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

/// A class of transfer. A sample is a put and a get, each until it is complete, or one
/// accumulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Few contiguous bytes.
    Small,
    /// Many contiguous bytes.
    Large,
    /// Rows at a fixed distance.
    Strided,
    /// Many small blocks.
    Vector,
    /// Contiguous numbers that are added.
    Accumulate,
}

impl Class {
    /// All, in the order in which they are measured and shown.
    pub(super) const ALL: [Class; 5] =
        [Class::Small, Class::Large, Class::Strided, Class::Vector, Class::Accumulate];

    /// Whether the choice depends on it.
    fn counts(self) -> bool {
        self != Class::Accumulate
    }

    fn name(self) -> &'static str {
        match self {
            Class::Small => "small",
            Class::Large => "large",
            Class::Strided => "strided",
            Class::Vector => "vector",
            Class::Accumulate => "accumulate",
        }
    }
}

/// The best undisturbed sample of a class, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    pub window: u64,
    pub message: u64,
}

impl Cost {
    /// How many times dearer windows are.
    fn ratio(self) -> f64 {
        self.window.max(1) as f64 / self.message.max(1) as f64
    }
}

/// What was found between one pair of ranks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trial {
    pub between: Between,
    /// The two ranks.
    pub pair: (usize, usize),
    /// Whether puts complete while their target makes no call.
    pub alone: bool,
    /// As [`Class::ALL`]; `None` where too few samples were undisturbed, or none were
    /// taken because windows do not complete alone.
    pub costs: [Option<Cost>; 5],
}

impl Trial {
    fn counted(&self) -> impl Iterator<Item = (Class, Option<Cost>)> {
        Class::ALL.into_iter().zip(self.costs).filter(|(class, _)| class.counts())
    }

    /// Whether windows are to be used here, and why or why not.
    fn judge(&self) -> (bool, String) {
        if !self.alone {
            return (false, "MPI's windows wait for their target".into());
        }
        let mut product = 1.0;
        let mut worst = (Class::Small, 0.0);
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
        // The geometric mean against 1/CLEARLY; powf would make programs link with libm.
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

    /// One line for people.
    pub(super) fn describe(&self) -> String {
        let mut text = format!("ranks {} and {}: MPI's windows ", self.pair.0, self.pair.1);
        if !self.alone {
            text.push_str("wait for their target");
            return text;
        }
        text.push_str("complete alone; us by window and by message:");
        for (n, (class, cost)) in Class::ALL.into_iter().zip(self.costs).enumerate() {
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

    /// What the pair stands for.
    pub(super) fn place(&self) -> &'static str {
        self.between.name()
    }
}

/// Windows for the whole job only where every kind of pair is for them: a window spans
/// all ranks.
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

    /// Pairs of nanoseconds by window and by message, zeros for what was disturbed.
    fn trial(between: Between, alone: bool, costs: [(u64, u64); 5]) -> Trial {
        let costs = costs.map(|(window, message)| (window > 0).then_some(Cost { window, message }));
        Trial { between, pair: (0, 1), alone, costs }
    }

    /// As recorded with Open MPI 4.1 between virtual nodes.
    const SHARED: [(u64, u64); 5] =
        [(4200, 3100), (14_800, 17_000), (208_000, 4100), (39_000, 4000), (4100, 1900)];
    /// A network that serves windows by itself, several times cheaper than messages.
    const GOOD: [(u64, u64); 5] =
        [(2000, 9000), (20_000, 41_000), (6000, 11_000), (7000, 12_000), (9000, 9000)];

    #[test]
    fn windows_that_wait_for_their_target_are_not_used() {
        let (windows, why) = choose(&[trial(Between::Nodes, false, [(0, 0); 5])]);
        assert!(!windows && why.contains("wait for their target"), "{why}");
        // Not even where figures speak for them.
        assert!(!choose(&[trial(Between::Hosts, false, GOOD)]).0);
    }

    #[test]
    fn one_dear_class_is_enough_against_windows() {
        let (windows, why) = choose(&[trial(Between::Nodes, true, SHARED)]);
        assert!(!windows && why.contains("strided"), "{why}");
        // Also where the rest was disturbed, or the figures are four times off.
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
        // A dear accumulate does not matter.
        let mut dear = GOOD;
        dear[4] = (900_000, 1000);
        assert!(choose(&[trial(Between::Hosts, true, dear)]).0);
        // A tie is for messages.
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
