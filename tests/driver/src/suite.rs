//! Runs a suite with each MPI, in a process that has the environment of that MPI.

use crate::args::Args;
use crate::mpi::{self, Mpi};
use crate::{bugs, faults, launch, network, programs, results};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// Checks in Rust, on several ranks
    Ranks,
    /// Programs in C, C++, Fortran and with Global Arrays
    Programs,
    /// Ranks that die, hang or get bad input
    Faults,
    /// Late, lossy, slow and cut links between hosts
    Network,
    /// The known faults of MPIs: do they still occur?
    Bugs,
}

impl Suite {
    pub fn word(self) -> &'static str {
        match self {
            Suite::Ranks => "ranks",
            Suite::Programs => "programs",
            Suite::Faults => "faults",
            Suite::Network => "network",
            Suite::Bugs => "bugs",
        }
    }

    /// Runs the suite in this process, with the MPI of its environment.
    pub fn here(self, args: Args) -> Result<ExitCode, String> {
        let args = args.with_environment();
        match self {
            Suite::Ranks => Err("the suite `ranks` is the test program of the same name".into()),
            Suite::Programs => programs::main(args),
            Suite::Faults => faults::main(args),
            Suite::Network => network::main(args),
            Suite::Bugs => bugs::main(args),
        }
    }

    /// Returns the command line that runs the suite with an MPI. Builds the checks in Rust.
    pub fn command_line(self, mpi: &Mpi, args: &Args) -> Result<Vec<String>, String> {
        let program = match self {
            Suite::Ranks => vec![ranks(mpi)?.display().to_string()],
            _ => vec![this_program()?, "run".into(), self.word().into()],
        };
        Ok([program, args.words()].concat())
    }

    pub fn with_each(self, mpis: &str, args: &Args) -> Result<ExitCode, String> {
        let mpis = mpi::choose(mpis)?;
        let (mut passed, mut failed, mut code) = (0, 0, 0);
        for name in &mpis {
            let mpi = Mpi::complete(name)?;
            let mut command = mpi.command(&self.command_line(&mpi, args)?);
            if mpis.len() == 1 {
                return Err(format!("cannot run the suite: {}", command.exec()));
            }
            let name = format!("{}.{}.log", self.word(), std::process::id());
            let log = mpi.target.join("logs").join(name);
            let ended = launch::follow(command, &log, |line| {
                println!("{line}");
                if let Some((more_passed, more_failed)) = results::totals(line) {
                    (passed, failed) = (passed + more_passed, failed + more_failed);
                }
            })?;
            let _ = std::fs::remove_file(log);
            code = code.max(ended.unwrap_or(1));
        }
        if !args.list {
            println!("{passed} passed, {failed} failed");
        }
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
}

pub fn this_program() -> Result<String, String> {
    let path = std::env::current_exe().map_err(|e| format!("the path of this program: {e}"))?;
    // If the program was built anew meanwhile, the system marks the path of this one.
    Ok(path.display().to_string().trim_end_matches(" (deleted)").into())
}

/// Builds the test program `ranks` if it is out of date, and returns its path.
pub fn ranks(mpi: &Mpi) -> Result<PathBuf, String> {
    let words =
        "cargo test --release --no-run --test ranks --message-format=json-render-diagnostics";
    let words: Vec<&str> = words.split(' ').collect();
    let output = mpi.command(&words).stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|e| format!("cargo: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
    let mut built = messages.filter(|message| message["target"]["name"] == "ranks");
    let path = built.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    path.filter(|_| output.status.success()).ok_or("the program `ranks` does not build".into())
}
