//! Launches that run a single check of messages, environment variables, system limits, frees that
//! differ, or what the watchdog reports about them.

use crate::launch::{ALONE_BASE, Alone, End};
use crate::{lifecycle, messages, mismatches, system_limits};

pub const ALONE: &[Alone] = &[
    Alone { name: "messages", label: "one write each", run: messages::whole, ..ALONE_BASE },
    Alone {
        name: "trace_of_others",
        label: "files that are no traces",
        ranks: 3,
        end: End::Says(&["a file that is not a trace", "a symbolic link, which is not followed"]),
        run: system_limits::trace_of_others,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_too_long",
        label: "ulimit -f",
        end: End::Says(&["cannot continue the trace of this rank"]),
        run: system_limits::trace_too_long,
        ..ALONE_BASE
    },
    Alone {
        name: "trace_in_use",
        label: "a lock of another process",
        run: lifecycle::traces_in_use,
        ..ALONE_BASE
    },
    Alone {
        name: "abort_before_start",
        label: "MPI of the program",
        // MPI_Abort of MPICH, MPI_ABORT of Open MPI. Neither launcher prints this otherwise.
        end: End::Fails(&["MPI_A"]),
        run: lifecycle::abort_before_start,
        ..ALONE_BASE
    },
    Alone {
        name: "functions_end",
        label: "MPI of the program",
        run: lifecycle::functions_end,
        ..ALONE_BASE
    },
    Alone {
        name: "group_frees_differ",
        label: "default",
        ranks: 3,
        run: mismatches::frees_alone,
        ..ALONE_BASE
    },
    Alone {
        name: "group_frees_differ_nodes",
        label: "node_size=1",
        env: &[("PORTOLAN_NODE_SIZE", "1")],
        run: mismatches::frees_alone,
        ..ALONE_BASE
    },
    Alone { name: "long_files", label: "ulimit -f", run: system_limits::long_files, ..ALONE_BASE },
    Alone { name: "forked", label: "default", run: system_limits::forked, ..ALONE_BASE },
    Alone {
        name: "forked_nodes",
        label: "node_size=1",
        env: &[("PORTOLAN_NODE_SIZE", "1")],
        run: system_limits::forked,
        ..ALONE_BASE
    },
    Alone {
        name: "bad_variable",
        label: "path=tcp",
        env: &[("PORTOLAN_PATH", "tcp")],
        end: End::Fails(&[
            "PORTOLAN_PATH=tcp",
            "expected auto, direct, direct+rma, rma or message",
        ]),
        ..ALONE_BASE
    },
    Alone {
        name: "unknown_variable",
        label: "PORTOLAN_STAST",
        env: &[("PORTOLAN_STAST", "1")],
        end: End::Says(&[
            "portolan: rank 0: warning: the environment sets PORTOLAN_STAST",
            "did you mean PORTOLAN_STATS?",
        ]),
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog_rounds",
        label: "a completion handler that does not end",
        env: &[("PORTOLAN_WATCHDOG", "0.5"), ("PORTOLAN_WATCHDOG_ABORT", "1.5")],
        seconds: 20,
        end: End::Fails(&[
            " has waited 0.",
            "for all messages to be handled",
            "the job is aborted",
        ]),
        run: system_limits::silent_quiescence,
        ..ALONE_BASE
    },
    Alone {
        name: "watchdog_rounds_nodes",
        label: "a completion handler that does not end, node_size=1",
        env: &[
            ("PORTOLAN_NODE_SIZE", "1"),
            ("PORTOLAN_WATCHDOG", "0.5"),
            ("PORTOLAN_WATCHDOG_ABORT", "1.5"),
        ],
        seconds: 20,
        end: End::Fails(&[
            " has waited 0.",
            "for all messages to be handled",
            "the job is aborted",
        ]),
        run: system_limits::silent_quiescence,
        ..ALONE_BASE
    },
];
