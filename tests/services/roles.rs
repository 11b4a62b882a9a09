//! The processes of the tests: a server, and clients that call it until they are killed.
//!
//! A server writes its address into a file. A client reads the address, connects, checks each
//! result, and starts again with the file when a call fails. It counts its calls in a file of its
//! own, which the test reads. A wrong result, or an error that no fault explains, ends the client.

use portolan::rpc::bulk::{Buffer, Bulk, Permission};
use portolan::rpc::{Call, Class, Context, Failure, Listen, Status};
use portolan_kernels::rng::Rng;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit for everything that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit of a client's call.
const CALL: Duration = Duration::from_secs(3);
/// Bytes of a client's memory that the server pulls.
const PULLED: usize = 300_007;

pub struct Dir(TempDir);

impl Dir {
    pub fn new(name: &str) -> Dir {
        Dir(tempfile::Builder::new().prefix(name).tempdir().unwrap())
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// Starts this program in a role, with the role's arguments.
    pub fn start(role: &str, arguments: &[&str]) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "roles::play", "--nocapture"]);
        command
            .env("PORTOLAN_TEST_ROLE", role)
            .env("PORTOLAN_TEST_ROLE_ARGS", arguments.join("\n"));
        Process::run(&mut command)
    }

    pub fn run(command: &mut Command) -> Process {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // SAFETY: `prctl` may be called between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        Process(command.spawn().unwrap())
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: the process was not waited for, so its number is not reused.
        unsafe { libc::kill(self.0.id() as i32, signal) };
    }

    pub fn must_live(&mut self, what: &str) {
        if let Some(status) = self.0.try_wait().unwrap() {
            panic!("{what} has ended: {status}");
        }
    }

    /// Waits for the end of the process, which must be good.
    pub fn must_end(&mut self, what: &str) {
        wait_for(what, || self.0.try_wait().unwrap().is_some());
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{what}: {status}");
    }

    pub fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.0.id())).map_or(0, Iterator::count)
    }

    pub fn limit_files(&self, most: u64) {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        let pid = self.0.id() as i32;
        // SAFETY: `limit` is a valid place, and no old limit is requested.
        let set = unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut()) };
        assert_eq!(set, 0);
    }
}

pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn text_of(path: &Path) -> String {
    wait_for(&format!("{}", path.display()), || path.exists());
    std::fs::read_to_string(path).unwrap()
}

/// Starts a server on a network, and returns it with its address.
pub fn start_server(info: &str, file: &Path) -> (Process, String) {
    let _ = std::fs::remove_file(file);
    let mut server = Process::start("server", &[info, file.to_str().unwrap()]);
    wait_for("the address file", || {
        server.must_live("the server");
        file.exists()
    });
    (server, text_of(file))
}

pub fn counts(file: &Path) -> (u64, u64) {
    let bytes = std::fs::read(file).unwrap_or_default();
    let word =
        |at: usize| bytes.get(at..at + 8).map_or(0, |w| u64::from_le_bytes(w.try_into().unwrap()));
    (word(0), word(8))
}

pub fn end_server(address: &str) {
    let client = Client::open(address.split("://").next().unwrap(), Listen::No);
    let end = client.class.client::<(), ()>("end").unwrap();
    let there = client.class.lookup(address).unwrap();
    client.context.call(&there, &end, &(), PATIENCE).unwrap();
    drop(end);
    client.close();
}

// ----------------------------------------------------------------------- roles

/// Plays the role that the environment names. Does nothing if it names none.
#[test]
#[ignore = "the other tests start it"]
fn play() {
    let Ok(role) = std::env::var("PORTOLAN_TEST_ROLE") else { return };
    let arguments = std::env::var("PORTOLAN_TEST_ROLE_ARGS").unwrap();
    let arguments: Vec<&str> = arguments.split('\n').collect();
    match (&*role, &arguments[..]) {
        ("server", [info, file]) => server(info, Path::new(file)),
        ("client", [info, listen, address, counts, seed]) => {
            let listen = if *listen == "listen" { Listen::Yes } else { Listen::No };
            client(info, listen, Path::new(address), Path::new(counts), seed.parse().unwrap());
        }
        ("many", [address, count, counts]) => {
            super::idle::many(address, count.parse().unwrap(), Path::new(counts));
        }
        ("crowd", [address, count, ready]) => {
            super::idle::crowd(address, count.parse().unwrap(), Path::new(ready));
        }
        ("stopping", [address, kind, ready]) => {
            super::limits::stopping(address, kind, Path::new(ready));
        }
        _ => panic!("no role {role} with {arguments:?}"),
    }
}

