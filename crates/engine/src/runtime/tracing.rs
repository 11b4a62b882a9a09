//! The trace of an engine: the file, its metadata, and the comparison of clocks between hosts.
//!
//! The second start of the engine in a process writes to the subdirectory `start-2`, and so on. If
//! a file cannot be created, the job continues without it. The first rank of a node reports the
//! error, and so does a rank that would overwrite a file other than a trace.
//!
//! **Clocks.** The ranks of a host share a clock. At the start and at the end of the trace, one
//! rank of each host compares its clock with the clock of rank 0. It sends a message and receives
//! rank 0's time in the answer, [`TURNS`] times. The shortest round trip counts, with an error of
//! at most half of it. The hosts are compared one after the other, so that no round trip waits for
//! another host.

use super::Engine;
use super::oversubscription::{core_list, own_cores};
use super::startup_record::boot_number;
use crate::mpi::{Comm, init, life, p2p};
use crate::topology::host_name;
use portolan_base::config::VARIABLES;
use portolan_base::error::Result;
use portolan_base::trace::{self, Awaited, Cause};
use portolan_base::wait;
use portolan_trace_format::format::{FILE_MAGIC, file_name};
use portolan_trace_format::metadata::Metadata;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const TURNS: usize = 20;
/// The tag of clock comparisons, which no group uses on the engine's communicator.
const TAG: i32 = 0;

const NO_TRACE: io::ErrorKind = io::ErrorKind::InvalidInput;

/// A shorter prefix of a trace is accepted, because its writer may have been killed.
fn is_trace(file: &File) -> io::Result<bool> {
    let mut head = [0; FILE_MAGIC.len()];
    let bytes = file.read_at(&mut head, 0)?;
    Ok(head[..bytes] == FILE_MAGIC[..bytes])
}

/// Creates a rank's file with mode 0600, without waiting for the reader of a pipe. An existing
/// regular file must be a trace, and symbolic links are not followed.
fn open_trace(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).mode(0o600).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let file =
        options.clone().read(true).open(path).map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => io::Error::new(NO_TRACE, "a symbolic link, which is not followed"),
            _ => error,
        })?;
    if !file.metadata()?.is_file() {
        return options.open(path);
    }
    if !is_trace(&file)? {
        return Err(io::Error::new(
            NO_TRACE,
            "a file that is not a trace, which is not overwritten",
        ));
    }
    // Another job may still write the old file, so replace it if the directory permits that.
    if fs::remove_file(path).is_ok() {
        return options.create_new(true).open(path);
    }
    // The mode of another user's file cannot be changed.
    let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
    file.set_len(0)?;
    Ok(file)
}

