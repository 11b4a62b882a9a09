//! The command line, the cases, their seeds, and the output.
//!
//! The parent simulates nothing. It starts this program again for a part of a case's seeds, one
//! part at a time per core, and continues after a seed that fails. A run that ends the process or
//! never ends therefore costs only its own seed.

use crate::machine::Outcome;
use crate::{
    checks, floor, heap, loopback, memory, programs, reports, rest, scale, silent, thread_fences,
    traced,
};
use std::fmt::Write as _;
use std::io::BufRead;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

struct Case {
    name: String,
    /// Number of seeds in the levels `full` and `release`.
    seeds: u64,
    release: u64,
    ranks: usize,
    run: Box<dyn Fn(u64, usize) -> Outcome + Sync>,
}

fn case(
    name: &str,
    seeds: u64,
    release: u64,
    ranks: usize,
    run: fn(u64, usize) -> Outcome,
) -> Case {
    Case { name: name.into(), seeds, release, ranks, run: Box::new(run) }
}

fn cases() -> Vec<Case> {
    let mut all = vec![
        case("floor_order", 20, 200, 8, floor::order),
        case("floor_collectives", 20, 200, 8, floor::collectives),
        case("programs", 300, 10_000, 16, programs::run),
        case("programs_of_three", 100, 2_000, 3, programs::run),
        case("installed", 100, 2_000, 8, loopback::run),
        case("slow", 10, 500, 16, programs::slow),
        case("rest", 40, 1_000, 5, rest::run),
        case("combined", 10, 500, 8, checks::combined),
        case("thread_fences", 10, 500, 3, thread_fences::run),
        case("gone", 5, 200, 8, silent::gone),
        case("traced", 5, 200, 6, traced::run),
        case("stopped", 5, 200, 8, silent::stopped),
        case("held_16", 1, 1, 16, heap::run),
        case("held_64", 1, 1, 64, heap::run),
        case("held_256", 1, 1, 256, heap::run),
    ];
    all.extend((2..=16).chain([64]).map(|n| case(&format!("scale_{n}"), 1, 1, n, scale::run)));
    for name in checks::OF_MANY {
        all.push(Case {
            run: Box::new(move |seed, ranks| checks::run(name, seed, ranks)),
            ..case(&format!("{name}_64"), 1, 5, 64, programs::run)
        });
    }
    for name in loopback::CHECKS {
        all.push(Case {
            run: Box::new(move |seed, ranks| loopback::check(name, seed, ranks)),
            ..case(&format!("installed_{name}"), 5, 50, 4, programs::run)
        });
    }
    for (name, _) in checks::CHECKS {
        // Only some seeds send batches through small rings.
        let seeds = if ["am_aggregates", "mismatches"].contains(name) { 20 } else { 2 };
        all.push(Case {
            run: Box::new(move |seed, ranks| checks::run(name, seed, ranks)),
            ..case(&format!("check_{name}"), seeds, 20, 4, programs::run)
        });
    }
    all
}

/// Interval of the seeds that run twice and must give the same result.
const TWICE: u64 = 10;

/// From this number of ranks on, one seed takes seconds.
const MANY: usize = 64;

/// Time limit of a seed.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs a seed in a new process, so that every seed begins with the same statics. Returns its
/// result line, or `None` if it failed.
fn alone(case: &Case, ranks: usize, seed: u64) -> Option<String> {
    let mut ends = [0; 2];
    // SAFETY: this process has one thread, so the new process may call any function. Parent and
    // child close each end of the pipe at most once.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0, "a pipe");
        let process = libc::fork();
        assert!(process >= 0, "a process");
        if process == 0 {
            end_with_parent();
            let Outcome { trace, events, switches, time, .. } = (case.run)(seed, ranks);
            let line = format!("seed {seed} {trace:016x} {events} {switches} {time}");
            libc::write(ends[1], line.as_ptr().cast(), line.len());
            libc::_exit(0);
        }
        libc::close(ends[1]);
        let mut line = [0u8; 256];
        let len = libc::read(ends[0], line.as_mut_ptr().cast(), line.len());
        libc::close(ends[0]);
        let mut status = 0;
        libc::waitpid(process, &mut status, 0);
        let line = String::from_utf8_lossy(&line[..usize::try_from(len).unwrap_or(0)]).into_owned();
        (status == 0).then_some(line)
    }
}

