//! I/O forwarding: compute ranks ship their file calls to I/O ranks.
//!
//! On large machines the compute nodes do not mount the file system. A few I/O nodes do, and run
//! the file calls of the others. Here one rank in four is an I/O rank (at least one). The other
//! ranks write a checkpoint through them: open, write, close, stat, open, read, close. A single
//! rank serves itself.
//!
//! - The data of a call is a **bulk handle over many segments**, such as the interior of a field
//!   with ghost cells. Files are read back into segments that differ from those they were written
//!   from.
//! - A write of any length passes through a **buffer of fixed size** at the I/O rank. The I/O rank
//!   pulls each chunk from the client's memory while threads write the previous chunks to the file.
//!   A read works the same way in the other direction.
//! - Clients keep several calls in progress on all I/O ranks and compute digests meanwhile. At the
//!   end the digest of the written data is compared with that of the data **read back**.
//! - Errors of the file system are returned as **errno values**. The program tests a missing file,
//!   a file outside the directory, and a full device.
//! - After **SIGTERM** an I/O rank completes the calls that it has started and answers new ones
//!   with `ESHUTDOWN`. The job ends normally with exit code 3. After SIGTERM a compute rank starts
//!   no further file; the exit code is 3 too.
//! - Long transfers report their progress on standard error.
//!
//! To run it:
//!
//! ```text
//! ./mpirun.sh -n 4 --example io_forwarding
//! ./mpirun.sh -n 4 --example io_forwarding --size 256M --files 4 --dir /scratch/me
//! ./mpirun.sh -n 4 --node-size 1 --example io_forwarding    # as if on four hosts
//! ```
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `--dir DIR` | temporary, removed at the end | I/O rank `R` keeps its files in `DIR/io-R` |
//! | `--size BYTES` | 16M | size of each file; K, M and G are powers of 1,024 |
//! | `--files N` | 2 | files per compute rank |
//! | `--io-ranks N` | one in four | I/O ranks, distributed evenly over the ranks |
//! | `--segment BYTES` | 64K | size of the segments of a client's memory |
//! | `--chunk BYTES` | 1M | bytes that an I/O rank moves at a time |
//! | `--buffer BYTES` | 8M | size of an I/O rank's buffer |
//! | `--window N` | 2 | calls with data that a client keeps in progress |
//!
//! # As a service
//! Server and clients may also be started by hand, without MPI, on one host or on several. The
//! server runs until a client ends it. In one shell,
//!
//! ```text
//! io_forwarding serve --network na+sm --address /tmp/io.address --dir /scratch/me
//! ```
//!
//! and in another one, any number of times,
//!
//! ```text
//! io_forwarding client --address /tmp/io.address
//! io_forwarding end --address /tmp/io.address
//! ```
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `--network NAME` | na+sm | network of the server: `na+sm`, or `tcp://PLACE` to reach other hosts |
//! | `--address FILE` | none | the file that the server writes its address to, and clients read |
//!
//! Exit codes: 0 if all digests agree, 1 if not or if an error occurs, 2 for invalid options, 3 if
//! SIGTERM ended the job early.

mod calls;
mod client;
mod files;
mod moves;
mod options;
mod server;
mod service;

use calls::Calls;
use client::{Client, Ended, Report};
use options::Options;
use portolan::Runtime;
use portolan::reduce::{Max, Sum};
use portolan::rpc::{Class, Listen};
use server::{Server, Serves};
use std::cell::Cell;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The roles of the ranks.
#[derive(Debug, Clone)]
pub struct Roles {
    /// The I/O ranks.
    pub servers: Vec<usize>,
    /// The compute ranks.
    pub clients: Vec<usize>,
}

impl Roles {
    /// Distributes the I/O ranks evenly over all ranks. A single rank has both roles.
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
    let mut words = std::env::args().skip(1);
    if let Some(role) = words.next().as_deref().and_then(service::Role::parse) {
        return service::main(role, words);
    }
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

/// Runs the job on this rank. Returns the exit code, which is the same on all ranks.
fn job(rt: &Runtime, options: &Options) -> Result<u8> {
    let roles = Roles::of(rt.size(), options.io_ranks);
    let class = Class::init("mpi", Listen::Yes)?;
    let context = class.context()?;
    let serving = roles.servers.contains(&rt.rank());
    let mut server = match serving {
        true => Some(Server::new(
            &class,
            &context,
            rt.rank(),
            (Serves::Ranks(roles.clients.len()), roles.servers.len()),
            options,
        )?),
        false => None,
    };
    let calls = match &server {
        Some(server) => server.calls.clone(),
        None => Calls::of_client(&class)?,
    };
    if rt.rank() == 0 {
        println!("{}", options.describe(&roles));
    }
    // After the barrier all ranks have registered the calls that they serve.
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

/// Reduces the results of all ranks and returns the exit code. Rank 0 prints the results.
fn summary(
    rt: &Runtime,
    options: &Options,
    roles: &Roles,
    report: &Report,
    terminated: bool,
) -> Result<u8> {
    let world = rt.world();
    let sum = |value: usize| world.all_reduce_value(value as i64, Sum);
    let most = |value: f64| world.all_reduce_value(value, Max);
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
        let print_rate = |what: &str, n: i64, seconds: f64| {
            if n > 0 {
                println!("{what} {n} files in {seconds:.2} s, {:.0} MiB/s", rate(n, seconds));
            }
        };
        print_rate("wrote", written, writing);
        print_rate("read", read, reading);
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