pub fn digest(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| sum.wrapping_mul(31).wrapping_add(u64::from(*byte));
    bytes.iter().fold(bytes.len() as u64, step)
}

fn sum(call: Call<Bulk, u64>) -> Result<(), Failure> {
    let data = call.input()?;
    let (context, caller, len) = (call.context(), call.source(), data.len());
    let buffer = Buffer::zeroed(len)?;
    context.pull(&caller, data.at(0), buffer, len, move |moved, buffer| match moved {
        // The client may be gone.
        Ok(()) => drop(call.answer(&digest(&buffer))),
        Err(failure) => call.refuse(failure.status()),
    });
    Ok(())
}

fn server(info: &str, file: &Path) {
    raise_limit();
    let class = Class::init(info, Listen::Yes).unwrap();
    let context = class.context().unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let end = ended.clone();
    let functions = (
        class.serve_fn("echo", |bytes: Vec<u8>| Ok((digest(&bytes), bytes))).unwrap(),
        class.serve("sum", sum).unwrap(),
        class.serve_fn("zeros", |len: u64| Ok(vec![0u8; len as usize])).unwrap(),
        class.serve_fn("end", move |()| {
            end.store(true, Ordering::Relaxed);
            Ok(())
        }),
    );
    let new = file.with_extension("new");
    std::fs::write(&new, class.address_text(&class.own_address())).unwrap();
    std::fs::rename(&new, file).unwrap();
    while !ended.load(Ordering::Relaxed) {
        context.progress(Duration::from_secs(3600)).unwrap();
        context.trigger(usize::MAX);
    }
    drop(functions);
    context.destroy().unwrap();
    drop(context);
    class.finalize().unwrap();
}

pub fn raise_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
    limit.rlim_max
}

pub struct Client {
    pub class: Class,
    pub context: Context,
}

impl Client {
    pub fn open(info: &str, listen: Listen) -> Client {
        let class = Class::init(info, listen).unwrap();
        let context = class.context().unwrap();
        Client { class, context }
    }

    pub fn close(self) {
        self.context.destroy().unwrap();
        drop(self.context);
        self.class.finalize().unwrap();
    }
}

/// Returns whether a fault of the server or of the network explains the failure of a call.
fn is_explained(status: Status) -> bool {
    [Status::HOSTUNREACH, Status::TIMEOUT, Status::CANCELED, Status::ADDRNOTAVAIL].contains(&status)
}

fn client(info: &str, listen: Listen, address: &Path, counts: &Path, seed: u64) {
    let file = std::fs::File::create(counts).unwrap();
    let count = |good: u64, bad: u64| {
        file.write_all_at(&[good.to_le_bytes(), bad.to_le_bytes()].concat(), 0).unwrap();
    };
    let (mut rng, mut good, mut bad) = (Rng::new(seed, 0), 0, 0);
    let client = Client::open(info, listen);
    let echo = client.class.client::<Vec<u8>, (u64, Vec<u8>)>("echo").unwrap();
    let sum = client.class.client::<Bulk, u64>("sum").unwrap();
    loop {
        let Ok(there) = client.class.lookup(&text_of(address)) else { continue };
        loop {
            let pulled = rng.below(4) == 0;
            let len = if pulled { PULLED } else { [0, 10, 1000, 70_000][rng.below(4)] };
            let bytes: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
            let outcome = if pulled {
                let bulk = Bulk::from_bytes_of(&bytes, Permission::ReadOnly).unwrap();
                client.context.call(&there, &sum, &bulk, CALL)
            } else {
                client.context.call(&there, &echo, &bytes, CALL).map(|(sum, back)| {
                    assert!(back == bytes, "other bytes came back");
                    sum
                })
            };
            match outcome {
                Ok(sum) => {
                    assert_eq!(sum, digest(&bytes), "of {len} bytes");
                    good += 1;
                    count(good, bad);
                }
                Err(failure) => {
                    assert!(is_explained(failure.status()), "{failure}");
                    bad += 1;
                    count(good, bad);
                    std::thread::sleep(Duration::from_millis(2));
                    break;
                }
            }
        }
    }
}
