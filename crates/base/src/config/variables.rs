//! The table of environment variables: name, default, description, and the setter of each.

use super::{AmChoice, Group, PathChoice, SplitChoice, Variable};
use std::time::Duration;

fn put<T>(
    member: &mut T,
    parsed: std::result::Result<T, String>,
) -> std::result::Result<(), String> {
    *member = parsed?;
    Ok(())
}

fn parse<T: std::str::FromStr>(text: &str, what: &str) -> std::result::Result<T, String> {
    text.trim().parse().map_err(|_| format!("expected {what}"))
}

pub(super) fn parse_bytes(text: &str) -> std::result::Result<usize, String> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let value: usize = parse(digits, "a number of bytes, with an optional suffix K, M or G")?;
    value.checked_mul(1 << shift).ok_or_else(|| "the number of bytes is too large".to_string())
}

fn parse_seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = parse(text, "a number of seconds")?;
    if !(0.0..1e9).contains(&seconds) {
        return Err("expected a number of seconds".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn parse_bool(text: &str) -> std::result::Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" | "y" | "t" => Ok(true),
        "0" | "off" | "no" | "false" | "n" | "f" => Ok(false),
        _ => Err("expected 1 or 0, or on or off".to_string()),
    }
}

fn parse_within(text: &str, [least, most]: [usize; 2]) -> std::result::Result<usize, String> {
    let bytes = parse_bytes(text)?;
    if !(least..=most).contains(&bytes) {
        return Err(format!("expected {} to {}", short(least), short(most)));
    }
    Ok(bytes)
}

/// Empty for `none`.
fn path(text: &str) -> String {
    if text == "none" { String::new() } else { text.to_string() }
}

/// With the largest suffix that divides the number.
fn short(bytes: usize) -> String {
    let (shift, suffix) = match bytes.trailing_zeros() {
        30.. => (30, "G"),
        20.. => (20, "M"),
        10.. => (10, "K"),
        _ => (0, ""),
    };
    format!("{}{suffix}", bytes >> shift)
}

/// `env_logger` takes a misspelt level for the name of a module, and shows nothing else.
fn check_filter(text: &str) -> std::result::Result<(), String> {
    let is_level = |word: &str| word.trim().parse::<log::LevelFilter>().is_ok();
    let (words, _pattern) = text.split_once('/').unwrap_or((text, ""));
    let good = |word: &str| is_level(word.split_once('=').map_or(word, |(_module, level)| level));
    match words.split(',').filter(|word| !word.trim().is_empty()).all(good) {
        true => Ok(()),
        false => {
            Err("expected error, warn, info, debug, trace or off, or module=level, separated \
                      by commas"
                .into())
        }
    }
}

/// Names that the crate `portolan-rpc` accepts.
pub const CHECKSUMS: [&str; 6] = ["crc64", "crc32c", "crc32", "crc16", "adler32", "none"];

/// Each row has the name, a name of another library after `|`, the default, the meaning, and the
/// parser, which sets the member of the configuration.
macro_rules! variables {
    ($($group:ident { $($name:literal $(| $alias:literal)? = $default:literal, $meaning:literal, $set:expr;)+ })+) => {
        pub static VARIABLES: &[Variable] = &[$($(Variable {
            name: $name,
            group: Group::$group,
            alias: variables!(@ $($alias)?),
            default: $default,
            meaning: $meaning,
            set: $set,
        },)+)+];
    };
    (@ $alias:literal) => { Some($alias) };
    (@) => { None };
}

