//! Launches a command that starts ranks, with a deadline.
//!
//! No process outlives its launch. The command is killed if the runner dies (`PR_SET_PDEATHSIG`).
//! At the deadline or on a signal, the runner sends SIGTERM to the command, as a batch system
//! would, and then kills every process that has the launch's mark (`processes`).

use super::{place, processes, system};
use regex::Regex;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
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

pub fn signalled() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// Writes to standard output. A closed pipe counts as a signal, which ends the run.
pub fn print(text: std::fmt::Arguments<'_>) {
    match io::stdout().write_fmt(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => note(libc::SIGPIPE),
        written => written.expect("standard output can be written"),
    }
}

pub fn heed_signals() {
    let signal = SIGNAL.load(Ordering::Relaxed);
    if signal != 0 {
        let cleanup = CLEANUP.lock().expect("no thread panics with this lock").take();
        if let Some(cleanup) = cleanup {
            cleanup();
        }
        if signal != libc::SIGPIPE {
            eprintln!("ended by signal {signal}");
        }
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
            Ok(None) if signalled() => {
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

    /// Returns whether the launch has ended, without a nap.
    fn poll(&mut self) -> bool {
        if self.code.is_none() {
            match self.child.try_wait() {
                Ok(Some(status)) => self.code = Some(status.code()),
                Err(_) => self.code = Some(None),
                Ok(None) => {}
            }
        }
        self.code.is_some()
    }

    /// Returns whether the launch has ended. Naps briefly if it has not.
    pub fn has_ended(&mut self) -> bool {
        if self.poll() {
            return true;
        }
        if signalled() {
            self.end();
            heed_signals();
        }
        let nap = Instant::now();
        std::thread::sleep(NAP);
        self.starved = self.starved.max(nap.elapsed());
        self.clock.advance();
        self.poll()
    }

    /// By the clock of deadlines (`ShareClock`).
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
            while !self.poll() && asked.elapsed() < GRACE {
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

/// A command of the driver itself: cargo, a script, or another command of the driver. Its output
/// goes to the end of a log.
#[derive(Debug)]
pub struct Running {
    launch: Launch,
    log: File,
    begun: String,
}

impl Running {
    pub fn start(mut command: Command, log: &Path) -> Result<Running, String> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let failed = |e: io::Error| format!("{}: {e}", log.display());
        if let Some(dir) = log.parent() {
            std::fs::create_dir_all(dir).map_err(failed)?;
        }
        let output = File::options().create(true).append(true).open(log).map_err(failed)?;
        let reader = File::open(log).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let mark = format!("PORTOLAN_TEST_DRIVER={}-{number}", std::process::id());
        let program = command.get_program().to_string_lossy().into_owned();
        let launch = Launch::start(&mut command, &mark).map_err(|e| format!("{program}: {e}"))?;
        Ok(Running { launch, log: reader, begun: String::new() })
    }

    pub fn has_ended(&mut self) -> bool {
        self.launch.poll()
    }

    /// Returns the exit code, or `None` if the command runs or was ended by a signal.
    pub fn code(&self) -> Option<i32> {
        self.launch.code.flatten()
    }

    /// Hands over the lines that the log has gained. The last one may lack its end if the command
    /// has ended.
    pub fn lines(&mut self, mut line: impl FnMut(&str)) {
        let mut bytes = Vec::new();
        let _ = self.log.read_to_end(&mut bytes);
        self.begun += &String::from_utf8_lossy(&bytes);
        while let Some(end) = self.begun.find('\n') {
            line(&self.begun[..end]);
            self.begun.drain(..=end);
        }
        if self.launch.code.is_some() && !self.begun.is_empty() {
            line(&std::mem::take(&mut self.begun));
        }
    }

    /// Asks the command and its children to end. Another command of the driver ends its own
    /// launches, which may take some seconds.
    pub fn terminate(&self) {
        processes::signal(-(self.launch.child.id() as i32), libc::SIGTERM);
    }

    pub fn end(&mut self) {
        self.terminate();
        let asked = Instant::now();
        while !self.launch.poll() && asked.elapsed() < 5 * GRACE {
            std::thread::sleep(NAP);
        }
        self.launch.end();
    }
}

/// Runs a command with its output in a new log, and hands over each line while it runs. Returns the
/// exit code, or `None` after a signal.
pub fn follow(
    command: Command,
    log: &Path,
    mut line: impl FnMut(&str),
) -> Result<Option<i32>, String> {
    let _ = std::fs::remove_file(log);
    let mut running = Running::start(command, log)?;
    loop {
        let ended = running.has_ended();
        running.lines(&mut line);
        if ended {
            return Ok(running.code());
        }
        if signalled() {
            running.end();
            heed_signals();
        }
        std::thread::sleep(4 * NAP);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    fn log(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("portolan-driver.{}.{name}", std::process::id()))
    }

    #[test]
    fn lines_are_handed_over_as_they_come() {
        let (log, mut lines) = (log("follow"), Vec::new());
        let command = shell("echo one; echo two >&2; printf three; exit 3");
        let code = follow(command, &log, |line| lines.push(line.to_string()));
        assert_eq!((code, lines), (Ok(Some(3)), ["one", "two", "three"].map(String::from).into()));
        assert_eq!(text_of(&log), "one\ntwo\nthree");
        let _ = std::fs::remove_file(log);
    }

    #[test]
    fn a_command_ends_with_its_children() {
        let log = log("end");
        let mut running = Running::start(shell("sleep 600 & sleep 600"), &log).expect("a shell");
        let mark = running.launch.mark.clone();
        let begun = Instant::now();
        while processes::marked(&mark).len() < 3 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(NAP);
        }
        assert_eq!(processes::marked(&mark).len(), 3, "the shell and its children");
        running.end();
        assert!(running.has_ended() && running.code().is_none());
        assert!(!running.launch.leaves_processes(Duration::from_secs(20)));
        let _ = std::fs::remove_file(log);
    }
}
