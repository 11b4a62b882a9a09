//! One launch of a command that starts ranks, under a deadline.
//!
//! No process outlives its launch: the command is killed with the runner (`PR_SET_PDEATHSIG`),
//! and at a deadline or a signal it is told to end, as a batch system would tell it, and then
//! everything that has the launch's mark ([`processes`]) is killed.

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
/// How long a command that is told to end may take.
const GRACE: Duration = Duration::from_secs(2);

static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// What to do before a signal ends the runner.
static CLEANUP: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

extern "C" fn note(signal: libc::c_int) {
    SIGNAL.store(signal, Ordering::Relaxed);
}

/// From now on SIGINT and SIGTERM end what is launched, and then the runner.
pub fn watch_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler stores to an atomic and does nothing else.
        unsafe { libc::signal(signal, note as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
}

/// Sets what is done before a signal ends the runner.
pub fn at_signal(cleanup: impl FnOnce() + Send + 'static) {
    *CLEANUP.lock().expect("no thread panics with this lock") = Some(Box::new(cleanup));
}

/// Ends the runner if a signal asks for it.
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

/// Waits for a command that starts no ranks, such as a compiler; a signal ends it and the runner.
/// Returns whether it succeeded.
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

/// Takes from a command the caller's variables that would change what is tested.
pub fn without_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("PORTOLAN_") || text.starts_with("ARMCI_") {
            command.env_remove(&name);
        }
    }
}

/// Sends a command's output to a file, its errors to another, or to the same.
pub fn into_files(command: &mut Command, out: &Path, err: Option<&Path>) {
    let output = File::create(out).expect("an output file");
    let errors = match err {
        Some(path) => File::create(path).expect("a file for errors"),
        None => output.try_clone().expect("a second handle of the output file"),
    };
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
}

/// What a file holds, whatever its bytes.
pub fn text_of(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

/// The standard output of a job. Open MPI 5 puts pieces of standard error before its lines
/// (`tests/mpi-bugs/mixed_streams.c`): those by which tests judge are freed from what is before them.
pub fn output_of(path: &Path) -> String {
    let text = text_of(path);
    if !system::mixes_streams() {
        return text;
    }
    let verdict = Regex::new("(?m)^.+(PASS [a-z]|FAIL [a-z]|EXPECT-[A-Z]+ )").expect("a pattern");
    verdict.replace_all(&text, "$1").into_owned()
}

/// The clock of deadlines. It slows down while more threads want to run than there are cores, so that a
/// deadline does not depend on what else the machine does. The factor is the square of a thread's share:
/// a rank gets its share of a core, and it waits for ranks that each have waited for theirs.
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
        // As in `0.52 0.40 0.31 6/312 4711`: six threads run or want to.
        let load = text_of(Path::new("/proc/loadavg"));
        let runnable = load.split(' ').nth(3).and_then(|field| field.split('/').next());
        let runnable: f64 = runnable.and_then(|number| number.parse().ok()).unwrap_or(1.0);
        self.elapsed += since.mul_f64((self.cores / runnable.max(1.0)).min(1.0).powi(2));
    }
}

/// A launch that is under way.
#[derive(Debug)]
pub struct Launch {
    child: Child,
    mark: String,
    begun: Instant,
    clock: ShareClock,
    starved: Duration,
    /// Its exit code, once it has ended; no code after a signal.
    code: Option<Option<i32>>,
}

/// How a launch ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// Exit code; none after a signal or a time-out.
    pub code: Option<i32>,
    /// Whether its deadline passed.
    pub timed_out: bool,
    /// Where its ranks stood at the deadline.
    pub account: String,
    /// Seconds in all.
    pub seconds: f64,
    /// The longest time in which the runner wanted to run and could not.
    pub starved: Duration,
}

impl Launch {
    /// Starts a command with a mark, `VARIABLE=VALUE`, in its environment.
    pub fn start(command: &mut Command, mark: &str) -> io::Result<Launch> {
        heed_signals();
        let (name, value) = mark.split_once('=').expect("a mark is VARIABLE=VALUE");
        // The second one tells `cluster.sh` to hand the mark on to other hosts.
        command.env(name, value).env("CLUSTER_KEEP", name);
        if std::env::var_os("NEXTEST").is_none() {
            // A runner that kills our own group on time-out must find the ranks in it.
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

    /// Whether it has ended; naps a little where it has not.
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

    /// How long it has run, by the clock of deadlines ([`ShareClock`]).
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed
    }

    /// Tells the command to end.
    pub fn terminate(&self) {
        processes::signal(self.child.id() as i32, libc::SIGTERM);
    }

    /// Ends the command and every process that has its mark.
    pub fn end(&mut self) {
        if self.code.is_none() {
            self.terminate();
            let told = Instant::now();
            while self.code.is_none() && told.elapsed() < GRACE {
                if let Ok(Some(status)) = self.child.try_wait() {
                    self.code = Some(status.code());
                }
                std::thread::sleep(NAP);
            }
        }
        if self.code.is_none() {
            // SAFETY: the group of our own child, which was not waited for yet.
            unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
            let _ = self.child.kill();
        }
        processes::kill_marked(&self.mark);
        if self.code.is_none() {
            self.code = Some(self.child.wait().ok().and_then(|status| status.code()));
        }
    }

    /// Waits for the end, or until `overdue` says that its deadline has passed; then says
    /// where the ranks stand, if `explain`, and ends them.
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

    /// Whether processes of a launch that has ended are still there after `patience`: a
    /// launcher may end a little before its ranks do. They are killed.
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

/// The files of this library and user in a directory of shared memory.
pub fn files_of_ours(dir: &Path) -> Vec<String> {
    // SAFETY: a plain system call.
    let user = unsafe { libc::getuid() };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        entry.file_name().to_string_lossy().starts_with("portolan.")
            && entry.metadata().is_ok_and(|about| about.uid() == user)
    });
    ours.map(|entry| entry.path().display().to_string()).collect()
}