variables! {
    Common {
        "PORTOLAN_PATH" = "auto",
            "transfer path: auto (direct on a node; message between nodes), direct, direct+rma (direct on a node, rma between nodes), rma or message (on a node too)",
            |c, v| put(&mut c.path, PathChoice::parse(v));
        "PORTOLAN_PROGRESS_THREAD" | "ARMCI_PROGRESS_THREAD" = "auto",
            "a thread that serves other ranks while this one computes: auto or 1 (both start it if some ranks are not reached directly), or 0 (off); needs MPI_THREAD_MULTIPLE",
            |c, v| {
                let wanted = if v == "auto" { Ok(true) } else { parse_bool(v) };
                put(&mut c.progress_thread, wanted.map_err(|_| "expected auto, 1 or 0".into()))
            };
        "PORTOLAN_SHM_DIR" = "/dev/shm",
            "directory, on a memory file system, that holds the shared memory of a node",
            |c, v| put(&mut c.shm_dir, Ok(v.to_string()));
        "PORTOLAN_STATS" = "0",
            "count all calls, waits and requests served for other ranks; at the end rank 0 writes one table for all ranks to standard error; 0 counts only what costs nothing",
            |c, v| put(&mut c.stats, parse_bool(v));
        "PORTOLAN_TRACE" = "none",
            "directory into which each rank writes its events, for portolan-report; it is created if missing, and traces of an earlier job in it are replaced",
            |c, v| put(&mut c.trace, Ok(path(v)));
        "PORTOLAN_TRACE_BYTES" = "1G",
            "maximum size in bytes of a rank's trace: beyond three quarters, only events of 10 us and longer are kept, at the limit none; dropped events are counted; at least 256K, and 0 is no limit",
            |c, v| {
                let bytes = parse_bytes(v)?;
                // A log is written in chunks of 64 KiB.
                if bytes != 0 && bytes < 256 << 10 {
                    return Err("expected 0 or at least 256K".into());
                }
                c.trace_bytes = bytes;
                Ok(())
            };
        "PORTOLAN_LOG" = "warn",
            "log level on standard error: error, warn, info, debug, trace or off; also by module, as portolan_rpc=debug,warn",
            |c, v| put(&mut c.log, check_filter(v).map(|()| v.to_string()));
        "PORTOLAN_CHECK" = "0",
            "distributed arrays of Rust programs: 1 records every access to their elements and checks for races in each collective call: accesses of two ranks to one element, at least one a write, with no sync in between; slow, for tests",
            |c, v| put(&mut c.check_races, parse_bool(v));
        "PORTOLAN_WATCHDOG" = "600",
            "seconds without progress after which a waiting call reports its name, the event and the rank that it waits for, and the pending operations; it reports again after twice that time, and so on; SIGUSR1 requests the same report from a rank at any time; 0 turns both off",
            |c, v| put(&mut c.watchdog, parse_seconds(v));
        "PORTOLAN_WATCHDOG_ABORT" = "0",
            "seconds without progress after which a waiting call aborts the job, with a message that names the call and the event that it waits for; 0 turns this off",
            |c, v| put(&mut c.watchdog_abort, parse_seconds(v));
        "PORTOLAN_WATCHDOG_HOST" = "600",
            "seconds without progress after which a waiting call aborts the job if another host of the job does not answer by TCP, because its link is cut or it is off; a host whose ranks compute or are stopped answers; 0 turns this off",
            |c, v| put(&mut c.watchdog_host, parse_seconds(v));
    }
    Tuning {
        "PORTOLAN_IDLE_POLL_US" = "4000",
            "longest sleep of an idle progress thread in microseconds, which is the longest delay of a request to a computing rank",
            |c, v| {
                let us: u64 = parse(v, "a number of microseconds")?;
                c.idle_poll = Duration::from_micros(us.max(10));
                Ok(())
            };
        "PORTOLAN_CHUNK_BYTES" = "auto",
            "length of the chunks into which the message path divides long transfers, 4K to 64M, or auto, which is 60K with Open MPI and 120K with other MPIs",
            |c, v| {
                let given = (v != "auto").then(|| parse_within(v, [4 << 10, 64 << 20]));
                put(&mut c.chunk_bytes, given.unwrap_or(Ok(0)))
            };
        "PORTOLAN_SPLIT" = "auto",
            "whether contiguous gets, and with Open MPI puts, are divided into chunks too: on, off, or auto, which is on if ranks of several hosts are connected without an adapter for RDMA (InfiniBand, RoCE, Omni-Path, Slingshot)",
            |c, v| put(&mut c.split, SplitChoice::parse(v));
        "PORTOLAN_FLIGHT_BYTES" = "2M",
            "bytes that one rank may have sent to another on the message path before the other has handled them, 64K to 16G",
            |c, v| put(&mut c.flight_bytes, parse_within(v, [64 << 10, 16 << 30]));
        "PORTOLAN_COMPOSE_DIR" = ".",
            "directory in which compositions are stored, with one file for each file number and rank",
            |c, v| put(&mut c.compose_dir, Ok(v.to_string()));
        "PORTOLAN_INTERPOSE" = "all",
            "which MPI calls of a program linked with the C library are changed: init (MPI_Init and MPI_Init_thread ask for MPI_THREAD_MULTIPLE, which the progress thread needs), waits (if other nodes are served by messages, or ranks share cores, MPI_Barrier, MPI_Bcast, MPI_Reduce, MPI_Allreduce and MPI_Recv serve other ranks while they wait, and yield the core in long waits, unless the program itself requests MPI_THREAD_MULTIPLE), all, or none",
            |c, v| {
                (c.raise_thread_level, c.mpi_waits) = match v {
                    "all" => (true, true),
                    "init" => (true, false),
                    "waits" => (false, true),
                    "none" => (false, false),
                    _ => return Err("expected all, init, waits or none".into()),
                };
                Ok(())
            };
        "PORTOLAN_LAUNCHER_CHECK" = "1",
            "report an error at start if a launcher (srun, or the other MPI's mpiexec) started several processes that MPI treats as jobs of one rank each; 0 turns the check off, for jobs of one rank that are intended",
            |c, v| put(&mut c.launcher_check, parse_bool(v));
        "PORTOLAN_RPC_CHECKSUM" = "crc64",
            "checksum of the parameters of Mercury calls: crc64, crc32c (or crc32), crc16, adler32 or none",
            |c, v| {
                if !CHECKSUMS.iter().any(|name| name.eq_ignore_ascii_case(v.trim())) {
                    return Err("expected crc64, crc32c (or crc32), crc16, adler32 or none".into());
                }
                c.rpc_checksum = v.trim().to_string();
                Ok(())
            };
        "PORTOLAN_KEEP_BYTES" = "512M",
            "limit in bytes per rank on the shared memory of freed segments and arrays that a group keeps for its later ones, which saves the time of fresh pages; 0 to 1024G; memory that an allocation lacks is not kept",
            |c, v| put(&mut c.keep_bytes, parse_within(v, [0, 1 << 40]));
        "PORTOLAN_RPC_LISTEN" = "127.0.0.1",
            "where a Mercury class over tcp listens if its information string does not say it: an address or a name of this host, an interface, or all, each with an optional :PORT",
            |c, v| put(&mut c.rpc_listen, Ok(v.trim().to_string()));
        "PORTOLAN_RPC_SECRET_FILE" = "none",
            "file with a secret of 16 bytes or more that processes must share to connect to each other over tcp, unless the program gives a key (auth_key); it must be readable only by its owner",
            |c, v| put(&mut c.rpc_secret_file, Ok(path(v)));
        "PORTOLAN_RPC_TLS_DIR" = "none",
            "directory with ca.pem, cert.pem and key.pem: processes connect to each other over tcp only with TLS, and only to processes with a certificate of the same authority; needs a library built with TLS",
            |c, v| put(&mut c.rpc_tls_dir, Ok(path(v)));
        "X10_MAX_AGG_SIZE" = "1024",
            "X10Lib: number of aggregated asyncs for one place that are collected before they are sent",
            |c, v| {
                let items: usize = parse(v, "a number of asyncs")?;
                c.x10_aggregate = items.clamp(1, 8192);
                Ok(())
            };
    }
    Testing {
        "PORTOLAN_NODE_SIZE" = "0",
            "divide every real node into virtual nodes of this many ranks, which share no memory with each other; 0 turns this off",
            |c, v| put(&mut c.node_size, parse(v, "a number of ranks"));
        "PORTOLAN_AM" = "auto",
            "transport of active messages between ranks of a node: node (rings in shared memory), mpi, or auto, which is node if shared memory is available",
            |c, v| put(&mut c.am, AmChoice::parse(v));
        "PORTOLAN_AM_RING_BYTES" = "512K",
            "size in bytes of the ring of active messages from one rank of a node to another; 16K to 1G; smaller if a node has many ranks",
            |c, v| put(&mut c.am_ring_bytes, parse_within(v, [16 << 10, 1 << 30]));
        "PORTOLAN_SLAB_BYTES" = "4M",
            "minimum size, in bytes per rank, of the arenas of shared memory from which segments are allocated; 64K to 1024G; larger segments and later arenas get more",
            |c, v| put(&mut c.arena_bytes, parse_within(v, [64 << 10, 1 << 40]));
        "PORTOLAN_CROSS_MEMORY" = "on",
            "whether memory outside of segments is read and written across processes of a node (process_vm_readv), if the system allows it: on or off",
            |c, v| put(&mut c.cross_memory, parse_bool(v));
        "PORTOLAN_CROSS_HELP" = "on",
            "whether a waiting rank helps to copy its memory outside of segments for another rank of the node: on or off",
            |c, v| put(&mut c.cross_help, parse_bool(v));
        "PORTOLAN_TRACE_CLOCK" = "auto",
            "clock of statistics and traces: auto (the processor's time-stamp counter if it is steady) or monotonic (the kernel's clock)",
            |c, v| {
                let counter = match v {
                    "auto" => Ok(true),
                    "monotonic" => Ok(false),
                    _ => Err("expected auto or monotonic".to_string()),
                };
                put(&mut c.trace_counter, counter)
            };
    }
}
