//! The I/O forwarding examples as services: a server and clients that are started without a
//! launcher, as a person would start them in two shells.

use super::super::launch;
use super::special::Special;
use super::{Outcome, Suite};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// In Rust and in C.
pub const PROGRAMS: [&str; 2] = ["examples/io_forwarding", "examples/io_forwarding.c"];
pub const LABEL: &str = "examples/io_forwarding by hand";

const PATIENCE: Duration = Duration::from_secs(60);
const CLIENTS: usize = 2;

/// A process that is killed if the test ends before it does.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(program: &str, words: &[&str], out: &Path) -> Result<Process, String> {
        let failed = |e: std::io::Error| format!("{program}: {e}");
        let mut command = Command::new(program);
        launch::without_variables(&mut command);
        let file = File::options().create(true).append(true).open(out).map_err(failed)?;
        command.args(words).stdin(Stdio::null());
        command.stderr(file.try_clone().map_err(failed)?).stdout(file);
        command.spawn().map(Process).map_err(failed)
    }

    fn ends(&mut self, code: i32, what: &str) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) if status.code() == Some(code) => return Ok(()),
                Ok(Some(status)) => return Err(format!("{what}: {status}, expected {code}")),
                _ if begun.elapsed() > PATIENCE => return Err(format!("{what}: not at its end")),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

pub(super) fn run(special: &Special, suite: &mut Suite<'_>) {
    let dir = suite.builder.dir.join("by-hand");
    let out = dir.join("out");
    let _ = std::fs::remove_dir_all(&dir);
    let programs = PROGRAMS.map(|program| suite.path(program));
    let verdict = std::fs::create_dir_all(&dir).map_err(|e| e.to_string()).and_then(|()| {
        for program in &programs {
            for network in ["na+sm", "ofi+tcp://127.0.0.1"] {
                serves(program, network, &dir)?;
            }
        }
        Ok(())
    });
    let outcome = Outcome {
        ended: launch::Ended::default(),
        out: launch::text_of(&out),
        err: String::new(),
        why: None,
    };
    suite.record(special.label, &outcome, verdict);
    let _ = std::fs::remove_dir_all(&dir);
}

fn serves(program: &str, network: &str, dir: &Path) -> Result<(), String> {
    let (out, address) = (dir.join("out"), dir.join("address"));
    let files = dir.join("files");
    let text = |path: &Path| path.display().to_string();
    let (file, place) = (text(&address), text(&files));
    let client = |more: &str| {
        let mut words = vec!["client", "--address", &file];
        words.extend(more.split(' '));
        Process::start(program, &words, &out)
    };
    // Without a server, a client says what is missing.
    client("--files 1")?.ends(1, "a client without a server")?;
    let serve = || {
        let words = ["serve", "--network", network, "--address", &file, "--dir", &place];
        let serving = Process::start(program, &words, &out)?;
        let begun = Instant::now();
        while !address.exists() {
            if begun.elapsed() > PATIENCE {
                return Err("the server writes no address".to_string());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(serving)
    };
    let mut serving = serve()?;
    // Several at a time, one of which dies.
    let mut dying = client("--size 64M --files 8")?;
    let mut working = Vec::new();
    for _ in 0..CLIENTS {
        working.push(client("--size 3M --files 3 --segment 10000")?);
    }
    std::thread::sleep(Duration::from_millis(30));
    let _ = dying.0.kill();
    for client in &mut working {
        client.ends(0, "a client")?;
    }
    client("--size 1M --files 1")?.ends(0, "a late client")?;
    let ends = ["end", "--address", &file];
    Process::start(program, &ends, &out)?.ends(0, "the end")?;
    serving.ends(0, "the server")?;
    if address.exists() {
        return Err("the server leaves its address".into());
    }
    let mut serving = serve()?;
    // SAFETY: the process exists, because it has not been waited for.
    unsafe { libc::kill(serving.0.id() as libc::pid_t, libc::SIGTERM) };
    serving.ends(3, "the server after SIGTERM")?;
    let agree = launch::text_of(&out).matches("io_forwarding: all 3 digests agree").count();
    if agree < CLIENTS {
        return Err(format!("{agree} clients say that their digests agree"));
    }
    let _ = std::fs::remove_file(&out);
    Ok(())
}
