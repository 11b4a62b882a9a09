//! A run starts the runtime once per path, with all cases of all tests. MPI outlives the runtimes.
//! Variables are set between them, so that the next one reads them.

use crate::args::Args;
use crate::cases::{SupportedSizes, Test};
use crate::lab::{ChosenBounds, Effort, Lab, Library};
use crate::measure::Rounds;
use crate::plan::{Case, Pattern, TargetActivity, cores, region};
use crate::report::{ALL_RANKS, BoundFigure, FORMAT, Report, ResultRow, name};
use crate::result::Result;
use crate::stats::Figure;
use mpi::topology::SimpleCommunicator;
use portolan::{Runtime, TransferPath};
use portolan_base::config::VARIABLES;
use portolan_engine::mpi::init::library_version;
use portolan_engine::topology::host_name;

/// Sets or removes environment variables. Runtimes that start later see the change.
pub fn set_variables(settings: &[(&str, Option<&str>)]) {
    for (name, value) in settings {
        // SAFETY: no runtime exists here, so there is only the calling thread. Threads of the MPI
        // library read the environment only during its initialisation.
        unsafe {
            match value {
                Some(value) => std::env::set_var(name, value),
                None => std::env::remove_var(name),
            }
        }
    }
}

/// Describes the job in a report without rows. Collective.
pub fn describe(rt: &Runtime) -> Result<Report> {
    let names = rt.world().all_gather(host_name::<64>())?;
    let nodes = rt.world().all_gather(rt.node())?;
    let text = |name: &[u8]| {
        let length = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..length]).into_owned()
    };
    let places = (0..rt.nodes()).map(|node| {
        let ranks: Vec<usize> = (0..rt.size()).filter(|&r| nodes[r] == node).collect();
        (ranks.first().map(|&r| text(&names[r])).unwrap_or_default(), ranks.len())
    });
    let mpi = library_version();
    let mpi: Vec<&str> = mpi.lines().next().unwrap_or_default().split_whitespace().collect();
    let variables = VARIABLES.iter().flat_map(|v| [Some(v.name), v.alias]).flatten();
    let settings = variables
        .filter(|name| *name != "PORTOLAN_INTERPOSE" && *name != "PORTOLAN_PATH")
        .filter_map(|name| Some((name.to_string(), std::env::var(name).ok()?)));
    Ok(Report {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        mpi: mpi.join(" "),
        ranks: rt.size(),
        nodes: places.collect(),
        cores: cores(),
        settings: settings.collect(),
        rows: Vec::new(),
        skipped: Vec::new(),
        advice: Vec::new(),
    })
}

pub struct RunPlan<'p> {
    pub tests: &'p [&'static Test],
    /// All sizes in bytes.
    pub sizes: &'p [usize],
    /// Patterns, behaviour of the target, and number types of accumulates.
    pub args: &'p Args,
    pub bounds: ChosenBounds,
    pub effort: Effort,
}