/// Runs seeds of a case in the child, a line for each. Exits with an error at the first failure.
fn child(case: &Case, ranks: usize, seeds: Range<u64>) {
    for seed in seeds {
        let Some(line) = alone(case, ranks, seed) else { std::process::exit(1) };
        if seed % TWICE == 0 {
            let again = alone(case, ranks, seed);
            if again.as_ref() != Some(&line) {
                eprintln!("seed {seed}: FAILED: two runs differ: {line} and {again:?}");
                std::process::exit(1);
            }
        }
        println!("{line}");
    }
}

#[cfg(feature = "mutations")]
fn put_back(name: &str) {
    use portolan_base::mutation::{Fault, put_back};
    let (_, fault) = Fault::ALL.iter().find(|(known, _)| *known == name).expect("a known fault");
    put_back(*fault);
}

#[cfg(not(feature = "mutations"))]
fn put_back(name: &str) {
    panic!("{name} is put back with the feature `mutations` alone");
}

/// Binds this process to one core, so that passing the baton does not wake another core.
fn bind(core: usize) {
    // SAFETY: the set is plain data, and its size is passed with it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Makes the kernel kill this process when its parent ends for any reason.
fn end_with_parent() {
    // SAFETY: the call only sets the signal that this process gets when its parent ends.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

struct Failure {
    seed: u64,
    /// The reason and the output of the run.
    text: String,
}

impl Failure {
    /// Summarises the failure in a line: the message of a rank's panic, or why the run ended.
    #[cfg(feature = "mutations")]
    fn shows(&self) -> String {
        let mut lines = self.text.lines().filter(|line| !line.trim().is_empty());
        let panic = lines.clone().skip_while(|line| !line.contains("panicked at")).nth(1);
        let line = panic.or_else(|| lines.clone().find(|line| line.contains("FAILED")));
        let line = line
            .or_else(|| lines.next_back())
            .unwrap_or(&self.text)
            .rsplit("FAILED: ")
            .next()
            .unwrap_or_default();
        line.chars().filter(|c| !"|`".contains(*c)).take(110).collect()
    }
}

#[derive(Default)]
struct Tally {
    begun: Option<Instant>,
    /// Number of parts of its seeds that have not ended.
    parts: u64,
    runs: u64,
    switches: u64,
    events: u64,
    failures: Vec<Failure>,
}

/// Gives a child the same addresses in every run, if the kernel permits this. The result of hashing
/// an address is then the same in each run of a seed.
fn at_the_same_addresses(command: &mut Command) {
    let ask = || {
        // SAFETY: the call only changes this process and takes plain numbers.
        unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
        Ok(())
    };
    // SAFETY: the closure makes one system call between fork and exec and allocates nothing.
    unsafe { command.pre_exec(ask) };
}

fn parent(
    case: &Case,
    ranks: usize,
    seeds: Range<u64>,
    worker: usize,
    mutation: Option<&str>,
    tally: &Mutex<Tally>,
) {
    let mut next = seeds.start;
    while next < seeds.end {
        let me = std::env::current_exe().expect("this program's path");
        let mut command = Command::new(me);
        command.arg("--child").arg(&case.name).arg(ranks.to_string());
        command.arg(next.to_string()).arg(seeds.end.to_string()).arg(worker.to_string());
        command.args(mutation);
        at_the_same_addresses(&mut command);
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let (lines, error) =
            (process.stdout.take().expect("piped"), process.stderr.take().expect("piped"));
        let said = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = std::io::Read::read_to_string(&mut { error }, &mut text);
            text
        });
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in std::io::BufReader::new(lines).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut late = false;
        loop {
            match receiver.recv_timeout(LIMIT) {
                Ok(line) => {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    if let ["seed", seed, _, events, switches, _] = words[..] {
                        let mut tally = tally.lock().expect("no thread has panicked");
                        tally.runs += 1;
                        tally.events += events.parse::<u64>().unwrap_or(0);
                        tally.switches += switches.parse::<u64>().unwrap_or(0);
                        next = seed.parse::<u64>().unwrap_or(next) + 1;
                    } else {
                        println!("{line}");
                    }
                }
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    late = true;
                    let _ = process.kill();
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = process.wait().expect("the child can be waited for");
        let said = said.join().unwrap_or_default();
        if next >= seeds.end && status.success() {
            return;
        }
        let mut tally = tally.lock().expect("no thread has panicked");
        tally.runs += 1;
        let why = if late { "no end within the limit" } else { "failed" };
        let text = format!("{} of {ranks} ranks: {why}\n{said}", case.name);
        tally.failures.push(Failure { seed: next, text });
        next += 1;
    }
}

struct Job<'a> {
    case: &'a Case,
    ranks: usize,
    seeds: Range<u64>,
}

/// Runs all jobs, one part of a case at a time per core. Calls `ended` when a job has ended.
fn run_jobs(jobs: &[Job<'_>], mutation: Option<&str>, ended: &(dyn Fn(&Job<'_>, &Tally) + Sync)) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut parts = Vec::new();
    let mut tallies = Vec::new();
    for job in jobs {
        let count = job.seeds.end - job.seeds.start;
        let pieces = count.clamp(1, workers as u64);
        let cut = |piece: u64| job.seeds.start + count * piece / pieces;
        parts.extend((0..pieces).map(|piece| (tallies.len(), cut(piece)..cut(piece + 1))));
        tallies.push(Mutex::new(Tally { parts: pieces, ..Tally::default() }));
    }
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        while let Some((at, seeds)) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (job, tally) = (&jobs[*at], &tallies[*at]);
            let lock = || tally.lock().expect("no thread has panicked");
            lock().begun.get_or_insert_with(Instant::now);
            parent(job.case, job.ranks, seeds.clone(), worker, mutation, tally);
            let mut tally = lock();
            tally.parts -= 1;
            if tally.parts == 0 {
                ended(job, &tally);
            }
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let work = &work;
            scope.spawn(move || work(worker));
        }
    });
}

