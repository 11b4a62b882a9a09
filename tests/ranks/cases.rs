//! The tables of configurations and checks. [`alone`](crate::alone) launches single checks.

use crate::child::Ctx;
use crate::{
    am, am_aggregates, am_errors, am_items, am_many, am_rest, am_typed, am_typed_errors, anywhere,
    atomics, attack_arithmetic, attack_compose, collectives, compose, compose_fuzz, compose_life,
    consistency, contention, errors, exchanges, fences, flood, group_collectives, groups, hosts,
    interfaces, kernels, limits, lookups, mismatches, mutexes, paths, progress, random, rpc,
    rpc_life, segments, team_plans, threads,
};
use crate::{array_misuse, arrays};

#[derive(Debug)]
pub struct Config {
    pub label: &'static str,
    pub env: &'static [(&'static str, &'static str)],
    pub ranks: &'static [usize],
    /// Rank counts that the level `release` adds.
    pub release: &'static [usize],
    /// Rank counts of the level `quick`.
    pub quick: &'static [usize],
    /// Whether a rank is served while it computes.
    pub served: bool,
    /// Whether MPI permits calls from several threads.
    pub threads: bool,
}

const BASE: Config = Config {
    label: "",
    env: &[],
    ranks: &[],
    release: &[],
    quick: &[],
    served: true,
    threads: true,
};

pub const CONFIGS: &[Config] = &[
    Config { label: "default", ranks: &[1, 2, 3], release: &[4], quick: &[2], ..BASE },
    Config {
        label: "path=message",
        ranks: &[2],
        release: &[1, 3],
        env: &[("PORTOLAN_PATH", "message")],
        quick: &[2],
        ..BASE
    },
    Config {
        label: "path=rma",
        env: &[("PORTOLAN_PATH", "rma")],
        ranks: &[2],
        release: &[1, 3],
        quick: &[2],
        ..BASE
    },
    Config {
        label: "node_size=1",
        env: &[("PORTOLAN_NODE_SIZE", "1")],
        ranks: &[2],
        release: &[4],
        ..BASE
    },
    Config {
        label: "node_size=2",
        env: &[("PORTOLAN_NODE_SIZE", "2")],
        ranks: &[3],
        release: &[4],
        quick: &[3],
        ..BASE
    },
    Config {
        label: "node_size=2 path=direct+rma",
        env: &[("PORTOLAN_NODE_SIZE", "2"), ("PORTOLAN_PATH", "direct+rma")],
        ranks: &[4],
        release: &[3],
        ..BASE
    },
    Config { label: "am=mpi", env: &[("PORTOLAN_AM", "mpi")], ranks: &[2], release: &[3], ..BASE },
    Config {
        label: "am=node small rings cross_memory=off",
        env: &[
            ("PORTOLAN_AM", "node"),
            ("PORTOLAN_AM_RING_BYTES", "16K"),
            ("PORTOLAN_CROSS_MEMORY", "off"),
        ],
        ranks: &[2],
        release: &[4],
        ..BASE
    },
    Config {
        label: "node_size=2 path=message",
        env: &[("PORTOLAN_NODE_SIZE", "2"), ("PORTOLAN_PATH", "message")],
        ranks: &[4],
        ..BASE
    },
    Config {
        label: "am=node thread=0 cross_help=off",
        ranks: &[2],
        release: &[3],
        env: &[
            ("PORTOLAN_AM", "node"),
            ("PORTOLAN_PROGRESS_THREAD", "0"),
            ("PORTOLAN_CROSS_HELP", "off"),
        ],
        served: false,
        ..BASE
    },
    Config {
        label: "path=message small pieces",
        env: &[
            ("PORTOLAN_PATH", "message"),
            ("PORTOLAN_CHUNK_BYTES", "4K"),
            ("PORTOLAN_SPLIT", "on"),
            ("PORTOLAN_FLIGHT_BYTES", "64K"),
            ("PORTOLAN_SLAB_BYTES", "64K"),
        ],
        ranks: &[2],
        release: &[3],
        ..BASE
    },
    Config {
        label: "path=message thread=0",
        ranks: &[2],
        release: &[3],
        env: &[("PORTOLAN_PATH", "message"), ("PORTOLAN_PROGRESS_THREAD", "0")],
        served: false,
        ..BASE
    },
    Config {
        label: "path=rma thread=0",
        env: &[("PORTOLAN_PATH", "rma"), ("PORTOLAN_PROGRESS_THREAD", "0")],
        release: &[2],
        served: false,
        ..BASE
    },
    Config {
        label: "path=message host=single",
        env: &[
            ("PORTOLAN_PATH", "message"),
            ("PORTOLAN_INTERPOSE", "waits"),
            ("PORTOLAN_TEST_HOST", "single"),
        ],
        release: &[2],
        served: false,
        threads: false,
        ..BASE
    },
    Config {
        label: "node_size=1 host=single",
        env: &[
            ("PORTOLAN_NODE_SIZE", "1"),
            ("PORTOLAN_INTERPOSE", "waits"),
            ("PORTOLAN_TEST_HOST", "single"),
        ],
        ranks: &[2],
        release: &[3],
        served: false,
        threads: false,
        ..BASE
    },
];