impl RunPlan<'_> {
    fn sizes_of(&self, test: &Test) -> Vec<usize> {
        match test.sizes {
            SupportedSizes::None => vec![0],
            SupportedSizes::Only(some) => {
                let most = self.sizes.last().copied().unwrap_or(0);
                some.iter().copied().filter(|&n| n <= most.max(some[0])).collect()
            }
            SupportedSizes::UpTo(most) => {
                self.sizes.iter().copied().filter(|&n| n <= most).collect()
            }
        }
    }

    /// Returns the bytes of memory that the tests need on each rank.
    fn region(&self) -> usize {
        let sizes = self.tests.iter().flat_map(|test| {
            // Strided rows span twice their bytes. Compositions also need separate halves of the
            // region for their source and destination.
            let times = match test.name.split('_').next() {
                Some("strided" | "vector") => 2,
                Some("compose") => 4,
                _ => 1,
            };
            self.sizes_of(test).into_iter().map(move |n| n * times)
        });
        region(sizes.max().unwrap_or(0)).next_multiple_of(1 << 20) + (1 << 20)
    }

    /// Measures all cases. Returns the rows, and the reasons for skipped cases. Calls `each` on all
    /// ranks for every row. Collective.
    pub fn measure(
        &self,
        rt: &Runtime,
        mpi: &SimpleCommunicator,
        path: &str,
        each: &mut dyn FnMut(&Test, &ResultRow),
    ) -> Result<(Vec<ResultRow>, Vec<String>)> {
        let lab = Lab::new(rt, mpi, self.bounds, self.effort, self.region())?;
        let (mut rows, mut skipped) = (Vec::new(), Vec::new());
        for test in self.tests {
            for (case, why) in self.cases(test, rt.size()) {
                if let Some(why) = why {
                    skipped.push(format!("{} {}: {why}", test.name, name(case.pattern)));
                    continue;
                }
                if case.target == TargetActivity::Computes
                    && let Some(why) = lab.serves_nobody(case.pattern)?
                {
                    skipped
                        .push(format!("{} with a computing target, path {path}: {why}", test.name));
                    continue;
                }
                for bytes in self.sizes_of(test) {
                    let bytes = if test.typed {
                        bytes.next_multiple_of(case.element.size())
                    } else {
                        bytes
                    };
                    let case = Case { bytes, ..case };
                    if let Some(row) = row(&lab, test, &case, path)?
                        && !rows.iter().any(|other: &ResultRow| other.key() == row.key())
                    {
                        each(test, &row);
                        rows.push(row);
                    }
                }
            }
        }
        skipped.dedup();
        lab.free()?;
        Ok((rows, skipped))
    }

    /// Returns the cases of a test without their sizes, and why a case cannot be measured.
    fn cases(&self, test: &Test, ranks: usize) -> Vec<(Case, Option<String>)> {
        let Args { pattern: patterns, target: targets, types, .. } = self.args;
        let patterns = if test.patterns { &patterns[..] } else { &[Pattern::Pair] };
        let types = if test.typed { &types[..] } else { &types[..1] };
        let mut all = Vec::new();
        for &pattern in patterns {
            for &target in targets {
                for &element in types {
                    let case = Case { pattern, target, element, bytes: 0 };
                    let why = if target == TargetActivity::Computes && !test.computes {
                        Some("its targets take an active part in it, and cannot compute".into())
                    } else if test.patterns && !pattern.fits(ranks) {
                        Some(format!("{ranks} ranks are too few"))
                    } else {
                        None
                    };
                    all.push((case, why));
                }
            }
        }
        all
    }
}

/// From the first origin to its first target; rank 0 reports what that rank knows. Collective.
fn path_of_first(lab: &Lab<'_>, case: &Case, origin: usize) -> Result<TransferPath> {
    const PATHS: [TransferPath; 3] =
        [TransferPath::Direct, TransferPath::Rma, TransferPath::Message];
    let mut number = [0u8];
    let target = case.pattern.targets(origin, lab.size()).first().copied();
    if let Some(target) = target.filter(|&target| lab.me() == origin && target != origin) {
        let path = lab.rt.path_to(target)?;
        number[0] = PATHS.iter().position(|&p| p == path).unwrap_or(0) as u8;
    }
    lab.rt.world().broadcast(origin, &mut number)?;
    Ok(PATHS[usize::from(number[0])])
}

/// Measures one case. Returns `None` if the test makes no contenders for it. Collective.
fn row(lab: &Lab<'_>, test: &Test, case: &Case, path: &str) -> Result<Option<ResultRow>> {
    let mut contenders = (test.make)(lab, *case)?;
    if contenders.is_empty() {
        return Ok(None);
    }
    if case.target == TargetActivity::Computes {
        // MPI's contenders need a target that takes part, so they cannot be compared here.
        contenders.retain(|c| c.library != Library::Mpi);
    }
    let mut rounds = lab.alternate(case, &mut contenders)?;
    drop(contenders);
    if case.target == TargetActivity::Computes {
        let waits = Case { target: TargetActivity::Waits, ..*case };
        let mut contenders = (test.make)(lab, waits)?;
        contenders.truncate(1);
        let mut beside = lab.alternate(&waits, &mut contenders)?;
        beside[0].name = "target waits";
        rounds.append(&mut beside);
    }
    let origins = if test.patterns { case.pattern.origins(lab.size()) } else { vec![0] };
    let taken = path_of_first(lab, case, origins[0])?;
    let part = bound_of(&rounds[1..], taken == TransferPath::Direct);
    let of_bound = part.and_then(|b| Figure::of_ratios(&b.seconds, &rounds[0].seconds));
    Ok(Some(ResultRow {
        test: test.name.into(),
        metric: test.metric,
        pattern: case.pattern,
        target: case.target,
        path: path.into(),
        taken: if test.patterns { taken.name() } else { ALL_RANKS }.into(),
        element: test.typed.then(|| name(case.element)),
        bytes: (test.sizes != SupportedSizes::None).then_some(case.bytes),
        origins: origins.len(),
        time: rounds[0].figure().ok_or("there is no round")?,
        bound: part.map(|b| b.name.to_string()),
        of_bound,
        bounds: rounds[1..]
            .iter()
            .filter_map(|r| Some(BoundFigure { name: r.name.into(), time: r.figure()? }))
            .collect(),
    }))
}

