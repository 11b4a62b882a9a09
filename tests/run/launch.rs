//! Launches a command that starts ranks, with a deadline.
//!
//! No process outlives its launch. The command is killed if the runner dies (`PR_SET_PDEATHSIG`).
//! At the deadline or on a signal, the runner sends SIGTERM to the command, as a batch system
//! would, and then kills every process that has the launch's mark ([`processes`]).

use super::{place, processes, system};
use regex::Regex;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(5);
const GRACE: Duration = Duration::from_secs(2);

static SIGNAL: AtomicI32 = AtomicI32::new(0);
static CLEANUP: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

extern "C" fn note(signal: libc::c_int) {
    SIGNAL.store(signal, Ordering::Relaxed);
}

/// Installs handlers for SIGINT and SIGTERM, which end the launched processes and the runner.
pub fn watch_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, note as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
}

pub fn at_signal(cleanup: impl FnOnce() + Send + 'static) {
    *CLEANUP.lock().expect("no thread panics with this lock") = Some(Box::new(cleanup));
}

pub fn heed_signals() {
    let signal = SIGNAL.load(Ordering::Relaxed);
    if signal != 0 {
        let cleanup = CLEANUP.lock().expect("no thread panics with this lock").take();
        if let Some(cleanup) = cleanup {
            cleanup();
        }
        eprintln!("ended by signal {signal}");
        std::process::exit(128 + signal);
    }
}

/// Waits for a command that starts no ranks, such as a compiler. A signal ends the command and the
/// runner. Returns whether the command succeeded.
pub fn wait_for(mut child: Child) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Err(_) => return false,
            Ok(None) if SIGNAL.load(Ordering::Relaxed) != 0 => {
                let _ = child.kill();
                heed_signals();
            }
            Ok(None) => std::thread::sleep(NAP),
        }
    }
}

/// Removes the caller's variables that would change the test from a command's environment.
pub fn without_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("PORTOLAN_") || text.starts_with("ARMCI_") {
            command.env_remove(&name);
        }
    }
}

pub fn into_files(command: &mut Command, out: &Path, err: Option<&Path>) {
    let output = File::create(out).expect("an output file");
    let errors = match err {
        Some(path) => File::create(path).expect("a file for errors"),
        None => output.try_clone().expect("a second handle of the output file"),
    };
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
}

