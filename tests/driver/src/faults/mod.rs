//! Suite `faults`: programs that meet faults, listed in the [`table`]. `docs/faults.md` describes
//! what has to happen in each case.
//!
//! If the system permits it, each launch gets its own file systems for `/dev/shm` and `TMPDIR` and
//! its own process namespace (`scripts/dev.d/lib/apart.sh`), so that everything it leaves behind is
//! detected. A case passes if it ends as required and in time, and leaves no process and no file.

mod headers;
mod table;

use super::args::Args;
use super::launch::{self, Ended, Launch};
use super::programs::{exit_code, variables};
use super::report::{Report, tail};
use super::system::{self, Tools};
use regex::Regex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use table::{BAD_INPUT, BadInput, Case, Kind, Size};

struct Suite<'a> {
    args: &'a Args,
    tools: &'a Tools,
    report: Report,
    dir: PathBuf,
    apart: bool,
    runs: usize,
}

pub fn main(args: Args) -> Result<ExitCode, String> {
    let tools = Tools::find()?;
    let dir = tools.target.join("faults");
    let bin = dir.join("bin");
    std::fs::create_dir_all(&bin).map_err(|e| format!("{}: {e}", bin.display()))?;
    let _lock = system::lock(&dir)?;
    build(&tools, &bin)?;
    let size = match (args.quick, args.release) {
        (true, _) => Size::Quick,
        (_, true) => Size::Release,
        _ => Size::Default,
    };
    let mut skips = Vec::new();
    let cases = table::cases(&tools, size, &mut skips);
    let report = Report::new(&system::mpi_name(), "faults");
    let mut suite =
        Suite { args: &args, tools: &tools, report, dir, apart: may_be_apart(), runs: 0 };
    let cases: Vec<&Case> = cases.iter().filter(|c| args.wants(&c.program, &c.label())).collect();
    if args.list {
        cases.iter().for_each(|case| println!("{}", case.label()));
        return Ok(ExitCode::SUCCESS);
    }
    if !suite.apart {
        println!("note: no name spaces here; files of the MPI itself are not looked for");
    }
    for (name, why) in skips.iter().filter(|(name, _)| args.wants(name, name)) {
        suite.report.skip(name, why);
    }
    for case in cases {
        suite.run(case, &bin);
    }
    for bad in BAD_INPUT {
        suite.page(bad, &bin);
        suite.rows(bad, &bin);
        suite.names(bad);
    }
    suite.report.end(args.junit.as_deref())
}

