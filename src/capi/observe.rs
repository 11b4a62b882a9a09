//! Statistics, regions and marks of programs in C and Fortran, declared in `include/portolan.h`.
//!
//! A structure of C says how long it is, so that a program that was built with an older header gets the members that it
//! knows. Regions and marks do nothing where no engine runs: a program may have them around its start and end.

use super::boundary::{code, text};
use crate::error::fail;
use crate::runtime;
use crate::runtime::statistics::{COUNTS, Statistics};
use crate::trace::counters::{Calls, Spent};
use std::os::raw::{c_char, c_int};

/// Members of the arrays, of which some are for calls to come.
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

/// `portolan_stats_t`
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

/// The first members, which every version has.
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
            requests: stats.requests,
            naps: stats.naps,
            rendezvous: stats.rendezvous,
            aggregated_messages: stats.aggregated_messages,
            aggregated_items: stats.aggregated_items,
            peak_memory_bytes: stats.peak_memory,
            dropped_events: stats.dropped_events,
        }
    }
}

/// What this rank has counted since the library was initialised, or since
/// `portolan_stats_reset`. `stats->size` is the structure's length as the caller knows it.
///
/// # Safety
/// `stats` must be valid for its `size`, and for reads and writes of that many bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn portolan_stats_get(stats: *mut Stats) -> c_int {
    code("portolan_stats_get", |engine| {
        if stats.is_null() {
            fail!(Argument, "the place for the statistics is null");
        }
        // SAFETY: the caller vouches for the first member.
        let size = unsafe { (&raw const (*stats).size).read() };
        if size < LEAST {
            fail!(Argument, "stats->size is {size}; set it to sizeof(portolan_stats_t)");
        }
        let size = size.min(size_of::<Stats>());
        let all = Stats::of(&engine.statistics(), size);
        // SAFETY: the caller vouches for `size` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const all).cast::<u8>(), stats.cast::<u8>(), size);
        }
        Ok(())
    })
}

/// Counts from now on.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn portolan_stats_reset() -> c_int {
    code("portolan_stats_reset", |engine| {
        engine.reset_statistics();
        Ok(())
    })
}

/// Tells of a text what it is, in any language.
fn say(name: &str, begins: bool) {
    let Ok(engine) = runtime::current() else { return };
    if begins { engine.observer().region_begins(name) } else { engine.observer().mark(name) }
}

/// A region of the program begins in this thread.
///
/// # Safety
/// `name` must be null or a terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn portolan_region_begin(name: *const c_char) {
    // SAFETY: passed on from the caller.
    say(&unsafe { text(name) }, true);
}

/// The region that began last in this thread ends.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn portolan_region_end() {
    if let Ok(engine) = runtime::current() {
        engine.observer().region_ends();
    }
}

/// The program is here.
///
/// # Safety
/// As for [`portolan_region_begin`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn portolan_mark(name: *const c_char) {
    // SAFETY: passed on from the caller.
    say(&unsafe { text(name) }, false);
}

/// A text of Fortran: without the blanks at its end.
///
/// # Safety
/// `name` must be valid for `len` bytes.
unsafe fn fortran(name: *const c_char, len: usize) -> String {
    // SAFETY: passed on from the caller.
    let bytes = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), len) };
    String::from_utf8_lossy(bytes).trim_end_matches(' ').to_string()
}

/// `portolan_region_begin` for Fortran, whose compilers pass a text's length behind the arguments.
///
/// # Safety
/// `name` must be valid for `len` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn portolan_region_begin_(name: *const c_char, len: usize) {
    // SAFETY: passed on from the caller.
    say(&unsafe { fortran(name, len) }, true);
}

/// `portolan_region_end` for Fortran.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn portolan_region_end_() {
    portolan_region_end();
}

/// `portolan_mark` for Fortran.
///
/// # Safety
/// As for [`portolan_region_begin_`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn portolan_mark_(name: *const c_char, len: usize) {
    // SAFETY: passed on from the caller.
    say(&unsafe { fortran(name, len) }, false);
}

#[cfg(test)]
mod tests {
    use crate::trace::{Call, Cause, PathTaken, Served};

    /// The header numbers calls, paths, causes and what is served as the engine does.
    #[test]
    fn the_header_has_the_engines_numbers() {
        let header = include_str!("../../include/portolan.h");
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
