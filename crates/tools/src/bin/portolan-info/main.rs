//! Prints the version of the library, its decisions for this job, and its settings. Or prints which
//! ARMCI a program has.

mod loader;
#[path = "../../output.rs"]
mod output;
mod program;

use portolan::internals::engine;
use portolan::{Result, Runtime};
use portolan_base::config::{Group, VARIABLES, Variable};
use portolan_base::shm;
use portolan_engine::mpi::Flavour;
use portolan_engine::mpi::init::library_version;
use portolan_engine::path::Path;
use portolan_engine::topology::host_name;
use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: portolan-info [--markdown | --help | --version]
       mpiexec -n N portolan-info
       portolan-info PROGRAM

Prints the version, the MPI, the nodes, the path between each pair of ranks and
why, and every environment variable with its present value. Runs on any number
of ranks, also without mpiexec; rank 0 prints.

With PROGRAM, prints which ARMCI the program has: Portolan, ARMCI-MPI, ComEx or
none, and the file that contains it. It reads the program and the libraries that
the loader would use in this environment, and does not run it. The exit code is
1 if it cannot tell, because libraries are missing, and 2 if PROGRAM is no
program.

  --markdown   print the table of environment variables as a Markdown page,
               without starting MPI
  -h, --help   print this text
  -V, --version
               print the version of the library
";

/// Largest number of ranks whose paths are printed as a matrix.
const MATRIX: usize = 16;

fn main() -> ExitCode {
    // A path need not be UTF-8.
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    output::code(start(&arguments))
}

fn start(arguments: &[OsString]) -> ExitCode {
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    match words.iter().map(|word| &**word).collect::<Vec<_>>()[..] {
        [] => portolan::run(|rt| -> Result<()> {
            let report = report(rt)?;
            if rt.rank() == 0 {
                output::print(&report);
            }
            Ok(())
        }),
        ["--markdown"] => {
            output::print(&markdown());
            ExitCode::SUCCESS
        }
        ["-h" | "--help"] => {
            output::print(USAGE);
            ExitCode::SUCCESS
        }
        ["-V" | "--version"] => {
            output::print(concat!("portolan-info ", env!("CARGO_PKG_VERSION"), "\n"));
            ExitCode::SUCCESS
        }
        [name] if !name.starts_with('-') => match program::Report::of(&arguments[0]) {
            Ok(report) => {
                output::print(&report.to_string());
                if report.is_certain() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            }
            Err(why) => {
                eprintln!("portolan-info: {why}");
                ExitCode::from(2)
            }
        },
        _ => {
            eprint!("portolan-info: unknown arguments {}\n\n{USAGE}", words.join(" "));
            ExitCode::from(2)
        }
    }
}

fn report(rt: &Runtime) -> Result<String> {
    let mut text = String::new();
    let mut line = |what: &str, is: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{what:<20}{is}");
    };
    line("portolan", env!("CARGO_PKG_VERSION").into());
    line("built for", Flavour::name_of_built().into());
    line("MPI", library());
    line("thread level", rt.thread_level().name().into());
    let thread = if rt.has_progress_thread() {
        "yes".to_string()
    } else if rt.size() == 1 || !engine(rt).has_messages() {
        "no, not needed: every rank is reached directly".into()
    } else {
        "no: a rank serves others only inside calls".into()
    };
    line("progress thread", thread);
    line("ranks", rt.size().to_string());
    nodes(rt, &mut line)?;
    paths(rt, &mut line);
    line("shared memory", shared_memory(rt));
    line("atomics", atomics(rt).into());
    text.push('\n');
    variables(&mut text);
    Ok(text)
}

fn shared_memory(rt: &Runtime) -> String {
    let dir = &engine(rt).config.shm_dir;
    match shm::has_huge_pages(dir) {
        Ok(true) => format!("in {dir}, with huge pages"),
        Ok(false) => format!("in {dir}, without huge pages"),
        Err(error) => format!("in {dir}: {error}"),
    }
}