/// Replaces invalid UTF-8.
pub fn text_of(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

/// Returns the standard output of a job. Open MPI 5 inserts parts of standard error before lines of
/// standard output (`tests/mpi-bugs/mixed_streams.c`), so this function removes the text before the
/// lines that decide a test.
pub fn output_of(path: &Path) -> String {
    let text = text_of(path);
    if !system::mixes_streams() {
        return text;
    }
    let verdict = Regex::new("(?m)^.+(PASS [a-z]|FAIL [a-z]|EXPECT-[A-Z]+ )").expect("a pattern");
    verdict.replace_all(&text, "$1").into_owned()
}

/// The clock of deadlines. It slows down while more threads are runnable than there are cores, so
/// that a deadline does not depend on the load of the machine. The factor is the square of a
/// thread's share of a core: a rank gets only its share, and it waits for ranks that each get only
/// theirs.
#[derive(Debug)]
struct ShareClock {
    read: Instant,
    elapsed: Duration,
    cores: f64,
}

impl ShareClock {
    fn start() -> ShareClock {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        ShareClock { read: Instant::now(), elapsed: Duration::ZERO, cores: cores as f64 }
    }

    fn advance(&mut self) {
        let since = self.read.elapsed();
        self.read = Instant::now();
        // The format is `0.52 0.40 0.31 6/312 4711`; here 6 threads are runnable.
        let load = text_of(Path::new("/proc/loadavg"));
        let runnable = load.split(' ').nth(3).and_then(|field| field.split('/').next());
        let runnable: f64 = runnable.and_then(|number| number.parse().ok()).unwrap_or(1.0);
        self.elapsed += since.mul_f64((self.cores / runnable.max(1.0)).min(1.0).powi(2));
    }
}

#[derive(Debug)]
pub struct Launch {
    child: Child,
    mark: String,
    begun: Instant,
    clock: ShareClock,
    starved: Duration,
    /// The exit code once the launch has ended. The inner value is `None` after a signal.
    code: Option<Option<i32>>,
}

#[derive(Debug, Default)]
pub struct Ended {
    /// The exit code. `None` after a signal or a timeout.
    pub code: Option<i32>,
    pub timed_out: bool,
    pub account: String,
    pub seconds: f64,
    /// The longest measured nap of the runner, which shows how long it could not run.
    pub starved: Duration,
}

impl Launch {
    /// Starts a command with a mark, `VARIABLE=VALUE`, in its environment. Fails if the command
    /// cannot be started.
    pub fn start(command: &mut Command, mark: &str) -> io::Result<Launch> {
        heed_signals();
        let (name, value) = mark.split_once('=').expect("a mark is VARIABLE=VALUE");
        // `CLUSTER_KEEP` makes `scripts/dev cluster` pass the mark to other hosts.
        command.env(name, value).env("CLUSTER_KEEP", name);
        if std::env::var_os("NEXTEST").is_none() {
            // Under nextest, which kills the test's process group on a timeout, the ranks must stay
            // in that group. Otherwise they get their own group.
            command.process_group(0);
        }
        // SAFETY: prctl is safe to call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let (child, begun) = (command.spawn()?, Instant::now());
        let (clock, starved) = (ShareClock::start(), Duration::ZERO);
        Ok(Launch { child, mark: mark.into(), begun, clock, starved, code: None })
    }

    /// Returns whether the launch has ended. Naps briefly if it has not.
    pub fn has_ended(&mut self) -> bool {
        if self.code.is_some() {
            return true;
        }
        match self.child.try_wait() {
            Ok(Some(status)) => self.code = Some(status.code()),
            Err(_) => self.code = Some(None),
            Ok(None) => {
                if SIGNAL.load(Ordering::Relaxed) != 0 {
                    self.end();
                    heed_signals();
                }
                let nap = Instant::now();
                std::thread::sleep(NAP);
                self.starved = self.starved.max(nap.elapsed());
                self.clock.advance();
            }
        }
        self.code.is_some()
    }

    /// By the clock of deadlines ([`ShareClock`]).
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed
    }

    pub fn terminate(&self) {
        processes::signal(self.child.id() as i32, libc::SIGTERM);
    }

    pub fn end(&mut self) {
        if self.code.is_none() {
            self.terminate();
            let asked = Instant::now();
            while self.code.is_none() && asked.elapsed() < GRACE {
                if let Ok(Some(status)) = self.child.try_wait() {
                    self.code = Some(status.code());
                }
                std::thread::sleep(NAP);
            }
        }
        if self.code.is_none() {
            // SAFETY: the group belongs to our own child, which has not been waited for yet.
            unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
            let _ = self.child.kill();
        }
        processes::kill_marked(&self.mark);
        if self.code.is_none() {
            self.code = Some(self.child.wait().ok().and_then(|status| status.code()));
        }
    }

    /// Waits until the launch ends or `overdue` returns true. In the second case, records the state
    /// of the ranks if `explain` is set, and ends them.
    pub fn wait(&mut self, explain: bool, mut overdue: impl FnMut(&Launch) -> bool) -> Ended {
        let (mut timed_out, mut account) = (false, String::new());
        while !self.has_ended() {
            if overdue(self) {
                timed_out = true;
                if explain {
                    account = place::account(&self.mark);
                }
                self.end();
            }
        }
        Ended {
            code: self.code.flatten().filter(|_| !timed_out),
            timed_out,
            account,
            seconds: self.begun.elapsed().as_secs_f64(),
            starved: self.starved,
        }
    }

    /// Returns whether processes of an ended launch still exist after `patience`, and kills them.
    /// The patience is needed because a launcher may end slightly before its ranks.
    pub fn leaves_processes(&self, patience: Duration) -> bool {
        let begun = Instant::now();
        while !processes::marked(&self.mark).is_empty() {
            if begun.elapsed() > patience {
                processes::kill_marked(&self.mark);
                return true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    }
}

/// Returns this library's files that belong to this user in a directory of shared memory.
pub fn files_of_ours(dir: &Path) -> Vec<String> {
    // SAFETY: `getuid` is always safe to call.
    let user = unsafe { libc::getuid() };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        entry.file_name().to_string_lossy().starts_with("portolan.")
            && entry.metadata().is_ok_and(|metadata| metadata.uid() == user)
    });
    ours.map(|entry| entry.path().display().to_string()).collect()
}
