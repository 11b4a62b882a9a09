//! Runs the kernels by which one-sided libraries are compared.
//!
//! `mpiexec -n N kernels [OPTIONS] [KERNEL ...]`; a KERNEL is the beginning of a name from `--list`.
//!
//! ```text
//! --list            print the kernels with their sizes and versions
//! --side SIDE       only versions of this side: portolan, mpi, window, local
//! --version NAME    only versions of this name
//! --without NAME    no versions of this name
//! --size N          the size of all chosen kernels
//! --small           small sizes, for tests
//! --repeats N       repetitions, 5 by default; the median counts
//! --raw             lines of fields separated by tabs
//! ```
//!
//! Each line has the kernel, the side and version, the number of ranks, the median seconds, the
//! processor seconds per rank, the rate with its unit, and whether the result is right. If one is
//! wrong, the exit code is 1. Versions of MPI run before Portolan starts; if both are chosen, MPI
//! still has the thread level that Portolan needs. For a comparison, run one side at a time.

use mpi::Threading;
use portolan::Runtime;
use portolan_kernels::two_sided::World;
use portolan_kernels::{Job, KERNELS, Kernel, Result, Side, Version};
use std::process::ExitCode;

#[derive(Debug)]
struct Args {
    list: bool,
    side: Option<Side>,
    version: Option<String>,
    without: Option<String>,
    size: Option<usize>,
    small: bool,
    repeats: usize,
    raw: bool,
    kernels: Vec<String>,
}

impl Args {
    fn parse(mut words: impl Iterator<Item = String>) -> std::result::Result<Args, String> {
        let mut args = Args {
            list: false,
            side: None,
            version: None,
            without: None,
            size: None,
            small: false,
            repeats: 5,
            raw: false,
            kernels: Vec::new(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            let number = |text: String| match text.parse() {
                Ok(n) if (1..=1 << 40).contains(&n) => Ok(n),
                _ => Err(format!("{word} {text}: no number from 1 on")),
            };
            match &word[..] {
                "--list" => args.list = true,
                "--small" => args.small = true,
                "--raw" => args.raw = true,
                "--size" => args.size = Some(value().and_then(number)?),
                "--repeats" => args.repeats = value().and_then(number)?,
                "--version" => args.version = Some(value()?),
                "--without" => args.without = Some(value()?),
                "--side" => {
                    let name = value()?;
                    let side = Side::ALL.into_iter().find(|side| side.name() == name);
                    let names = Side::ALL.map(Side::name).join(", ");
                    args.side = Some(side.ok_or(format!("--side {name}: one of {names}"))?);
                }
                name if !name.starts_with('-') => {
                    if !KERNELS.iter().any(|kernel| kernel.name.starts_with(name)) {
                        return Err(format!("no kernel is called {name}; --list prints them"));
                    }
                    args.kernels.push(word);
                }
                _ => return Err(format!("unknown option {word}")),
            }
        }
        Ok(args)
    }

    fn wants(&self, kernel: &Kernel) -> bool {
        self.kernels.is_empty() || self.kernels.iter().any(|name| kernel.name.starts_with(name))
    }

    /// Returns the chosen versions, those of Portolan or the others.
    fn chosen(&self, of_portolan: bool) -> Vec<(&'static Kernel, Version)> {
        let wanted = |version: &Version| {
            (version.side == Side::Portolan) == of_portolan
                && self.side.is_none_or(|side| side == version.side)
                && self.version.as_deref().is_none_or(|name| name == version.name)
                && self.without.as_deref() != Some(version.name)
        };
        KERNELS
            .iter()
            .filter(|kernel| self.wants(kernel))
            .flat_map(|kernel| kernel.versions.iter().map(move |version| (kernel, *version)))
            .filter(|(_, version)| wanted(version))
            .collect()
    }
}

fn list() {
    for kernel in KERNELS {
        let versions: Vec<String> =
            kernel.versions.iter().map(|v| format!("{} {}", v.side.name(), v.name)).collect();
        println!(
            "{:<18} {:>8} {} ({}): {}",
            kernel.name,
            kernel.size,
            kernel.size_is,
            kernel.unit,
            versions.join(", ")
        );
    }
}

/// Runs versions. Returns whether all results are right.
fn run(args: &Args, job: &Job<'_>, versions: &[(&Kernel, Version)]) -> Result<bool> {
    let mut right = true;
    for (kernel, version) in versions {
        let size = args.size.unwrap_or(if args.small { kernel.small } else { kernel.size });
        let outcome = (version.run)(job, size)
            .map_err(|error| format!("{} {}: {error}", kernel.name, version.name))?;
        right &= outcome.verified;
        if job.me() > 0 {
            continue;
        }
        let (seconds, processor) = (outcome.seconds(), outcome.processor());
        let rate = outcome.work / seconds;
        let (side, verified) = (version.side.name(), if outcome.verified { "yes" } else { "no" });
        if args.raw {
            println!(
                "{}\t{side}\t{}\t{}\t{seconds:.6e}\t{processor:.6e}\t{rate:.6e}\t{}\t{verified}",
                kernel.name,
                version.name,
                job.n(),
                kernel.unit
            );
        } else {
            println!(
                "{:<16} {side:<8} {:<11} {:>3} ranks {:>10.3} ms {:>10.3} ms/rank {rate:>10.3} {:<16} {verified}",
                kernel.name,
                version.name,
                job.n(),
                1e3 * seconds,
                1e3 * processor,
                kernel.unit,
            );
        }
    }
    Ok(right)
}

fn all(args: &Args) -> Result<bool> {
    let (of_mpi, of_portolan) = (args.chosen(false), args.chosen(true));
    // Peers alone get MPI as a program without Portolan does.
    let level = if of_portolan.is_empty() { Threading::Single } else { Threading::Multiple };
    let (_universe, _) =
        mpi::initialize_with_threading(level).ok_or("MPI is initialised already")?;
    let mut right = run(args, &Job::new(None, args.repeats), &of_mpi)?;
    if !of_portolan.is_empty() {
        let rt = Runtime::init()?;
        right &= run(args, &Job::new(Some(&rt), args.repeats), &of_portolan)?;
        rt.finalize()?;
    }
    Ok(right)
}

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("kernels: {error}");
            return ExitCode::from(2);
        }
    };
    if args.list {
        list();
        return ExitCode::SUCCESS;
    }
    match all(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("kernels: a result is wrong");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("kernels: {error}");
            World::abort()
        }
    }
}