fn may_be_apart() -> bool {
    let script = ["-m", "-p", "-f", "--mount-proc", "sh", "-c", "mount -t tmpfs tmpfs /dev/shm"];
    let mut probe = Command::new("unshare");
    probe.args(script).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

fn build(tools: &Tools, bin: &Path) -> Result<(), String> {
    let faults = [("faults", "armci")].into_iter();
    for (name, library) in faults.chain(BAD_INPUT.iter().map(|bad| (bad.program, bad.library))) {
        let (prefix, source) = (tools.prefix.display(), format!("tests/c/{name}.c"));
        let own = if library == "mercury2" {
            format!("-I{prefix}/include/mercury2")
        } else {
            String::new()
        };
        let flags = format!(
            "-std=c99 -O1 -g -Wall -Wextra -Werror {own} -I{prefix}/include {source} -o {}/{name} \
             -L{prefix}/lib -Wl,-rpath,{prefix}/lib -l{library} -lpthread",
            bin.display()
        );
        let mut compiler = Command::new(&tools.cc);
        compiler.args(flags.split_whitespace()).current_dir(system::root());
        let built = compiler.status().is_ok_and(|status| status.success());
        if !built {
            return Err(format!("{source} does not build"));
        }
    }
    Ok(())
}

struct Outcome {
    ended: Ended,
    out: String,
    err: String,
    trouble: Option<String>,
}

impl Suite<'_> {
    fn launch(&mut self, case: &Case, words: &[String]) -> Outcome {
        self.runs += 1;
        let mark = format!("PORTOLAN_TEST_RUN=faults-{}-{}", std::process::id(), self.runs);
        let file = |name: &str| self.dir.join(name);
        for name in ["orphans", "files"] {
            std::fs::write(file(name), "").expect("a file of results");
        }
        let shm = case.setting("shm").map_or("size=50%".into(), |size| format!("size={size}"));
        let mut all: Vec<String> = Vec::new();
        if self.apart {
            let script = system::root().join("scripts/dev.d/lib/apart.sh").display().to_string();
            let unshare = "unshare -m -p -f --kill-child --mount-proc";
            all.extend(unshare.split(' ').map(String::from));
            all.extend([script, self.dir.display().to_string(), shm]);
        }
        all.extend_from_slice(words);
        let mut command = system::command(&all);
        launch::without_variables(&mut command);
        command.env("PORTOLAN_TEST_RANKS", case.ranks.to_string());
        command.env("PORTOLAN_TEST_SECONDS", (10 * case.seconds).to_string());
        command.envs(variables(&case.settings).unwrap_or_default());
        launch::into_files(&mut command, &file("out"), Some(&file("err")));
        let limit = Duration::from_secs(case.seconds);
        let mut launch = Launch::start(&mut command, &mark).expect("a launcher, or unshare");
        let ended = launch.wait(true, |launch| launch.elapsed() > limit);
        if !self.apart {
            if launch.leaves_processes(Duration::from_secs(3)) {
                std::fs::write(file("orphans"), "they were killed").expect("a file of results");
            }
            let left = launch::files_of_ours(Path::new("/dev/shm"));
            std::fs::write(file("files"), left.join("\n")).expect("a file of results");
        }
        let of = |name: &str, most: usize| {
            launch::text_of(&file(name)).lines().take(most).collect::<Vec<_>>().join("; ")
        };
        let trouble = if ended.timed_out {
            Some("not at its end after its time".into())
        } else if ended.code == Some(120) {
            Some("could not be set up".into())
        } else if !of("orphans", 1).is_empty() {
            Some(format!("left processes behind: {}", of("orphans", 3)))
        } else if !of("files", 1).is_empty() {
            Some(format!("left files behind: {}", of("files", 5)))
        } else {
            None
        };
        let err = launch::text_of(&file("err")) + &ended.account;
        Outcome { out: launch::output_of(&file("out")), err, trouble, ended }
    }

    fn run(&mut self, case: &Case, bin: &Path) {
        let label = case.label();
        if case.setting("shm").is_some() && !self.apart {
            return self.report.skip(&label, "mounting a file system is not permitted");
        }
        let mut words = self.tools.launcher.clone();
        words.extend(["-n".into(), case.ranks.to_string()]);
        words.push(bin.join(&case.program).display().to_string());
        words.extend(case.arguments.split_whitespace().map(String::from));
        let outcome = self.launch(case, &words);
        let why = speaks_against(case, &outcome);
        let seconds = outcome.ended.seconds;
        match why {
            None => {
                // The first line that begins with `rank N:` is a note for readers.
                let note = Regex::new("(?m)^rank [0-9]+: .*$").expect("a pattern");
                let mut note = note.find(&outcome.out).map_or("", |found| found.as_str());
                if case.kind == Kind::End && outcome.ended.code == Some(0) {
                    note = "pinned, the launcher's exit code 0: tests/mpi-bugs/killed_rank.c";
                }
                self.report.ok(&label, seconds, note);
            }
            Some(why) => {
                let lines = if outcome.ended.timed_out { 100 } else { 15 };
                let output = tail(lines, &[&outcome.err, &outcome.out]);
                self.report.fail(&label, seconds, &why, output);
            }
        }
    }

    /// Checks that the page has the tables that the program prints. `PORTOLAN_BLESS=1` writes them.
    fn page(&mut self, bad: &BadInput, bin: &Path) {
        let BadInput { program, page, .. } = bad;
        let label = format!("docs/{page}.md is what {program} prints [{}]", system::flavour());
        if !self.args.wants(program, &label) {
            return;
        }
        let begun = Instant::now();
        let file = system::root().join(format!("docs/{page}.md"));
        let old = std::fs::read_to_string(&file).unwrap_or_default();
        let tables = printed(&bin.join(program), "page");
        let new = with_tables(&old, program, &tables).unwrap_or_default();
        if std::env::var_os("PORTOLAN_BLESS").is_some() && !new.is_empty() {
            std::fs::write(&file, &new).expect("the page can be written");
        } else if new.is_empty() || new != old {
            let text = self.dir.join("out");
            std::fs::write(&text, &new).expect("a file of results");
            let diff = Command::new("diff").arg("-u").arg(&file).arg(&text).output();
            let diff = diff.map(|output| output.stdout).unwrap_or_default();
            let lines = tail(15, &[&String::from_utf8_lossy(&diff)]);
            let seconds = begun.elapsed().as_secs_f64();
            return self.report.fail(&label, seconds, "PORTOLAN_BLESS=1 writes it", lines);
        }
        self.report.ok(&label, begun.elapsed().as_secs_f64(), "");
    }

    /// Checks that the program has a row for every call that the library exports.
    fn rows(&mut self, bad: &BadInput, bin: &Path) {
        let label = format!("{} has a row for every call [{}]", bad.program, system::flavour());
        if !self.args.wants(bad.program, &label) {
            return;
        }
        let rows = printed(&bin.join(bad.program), "calls");
        let rows: BTreeSet<&str> = rows.lines().collect();
        // Names that end with `_` are those of Fortran.
        let exported = self.exported("libportolan.so");
        let calls = exported.iter().map(String::as_str).filter(|name| {
            bad.calls.iter().any(|begin| name.starts_with(begin)) && !name.ends_with('_')
        });
        // A call and its profiling twin are one function.
        let has_row = |name: &str| {
            let name = name.strip_prefix("mercury2_").unwrap_or(name);
            let twin = name.strip_prefix(['P', 'p']).unwrap_or_default();
            rows.contains(name) || rows.contains(twin)
        };
        let (known, without): (Vec<&str>, Vec<&str>) = calls.partition(|name| has_row(name));
        if known.is_empty() || !without.is_empty() {
            let why = format!("no row for {without:?}, rows for {} calls", known.len());
            return self.report.fail(&label, 0.0, &why, Vec::new());
        }
        self.report.ok(&label, 0.0, &format!("{} calls", known.len()));
    }

    /// Checks that the library exports every function that the headers declare. Those of Mercury 2.4
    /// have labels, and their plain names in a library of their own.
    fn names(&mut self, bad: &BadInput) {
        let BadInput { program, library, .. } = bad;
        let what = "the library has every call of the headers";
        let label = format!("{program}: {what} [{}]", system::flavour());
        if !self.args.wants(program, &label) {
            return;
        }
        let declared = headers::symbols(bad.headers);
        let exported = self.exported("libportolan.so");
        let plain = self.exported("libmercury2.so.0");
        let is_there = |name: &str| {
            let by_name =
                || name.strip_prefix("mercury2_").is_some_and(|name| plain.contains(name));
            exported.contains(name) && (*library != "mercury2" || by_name())
        };
        let missing: Vec<&String> = declared.iter().filter(|name| !is_there(name)).collect();
        if declared.len() < 20 || !missing.is_empty() {
            let why = format!("{missing:?} are missing, of {} calls", declared.len());
            return self.report.fail(&label, 0.0, &why, Vec::new());
        }
        self.report.ok(&label, 0.0, &format!("{} calls", declared.len()));
    }

    /// Returns the names that an installed library exports.
    fn exported(&self, library: &str) -> BTreeSet<String> {
        let path = self.tools.prefix.join("lib").join(library);
        let symbols = Command::new("nm").args(["-D", "--defined-only"]).arg(path).output();
        let symbols = symbols.map(|output| output.stdout).unwrap_or_default();
        let names = String::from_utf8_lossy(&symbols);
        names.lines().filter_map(|line| line.split_whitespace().nth(2)).map(String::from).collect()
    }
}

