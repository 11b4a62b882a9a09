//! Suite `bugs`: the programs of `tests/mpi-bugs`, run on the affected MPI. Each shows a fault of
//! an MPI that the regression suite meets. A case passes if the output matches either the sound or
//! the faulty behaviour. Any other outcome is new behaviour and fails.

use super::args::Args;
use super::launch::{self, Launch};
use super::programs::exit_code;
use super::report::{Report, tail};
use super::system::{self, Tools};
use regex::Regex;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

struct Bug {
    program: &'static str,
    /// The affected MPI: a flavour, or the name of a Python wheel.
    mpi: &'static str,
    ranks: usize,
    /// The number of ranks on each host. Empty for this machine alone.
    hosts: &'static str,
    runs: usize,
    /// Pattern that a sound MPI prints. It is matched against standard output, then standard error,
    /// then a line `exit code N`. The exit code must be 0 unless the pattern names another.
    sound: &'static str,
    /// Pattern of the faulty output, matched against the same text.
    fault: &'static str,
}

const NONE: Bug =
    Bug { program: "", mpi: "mpich", ranks: 2, hosts: "", runs: 1, sound: "", fault: "" };

const BUGS: &[Bug] = &[
    Bug {
        program: "rget_derived",
        ranks: 3,
        runs: 3,
        sound: "^0 of",
        fault: "^[1-9][0-9]* of",
        ..NONE
    },
    Bug {
        program: "win_create_tcp",
        mpi: "openmpi",
        hosts: "1,1",
        sound: "windows work",
        fault: "MPI_ERR_WIN",
        ..NONE
    },
    Bug {
        program: "test_unexpected",
        hosts: "1,1",
        sound: "all messages came",
        fault: "only [0-9]+ of",
        ..NONE
    },
    Bug {
        program: "finalize_hang",
        ranks: 3,
        hosts: "2,1",
        runs: 4,
        sound: "all is done but MPI_Finalize",
        fault: HANGS,
        ..NONE
    },
    Bug {
        program: "killed_rank",
        runs: 20,
        sound: "^exit code [1-9]",
        fault: "^exit code 0$",
        ..NONE
    },
    Bug {
        program: "mixed_streams",
        mpi: "openmpi",
        ranks: 1,
        runs: 20,
        sound: "^result$",
        fault: "..result$",
        ..NONE
    },
    Bug {
        program: "open_port",
        mpi: "intel-wheel",
        ranks: 1,
        sound: "ports work",
        fault: "SIGNAL: 11",
        ..NONE
    },
];

const HANGS: &str = "not at its end after";
const LIMIT: Duration = Duration::from_secs(10);

pub fn main(args: Args) -> Result<ExitCode, String> {
    let mut report = Report::new(&system::mpi_name(), "mpi");
    let (name, no_hosts) = (system::mpi_name(), system::no_hosts());
    let compiler = Tools::compiler();
    let work = std::env::temp_dir().join(format!("portolan-bugs.{}", std::process::id()));
    std::fs::create_dir(&work).map_err(|e| format!("{}: {e}", work.display()))?;
    for bug in BUGS.iter().filter(|bug| [system::flavour(), &name].contains(&bug.mpi)) {
        let hosts =
            if bug.hosts.is_empty() { String::new() } else { format!(" hosts={}", bug.hosts) };
        let label = format!("{} [n={}{hosts}]", bug.program, bug.ranks);
        if !args.wants(bug.program, &label) {
            continue;
        }
        match &no_hosts {
            _ if args.list => println!("{label}"),
            Some(why) if !bug.hosts.is_empty() => report.skip(&label, why),
            _ => run(bug, &label, &compiler, &work, &mut report),
        }
    }
    let _ = std::fs::remove_dir_all(&work);
    if args.list {
        return Ok(ExitCode::SUCCESS);
    }
    report.end(args.junit.as_deref())
}

fn run(bug: &Bug, label: &str, compiler: &str, work: &Path, report: &mut Report) {
    let (begun, program) = (Instant::now(), work.join(bug.program));
    let (output, errors) = (work.join("output"), work.join("errors"));
    let source = system::root().join("tests/mpi-bugs").join(format!("{}.c", bug.program));
    let built = Command::new(compiler)
        .args(["-O1", "-Wall"])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-lpthread")
        .output();
    if !built.as_ref().is_ok_and(|built| built.status.success()) {
        let text = built.map(|built| String::from_utf8_lossy(&built.stderr).into_owned());
        let lines = tail(20, &[&text.unwrap_or_else(|e| e.to_string())]);
        return report.fail(label, 0.0, "does not build", lines);
    }
    let mut launcher = system::launcher();
    if !bug.hosts.is_empty() {
        launcher = system::launcher_on(bug.hosts);
    }
    launcher.extend(["-n".into(), bug.ranks.to_string(), program.display().to_string()]);
    let says = |pattern: &str, text: &str| {
        Regex::new(&format!("(?m){pattern}")).expect("a pattern").is_match(text)
    };
    let mut shows = 0;
    for number in 0..bug.runs {
        let mark = format!("PORTOLAN_TEST_RUN=bugs-{}-{number}", std::process::id());
        let mut command = system::command(&launcher);
        launch::without_variables(&mut command);
        // Disables the workarounds of mpirun.sh, so that the MPI shows its own behaviour.
        command.env("PORTOLAN_MPI_AS_IT_IS", "1");
        launch::into_files(&mut command, &output, Some(&errors));
        let mut launch = Launch::start(&mut command, &mark).expect("a launcher");
        let ended = launch.wait(true, |launch| launch.elapsed() > LIMIT);
        let mut text = launch::text_of(&output) + &launch::text_of(&errors);
        if ended.timed_out {
            text += &format!("\n{HANGS} {} seconds\n{}", LIMIT.as_secs(), ended.account);
        }
        if let Some(code) = ended.code {
            text += &format!("\nexit code {code}\n");
        }
        let code_is_said = bug.sound.starts_with("^exit code ");
        let sound = !ended.timed_out && (ended.code == Some(0) || code_is_said);
        if says(bug.fault, &text) {
            shows += 1;
        } else if !sound || !says(bug.sound, &text) {
            let why =
                format!("{}, and neither the sound output nor the fault's", exit_code(ended.code));
            return report.fail(label, begun.elapsed().as_secs_f64(), &why, tail(20, &[&text]));
        }
    }
    let note = format!("the fault shows in {shows} of {} runs", bug.runs);
    report.ok(label, begun.elapsed().as_secs_f64(), &note);
}
