//! `portolan-report`: reports what a job did on one HTML page.
//!
//! The library writes an event file for each rank (`PORTOLAN_TRACE=DIR`). This program reads the
//! files and writes a self-contained page with charts and with findings in words.

mod analyse;
mod args;
mod compare;
mod export;
mod model;
#[path = "../../output.rs"]
mod output;
mod page;
mod read;
mod run;
mod sample;
mod summary;
mod symbols;

use args::Args;
use clap::Parser;
use run::AnalysedRun;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            output::check(error.print());
            return output::code(ExitCode::from(error.exit_code() as u8));
        }
    };
    match report(&args) {
        Ok(()) => output::code(ExitCode::SUCCESS),
        Err(why) => {
            complain(&why);
            ExitCode::FAILURE
        }
    }
}

fn complain(why: &str) {
    eprintln!("portolan-report: {}", output::harmless(&summary::one_line(why)));
}

fn report(args: &Args) -> Result<(), String> {
    if let Some(directory) = &args.sample {
        return sample::write(directory, args.size());
    }
    let directory = args.trace.as_deref().ok_or("no trace directory is given, see --help")?;
    let run = AnalysedRun::read(directory)?;
    for problem in &run.trace.problems {
        complain(problem);
    }
    let (run, before) = match args.other.as_deref() {
        None => (run, None),
        Some(other) => {
            let newer = AnalysedRun::read(other)?;
            newer.trace.problems.iter().for_each(|problem| complain(problem));
            (newer, Some(run))
        }
    };
    let compared = before.as_ref().map(|before| compare::compare(before, &run));
    if !args.quiet {
        output::print(&summary::text(&run));
        if let Some(compared) = &compared {
            output::print(&compared.text());
        }
    }
    if let Some(file) = args.page() {
        let page = page::page(&run, compared.as_ref())?;
        std::fs::write(&file, page).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        eprintln!("portolan-report: the report is in {}", file.display());
    }
    if let Some(directory) = &args.csv {
        export::csv::write(&run, directory)?;
    }
    if let Some(file) = &args.perfetto {
        export::perfetto::write(&run.trace, file)?;
    }
    if let Some(directory) = &args.otf2 {
        export::otf2::write(&run.trace, directory)?;
    }
    Ok(())
}