/// The cases that detect reintroduced faults, and the divisor of the number of seeds for each.
#[cfg(feature = "mutations")]
const SEEKERS: &[(&str, u64)] = &[
    ("programs", 1),
    ("rest", 2),
    ("thread_fences", 2),
    ("combined", 2),
    ("check_am_senders", 4),
    ("check_am_aggregates", 10),
    ("check_am_late_items", 10),
];

/// Reintroduces faults of the past one at a time, and prints how many seeds detect each and how.
/// The output is the table of docs/simulation.md.
#[cfg(feature = "mutations")]
fn mutations(all: &[Case], seeds: u64, only: Option<&str>) -> ExitCode {
    let mut unseen = 0;
    println!("| fault | case | found in | of seeds | first | how it shows there |");
    println!("|---|---|---|---|---|---|");
    for (name, _) in portolan_base::mutation::Fault::ALL {
        if only.is_some_and(|only| only != *name) {
            continue;
        }
        let found = AtomicUsize::new(0);
        for (case, fewer) in SEEKERS {
            let case = all.iter().find(|known| known.name == *case).expect("a known case");
            let seeds = (seeds / fewer).max(1);
            let job = Job { case, ranks: case.ranks, seeds: 0..seeds };
            run_jobs(&[job], Some(name), &|_, tally| {
                let Some(first) = tally.failures.iter().min_by_key(|failure| failure.seed) else {
                    return;
                };
                let (count, seed, shows) = (tally.failures.len(), first.seed, first.shows());
                println!("| `{name}` | `{}` | {count} | {seeds} | {seed} | {shows} |", case.name);
                found.fetch_add(count, Ordering::Relaxed);
            });
        }
        if found.into_inner() == 0 {
            println!("| `{name}` | none | 0 | {seeds} | - | |");
            unseen += 1;
        }
    }
    if unseen == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(not(feature = "mutations"))]
