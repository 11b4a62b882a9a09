//! I/O forwarding: compute ranks ship their file calls to I/O ranks.
//!
//! On large machines the compute nodes do not mount the file system; a few I/O nodes do,
//! and run the calls of the others. Here one rank in four is an I/O rank (at least one),
//! and the others write a checkpoint through them: open, write, close, stat, open, read,
//! close. A lone rank serves itself.
//!
//! - The data of a call is a **bulk handle over many segments**, as the interior of a
//!   field with ghost cells is. Files are read back into other segments than they were
//!   written from.
//! - A write of any length passes through a **buffer of fixed size** at the I/O rank:
//!   chunk by chunk it is pulled from the client's memory while threads write the chunks
//!   before it to the file; a read likewise, the other way round.
//! - Clients keep several calls under way, on all I/O ranks, and compute digests
//!   meanwhile. At the end the digest of what was written is compared with that of what
//!   was **read back**.
//! - What the file system refuses comes back as its **errno value**: the program tries a
//!   missing file, one outside the directory, and a full device.
//! - **SIGTERM** to an I/O rank: it completes the calls that it has begun, answers further
//!   ones with `ESHUTDOWN`, and the job ends in order, with exit code 3. SIGTERM to a
//!   compute rank: that rank begins no further file; exit code 3 as well.
//! - Transfers that last show their progress on standard error.
//!
//! How to run it:
//!
//! ```text
//! ./mpirun.sh -n 4 --example io_forwarding
//! ./mpirun.sh -n 4 --example io_forwarding --size 256M --files 4 --dir /scratch/me
//! ./mpirun.sh -n 4 --node-size 1 --example io_forwarding    # as if on four hosts
//! ```
//!
//! | option | default | |
//! |---|---|---|
//! | `--dir DIR` | a temporary one, removed at the end | where I/O rank `R` keeps its files: `DIR/io-R` |
//! | `--size BYTES` | 16M | of each file; K, M and G count in 1,024 |
//! | `--files N` | 2 | of each compute rank |
//! | `--io-ranks N` | one in four | they are spread evenly over the ranks |
//! | `--segment BYTES` | 64K | of the segments of a client's memory |
//! | `--chunk BYTES` | 1M | that an I/O rank moves at a time |
//! | `--buffer BYTES` | 8M | of an I/O rank's buffer |
//! | `--window N` | 2 | calls with data that a client keeps under way |
//!
//! Exit codes: 0 when all digests agree, 1 when not or when something fails, 2 for
//! options that make no sense, 3 when SIGTERM has ended the job early.
//!
//! | file | what it has |
//! |---|---|
//! | `calls.rs` | the calls that travel |
//! | `client.rs` | the compute rank |
//! | `server.rs` | the I/O rank: its loop, and the calls without data |
//! | `moves.rs` | reads and writes at the I/O rank, in chunks |
//! | `files.rs` | its files, and the threads that read and write them |
//! | `options.rs` | the options, and the signal |

mod calls;
mod client;
mod files;
mod moves;
mod options;
mod server;

use calls::Calls;
use client::{Client, Ended, Report};
use options::Options;
use portolan::rpc::hg::Class;
use portolan::{Operator, Runtime};
use server::Server;
use std::cell::Cell;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Who does what.
#[derive(Debug, Clone)]
pub struct Roles {
    /// The I/O ranks.
    pub servers: Vec<usize>,
    /// The compute ranks.
    pub clients: Vec<usize>,
}

impl Roles {
    /// So many I/O ranks, spread evenly; a lone rank is both.
    fn of(ranks: usize, wanted: Option<usize>) -> Roles {
        let most = (ranks - 1).max(1);
        let count = wanted.unwrap_or(ranks / 4).clamp(1, most);
        let servers: Vec<usize> = (0..count).map(|n| n * ranks / count).collect();
        let mut clients: Vec<usize> = (0..ranks).filter(|r| !servers.contains(r)).collect();
        if clients.is_empty() {
            clients.push(0);
        }
        Roles { servers, clients }
    }
}