/// Chooses the bound, which is the speed that the machine can reach. If the target's memory is
/// reached directly, this is the fastest plain copy or loop; if not, the fastest MPI operation.
/// Each falls back to the other kind, and then to another contender of Portolan's.
fn bound_of(bounds: &[Rounds], direct: bool) -> Option<&Rounds> {
    let median = |r: &&Rounds| r.figure().map_or(f64::MAX, |f| f.median);
    let fastest = |library: Library| {
        bounds
            .iter()
            .filter(|r| r.library == library)
            .min_by(|a, b| median(a).total_cmp(&median(b)))
    };
    let (plain, mpi) = (fastest(Library::Plain), fastest(Library::Mpi));
    let other = || fastest(Library::Portolan);
    if direct { plain.or(mpi) } else { mpi.or(plain) }.or_else(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::TESTS;
    use clap::Parser;

    fn rounds(name: &'static str, library: Library, seconds: f64) -> Rounds {
        Rounds { name, library, seconds: vec![seconds; 3] }
    }

    #[test]
    fn the_bound_is_what_the_path_can_reach() {
        let all = [
            rounds("memcpy", Library::Plain, 1.0),
            rounds("MPI send", Library::Mpi, 3.0),
            rounds("MPI RMA", Library::Mpi, 2.0),
        ];
        let name = |bounds, direct| bound_of(bounds, direct).map(|b: &Rounds| b.name);
        assert_eq!(name(&all, true), Some("memcpy"));
        assert_eq!(name(&all, false), Some("MPI RMA"));
        assert_eq!(name(&all[..1], false), Some("memcpy"));
        assert_eq!(name(&all[1..2], true), Some("MPI send"));
        assert_eq!(name(&[], true), None);
        assert_eq!(name(&[rounds("messages", Library::Portolan, 1.0)], true), Some("messages"));
    }

    fn plan<'p>(args: &'p Args, sizes: &'p [usize]) -> RunPlan<'p> {
        RunPlan { tests: &[], sizes, args, bounds: args.bounds(), effort: args.effort() }
    }

    fn test(name: &str) -> &'static Test {
        TESTS.iter().find(|t| t.name == name).unwrap()
    }

    #[test]
    fn what_a_test_does_not_tell_apart_is_measured_once() {
        let words = "portolan-perf --pattern pair,pairs,all-to-one --type f64,i32";
        let args = Args::parse_from(words.split(' '));
        let plan = plan(&args, &[8]);
        let cases = |name: &str, ranks| plan.cases(test(name), ranks);
        assert_eq!(cases("barrier", 4).len(), 1);
        assert_eq!(cases("put_lat", 4).len(), 3);
        assert_eq!(cases("acc_lat", 4).len(), 6);
        let few: Vec<bool> = cases("put_lat", 3).iter().map(|(_, why)| why.is_some()).collect();
        assert_eq!(few, [false, true, false]);
    }

    #[test]
    fn what_cannot_be_measured_is_named() {
        let args = Args::parse_from("portolan-perf --target waits,computes".split(' '));
        let plan = plan(&args, &[8]);
        let reasons = |name: &str| -> Vec<bool> {
            plan.cases(test(name), 2).iter().map(|(_, why)| why.is_some()).collect()
        };
        assert_eq!(reasons("put_lat"), [false, false]);
        assert_eq!(reasons("notify"), [false, true]);
    }

    #[test]
    fn sizes_end_where_a_test_does() {
        let args = Args::parse_from(["portolan-perf"]);
        let plan = plan(&args, &[1, 8, 1 << 20, 64 << 20]);
        assert_eq!(plan.sizes_of(test("put_lat")).last(), Some(&(64 << 20)));
        assert_eq!(plan.sizes_of(test("strided_put")).last(), Some(&(1 << 20)));
        assert_eq!(plan.sizes_of(test("fadd")), [0]);
        assert_eq!(plan.sizes_of(test("am_items")), [8, 32, 128, 512]);
    }
}
