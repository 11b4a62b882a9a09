//! `portolan-perf` measures Portolan on this machine and compares it with what the machine can
//! reach. A `run` starts the runtime once per path, and `measure` alternates between the contenders
//! that `cases` make in a `lab`. All ranks measure; only rank 0 prints and writes files.

mod advise;
mod args;
mod bounds;
mod cases;
mod compare;
mod format;
mod html;
mod kernels;
mod lab;
mod measure;
#[path = "../../output.rs"]
mod output;
mod plan;
mod report;
mod result;
mod run;
mod stats;
mod table;

use args::Args;
use clap::Parser;
use mpi::Threading;
use mpi::topology::SimpleCommunicator;
use portolan::Runtime;
use report::Report;
use result::Result;
use std::process::ExitCode;

const USAGE: u8 = 2;

fn main() -> ExitCode {
    output::code(start())
}

fn start() -> ExitCode {
    if let Some(arguments) = kernels::requested() {
        return refuse(&kernels::start(arguments));
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            if is_first() {
                output::check(error.print());
            }
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let tests = match cases::chosen(&args.tests) {
        Ok(tests) => tests,
        Err(error) => return refuse(&error),
    };
    if args.list {
        if is_first() {
            output::print(&args::list());
        }
        return ExitCode::SUCCESS;
    }
    // Read the old results first, so that an unreadable file is reported before the measurement.
    let old = match args.compare.as_deref().map(Report::read).transpose() {
        Ok(old) => old,
        Err(error) => return refuse(&error.to_string()),
    };
    let report = match &args.from {
        Some(file) => match Report::read(file) {
            Ok(report) => {
                if args.has_table() {
                    output::print(&table::whole(&report, cases::TESTS));
                }
                Some(report)
            }
            Err(error) => return refuse(&error.to_string()),
        },
        None => match measure(&args, &tests) {
            Ok(report) => report,
            Err(error) => {
                eprintln!("portolan-perf: {error}");
                portolan_engine::mpi::init::abort(1)
            }
        },
    };
    let Some(report) = report else { return ExitCode::SUCCESS };
    match finish(&args, &report, old.as_ref()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("portolan-perf: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether this process prints messages before MPI is initialised. This is rank 0 of the
/// launcher, or any process that was started without a launcher.
fn is_first() -> bool {
    let ranks =
        ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MPI_LOCALRANKID", "SLURM_PROCID"];
    ranks.iter().find_map(|name| std::env::var(name).ok()).is_none_or(|rank| rank == "0")
}

fn refuse(error: &str) -> ExitCode {
    if is_first() {
        eprintln!("portolan-perf: {error}\nportolan-perf --help says more.");
    }
    ExitCode::from(USAGE)
}

/// Measures the tests. Returns the results on rank 0 and `None` on the other ranks.
fn measure(args: &Args, tests: &[&'static cases::Test]) -> Result<Option<Report>> {
    let wanted = Threading::Multiple;
    let (universe, _) =
        mpi::initialize_with_threading(wanted).ok_or("MPI is initialised already")?;
    let world = universe.world();
    if std::env::var_os("PORTOLAN_INTERPOSE").is_none() {
        // Portolan is compared with MPI's own blocking calls, so it must not wrap them.
        run::set_variables(&[("PORTOLAN_INTERPOSE", Some("init"))]);
    }
    let report = over(args, tests, &world);
    if report.is_err() {
        // The caller aborts the job. The end of MPI would wait for ranks without an error.
        std::mem::forget(universe);
    }
    report
}

fn over(
    args: &Args,
    tests: &[&'static cases::Test],
    world: &SimpleCommunicator,
) -> Result<Option<Report>> {
    use mpi::traits::Communicator;
    if world.rank() == 0 {
        open_files(args)?;
    }
    let given = std::env::var("PORTOLAN_PATH").unwrap_or_else(|_| "auto".into());
    let paths = if args.path.is_empty() { vec![given.clone()] } else { args.path.clone() };
    let mut report: Option<Report> = None;
    let sizes = args.sizes();
    for path in paths.iter().filter(|_| !args.advise || !args.tests.is_empty()) {
        run::set_variables(&[("PORTOLAN_PATH", Some(path))]);
        let rt = Runtime::init()?;
        let first = rt.rank() == 0;
        if report.is_none() {
            let described = run::describe(&rt)?;
            if first && args.has_table() {
                output::print(&table::head(&described));
            }
            report = Some(described);
        }
        let mut before = None;
        let mut print = |test: &cases::Test, row: &report::ResultRow| {
            if first && args.has_table() {
                output::print(&table::next(&mut before, test.what, row, rt.size()));
            }
        };
        let plan = run::RunPlan {
            tests,
            sizes: &sizes,
            args,
            bounds: args.bounds(),
            effort: args.effort(),
        };
        let (rows, skipped) = plan.measure(&rt, world, path, &mut print)?;
        if let Some(report) = &mut report {
            report.rows.extend(rows);
            report.skipped.extend(skipped);
        }
        rt.finalize()?;
    }
    run::set_variables(&[("PORTOLAN_PATH", Some(&given))]);
    if args.advise {
        report = Some(advise::advise(args, world, report)?);
    }
    let report = report.filter(|_| world.rank() == 0);
    if let Some(report) = report.as_ref().filter(|_| args.has_table()) {
        output::print(&table::end(report));
    }
    Ok(report)
}

/// Creates the requested files, so that one that cannot be written is reported before the
/// measurement. Existing files keep their contents until then.
fn open_files(args: &Args) -> Result<()> {
    // The reader of a pipe must not see that it is opened and closed.
    let special =
        |file: &str| std::fs::metadata(file).is_ok_and(|found| !found.is_file() && !found.is_dir());
    let files = [&args.json, &args.csv, &args.html].into_iter().flatten();
    for file in files.filter(|file| *file != "-" && !special(file)) {
        let opened = std::fs::File::options().append(true).create(true).open(file);
        opened.map_err(|e| format!("cannot write {file}: {e}"))?;
    }
    Ok(())
}

fn finish(args: &Args, report: &Report, old: Option<&Report>) -> Result<ExitCode> {
    let write = |file: &str, text: String| -> Result<()> {
        if file == "-" {
            output::print(&text);
            return Ok(());
        }
        std::fs::write(file, text).map_err(|e| format!("cannot write {file}: {e}").into())
    };
    if let Some(file) = &args.json {
        write(file, report.to_json()?)?;
    }
    if let Some(file) = &args.csv {
        write(file, report.to_csv())?;
    }
    if let Some(file) = &args.html {
        write(file, html::page(report))?;
    }
    let Some(old) = old else { return Ok(ExitCode::SUCCESS) };
    let compared = compare::compare(old, report, args.by, args.tolerance);
    let text = compared.text(args.tolerance);
    if args.has_table() {
        output::print(&text);
    } else {
        eprint!("{text}");
    }
    Ok(if compared.slower() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_written_are_named_before_the_measurement() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("results.json").display().to_string();
        std::fs::write(&place, "old").expect("it can be written");
        let open = |words: &[&str]| {
            let words = [&["portolan-perf", "--json", &place], words].concat();
            open_files(&Args::try_parse_from(words).expect("they are valid"))
        };
        assert!(open(&["--csv", "-"]).is_ok());
        assert_eq!(std::fs::read_to_string(&place).expect("it is there"), "old");
        for option in ["--csv", "--html"] {
            let error = open(&[option, "/no/such/place"]).expect_err("there is none").to_string();
            assert!(error.starts_with("cannot write /no/such/place: "), "{error}");
            assert!(open(&[option, "/"]).is_err());
        }
    }
}