fn remove_traces(dir: &Path, first: usize) -> io::Result<()> {
    for entry in fs::read_dir(dir)?.flatten() {
        let rank = entry.file_name().to_str().and_then(portolan_trace_format::format::rank_of);
        if rank.is_some_and(|rank| rank >= first)
            && File::open(entry.path()).and_then(|file| is_trace(&file)).unwrap_or(false)
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn paths_text(name: &str, ranks: usize) -> String {
    format!("{name} to {ranks} rank{}", if ranks == 1 { "" } else { "s" })
}

impl Engine {
    pub(super) fn begin_trace(&self) -> Result<()> {
        if !self.observer().settings().traces {
            return Ok(());
        }
        let dir = Path::new(&self.config.trace);
        let path = dir.join(file_name(self.rank()));
        match self.trace_file(dir, &path) {
            Ok(file) => self.observer().write_to(file, &self.metadata().to_json()),
            // Errors of the directory are the same on a node, so one rank reports them.
            Err(error)
                if error.kind() == NO_TRACE
                    || self.topology.ranks_of(self.topology.my_node())[0] == self.rank() =>
            {
                log::warn!(
                    "no trace is written by this rank, and perhaps by others: {}: {error:#}; the \
                     job continues without it; set PORTOLAN_TRACE to a writable directory",
                    path.display()
                );
            }
            Err(_) => {}
        }
        self.compare_clocks()
    }

    /// Collective, before the file is closed.
    pub(super) fn end_trace(&self) -> Result<()> {
        if self.observer().settings().traces {
            self.compare_clocks()?;
            self.trace_statistics();
        }
        Ok(())
    }

    fn trace_file(&self, dir: &Path, path: &Path) -> io::Result<File> {
        fs::create_dir_all(dir)?;
        if self.rank() == 0 {
            // An earlier job may have had more ranks and more starts.
            remove_traces(dir, self.size())?;
            let later = (2..).map(|start| dir.join(format!("start-{start}")));
            for later in later.take_while(|later| self.config.trace_start == 0 && later.is_dir()) {
                remove_traces(&later, 0)?;
                let _ = fs::remove_dir(&later); // it may hold other files
            }
        }
        open_trace(path)
    }

    fn metadata(&self) -> Metadata {
        let observer = self.observer();
        let settings = observer.settings();
        let (clock, now) = observer.clock().unwrap_or_default();
        let mut paths: Vec<(&str, usize)> = Vec::new();
        for rank in (0..self.size()).filter(|&rank| rank != self.rank()) {
            let name = self.path_between(self.rank(), rank).name();
            match paths.iter_mut().find(|(known, _)| *known == name) {
                Some((_, ranks)) => *ranks += 1,
                None => paths.push((name, 1)),
            }
        }
        let paths: Vec<String> =
            paths.iter().map(|(name, ranks)| paths_text(name, *ranks)).collect();
        let command = fs::read("/proc/self/cmdline").unwrap_or_default();
        let host = host_name::<256>();
        let host = host.split(|&byte| byte == 0).next().unwrap_or_default();
        let words = command.split(|&byte| byte == 0).filter(|word| !word.is_empty());
        let set = VARIABLES.iter().filter_map(|v| Some((v.name.to_string(), v.current()?)));
        Metadata {
            rank: self.rank() as u64,
            ranks: self.size() as u64,
            host: String::from_utf8_lossy(host).into_owned(),
            host_number: self.topology.host_of(self.rank()) as u64,
            node: self.topology.my_node() as u64,
            pid: u64::from(std::process::id()),
            mpi: init::library_version().lines().next().unwrap_or_default().to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            paths: paths.join(", "),
            progress_thread: u64::from(self.has_thread()),
            cores: core_list(&own_cores()),
            usable_cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
            machine: boot_number(),
            settings: set.collect(),
            program: words.map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
            engine: self.config.trace_start as u64,
            started_wall: trace::wall(),
            started_clock: now,
            clock: clock.into(),
            limit_bytes: settings.limit,
            lacks_mpi: u64::from(life::are_calls_unrecorded()),
        }
    }

    fn compare_clocks(&self) -> Result<()> {
        let me = self.rank();
        let wire = self.world().live_team()?.wire().comm();
        if me == 0 {
            self.observer().compared(self.clock_now(), 0, 0);
            let hosts = (1..self.size()).filter(|&rank| self.topology.host_of(rank) == rank);
            for rank in hosts {
                self.exchange(wire, rank, Some(0))?;
                for _ in 0..TURNS {
                    self.exchange(wire, rank, None)?;
                    self.exchange(wire, rank, Some(self.clock_now()))?;
                }
            }
        } else if self.topology.host_of(me) == me {
            self.exchange(wire, 0, None)?;
            let mut best = (u64::MAX, 0, 0);
            for _ in 0..TURNS {
                let begun = self.clock_now();
                self.exchange(wire, 0, Some(0))?;
                let there = self.exchange(wire, 0, None)?;
                let turn = self.clock_now().saturating_sub(begun);
                best = best.min((turn, begun + turn / 2, there));
            }
            let (turn, time, there) = best;
            self.observer().compared(time, there.wrapping_sub(time) as i64, turn.div_ceil(2));
        }
        Ok(())
    }

    fn clock_now(&self) -> u64 {
        self.observer().clock().map_or(0, |(_, now)| now)
    }

    /// Sends a number, or returns a received one.
    fn exchange(&self, wire: &Comm, rank: usize, send: Option<u64>) -> Result<u64> {
        let mut number = send.unwrap_or(0).to_ne_bytes();
        let what = || format!("rank {rank} to compare clocks for the trace");
        // SAFETY: the number lives until the request is complete. If the wait fails, the job ends.
        let mut request = unsafe {
            match send.is_none() {
                true => p2p::irecv(wire, number.as_mut_ptr(), number.len(), Some(rank), TAG)?,
                false => p2p::isend(wire, number.as_ptr(), number.len(), rank, TAG)?,
            }
        };
        if let Err(error) =
            wait::until(self, Awaited::of(Cause::Start, rank), &what, || request.test())
        {
            error.end_job_in("comparing clocks failed");
        }
        Ok(u64::from_ne_bytes(number))
    }
}