fn printed(program: &Path, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Returns the page with other tables between the two comments.
fn with_tables(page: &str, program: &str, tables: &str) -> Option<String> {
    let (begin, end) =
        (format!("<!-- tables: {program} page -->\n"), "<!-- end of the tables -->\n");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}{tables}{end}{after}"))
}

fn speaks_against(case: &Case, outcome: &Outcome) -> Option<String> {
    let and = |why: &str| {
        let more = outcome.trouble.as_ref().map(|trouble| format!(", and {trouble}"));
        Some(why.to_string() + &more.unwrap_or_default())
    };
    let begins = |text: &str| outcome.out.lines().filter(|line| line.starts_with(text)).count();
    let first = case.arguments.split_whitespace().next().unwrap_or_default();
    let came_to = |word: &str| outcome.out.lines().any(|line| line == format!("{word} {first}"));
    let failed = outcome.ended.code != Some(0);
    match case.kind {
        Kind::Pass if failed => return and(&exit_code(outcome.ended.code)),
        Kind::End if !failed && !system::forgets_exit_codes() => return and("exit code 0"),
        Kind::End if !came_to("EXPECT-END") || begins("FAIL") > 0 => {
            return and("did not get there, or went on");
        }
        _ => {}
    }
    if outcome.trouble.is_some() {
        return outcome.trouble.clone();
    }
    if case.kind == Kind::Pass && begins("PASS") != 1 {
        return Some("does not say PASS once".into());
    }
    let both = format!("{}\n{}", outcome.out, outcome.err);
    let says = |text: &&String| {
        let pattern = Regex::new(&format!("(?m){text}")).expect("a pattern of the table");
        pattern.is_match(&both)
    };
    let missing = case.texts.iter().find(|text| !says(text))?;
    Some(format!("does not say '{missing}'"))
}