fn library() -> String {
    let version = library_version();
    let first = version.lines().next().unwrap_or_default();
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn nodes(rt: &Runtime, line: &mut dyn FnMut(&str, String)) -> Result<()> {
    let hosts = rt.world().all_gather(host_name::<64>())?;
    let topology = &engine(rt).topology;
    let real = topology.real_nodes();
    line(
        "nodes",
        if real == rt.nodes() {
            real.to_string()
        } else {
            format!("{}, divided from {real} by PORTOLAN_NODE_SIZE", rt.nodes())
        },
    );
    for node in 0..rt.nodes() {
        let ranks = topology.ranks_of(node);
        let name = &hosts[ranks[0]];
        let len = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        let name = String::from_utf8_lossy(&name[..len]);
        let word = if ranks.len() == 1 { "rank" } else { "ranks" };
        line(&format!("  node {node}"), format!("{word} {} on {name}", spans(ranks)));
    }
    Ok(())
}

/// Formats ascending ranks as `0-3,6`.
fn spans(ranks: &[usize]) -> String {
    ranks
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect::<Vec<_>>()
        .join(",")
}

fn paths(rt: &Runtime, line: &mut dyn FnMut(&str, String)) {
    let engine = engine(rt);
    let path = |from, to| engine.path_between(from, to);
    // Pairs consist of different ranks, because a rank always reaches itself directly.
    let pair = |same: bool| {
        (0..rt.size())
            .flat_map(|a| (0..a).map(move |b| (b, a)))
            .find(|&(a, b)| engine.topology.same_node(a, b) == same)
    };
    if let Some((a, b)) = pair(true) {
        let path = path(a, b);
        let why = if path == Path::Direct { "they share memory" } else { engine.remote_reason };
        line("path on a node", format!("{} ({why})", path.name()));
    }
    if let Some((a, b)) = pair(false) {
        let name = path(a, b).name();
        line("path between nodes", format!("{name} ({})", engine.remote_reason));
    }
    if rt.size() > MATRIX {
        return;
    }
    let row = |from: usize| {
        (0..rt.size()).map(|to| format!("{:<9}", path(from, to).name())).collect::<String>()
    };
    let head: String = (0..rt.size()).map(|to| format!("{:<9}", format!("to {to}"))).collect();
    line("paths", head.trim_end().into());
    for from in 0..rt.size() {
        line(&format!("  from {from}"), row(from).trim_end().into());
    }
}

fn atomics(rt: &Runtime) -> &'static str {
    if engine(rt).has_messages() {
        "locks; ranks that do not reach the owner directly ask it by message"
    } else {
        "locks in shared memory"
    }
}

fn variables(text: &mut String) {
    let mut group = None;
    for variable in VARIABLES {
        if group != Some(variable.group) {
            let _ = writeln!(text, "\n{}. {}\n", variable.group.title(), variable.group.purpose());
            group = Some(variable.group);
        }
        let name = match variable.alias {
            Some(alias) => format!("{} (or {alias})", variable.name),
            None => variable.name.into(),
        };
        let value = match variable.current() {
            Some(value) => format!("{value}, default {}", variable.default),
            None => variable.default.into(),
        };
        let _ = writeln!(text, "{name} = {value}");
        for part in wrapped(variable.meaning, 76) {
            let _ = writeln!(text, "    {part}");
        }
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("one exists from the start");
        if last.is_empty() {
            last.push_str(word);
        } else if last.len() + 1 + word.len() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

fn markdown() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         All are read once, when the library is initialised, and must be the same on all\n\
         ranks. A value that does not parse is an error. For an unknown name that begins `PORTOLAN_`,\n\
         rank 0 prints a warning that suggests the nearest name. Numbers of bytes may end in K, M or G. `portolan-info` prints the present values; this page is what\n\
         `portolan-info --markdown` prints.\n",
    );
    for group in Group::ALL {
        let (title, purpose) = (group.title(), group.purpose());
        let _ = write!(
            page,
            "\n## {title}\n\n{purpose}\n\n| variable | default | meaning |\n|---|---|---|\n"
        );
        for v in VARIABLES.iter().filter(|v| v.group == group) {
            page.push_str(&row(v));
        }
    }
    page
}

fn row(v: &Variable) -> String {
    let alias = v.alias.map(|a| format!("; `{a}` means the same")).unwrap_or_default();
    let meaning = v.meaning.replace('|', "\\|");
    format!("| `{}` | `{}` | {meaning}{alias} |\n", v.name, v.default)
}