#[derive(Debug)]
pub struct Check {
    pub name: &'static str,
    /// In seconds.
    pub seconds: u64,
    /// Whether the check runs in a configuration with this number of ranks.
    pub on: fn(&Config, usize) -> bool,
    pub run: fn(&Ctx),
}

fn always(_: &Config, _: usize) -> bool {
    true
}

fn once(c: &Config, n: usize) -> bool {
    c.label == "default" && n == 2
}

/// For networks without MPI, which the settings of the engine do not concern.
fn outside(c: &Config, n: usize) -> bool {
    c.label == "default" && n > 1
}

/// For networks that connect only processes of one host.
fn inside(c: &Config, n: usize) -> bool {
    outside(c, n) && c.env.iter().all(|(name, _)| *name != hosts::INTERFACE)
}

fn several(_: &Config, n: usize) -> bool {
    n > 1
}

fn two_served(c: &Config, n: usize) -> bool {
    n == 2 && c.served
}

fn two(_: &Config, n: usize) -> bool {
    n == 2
}

fn three_served(c: &Config, n: usize) -> bool {
    n == 3 && c.served
}

fn threaded(c: &Config, n: usize) -> bool {
    n < 4 && c.threads
}

fn threads_served(c: &Config, n: usize) -> bool {
    n == 2 && c.threads && c.served
}

