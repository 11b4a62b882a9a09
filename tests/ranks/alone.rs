//! The table of launches that run a single check: checks that the engine must not survive, checks
//! that need a configuration of their own, and checks that take long.

use crate::launch::{ALONE_BASE, Alone, End, MESSAGE, RMA, no_other_mpi};
use crate::{
    am_errors, am_typed_errors, array_lines, attack_finalize, attack_forged, attack_rpc,
    compose_life, flood, large, lifecycle, limits, mismatches, observed, soak, traces, watchdog,
};

pub fn all() -> impl Iterator<Item = &'static Alone> {
    let all = ALONE.iter().chain(crate::alone_system::ALONE);
    let all =
        all.chain(attack_rpc::ALONE).chain(attack_finalize::ALONE).chain(attack_forged::ALONE);
    all.chain(crate::attack_order::ALONE)
}

/// A call that is not answered ends the job.
const UNANSWERED: Alone = Alone {
    env: &[("PORTOLAN_WATCHDOG", "0.5"), ("PORTOLAN_WATCHDOG_ABORT", "1.5")],
    seconds: 20,
    end: End::Fails(&[
        "rank 0:",
        " s for calls or transfers over mpi that peers must end (no progress meanwhile)",
        "the job is aborted, as set by PORTOLAN_WATCHDOG_ABORT",
    ]),
    ..ALONE_BASE
};

const UNANSWERED_SM: Alone = Alone {
    one_node: true,
    end: End::Fails(&[
        " s for calls or transfers over na+sm that peers must end (no progress meanwhile)",
        "the job is aborted, as set by PORTOLAN_WATCHDOG_ABORT",
    ]),
    ..UNANSWERED
};

