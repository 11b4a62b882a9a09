//! Statistics, regions and marks for C and Fortran (`include/portolan.h`). The C structure contains
//! its own size, so a program built with an older header gets the members that it knows.

use super::boundary::{array, code, export, guard, text};
use portolan_base::error::fail;
use portolan_base::trace::Observer;
use portolan_base::trace::counters::{Calls, Spent};
use portolan_engine::runtime;
use portolan_engine::runtime::statistics::{COUNTS, Statistics};
use std::os::raw::{c_char, c_int};

/// Lengths of the arrays in `Stats`, with room for future kinds.
const CALLS: usize = 32;
const PATHS: usize = 8;
const CAUSES: usize = 16;
const SERVED: usize = 16;
const _: () = assert!(COUNTS[0] <= CALLS && COUNTS[1] <= PATHS);
const _: () = assert!(COUNTS[2] <= CAUSES && COUNTS[3] <= SERVED);

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct CallCount {
    calls: u64,
    bytes: u64,
    ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct SpentTime {
    number: u64,
    ns: u64,
    longest_ns: u64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Stats {
    size: usize,
    complete: c_int,
    most_waited_for: c_int,
    most_waited_ns: u64,
    seconds: f64,
    call: [CallCount; CALLS],
    path: [CallCount; PATHS],
    wait: [SpentTime; CAUSES],
    served: [SpentTime; SERVED],
    served_bytes: u64,
    longest_delay_ns: u64,
    requests: u64,
    naps: u64,
    rendezvous: u64,
    aggregated_messages: u64,
    aggregated_items: u64,
    peak_memory_bytes: u64,
    dropped_events: u64,
}

/// The length in bytes of the members that every version of the structure has.
const LEAST: usize = std::mem::offset_of!(Stats, call);

impl From<Calls> for CallCount {
    fn from(Calls { calls, bytes, ns }: Calls) -> CallCount {
        CallCount { calls, bytes, ns }
    }
}

impl From<Spent> for SpentTime {
    fn from(Spent { count, ns, longest }: Spent) -> SpentTime {
        SpentTime { number: count, ns, longest_ns: longest }
    }
}

fn filled<T: Copy + Default, const N: usize>(all: impl Iterator<Item = T>) -> [T; N] {
    let mut filled = [T::default(); N];
    filled.iter_mut().zip(all).for_each(|(to, from)| *to = from);
    filled
}

impl Stats {
    fn of(stats: &Statistics, size: usize) -> Stats {
        let (rank, ns) = stats.most_waited_for().map_or((-1, 0), |(rank, ns)| (rank as c_int, ns));
        Stats {
            size,
            complete: c_int::from(stats.complete),
            most_waited_for: rank,
            most_waited_ns: ns,
            seconds: stats.seconds,
            call: filled((0..COUNTS[0]).map(|n| stats.call(n).into())),
            path: filled((0..COUNTS[1]).map(|n| stats.path(n).into())),
            wait: filled(stats.sum.waits.iter().map(|&spent| spent.into())),
            served: filled(stats.sum.served.iter().map(|&spent| spent.into())),
            served_bytes: stats.sum.served_bytes,
            longest_delay_ns: stats.sum.delays.longest,
            requests: stats.sum.requests,
            naps: stats.sum.naps,
            rendezvous: stats.sum.rendezvous,
            aggregated_messages: stats.sum.aggregated_messages,
            aggregated_items: stats.sum.aggregated_items,
            peak_memory_bytes: stats.peak_memory,
            dropped_events: stats.dropped_events,
        }
    }
}

export! {
    /// `stats` must be null, or aligned, readable at `size` and writable for `stats->size` bytes.
    portolan_stats_get(stats: *mut Stats) -> c_int = code(|engine| {
        if stats.is_null() {
            fail!(Argument, "the place for the statistics is null");
        }
        // SAFETY: by this function's contract, `stats` is valid for a read of `size`; not null.
        let size = unsafe { (&raw const (*stats).size).read() };
        if size < LEAST {
            fail!(Argument, "stats->size is {size}; set it to sizeof(portolan_stats_t)");
        }
        let size = size.min(size_of::<Stats>());
        let all = Stats::of(&engine.statistics(), size);
        // SAFETY: by contract, `stats` has `size` bytes; `all` has at least as many.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const all).cast::<u8>(), stats.cast::<u8>(), size);
        }
        Ok(())
    });

    portolan_stats_reset() -> c_int = code(|engine| {
        engine.reset_statistics();
        Ok(())
    });
}

/// Records something in the trace, if there is one.
fn record(call: &'static str, what: impl FnOnce(&Observer)) {
    guard(
        call,
        |_| (),
        || {
            if let Ok(engine) = runtime::current() {
                what(engine.observer());
            }
            Ok(())
        },
    );
}

export! {
    portolan_region_begin(name: *const c_char) =
        // SAFETY: by this function's contract, `name` is null or NUL-terminated.
        record(|to| to.region_begins(&unsafe { text(name) }));

    portolan_region_end() = record(Observer::region_ends);

    portolan_mark(name: *const c_char) =
        // SAFETY: by this function's contract, `name` is null or NUL-terminated.
        record(|to| to.mark(&unsafe { text(name) }));
}

/// Copies a Fortran string without its trailing blanks.
///
/// # Safety
/// `name` must be null or valid for reads of `len` bytes.
unsafe fn fortran(name: *const c_char, len: usize) -> String {
    // SAFETY: by this function's contract, `name` is null or valid for reads of `len` bytes.
    let bytes = unsafe { array(name.cast::<u8>(), len, "the name") };
    String::from_utf8_lossy(bytes.unwrap_or_default()).trim_end_matches(' ').to_string()
}

export! {
    /// `portolan_region_begin` for Fortran, which passes the length of a string after the
    /// arguments. `name` must be valid for reads of `len` bytes.
    portolan_region_begin_(name: *const c_char, len: usize) =
        // SAFETY: by this function's contract, `name` is valid for reads of `len` bytes.
        record(|to| to.region_begins(&unsafe { fortran(name, len) }));

    portolan_region_end_() = record(Observer::region_ends);

    /// `name` must be valid for reads of `len` bytes.
    portolan_mark_(name: *const c_char, len: usize) =
        // SAFETY: by this function's contract, `name` is valid for reads of `len` bytes.
        record(|to| to.mark(&unsafe { fortran(name, len) }));
}

#[cfg(test)]
mod tests {
    use portolan_base::trace::{Call, Cause, PathTaken, Served};

    /// The header and the engine number calls, paths, causes and served requests alike.
    #[test]
    fn the_header_has_the_engines_numbers() {
        let header = include_str!("../../../include/portolan.h");
        let check = |prefix: &str, names: Vec<&str>| {
            let constants: Vec<&str> = header
                .lines()
                .filter_map(|line| line.trim().strip_prefix(prefix)?.split([' ', ',']).next())
                .collect();
            let expected: Vec<String> =
                names.iter().map(|name| name.to_uppercase().replace([' ', '-'], "_")).collect();
            assert_eq!(constants, expected, "{prefix}");
        };
        check("PORTOLAN_CALL_", Call::ALL.iter().map(|call| call.name()).collect());
        check("PORTOLAN_PATH_", PathTaken::ALL.iter().map(|path| path.name()).collect());
        check("PORTOLAN_WAIT_", Cause::ALL.iter().map(|cause| cause.name()).collect());
        check("PORTOLAN_SERVED_", Served::ALL.iter().map(|kind| kind.name()).collect());
    }
}