fn main() -> ExitCode {
    options::watch_sigterm();
    let code = Cell::new(0);
    let ended = portolan::run(|rt| -> Result<()> {
        match Options::parse(std::env::args().skip(1)) {
            Ok(Some(options)) => code.set(job(rt, &options)?),
            Ok(None) if rt.rank() == 0 => println!("{}", options::USAGE),
            Ok(None) => {}
            Err(text) => {
                if rt.rank() == 0 {
                    eprintln!("io_forwarding: {text}\n{}", options::USAGE);
                }
                code.set(2);
            }
        }
        Ok(())
    });
    if code.get() == 0 { ended } else { ExitCode::from(code.get()) }
}

/// All of it, on this rank; the exit code, the same on all.
fn job(rt: &Runtime, options: &Options) -> Result<u8> {
    let roles = Roles::of(rt.size(), options.io_ranks);
    let class = Class::init("mpi", true)?;
    let context = class.context()?;
    let serving = roles.servers.contains(&rt.rank());
    let mut server = match serving {
        true => Some(Server::new(&class, &context, rt.rank(), &roles, options)?),
        false => None,
    };
    let calls = match &server {
        Some(server) => server.calls.clone(),
        None => Calls::of_client(&class)?,
    };
    if rt.rank() == 0 {
        println!("{}", options.describe(&roles));
    }
    // Now everybody has registered what it serves.
    rt.world().barrier()?;

    let mut report = Report::default();
    if roles.clients.contains(&rt.rank()) {
        let addresses = roles.servers.iter().map(|&rank| class.rank(rank));
        let addresses = addresses.collect::<std::result::Result<Vec<_>, _>>()?;
        let mut pump = |most: Duration| -> Result<()> {
            match &mut server {
                Some(server) => server.step(most),
                None => {
                    context.progress(most)?;
                    context.trigger(64);
                    Ok(())
                }
            }
        };
        let client = Client::new(rt.rank(), &context, &calls, addresses, options);
        report = client.run(&mut pump)?;
    }
    let mut terminated = options::terminated();
    if let Some(mut server) = server {
        while !server.is_done() {
            server.step(Duration::from_millis(100))?;
        }
        terminated |= options::terminated();
        server.close()?;
    }
    drop(calls);
    drop(context);
    let code = summary(rt, options, &roles, &report, terminated)?;
    class.finalize()?;
    Ok(code)
}

/// What all ranks have done, told by rank 0, and the exit code.
fn summary(
    rt: &Runtime,
    options: &Options,
    roles: &Roles,
    report: &Report,
    terminated: bool,
) -> Result<u8> {
    let world = rt.world();
    let sum = |value: usize| world.all_reduce_value(value as i64, Operator::Sum);
    let most = |value: f64| world.all_reduce_value(value, Operator::Max);
    let (written, read) = (sum(report.written)?, sum(report.compared)?);
    let (differ, failed) = (sum(report.differ)?, sum(report.failures.len())?);
    let stopped = sum(usize::from(terminated || report.ended == Ended::Stopped))?;
    let (writing, reading) = (most(report.writing)?, most(report.reading)?);
    for failure in &report.failures {
        eprintln!("rank {}: {failure}", rt.rank());
    }
    let files = (roles.clients.len() * options.files) as i64;
    if rt.rank() == 0 {
        let rate = |n: i64, seconds: f64| (n as f64) * options.size as f64 / 1048576.0 / seconds;
        let told = |what: &str, n: i64, seconds: f64| {
            if n > 0 {
                println!("{what} {n} files in {seconds:.2} s, {:.0} MiB/s", rate(n, seconds));
            }
        };
        told("wrote", written, writing);
        told("read", read, reading);
    }
    if rt.rank() == roles.clients[0] && !report.errors.is_empty() {
        println!("errno values that came back: {}", report.errors.join(", "));
    }
    let wrong = differ + failed;
    let (code, end) = if wrong > 0 {
        (1, format!("{differ} of {read} digests differ, {failed} failures"))
    } else if read == files {
        (0, format!("all {files} digests agree"))
    } else if stopped > 0 {
        let whole = format!("{written} of {files} files written whole, {read} compared");
        (3, format!("ended early by SIGTERM: {whole}, none differs"))
    } else {
        (1, format!("only {read} of {files} files were compared"))
    };
    if rt.rank() == 0 {
        println!("io_forwarding: {end}");
    }
    Ok(code)
}