fn mutations(_: &[Case], _: u64, _: Option<&str>) -> ExitCode {
    eprintln!("faults are put back with `--features mutations` alone");
    ExitCode::FAILURE
}

pub fn main() -> ExitCode {
    memory::one_heap();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let all = cases();
    if arguments.first().is_some_and(|a| a == "--child") {
        let case = all.iter().find(|c| c.name == arguments[1]).expect("a known case");
        let number = |at: usize| arguments[at].parse::<u64>().expect("a number");
        bind(number(5) as usize);
        if let Some(name) = arguments.get(6) {
            put_back(name);
        }
        end_with_parent();
        reports::install();
        child(case, number(2) as usize, number(3)..number(4));
        return ExitCode::SUCCESS;
    }
    let value = |name: &str| {
        let at = arguments.iter().position(|a| a == name)?;
        arguments.get(at + 1).cloned()
    };
    if arguments.iter().any(|a| a == "--table") {
        scale::table(value("--most").and_then(|n| n.parse().ok()).unwrap_or(1024));
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|a| a == "mutations") {
        let number = |name: &str| value(name).and_then(|n| n.parse::<u64>().ok());
        return mutations(&all, number("--seeds").unwrap_or(300), value("--fault").as_deref());
    }
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let release = arguments.iter().any(|a| a == "--release") || set("PORTOLAN_TEST_RELEASE");
    let quick = set("PORTOLAN_TEST_QUICK");
    let filter: Vec<&String> = arguments
        .iter()
        .enumerate()
        .filter(|(at, a)| {
            !a.starts_with('-')
                && (*at == 0
                    || !matches!(arguments[at - 1].as_str(), "--seeds" | "--ranks" | "--most"))
        })
        .map(|(_, a)| a)
        .collect();
    let exact = arguments.iter().any(|a| a == "--exact");
    let chosen = |case: &&Case| {
        let fits =
            |f: &&&String| if exact { case.name == ***f } else { case.name.contains(f.as_str()) };
        let all = filter.is_empty() && !(quick && !release && case.ranks >= MANY);
        all || filter.iter().any(|f| fits(&f))
    };
    if arguments.iter().any(|a| a == "--list") {
        all.iter().filter(chosen).for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    let range = value("--seeds").map(|text| {
        let number = |text: &str| text.parse::<u64>().expect("a number");
        text.split_once("..")
            .map_or_else(|| number(&text)..number(&text) + 1, |(from, to)| number(from)..number(to))
    });
    let ranks = value("--ranks").map(|n| n.parse().expect("a number"));
    let mut jobs = Vec::new();
    for case in all.iter().filter(chosen) {
        let count = match (release, quick) {
            (true, _) => case.release,
            (_, true) => case.seeds.div_ceil(4),
            _ => case.seeds,
        };
        let seeds = range.clone().unwrap_or(0..count);
        jobs.push(Job { case, ranks: ranks.unwrap_or(case.ranks), seeds });
    }
    let (passed, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    run_jobs(&jobs, None, &|Job { case, ranks, .. }, tally| {
        let verdict = if tally.failures.is_empty() { "ok  " } else { "FAIL" };
        let mut text = format!(
            "{verdict} {:<24} {} runs of {ranks} ranks, {} failed, {} events, {} switches, {:.1} s\n",
            case.name,
            tally.runs,
            tally.failures.len(),
            tally.events,
            tally.switches,
            tally.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64()),
        );
        for Failure { seed, text: why } in tally.failures.iter().take(3) {
            for line in format!("seed {seed}, {why}").lines() {
                let _ = writeln!(text, "     | {line}");
            }
        }
        print!("{text}");
        let to = if tally.failures.is_empty() { &passed } else { &failed };
        to.fetch_add(1, Ordering::Relaxed);
    });
    let failed = failed.into_inner();
    println!("{} passed, {failed} failed", passed.into_inner());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
