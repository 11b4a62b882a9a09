//! Settings, queries and statistics.
//!
//! Queries that LAPI has too keep LAPI's numbers; X10Lib's own begin at 100. The header describes
//! each query. A setting that it calls *stored* is only returned by queries.

use super::function_table::TABLE_SIZE;
use super::refs::Direction;
use super::{code, refs};
use crate::boundary::export;
use portolan_base::error::{Result, fail};
use portolan_engine::am::MAX_HEADER;
use portolan_engine::runtime::Engine;
use std::os::raw::{c_char, c_int, c_ulong};
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Size of the buffer for a node's name in bytes, including the terminating 0.
const NODE_NAME: usize = 256;
const TIMEOUTS: (c_int, c_int) = (10, 86400);
const DEFAULT_TIMEOUT: c_int = 900;
const DEFAULT_ACK_THRESHOLD: c_int = 30;

static ERROR_CHK: AtomicI32 = AtomicI32::new(0);
static TIMEOUT: AtomicI32 = AtomicI32::new(DEFAULT_TIMEOUT);
static ACK_THRESHOLD: AtomicI32 = AtomicI32::new(DEFAULT_ACK_THRESHOLD);
static POLLING: AtomicI32 = AtomicI32::new(0);
static AGG_LIMIT: AtomicUsize = AtomicUsize::new(1024);
static EPOCH: AtomicI32 = AtomicI32::new(0);

static GETS: AtomicU64 = AtomicU64::new(0);
static BYTES_GOT: AtomicU64 = AtomicU64::new(0);
static PUTS: AtomicU64 = AtomicU64::new(0);
static BYTES_PUT: AtomicU64 = AtomicU64::new(0);
static SPAWNED: AtomicU64 = AtomicU64::new(0);
static RAN: AtomicU64 = AtomicU64::new(0);
static BATCHES: AtomicU64 = AtomicU64::new(0);

pub(super) fn count_transfer(direction: Direction, bytes: usize) {
    let (calls, total) = match direction {
        Direction::Get => (&GETS, &BYTES_GOT),
        Direction::Put => (&PUTS, &BYTES_PUT),
    };
    calls.fetch_add(1, Relaxed);
    total.fetch_add(bytes as u64, Relaxed);
}

pub(super) fn count_spawn() {
    SPAWNED.fetch_add(1, Relaxed);
}

pub(super) fn count_runs(n: u64) {
    RAN.fetch_add(n, Relaxed);
}

pub(super) fn count_batch() {
    BATCHES.fetch_add(1, Relaxed);
}

pub(super) fn aggregate_limit() -> usize {
    AGG_LIMIT.load(Relaxed)
}

/// Counts a start of X10Lib and sets the initial value of `X10_POLLING_SET`.
pub(super) fn started(engine: &Engine) {
    EPOCH.fetch_add(1, Relaxed);
    POLLING.store((!engine.has_thread()).into(), Relaxed);
}

