//! The program `kernels`, which runs the kernels that compare one-sided libraries.
//!
//! Versions of MPI run before Portolan starts. If both are chosen, MPI still has the thread level
//! that Portolan needs. For a comparison, run one side at a time.

use clap::Parser;
use mpi::Threading;
use portolan::Runtime;
use portolan_kernels::two_sided::World;
use portolan_kernels::{Job, KERNELS, Kernel, Result, Side, Version};
use std::process::ExitCode;

/// Runs the kernels that compare one-sided libraries.
///
/// Each line has the kernel, the side and version, the number of ranks, the median seconds, the
/// processor seconds per rank, the rate with its unit, and whether the result is right. If a result
/// is wrong, the exit code is 1.
#[derive(Debug, Parser)]
struct Args {
    /// Print the kernels with their sizes and versions
    #[arg(long)]
    list: bool,
    /// Run only the versions of this side
    #[arg(long, value_parser = side)]
    side: Option<Side>,
    /// Run only the versions of this name
    #[arg(long, value_name = "NAME")]
    version: Option<String>,
    /// Run no version of this name
    #[arg(long, value_name = "NAME")]
    without: Option<String>,
    /// The size of all chosen kernels
    #[arg(long, value_name = "N", value_parser = positive)]
    size: Option<usize>,
    /// Use small sizes, for tests
    #[arg(long)]
    small: bool,
    /// The number of repetitions; the result is the median
    #[arg(long, value_name = "N", default_value = "5", value_parser = positive)]
    repeats: usize,
    /// Print fields separated by tabs
    #[arg(long)]
    raw: bool,
    /// The beginnings of kernels' names; all kernels by default
    #[arg(value_name = "KERNEL", value_parser = kernel)]
    kernels: Vec<String>,
}

fn side(name: &str) -> std::result::Result<Side, String> {
    let names = || Side::ALL.map(Side::name).join(", ");
    let found = Side::ALL.into_iter().find(|side| side.name() == name);
    found.ok_or_else(|| format!("the sides are {}", names()))
}

fn positive(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=1 << 40).contains(&n) => Ok(n),
        _ => Err("not a number from 1 on".into()),
    }
}

fn kernel(name: &str) -> std::result::Result<String, String> {
    let known = KERNELS.iter().any(|kernel| kernel.name.starts_with(name));
    if known { Ok(name.into()) } else { Err("no kernel has this name; --list prints them".into()) }
}

impl Args {
    fn wants(&self, kernel: &Kernel) -> bool {
        self.kernels.is_empty() || self.kernels.iter().any(|name| kernel.name.starts_with(name))
    }

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
    let args = Args::parse();
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
