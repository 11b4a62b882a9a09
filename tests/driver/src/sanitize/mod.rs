//! Memory errors, and thread interleavings that lose data or wake-ups.
//!
//! The sanitizers are unstable options of rustc; `RUSTC_BOOTSTRAP=1` enables them in the stable
//! compiler. ThreadSanitizer is not used: the standard library is not built with it, so every test
//! and every thread that ends causes false positives, and it supports neither fences nor
//! membarrier.

mod miri;
mod valgrind;

use crate::launch::{self, Ended, Launch};
use crate::mpi::{Mpi, output};
use crate::programs::exit_code;
use crate::report::{Kind, Report, tail};
use crate::{results, system};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

pub const HELP: &str = "\
Without a name, runs all tools. asan and valgrind must first find a small deliberate fault; the
models include tests that must fail. A tool that cannot run is skipped, with the reason. Prints one
line per case. The last line is `N passed, N failed`, and the exit code is 0 if no case failed.

Miri needs a nightly toolchain (`rustup toolchain install nightly --component miri,rust-src`).
valgrind needs the library installed in target/MPI/prefix (scripts/install.sh --debug adds names and
line numbers). The output of the last command is in target/sanitize/MPI/log.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tool {
    /// The models of the lock-free parts (models/), in every order of their steps
    Loom,
    /// The unit tests of modules with unsafe code, except those that call MPI or the kernel, with
    /// strict provenance and tree borrows
    Miri,
    /// The unit tests, and checks of tests/ranks on two ranks, under AddressSanitizer
    Asan,
    /// C programs of tests/c on two ranks under memcheck, with the library as it is installed;
    /// tests/data/valgrind.supp suppresses its findings in MPI
    Valgrind,
    /// The targets of fuzz/: shapes, and everything that is decoded from bytes
    Fuzz,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// One MPI
    #[arg(long, value_name = "M", default_value = "mpich")]
    mpi: String,
    /// Fewer checks and programs, 5 s for each fuzz target instead of 60
    #[arg(long)]
    quick: bool,
    /// Only these tools
    tools: Vec<Tool>,
}

/// UCX and Open MPI patch mmap and similar functions in memory, over the sanitizers' own versions.
const WITHOUT_PATCHES: [(&str, &str); 3] =
    [("UCX_MEM_EVENTS", "no"), ("UCX_MEM_MMAP_HOOK_MODE", "none"), ("OMPI_MCA_memory", "^patcher")];

/// The checks of tests/ranks that `--quick` runs.
const QUICK_CHECKS: &str = "random lookups totals mutexes threads am_sizes am_aggregates \
    compose_damaged compose_random rpc_calls rpc_bulk rpc_forgeries typed_values";

/// The flags that cargo-fuzz uses; it can run the same targets (RUSTC_BOOTSTRAP=1 cargo fuzz run).
const FUZZ_FLAGS: &str = "-Zsanitizer=address --cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1";

/// A program that AddressSanitizer must report.
const FAULT_IN_RUST: &str = "\
fn main() {
    let gone = std::hint::black_box(Box::new(7)).as_ref() as *const i32;
    // SAFETY: none; this is the fault.
    println!(\"{}\", unsafe { std::ptr::read_volatile(gone) });
}
";

struct Sanitize {
    mpi: Mpi,
    quick: bool,
    /// The target triple of this machine.
    host: String,
    /// The directory of all MPIs, and the directory of this MPI.
    work: PathBuf,
    dir: PathBuf,
    log: PathBuf,
    report: Report,
    /// The cases of the test programs, whose lines are passed on.
    passed: usize,
    failed: usize,
    begun: Instant,
}