pub(super) fn reset(engine: &Engine) {
    ERROR_CHK.store(0, Relaxed);
    TIMEOUT.store(DEFAULT_TIMEOUT, Relaxed);
    ACK_THRESHOLD.store(DEFAULT_ACK_THRESHOLD, Relaxed);
    AGG_LIMIT.store(engine.config.x10_aggregate, Relaxed);
    for counter in [&GETS, &BYTES_GOT, &PUTS, &BYTES_PUT, &SPAWNED, &RAN, &BATCHES] {
        counter.store(0, Relaxed);
    }
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Statistics {
    gets: c_ulong,
    bytes_got: c_ulong,
    puts: c_ulong,
    bytes_put: c_ulong,
    spawned: c_ulong,
    ran: c_ulong,
    batches: c_ulong,
}

impl Statistics {
    fn now() -> Statistics {
        Statistics {
            gets: GETS.load(Relaxed),
            bytes_got: BYTES_GOT.load(Relaxed),
            puts: PUTS.load(Relaxed),
            bytes_put: BYTES_PUT.load(Relaxed),
            spawned: SPAWNED.load(Relaxed),
            ran: RAN.load(Relaxed),
            batches: BATCHES.load(Relaxed),
        }
    }
}

fn clamped(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// Returns the number of bytes that a single eager message can carry to any place.
fn packet(engine: &Engine) -> usize {
    (0..engine.size()).map(|rank| engine.eager_limit(rank)).min().unwrap_or(0)
}

/// Returns the result of a query that is a single number, or `None` for other queries.
fn number(engine: &Engine, query: c_int) -> Option<c_int> {
    let topology = &engine.topology;
    let on_node = || topology.ranks_of(topology.my_node()).len();
    let window = engine.config.flight_bytes;
    Some(match query {
        0 | 100 => clamped(engine.rank()),
        1 | 101 => clamped(engine.size()),
        2 => clamped(MAX_HEADER),
        3 => c_int::MAX,
        4 => ERROR_CHK.load(Relaxed),
        5 => TIMEOUT.load(Relaxed),
        6 => TIMEOUTS.0,
        7 => TIMEOUTS.1,
        8 => (POLLING.load(Relaxed) == 0).into(),
        9 => 1,
        10 | 18 => clamped(packet(engine)),
        11 | 12 => 0,
        13 => clamped(TABLE_SIZE),
        14 => EPOCH.load(Relaxed),
        15 => 1,
        16 => clamped(window),
        17 => 8,
        19 => clamped(window / packet(engine).max(1)),
        20 => ACK_THRESHOLD.load(Relaxed),
        21 => (on_node() > 1).into(),
        22 => clamped(on_node()),
        28 => 0,
        29 => c_int::MAX,
        30..=36 => 0,
        103 => clamped(topology.my_node()),
        104 => POLLING.load(Relaxed),
        105 => clamped(aggregate_limit()),
        _ => return None,
    })
}

/// # Safety
/// `result` must be null or valid for the data that the query writes.
unsafe fn answer(engine: &Engine, query: c_int, result: *mut c_int) -> Result<()> {
    if query == 25 {
        println!("rank {}: {:?}", engine.rank(), Statistics::now());
        return Ok(());
    }
    if matches!(query, 26 | 27) {
        fail!(Argument, "query {query}: X10Lib counts all transfers together, see query 24");
    }
    let number = number(engine, query);
    if number.is_none() && !matches!(query, 23 | 24 | 102) {
        fail!(Argument, "unknown query {query}");
    }
    if result.is_null() {
        fail!(Argument, "the pointer to the result of query {query} is null");
    }
    // SAFETY: the caller guarantees room for the result, in which statistics may be unaligned.
    unsafe {
        match (query, number) {
            (_, Some(number)) => *result = number,
            (23, _) => {
                let topology = &engine.topology;
                for (i, &rank) in topology.ranks_of(topology.my_node()).iter().enumerate() {
                    *result.add(i) = clamped(rank);
                }
            }
            (24, _) => result.cast::<Statistics>().write_unaligned(Statistics::now()),
            _ => {
                let name = portolan_engine::topology::host_name::<NODE_NAME>();
                let length = name.iter().position(|&b| b == 0).unwrap_or(NODE_NAME - 1);
                let to = result.cast::<c_char>();
                std::ptr::copy_nonoverlapping(name.as_ptr().cast(), to, length);
                *to.add(length) = 0;
            }
        }
    }
    Ok(())
}

fn within(query: &str, value: c_int, from: c_int, to: c_int) -> Result<c_int> {
    if !(from..=to).contains(&value) {
        fail!(Argument, "{query} cannot be set to {value}; expected {from} to {to}");
    }
    Ok(value)
}

fn set(query: c_int, value: c_int) -> Result<()> {
    match query {
        4 => ERROR_CHK.store(within("X10_ERROR_CHK", value, 0, 1)?, Relaxed),
        5 => TIMEOUT.store(within("X10_TIMEOUT", value, TIMEOUTS.0, TIMEOUTS.1)?, Relaxed),
        8 => POLLING.store(1 - within("X10_INTERRUPT_SET", value, 0, 1)?, Relaxed),
        20 => ACK_THRESHOLD.store(within("X10_ACK_THRESHOLD", value, 1, c_int::MAX)?, Relaxed),
        104 => POLLING.store(within("X10_POLLING_SET", value, 0, 1)?, Relaxed),
        105 => {
            let limit = within("X10_AGG_LIMIT", value, 1, MOST_AGGREGATED as c_int)?;
            AGG_LIMIT.store(refs::count(limit, "the limit")?, Relaxed);
        }
        0..=36 | 100..=103 => fail!(Argument, "query {query} cannot be set"),
        _ => fail!(Argument, "unknown query {query}"),
    }
    Ok(())
}

const MOST_AGGREGATED: usize = 8192;

export! {
    /// `ret_val` must be null or valid for the data that the query writes.
    x10_getenv(query: c_int, ret_val: *mut c_int) -> c_int =
        // SAFETY: the caller guarantees that `ret_val` is null or valid for the data.
        code(|engine| unsafe { answer(engine, query, ret_val) });

    x10_setenv(query: c_int, set_val: c_int) -> c_int = code(|_| set(query, set_val));
}