/// Launches without a table in another file. Names are unique.
const ALONE: &[Alone] = &[
    Alone {
        name: "array_races",
        label: "PORTOLAN_CHECK=1",
        ranks: 3,
        env: &[("PORTOLAN_CHECK", "1")],
        end: End::Says(&["races are found"]),
        run: crate::array_misuse::races,
        ..ALONE_BASE
    },
    Alone {
        name: "array_panic",
        label: "a tile panics",
        end: End::Fails(&["the tile of rank 1 is too hard"]),
        run: crate::array_misuse::panics,
        ..ALONE_BASE
    },
    Alone {
        name: "array_interrupted",
        label: "between nodes",
        env: &[("PORTOLAN_NODE_SIZE", "1")],
        // The runtime is leaked.
        end: End::Fails(&["updates stay under way"]),
        run: crate::array_misuse::interrupted_update,
        ..ALONE_BASE
    },
    Alone {
        name: "transfers_in_a_handler",
        label: "default",
        // The runtime is leaked.
        end: End::Fails(&["all transfers were refused"]),
        run: am_typed_errors::transfers_in_a_handler,
        ..ALONE_BASE
    },
    Alone {
        name: "transfers_in_a_handler_between_nodes",
        label: "node_size=1",
        env: &[("PORTOLAN_NODE_SIZE", "1")],
        end: End::Fails(&["all transfers were refused"]),
        run: am_typed_errors::transfers_in_a_handler,
        ..ALONE_BASE
    },
    Alone {
        name: "array_error",
        label: "a tile fails",
        end: End::Fails(&["the tile of rank 1 is too hard"]),
        run: crate::array_misuse::fails,
        ..ALONE_BASE
    },
    Alone {
        name: "array_numpy",
        label: "python3",
        skip: crate::array_numpy::missing,
        run: crate::array_numpy::files,
        ..ALONE_BASE
    },
    Alone {
        name: "group_orders_differ",
        label: "default",
        ranks: 3,
        run: mismatches::orders_alone,
        ..ALONE_BASE
    },
    Alone {
        name: "settings_differ",
        label: "default",
        ranks: 3,
        run: lifecycle::settings_differ,
        ..ALONE_BASE
    },
    Alone { name: "own_mpi", label: "default", run: lifecycle::own_mpi, ..ALONE_BASE },
    Alone { name: "restart", label: "default", run: lifecycle::restart, ..ALONE_BASE },
    Alone {
        name: "restart_message",
        label: "path=message",
        env: MESSAGE,
        run: lifecycle::restart,
        ..ALONE_BASE
    },
    Alone {
        name: "restart_rma",
        label: "path=rma",
        env: RMA,
        run: lifecycle::restart,
        ..ALONE_BASE
    },
    Alone {
        name: "host_finalizes",
        label: "default",
        run: lifecycle::host_finalizes,
        ..ALONE_BASE
    },
    Alone {
        name: "host_finalizes_message",
        label: "path=message",
        env: MESSAGE,
        run: lifecycle::host_finalizes,
        ..ALONE_BASE
    },
    Alone {
        name: "host_finalizes_rma",
        label: "path=rma",
        env: RMA,
        run: lifecycle::host_finalizes,
        ..ALONE_BASE
    },
    Alone {
        name: "raised_level",
        label: "host asks for single",
        run: lifecycle::raised,
        ..ALONE_BASE
    },
    Alone { name: "compose_typed", label: "default", run: compose_life::typed, ..ALONE_BASE },
    Alone {
        name: "compose_typed_message",
        label: "path=message",
        ranks: 3,
        env: MESSAGE,
        run: compose_life::typed,
        ..ALONE_BASE
    },
    Alone {
        name: "part_of_world",
        label: "default",
        ranks: 3,
        run: lifecycle::part_of_world,
        ..ALONE_BASE
    },
    Alone {
        name: "over_communicator",
        label: "default",
        ranks: 3,
        run: lifecycle::over_communicator,
        ..ALONE_BASE
    },
    Alone {
        name: "direct_between_nodes",
        label: "path=direct node_size=1",
        env: &[("PORTOLAN_PATH", "direct"), ("PORTOLAN_NODE_SIZE", "1")],
        end: End::Fails(&["PORTOLAN_PATH=direct", "2 nodes"]),
        ..ALONE_BASE
    },
    Alone {
        name: "wrong_launcher",
        label: "launcher of the other MPI",
        other_mpi: true,
        skip: no_other_mpi,
        end: End::Fails(&["was started by the mpiexec of", "2 jobs of"]),
        ..ALONE_BASE
    },
    Alone {
        name: "a_failed_rank_ends_all",
        label: "default",
        end: End::Fails(&["rank 1 FAILED in step 'on purpose'"]),
        run: lifecycle::fail_on_purpose,
        ..ALONE_BASE
    },
    Alone { name: "freed_window", label: "default", run: lifecycle::freed_window, ..ALONE_BASE },
    Alone {
        name: "freed_communicator",
        label: "default",
        run: lifecycle::freed_communicator,
        ..ALONE_BASE
    },
    Alone { name: "am_lives", label: "default", run: am_errors::lives, ..ALONE_BASE },
    Alone {
        name: "am_lives_mpi",
        label: "am=mpi",
        env: &[("PORTOLAN_AM", "mpi")],
        ranks: 3,
        run: am_errors::lives,
        ..ALONE_BASE
    },
    Alone {
        name: "later_below_multiple",
        label: "level=single",
        one_node: true,
        env: &[("PORTOLAN_INTERPOSE", "waits")],
        run: am_errors::later_below_multiple,
        ..ALONE_BASE
    },
    Alone {
        name: "a_handler_panics",
        label: "default",
        end: End::Fails(&["the handler the unlucky one panicked", "thirteen"]),
        run: am_errors::panics,
        ..ALONE_BASE
    },
    Alone {
        name: "a_handler_fails",
        label: "am=mpi",
        env: &[("PORTOLAN_AM", "mpi")],
        end: End::Fails(&["the handler the refusing one failed"]),
        run: am_errors::fails,
        ..ALONE_BASE
    },
    Alone {
        name: "flight",
        label: "path=message am=mpi small flight",
        env: &[
            ("PORTOLAN_PATH", "message"),
            ("PORTOLAN_AM", "mpi"),
            ("PORTOLAN_FLIGHT_BYTES", "64K"),
        ],
        seconds: 20,
        run: flood::flight,
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog",
        label: "a rank that never comes",
        env: &[("PORTOLAN_WATCHDOG", "1"), ("PORTOLAN_PATH", "message")],
        seconds: 5,
        end: End::Hangs(&["has waited", "barrier"]),
        run: lifecycle::hang_on_purpose,
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog_ends",
        one_node: true,
        label: "a rank that never comes",
        env: &[("PORTOLAN_WATCHDOG", "0.5"), ("PORTOLAN_WATCHDOG_ABORT", "1.5")],
        seconds: 20,
        end: End::Fails(&[" has waited 0.", "without rank 1", "PORTOLAN_WATCHDOG_ABORT"]),
        run: lifecycle::hang_on_purpose,
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog_mutex",
        label: "a rank that keeps a mutex",
        env: &[("PORTOLAN_WATCHDOG", "0.5"), ("PORTOLAN_WATCHDOG_ABORT", "1.5")],
        seconds: 20,
        end: End::Fails(&[" has waited 0.", "mutex 0 of rank 0, which rank 1 holds"]),
        run: watchdog::held_mutex,
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog_stopped",
        label: "path=message a rank that is stopped",
        env: &[
            ("PORTOLAN_PATH", "message"),
            ("PORTOLAN_WATCHDOG", "0.5"),
            ("PORTOLAN_WATCHDOG_ABORT", "1.5"),
        ],
        seconds: 20,
        end: End::Fails(&[" has waited 0.", "Get with rank 1", "requests", "the job is aborted"]),
        run: watchdog::stopped_peer,
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog_asked",
        one_node: true,
        label: "SIGUSR1",
        seconds: 20,
        end: End::Says(&[
            "portolan: rank 1: is not waiting in a call of the library (requested by SIGUSR1)",
            "without rank 1; rank 1 is in no collective call of all ranks",
        ]),
        run: watchdog::asked,
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog_array",
        label: "a sum that waits",
        env: &[("PORTOLAN_WATCHDOG", "0.5")],
        seconds: 20,
        end: End::Says(&["DistArray::sum has waited", "called by tests/ranks/array_lines.rs:"]),
        run: array_lines::waited_for,
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog_call",
        label: "a call that is not answered",
        run: watchdog::call,
        ..UNANSWERED
    },
    Alone {
        name: "watchdog_call_sm",
        label: "a call over na+sm that is not answered",
        run: watchdog::call_sm,
        ..UNANSWERED_SM
    },
    Alone {
        name: "watchdog_polls",
        label: "a call that is not answered, and polls without a timeout",
        run: watchdog::polled_call,
        ..UNANSWERED
    },
    Alone {
        name: "watchdog_polls_sm",
        label: "such polls over na+sm",
        run: watchdog::polled_call_sm,
        ..UNANSWERED_SM
    },
    Alone {
        name: "watchdog_computes",
        label: "a computation between polls",
        env: &[("PORTOLAN_WATCHDOG_ABORT", "3")],
        seconds: 30,
        run: watchdog::polls_and_computes,
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog_server",
        label: "idle servers, and SIGUSR1",
        env: &[("PORTOLAN_WATCHDOG", "0.5"), ("PORTOLAN_WATCHDOG_ABORT", "1")],
        seconds: 20,
        end: End::Says(&[" s for an event of a class over mpi (requested by SIGUSR1)"]),
        run: watchdog::idle_server,
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog_patient",
        label: "path=message a wait that serves others",
        env: &[("PORTOLAN_PATH", "message"), ("PORTOLAN_WATCHDOG_ABORT", "3")],
        seconds: 30,
        run: watchdog::served_meanwhile,
        ..ALONE_BASE
    },
    Alone { name: "soak", label: "default", ranks: 3, run: soak::soak, ..ALONE_BASE },
    Alone {
        name: "soak_message",
        label: "path=message",
        ranks: 3,
        env: MESSAGE,
        run: soak::soak,
        ..ALONE_BASE
    },
    Alone {
        name: "soak_nodes",
        label: "node_size=2",
        ranks: 4,
        env: &[("PORTOLAN_NODE_SIZE", "2")],
        run: soak::soak,
        ..ALONE_BASE
    },
    Alone { name: "trace", label: "default", ranks: 3, run: traces::every_call, ..ALONE_BASE },
    Alone { name: "trace_one", label: "one rank", ranks: 1, run: traces::every_call, ..ALONE_BASE },
    Alone {
        name: "trace_four",
        label: "default, four ranks",
        ranks: 4,
        run: traces::every_call,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_message",
        label: "path=message",
        ranks: 2,
        env: MESSAGE,
        run: traces::every_call,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_rma",
        label: "path=rma",
        ranks: 2,
        env: RMA,
        run: traces::every_call,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_nodes",
        label: "node_size=2",
        ranks: 4,
        env: &[("PORTOLAN_NODE_SIZE", "2")],
        run: traces::every_call,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_monotonic",
        label: "path=message, the kernel's clock",
        ranks: 2,
        env: &[("PORTOLAN_PATH", "message"), ("PORTOLAN_TRACE_CLOCK", "monotonic")],
        run: traces::every_call,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_arrays",
        label: "path=message",
        ranks: 3,
        env: MESSAGE,
        run: array_lines::traced,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_limit",
        label: "PORTOLAN_TRACE_BYTES",
        run: traces::limited,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_live",
        label: "a job that runs",
        run: traces::while_running,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_killed",
        label: "a job that gets SIGKILL, and SIGSEGV",
        ranks: 1,
        run: traces::killed,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_nowhere",
        label: "a directory that cannot be made",
        end: End::Says(&["no trace is written by this rank", "PORTOLAN_TRACE"]),
        run: traces::no_directory,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_slow",
        label: "a disk that takes nothing",
        end: End::Says(&["the trace of this rank is incomplete"]),
        run: traces::slow_disk,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_restart",
        label: "MPI of the program",
        run: traces::restarted,
        ..ALONE_BASE
    },
    Alone {
        name: "stats",
        label: "default",
        end: End::Says(&["Portolan's statistics: 2 ranks", "put, direct", "of rank"]),
        run: traces::statistics,
        ..ALONE_BASE
    },
    Alone {
        name: "stats_message",
        label: "path=message",
        env: MESSAGE,
        end: End::Says(&["put, message", "answer", "ranks that were waited for longest"]),
        run: traces::statistics,
        ..ALONE_BASE
    },
    Alone {
        name: "stats_typed",
        label: "default",
        end: End::Says(&["non-blocking accumulate, direct"]),
        run: observed::typed,
        ..ALONE_BASE
    },
    Alone {
        name: "stats_typed_nodes",
        label: "node_size=1",
        ranks: 3,
        env: &[("PORTOLAN_NODE_SIZE", "1")],
        end: End::Says(&["non-blocking accumulate, message"]),
        run: observed::typed,
        ..ALONE_BASE
    },
    Alone {
        name: "stats_typed_rma",
        label: "path=rma",
        env: RMA,
        run: observed::typed,
        ..ALONE_BASE
    },
    Alone {
        name: "no_shm_dir",
        label: "shm_dir is missing",
        env: &[("PORTOLAN_SHM_DIR", "/nonexistent/directory")],
        run: limits::no_directory,
        ..ALONE_BASE
    },
    Alone {
        name: "kept_memory",
        label: "keep_bytes=16M",
        env: &[("PORTOLAN_KEEP_BYTES", "16M")],
        run: limits::kept,
        ..ALONE_BASE
    },
    Alone {
        name: "small_shm",
        label: "shm_dir of 16 MiB",
        wrap: Some(limits::WITH_SMALL_DIR),
        skip: limits::cannot_mount,
        run: limits::small_directory,
        ..ALONE_BASE
    },
    Alone {
        name: "small_shm_nodes",
        label: "shm_dir of 16 MiB node_size=1",
        ranks: 3,
        env: &[("PORTOLAN_NODE_SIZE", "1")],
        wrap: Some(limits::WITH_SMALL_DIR),
        skip: limits::cannot_mount,
        run: limits::small_directory,
        ..ALONE_BASE
    },
    Alone {
        name: "large_direct",
        label: "default",
        seconds: 120,
        skip: large::no_room,
        run: large::large,
        ..ALONE_BASE
    },
    Alone {
        name: "large_message",
        label: "path=message",
        env: MESSAGE,
        seconds: 120,
        skip: large::no_room,
        run: large::large,
        ..ALONE_BASE
    },
    Alone {
        name: "large_rma",
        label: "path=rma",
        env: RMA,
        seconds: 120,
        skip: large::no_room,
        run: large::large,
        ..ALONE_BASE
    },
    Alone { name: "typed_life", label: "default", run: am_typed_errors::whole_life, ..ALONE_BASE },
    Alone {
        name: "typed_panic",
        label: "a handler panics",
        end: End::Fails(&[
            "portolan: rank 1: a panic in the handler",
            "am_typed_errors::Panics",
            "on purpose",
        ]),
        run: am_typed_errors::panics,
        ..ALONE_BASE
    },
    Alone {
        name: "typed_panic_blocking",
        label: "a blocking handler panics",
        end: End::Fails(&[
            "portolan: rank 1: a panic in the handler",
            "am_typed_errors::Panics",
            "on purpose",
        ]),
        run: am_typed_errors::panics_blocking,
        ..ALONE_BASE
    },
    Alone {
        name: "typed_no_state",
        label: "a handler asks for a state",
        end: End::Fails(&["am_typed_errors::Stateless needs the state", "am_typed::Seen"]),
        run: am_typed_errors::no_state,
        ..ALONE_BASE
    },
    Alone {
        name: "typed_unreadable",
        label: "a message that cannot be read",
        end: End::Fails(&["am_typed_errors::Forged failed", "from rank 0 as"]),
        run: am_typed_errors::unreadable,
        ..ALONE_BASE
    },
];