pub fn main(options: &Options) -> Result<ExitCode, String> {
    let quick = std::env::var("PORTOLAN_TEST_QUICK").is_ok_and(|value| !value.is_empty());
    let mut mpi = Mpi::clean(&options.mpi)?;
    mpi.environment.extend(WITHOUT_PATCHES.map(|(name, value)| (name.into(), value.into())));
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let work = system::root().join("target/sanitize");
    let dir = work.join(&mpi.tag);
    std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut sanitize = Sanitize {
        quick: quick || options.quick,
        host: host.ok_or("rustc -vV names no host")?.into(),
        work,
        log: dir.join("log"),
        dir,
        report: Report::new(&mpi.name, "sanitize"),
        mpi,
        passed: 0,
        failed: 0,
        begun: Instant::now(),
    };
    let all = Tool::value_variants();
    for tool in if options.tools.is_empty() { all } else { &options.tools } {
        sanitize.begun = Instant::now();
        match tool {
            Tool::Loom => sanitize.loom()?,
            Tool::Miri => sanitize.miri()?,
            Tool::Asan => sanitize.asan()?,
            Tool::Valgrind => sanitize.valgrind()?,
            Tool::Fuzz => sanitize.fuzz()?,
        }
    }
    let passed = sanitize.passed + sanitize.report.count(Kind::Passed);
    let failed = sanitize.failed + sanitize.report.count(Kind::Failed);
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Sanitize {
    fn command<W: AsRef<str>>(&self, words: &[W], target: &Path) -> Command {
        let mut command = self.mpi.command(words);
        command.env("CARGO_TARGET_DIR", target);
        command
    }

    /// Runs a command with its output in the log. Returns the exit code.
    fn run(&mut self, command: Command) -> Result<Option<i32>, String> {
        self.begun = Instant::now();
        launch::follow(command, &self.log, |_| ())
    }

    /// Runs a program for at most `limit` seconds.
    fn run_within(&mut self, mut command: Command, limit: u64) -> Result<Ended, String> {
        self.begun = Instant::now();
        launch::into_files(&mut command, &self.log, None);
        let mark = format!("PORTOLAN_TEST_RUN=sanitize-{}", std::process::id());
        let launch = Launch::start(&mut command, &mark);
        let mut launch = launch.map_err(|e| format!("{:?}: {e}", command.get_program()))?;
        Ok(launch.wait(false, |launch| launch.elapsed() > Duration::from_secs(limit)))
    }

    fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn ok(&mut self, case: &str, note: &str) {
        self.report.ok(case, self.seconds(), note);
    }

    fn fail(&mut self, case: &str, why: &str) {
        let output = tail(60, &[&launch::text_of(&self.log)]);
        self.report.fail(case, self.seconds(), why, output);
    }

    /// Runs a program of Rust's test harness. Each of its tests is a case, and the run is one.
    fn tests(&mut self, tool: &str, command: Command) -> Result<(), String> {
        self.begun = Instant::now();
        let (mut passed, mut failed) = (0, 0);
        let code = launch::follow(command, &self.log, |line| match results::harness_case(line) {
            Some((name, "ok")) => {
                println!("ok   {tool} {name}");
                passed += 1;
            }
            Some((name, "FAILED")) => {
                println!("FAIL {tool} {name}");
                failed += 1;
            }
            _ => {}
        })?;
        self.passed += passed;
        self.failed += failed;
        match code {
            Some(0) if passed > 0 => self.ok(tool, &format!("{passed} tests")),
            Some(0) => self.fail(tool, "no test ran"),
            code => self.fail(tool, &exit_code(code)),
        }
        Ok(())
    }

    fn loom(&mut self) -> Result<(), String> {
        let words = "cargo test --release --manifest-path models/Cargo.toml --no-fail-fast";
        let words: Vec<&str> = words.split(' ').collect();
        self.tests("loom", self.command(&words, &self.work.join("models")))
    }

    fn asan(&mut self) -> Result<(), String> {
        if !self.asan_finds_a_fault()? {
            return Ok(());
        }
        let target = self.dir.join("asan");
        let command = |words: &[&str]| {
            let words = [&["cargo", "test", "--target", &self.host], words].concat();
            let mut command = self.command(&words, &target);
            command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
            // Allocations of huge lengths may fail: the tests expect an error. Locals must stay on
            // the real stack, because the library determines how much of the stack is left.
            let options =
                "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0";
            command.env("ASAN_OPTIONS", options);
            command
        };
        let checks: Vec<String> = if self.quick {
            let checks = QUICK_CHECKS.split_whitespace();
            checks.map(|check| format!("{check} [n=2 default]")).collect()
        } else {
            let configurations = ["default", "path=message", "path=rma", "node_size=1"];
            configurations.map(|configuration| format!("[n=2 {configuration}]")).into()
        };
        // Skip rpc_idle: it measures the processor time of idle ranks, which the sanitizer
        // distorts.
        let options = ["--test", "ranks", "--", "--skip", "rpc_idle", "--quick"];
        let checks = options.into_iter().chain(checks.iter().map(String::as_str));
        let ranks = command(&checks.collect::<Vec<_>>());
        self.tests("asan", command(&["--workspace", "--lib"]))?;

        self.begun = Instant::now();
        let (mut passed, mut failed, mut totals) = (0, 0, None);
        let code = launch::follow(ranks, &self.log, |line| {
            totals = results::totals(line).or(totals);
            if let Some(line) = results::with_prefix(line, "asan") {
                println!("{line}");
                passed += usize::from(line.starts_with("ok "));
                failed += usize::from(line.starts_with("FAIL "));
            }
        })?;
        self.passed += passed;
        self.failed += failed;
        let (name, why) = ("asan ranks", exit_code(code));
        match (code, totals) {
            (_, None | Some((0, _))) => self.fail(name, &format!("no check ran, {why}")),
            (Some(0), _) => self.ok(name, ""),
            _ => self.report.fail(name, self.seconds(), &why, Vec::new()),
        }
        Ok(())
    }

    /// Returns whether rustc supports AddressSanitizer, and whether that finds the fault of a
    /// program.
    fn asan_finds_a_fault(&mut self) -> Result<bool, String> {
        let (source, program) = self.program("fault.rs", FAULT_IN_RUST)?;
        let words = "rustc --edition 2024 -g -Zsanitizer=address --target";
        let words: Vec<&str> =
            words.split(' ').chain([&*self.host, &source, "-o", &program]).collect();
        let mut rustc = self.mpi.command(&words);
        rustc.env("RUSTC_BOOTSTRAP", "1");
        if self.run(rustc)? != Some(0) {
            let text = launch::text_of(&self.log);
            let error = text.lines().find(|line| line.contains("error")).unwrap_or_default();
            let why = format!("this rustc cannot build with -Zsanitizer=address: {error}");
            self.report.skip("asan", &why);
            return Ok(false);
        }
        let code = self.run(self.mpi.command(&[program]))?;
        let finds = code != Some(0) && launch::text_of(&self.log).contains("heap-use-after-free");
        match finds {
            true => self.ok("asan finds a fault", ""),
            false => self.fail("asan finds a fault", "it does not"),
        }
        Ok(finds)
    }

    /// Writes the source of a program. Returns the names of the source and of the program.
    fn program(&self, name: &str, text: &str) -> Result<(String, String), String> {
        let source = self.dir.join(name);
        std::fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
        let program = source.with_extension("").display().to_string();
        Ok((source.display().to_string(), program))
    }

    fn fuzz(&mut self) -> Result<(), String> {
        if !system::on_path("c++") {
            self.report.skip("fuzz", "libFuzzer wants a C++ compiler");
            return Ok(());
        }
        let words = "cargo build --release --bins --manifest-path fuzz/Cargo.toml --target";
        let words: Vec<&str> = words.split(' ').chain([&*self.host]).collect();
        let target = self.dir.join("fuzz");
        let mut build = self.command(&words, &target);
        build.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FUZZ_FLAGS);
        if self.run(build)? != Some(0) {
            self.fail("fuzz builds", "it does not");
            return Ok(());
        }
        let sources = std::fs::read_dir(system::root().join("fuzz/fuzz_targets"));
        let sources = sources.map_err(|e| format!("fuzz/fuzz_targets: {e}"))?.flatten();
        let names = sources.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter_map(|name| name.strip_suffix(".rs").map(String::from)).collect();
        names.sort();
        let artifacts = self.work.join("artifacts");
        for name in &names {
            self.fuzz_target(name, &target, &artifacts)?;
        }
        Ok(())
    }

    fn fuzz_target(&mut self, name: &str, target: &Path, artifacts: &Path) -> Result<(), String> {
        let seconds = if self.quick { 5 } else { 60 };
        let corpus = self.work.join("corpus").join(name);
        for dir in [&*corpus, artifacts] {
            std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        }
        let program = target.join(&self.host).join("release").join(name);
        let mut command = self.mpi.command(&[program.display().to_string()]);
        command.arg(format!("-max_total_time={seconds}"));
        command.args(["-timeout=10", "-rss_limit_mb=2048", "-max_len=600", "-print_final_stats=1"]);
        command.arg(format!("-artifact_prefix={}/{name}-", artifacts.display())).arg(corpus);
        command.env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1");
        let ended = self.run_within(command, seconds + 60)?;
        let (case, text) = (format!("fuzz {name}"), launch::text_of(&self.log));
        if ended.code == Some(0) {
            let units = |line| str::strip_prefix(line, "stat::number_of_executed_units:");
            let units = text.lines().find_map(units).unwrap_or_default();
            self.ok(&case, &format!("{} inputs", units.trim()));
        } else {
            let kept = artifacts.join(format!("{name}.log"));
            let _ = std::fs::copy(&self.log, &kept);
            self.fail(&case, &format!("see {}", kept.display()));
        }
        Ok(())
    }
}