pub const CHECKS: &[Check] = &[
    Check { name: "odd_sizes", seconds: 60, on: always, run: segments::odd_sizes },
    Check { name: "random", seconds: 90, on: always, run: random::random },
    Check { name: "contention", seconds: 60, on: always, run: contention::contention },
    Check { name: "teams", seconds: 60, on: always, run: team_plans::teams },
    Check { name: "rust", seconds: 90, on: always, run: interfaces::rust },
    Check { name: "arrays", seconds: 90, on: always, run: interfaces::arrays },
    Check { name: "armci", seconds: 90, on: always, run: interfaces::armci },
    Check { name: "x10", seconds: 90, on: always, run: interfaces::x10 },
    Check { name: "lapi", seconds: 90, on: always, run: interfaces::lapi },
    Check { name: "compose", seconds: 90, on: always, run: interfaces::compose },
    Check { name: "staggered", seconds: 60, on: two, run: segments::staggered },
    Check { name: "neighbours", seconds: 60, on: always, run: segments::neighbours },
    Check { name: "paths", seconds: 30, on: always, run: paths::paths },
    Check { name: "together", seconds: 60, on: always, run: segments::together },
    Check { name: "lookups", seconds: 60, on: always, run: lookups::lookups },
    Check { name: "consistency", seconds: 60, on: always, run: consistency::consistency },
    Check { name: "stripes", seconds: 60, on: always, run: atomics::lock_stripes },
    Check { name: "unaligned", seconds: 60, on: always, run: atomics::unaligned },
    Check { name: "totals", seconds: 60, on: always, run: atomics::totals },
    Check { name: "combined", seconds: 60, on: always, run: atomics::combined },
    Check { name: "fences", seconds: 60, on: several, run: fences::fences },
    Check { name: "progress", seconds: 60, on: two_served, run: progress::progress },
    Check { name: "looks", seconds: 60, on: always, run: progress::looks },
    Check { name: "bystander", seconds: 60, on: three_served, run: progress::bystander },
    Check { name: "mutexes", seconds: 60, on: always, run: mutexes::mutexes },
    Check { name: "mutex_errors", seconds: 60, on: always, run: mutexes::errors },
    Check { name: "mutex_interrupted", seconds: 60, on: several, run: mutexes::interrupted },
    Check { name: "kernels", seconds: 90, on: always, run: kernels::kernels },
    Check { name: "threads", seconds: 60, on: threaded, run: threads::threads },
    Check { name: "threads_notify", seconds: 60, on: threaded, run: threads::notifications },
    Check { name: "thread_fences", seconds: 60, on: threads_served, run: threads::fences },
    Check { name: "flood", seconds: 90, on: several, run: flood::flood },
    Check { name: "storm", seconds: 60, on: always, run: flood::storm },
    Check { name: "errors", seconds: 60, on: always, run: errors::errors },
    Check { name: "shape_errors", seconds: 60, on: always, run: errors::shapes },
    Check { name: "groups", seconds: 60, on: always, run: groups::groups },
    Check { name: "group_orders", seconds: 60, on: several, run: groups::orders },
    Check { name: "collectives", seconds: 60, on: always, run: collectives::collectives },
    Check { name: "reductions", seconds: 60, on: always, run: collectives::reductions },
    Check {
        name: "group_collectives",
        seconds: 60,
        on: always,
        run: group_collectives::group_collectives,
    },
    Check { name: "operators", seconds: 60, on: always, run: exchanges::operators },
    Check { name: "exchanges", seconds: 60, on: always, run: exchanges::exchanges },
    Check { name: "mismatches", seconds: 60, on: always, run: mismatches::mismatches },
    Check { name: "am_sizes", seconds: 90, on: always, run: am::sizes },
    Check { name: "am_nested", seconds: 60, on: always, run: am::nested },
    Check { name: "am_answers", seconds: 60, on: always, run: am::answers },
    Check { name: "am_fences", seconds: 60, on: always, run: am::fences },
    Check { name: "am_computing", seconds: 60, on: two_served, run: am::computing },
    Check { name: "am_aggregates", seconds: 60, on: always, run: am_aggregates::aggregates },
    Check { name: "am_flushes", seconds: 60, on: always, run: am_aggregates::flushes },
    Check { name: "am_many_handlers", seconds: 60, on: always, run: am_many::many_handlers },
    Check { name: "am_late_items", seconds: 60, on: always, run: am_rest::late_items },
    Check { name: "am_released", seconds: 60, on: threaded, run: am_rest::released },
    Check { name: "am_many_batches", seconds: 60, on: always, run: am_many::many_batches },
    Check { name: "am_senders", seconds: 60, on: threaded, run: am_aggregates::senders },
    Check {
        name: "am_rest_in_handler",
        seconds: 60,
        on: always,
        run: crate::system_limits::quiescence_in_a_handler,
    },
    Check { name: "am_errors", seconds: 60, on: always, run: am_errors::errors },
    Check { name: "anywhere", seconds: 60, on: always, run: anywhere::anywhere },
    Check { name: "anywhere_together", seconds: 60, on: always, run: anywhere::together },
    Check { name: "anywhere_withdrawn", seconds: 60, on: always, run: anywhere::withdrawn },
    Check { name: "anywhere_errors", seconds: 60, on: always, run: anywhere::errors },
    Check { name: "compose_random", seconds: 90, on: always, run: compose::random },
    Check { name: "compose_patterns", seconds: 60, on: always, run: compose::patterns },
    Check { name: "compose_computing", seconds: 60, on: two_served, run: compose::computing },
    Check { name: "compose_freed", seconds: 60, on: always, run: compose_life::freed },
    Check { name: "compose_errors", seconds: 60, on: always, run: compose_life::errors },
    Check { name: "compose_files", seconds: 60, on: always, run: compose_life::files },
    Check { name: "compose_damaged", seconds: 60, on: once, run: compose_fuzz::damaged },
    Check { name: "attack_blocks", seconds: 60, on: always, run: attack_arithmetic::blocks },
    Check { name: "attack_patches", seconds: 60, on: always, run: attack_arithmetic::patches },
    Check { name: "attack_compose_files", seconds: 60, on: always, run: attack_compose::files },
    Check { name: "attack_compose_raw", seconds: 60, on: always, run: attack_compose::raw },
    Check { name: "attack_neighbours", seconds: 60, on: always, run: attack_compose::neighbours },
    Check { name: "attack_slices", seconds: 60, on: always, run: attack_compose::slices },
    Check { name: "compose_million", seconds: 60, on: always, run: compose::million },
    Check { name: "compose_neighbours", seconds: 60, on: always, run: compose::neighbours },
    Check { name: "rpc_calls", seconds: 60, on: always, run: rpc::calls },
    Check { name: "rpc_errors", seconds: 60, on: always, run: rpc::errors },
    Check { name: "rpc_outstanding", seconds: 90, on: always, run: rpc::outstanding },
    Check { name: "rpc_bulk", seconds: 60, on: always, run: rpc::bulk },
    Check { name: "rpc_forgeries", seconds: 90, on: always, run: rpc::forgeries },
    Check { name: "rpc_life", seconds: 120, on: always, run: rpc_life::life },
    Check {
        name: "rpc_calls_sm",
        seconds: 90,
        on: inside,
        run: |ctx| rpc::over("na+sm", rpc::calls, ctx),
    },
    Check {
        name: "rpc_errors_sm",
        seconds: 90,
        on: inside,
        run: |ctx| rpc::over("na+sm", rpc::errors, ctx),
    },
    Check {
        name: "rpc_outstanding_sm",
        seconds: 90,
        on: inside,
        run: |ctx| rpc::over("na+sm", rpc::outstanding, ctx),
    },
    Check {
        name: "rpc_bulk_sm",
        seconds: 90,
        on: inside,
        run: |ctx| rpc::over("na+sm", rpc::bulk, ctx),
    },
    Check {
        name: "rpc_idle_sm",
        seconds: 90,
        on: inside,
        run: |ctx| rpc::over("na+sm", rpc::idle, ctx),
    },
    Check {
        name: "rpc_calls_tcp",
        seconds: 90,
        on: outside,
        run: |ctx| rpc::over("tcp", rpc::calls, ctx),
    },
    Check {
        name: "rpc_errors_tcp",
        seconds: 90,
        on: outside,
        run: |ctx| rpc::over("tcp", rpc::errors, ctx),
    },
    Check {
        name: "rpc_outstanding_tcp",
        seconds: 90,
        on: outside,
        run: |ctx| rpc::over("tcp", rpc::outstanding, ctx),
    },
    Check {
        name: "rpc_bulk_tcp",
        seconds: 90,
        on: outside,
        run: |ctx| rpc::over("tcp", rpc::bulk, ctx),
    },
    Check {
        name: "rpc_idle_tcp",
        seconds: 90,
        on: outside,
        run: |ctx| rpc::over("tcp", rpc::idle, ctx),
    },
    Check {
        name: "rpc_forgeries_sm",
        seconds: 120,
        on: inside,
        run: |ctx| rpc::over("na+sm", rpc::forgeries, ctx),
    },
    Check {
        name: "rpc_life_sm",
        seconds: 120,
        on: inside,
        run: |ctx| rpc::over("na+sm", rpc_life::life, ctx),
    },
    Check {
        name: "rpc_forgeries_tcp",
        seconds: 120,
        on: outside,
        run: |ctx| rpc::over("tcp", rpc::forgeries, ctx),
    },
    Check {
        name: "rpc_life_tcp",
        seconds: 120,
        on: outside,
        run: |ctx| rpc::over("tcp", rpc_life::life, ctx),
    },
    Check { name: "rpc_idle", seconds: 60, on: once, run: rpc::idle },
    Check { name: "array_random", seconds: 90, on: always, run: arrays::random },
    Check { name: "array_ghosts", seconds: 60, on: always, run: arrays::ghosts },
    Check { name: "array_products", seconds: 60, on: always, run: arrays::products },
    Check { name: "array_product_types", seconds: 60, on: always, run: arrays::product_types },
    Check { name: "array_zeros", seconds: 60, on: always, run: arrays::zeros },
    Check { name: "array_shared", seconds: 60, on: always, run: arrays::shared },
    Check { name: "array_files", seconds: 60, on: always, run: arrays::files },
    Check { name: "array_errors", seconds: 60, on: always, run: array_misuse::errors },
    Check { name: "huge_ask", seconds: 60, on: always, run: limits::huge_ask },
    Check { name: "many_segments", seconds: 120, on: two, run: segments::many },
    Check { name: "typed_values", seconds: 60, on: always, run: am_typed::values },
    Check { name: "typed_order", seconds: 60, on: always, run: am_typed::order },
    Check { name: "typed_nesting", seconds: 60, on: always, run: am_typed::nesting },
    Check { name: "typed_answers", seconds: 60, on: always, run: am_typed::answers },
    Check { name: "typed_blocking", seconds: 60, on: always, run: am_typed::blocking },
    Check { name: "typed_items", seconds: 60, on: always, run: am_items::items },
    Check { name: "typed_errors", seconds: 60, on: always, run: am_typed_errors::errors },
    Check { name: "no_leaks", seconds: 90, on: always, run: limits::no_leaks },
];
