//! The finding that ranks wait for cores, which explains other findings.

use super::{Finder, Finding};
use crate::analyse::cores::ProcessorUse;
use crate::model::{count, percent, time};

/// Smallest delay of a rank that is reported, as a fraction of the wall time.
const LEAST: f64 = 0.05;

impl Finder<'_> {
    pub(super) fn cores(&self) -> Option<Finding> {
        let cores = &self.analysis.cores;
        let crowd = cores.crowd.as_ref();
        let few = crowd.filter(|crowd| crowd.ranks + crowd.threads > crowd.cores);
        let mut rank = 0;
        let (worth, delays) = match cores.most_delayed() {
            Some((delay, of)) => {
                rank = of;
                let worth = f64::min(delay as f64, self.wall());
                let text = format!(
                    "Threads that were ready waited {} for a core; the main thread of rank {rank} waited {}, {} of the time.",
                    time(cores.sum(ProcessorUse::delay) as f64),
                    time(delay as f64),
                    percent(worth, self.wall())
                );
                (worth, text)
            }
            // The kernel does not count delays. Then the numbers of ranks and cores are decisive.
            None => {
                let crowd = few.filter(|crowd| crowd.ranks > crowd.cores)?;
                let part = 1.0 - crowd.cores as f64 / crowd.ranks as f64;
                let text = format!(
                    "A rank has a core for at most {} of the time.",
                    percent(1.0 - part, 1.0)
                );
                (part * self.wall(), text)
            }
        };
        if worth < LEAST * self.wall() {
            return None;
        }
        let (title, advice) = match few {
            Some(crowd) => (
                format!("{} on {}", sharing(crowd.ranks, crowd.threads, crowd.cores), crowd.host),
                "Start at most one rank per core, and leave a core of each node to the progress threads.",
            ),
            None => (
                "Ranks wait for cores that other programs use".to_string(),
                "Run where no other program uses the cores, or reserve them for the job.",
            ),
        };
        let all = self.wall() * self.trace.files.len() as f64;
        let cpu = cores.sum(ProcessorUse::cpu) as f64;
        Some(Finding {
            kind: "cores",
            title,
            text: format!(
                "{delays} The ranks got {} of processor time, {} of their wall time, and lost their cores {} times.",
                time(cpu),
                percent(cpu, all),
                count(cores.sum(|used| used.involuntary))
            ),
            advice: format!(
                "{advice} The other findings exclude what these delays explain. Judge the program by a run in which each rank has a core."
            ),
            worth,
            sum: f64::max(cores.sum(|used| used.main_delay.unwrap_or(0)) as f64, worth),
            at: (rank, 0, self.trace.wall),
        })
    }
}

fn sharing(ranks: usize, threads: usize, cores: usize) -> String {
    let noun = if cores == 1 { "core" } else { "cores" };
    let progress = match threads {
        0 => String::new(),
        1 => " and a progress thread".into(),
        _ => format!(" and {threads} progress threads"),
    };
    format!("{ranks} ranks{progress} share {cores} {noun}")
}
