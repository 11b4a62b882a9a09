//! The tests, and the bounds of each.
//!
//! A test makes *contenders* for a case: Portolan's first, then its bounds. Tests that may start a
//! progress thread come last, because it would run during the others.

mod atomic;
mod collective;
mod compose;
mod messages;
mod rpc;
mod shape;
mod transfer;

use crate::lab::{Contender, Lab};
use crate::plan::Case;
use crate::report::Metric;
use crate::result::Result;
pub use messages::ITEM_SIZES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupportedSizes {
    None,
    /// All sizes of the run up to this many bytes, rounded up to whole numbers for typed tests.
    UpTo(usize),
    /// Only these sizes, in bytes.
    Only(&'static [usize]),
}

type MakeContenders = for<'a, 'rt> fn(&'a Lab<'rt>, Case) -> Result<Vec<Contender<'a>>>;

pub struct Test {
    /// Name on the command line.
    pub name: &'static str,
    /// Description for lists, tables and plots.
    pub what: &'static str,
    pub metric: Metric,
    pub sizes: SupportedSizes,
    /// Whether it has an origin and targets, so that the pattern matters.
    pub patterns: bool,
    pub computes: bool,
    pub typed: bool,
    /// Makes the contenders, Portolan's first. Collective.
    pub make: MakeContenders,
}

impl Test {
    const fn new(
        name: &'static str,
        what: &'static str,
        metric: Metric,
        sizes: SupportedSizes,
        make: MakeContenders,
    ) -> Test {
        Test { name, what, metric, sizes, patterns: true, computes: true, typed: false, make }
    }

    const fn typed(mut self) -> Test {
        self.typed = true;
        self
    }

    /// Marks a test that needs the target to take part, so that the target cannot compute.
    const fn answered(mut self) -> Test {
        self.computes = false;
        self
    }

    const fn collective(mut self) -> Test {
        (self.patterns, self.computes) = (false, false);
        self
    }
}

use Metric::{Bandwidth, Latency};
const ALL: SupportedSizes = SupportedSizes::UpTo(64 << 20);
const ACCUMULATE: SupportedSizes = SupportedSizes::UpTo(transfer::ACCUMULATE);
const MEDIUM: SupportedSizes = SupportedSizes::UpTo(4 << 20);

/// All tests, in the order of execution.
pub const TESTS: &[Test] = &[
    Test::new("put_lat", "a put and its fence", Latency, ALL, transfer::put_lat),
    Test::new("put_bw", "a window of puts, and a fence", Bandwidth, ALL, transfer::put_bw),
    Test::new(
        "nbput_bw",
        "a window of non-blocking puts, and a fence",
        Bandwidth,
        ALL,
        transfer::nbput_bw,
    ),
    Test::new("get_lat", "a get", Latency, ALL, transfer::get_lat),
    Test::new("get_bw", "a window of non-blocking gets", Bandwidth, ALL, transfer::get_bw),
    Test::new("acc_lat", "an accumulate and its fence", Latency, ACCUMULATE, transfer::acc_lat)
        .typed(),
    Test::new(
        "acc_bw",
        "a window of accumulates, and a fence",
        Bandwidth,
        ACCUMULATE,
        transfer::acc_bw,
    )
    .typed(),
    Test::new(
        "strided_put",
        "a put of rows of 512 bytes, 1 KiB apart, and a fence",
        Latency,
        MEDIUM,
        shape::strided_put,
    ),
    Test::new(
        "strided_get",
        "a get of rows of 512 bytes, 1 KiB apart",
        Latency,
        MEDIUM,
        shape::strided_get,
    ),
    Test::new(
        "vector_put",
        "a put of 64 blocks at irregular places, and a fence",
        Latency,
        MEDIUM,
        shape::vector_put,
    ),
    Test::new("fadd", "fetch-and-add", Latency, SupportedSizes::None, atomic::fadd),
    Test::new("swap", "swap", Latency, SupportedSizes::None, atomic::swap),
    Test::new(
        "lock",
        "a mutex at the target: lock and unlock",
        Latency,
        SupportedSizes::None,
        atomic::lock,
    ),
    Test::new(
        "notify",
        "a put with a flag, which the target waits for and answers: half the round trip",
        Latency,
        MEDIUM,
        atomic::notify,
    )
    .answered(),
    Test::new("barrier", "a barrier", Latency, SupportedSizes::None, collective::barrier)
        .collective(),
    Test::new("broadcast", "a broadcast from rank 0", Latency, MEDIUM, collective::broadcast)
        .collective(),
    Test::new("reduce", "a sum of double precision at rank 0", Latency, MEDIUM, collective::reduce)
        .collective(),
    Test::new(
        "allreduce",
        "a sum of double precision on all ranks",
        Latency,
        MEDIUM,
        collective::allreduce,
    )
    .collective(),
    Test::new(
        "am_call",
        "an active message and its answer: the round trip",
        Latency,
        MEDIUM,
        messages::call,
    ),
    Test::new(
        "am_rate",
        "active messages, until all are handled",
        Bandwidth,
        MEDIUM,
        messages::rate,
    )
    .answered(),
    Test::new(
        "am_items",
        "aggregated items, until all are handled",
        Bandwidth,
        SupportedSizes::Only(ITEM_SIZES),
        messages::items,
    )
    .answered(),
    Test::new(
        "compose",
        "a composition of 64 blocks: sync, perform and wait",
        Latency,
        MEDIUM,
        compose::perform,
    )
    .answered(),
    Test::new("rpc_call", "a call with an input of the given size", Latency, MEDIUM, rpc::call)
        .answered(),
    Test::new(
        "rpc_rate",
        "a window of calls with inputs of the given size, until all have replied",
        Bandwidth,
        MEDIUM,
        rpc::rate,
    )
    .answered(),
    Test::new(
        "rpc_bulk",
        "a call in which the server pulls the given number of bytes",
        Bandwidth,
        ALL,
        rpc::bulk,
    )
    .answered(),
];

/// Returns the tests with these names, or all tests if `names` is empty. A name is the whole name
/// of a test, or the part of it before the underscore. Fails if a name matches no test.
pub fn chosen(names: &[String]) -> std::result::Result<Vec<&'static Test>, String> {
    let is = |test: &Test, name: &str| {
        test.name == name || test.name.split_once('_').is_some_and(|(head, _)| head == name)
    };
    if let Some(unknown) = names.iter().find(|name| !TESTS.iter().any(|t| is(t, name))) {
        let known: Vec<&str> = TESTS.iter().map(|t| t.name).collect();
        return Err(format!("unknown test '{unknown}'; the tests are {}", known.join(", ")));
    }
    Ok(TESTS.iter().filter(|t| names.is_empty() || names.iter().any(|n| is(t, n))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_tests() {
        let names = |of: &[&str]| -> Vec<&str> {
            let of: Vec<String> = of.iter().map(|s| s.to_string()).collect();
            chosen(&of).unwrap().iter().map(|t| t.name).collect()
        };
        assert_eq!(names(&[]).len(), TESTS.len());
        assert_eq!(names(&["get", "put_lat"]), ["put_lat", "get_lat", "get_bw"]);
        assert_eq!(names(&["barrier"]), ["barrier"]);
        let error = chosen(&["pat".into()]).err().unwrap();
        assert!(error.contains("unknown test 'pat'") && error.contains("put_lat"), "{error}");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = TESTS.iter().map(|t| t.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TESTS.len());
    }
}
