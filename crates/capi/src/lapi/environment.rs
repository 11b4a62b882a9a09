//! Queries and settings.
//!
//! Queries for packet, buffer and window sizes return values of the engine. `INTERRUPT_SET` 1 lets
//! handlers also run on the library's threads, 0 (polling mode) only in calls of this task.
//! `TIMEOUT` is the time in seconds that a message waits for its index. The other settings are only
//! stored: arguments are checked whatever the value of `ERROR_CHK`.

use super::amsend::MAX_UHDR;
use super::context::{Context, TABLE, enter, local_call};
use super::outcome::{Outcome, refuse};
use super::traffic::TrafficKind;
use super::types::{Handle, Statistics};
use super::{messages, traffic};
use crate::boundary::export;
use portolan_engine::am::MAX_HEADER;
use portolan_engine::runtime::Engine;
use std::os::raw::c_int;
use std::sync::atomic::Ordering;

const TASK_ID: c_int = 0;
const NUM_TASKS: c_int = 1;
const MAX_UHDR_SZ: c_int = 2;
const MAX_DATA_SZ: c_int = 3;
const ERROR_CHK: c_int = 4;
const TIMEOUT: c_int = 5;
const MIN_TIMEOUT: c_int = 6;
const MAX_TIMEOUT: c_int = 7;
const INTERRUPT_SET: c_int = 8;
const MAX_PORTS: c_int = 9;
const MAX_PKT_SZ: c_int = 10;
const NUM_REX_BUFS: c_int = 11;
const REX_BUF_SZ: c_int = 12;
const LOC_ADDRTBL_SZ: c_int = 13;
const EPOCH_NUM: c_int = 14;
const USE_THRESH: c_int = 15;
const RCV_FIFO_SIZE: c_int = 16;
const MAX_ATOM_SIZE: c_int = 17;
const BUF_CP_SIZE: c_int = 18;
const MAX_PKTS_OUT: c_int = 19;
const ACK_THRESHOLD: c_int = 20;
const QUERY_SHM_ENABLED: c_int = 21;
const QUERY_SHM_NUM_TASKS: c_int = 22;
const QUERY_SHM_TASKS: c_int = 23;
const QUERY_STATISTICS: c_int = 24;
const PRINT_STATISTICS: c_int = 25;
const QUERY_SHM_STATISTICS: c_int = 26;
const QUERY_LOCAL_SEND_STATISTICS: c_int = 27;
const BULK_XFER: c_int = 28;
const BULK_MIN_MSG_SIZE: c_int = 29;
const RDMA_REMOTE_RCXT_AVAIL: c_int = 30;
const RC_QP_INIT_SETUP: c_int = 36;
const LAST_QUERY: c_int = 37;

/// The largest packet size that is reported, in bytes. A rank's eager limit to itself is unbounded.
const MOST_PACKET: usize = 64 << 10;
/// In seconds.
const TIMEOUTS: (c_int, c_int) = (10, 86_400);
const THRESHOLDS: (c_int, c_int) = (1, 30);

fn int(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

fn neighbours(engine: &Engine) -> Vec<c_int> {
    let topology = &engine.topology;
    topology.ranks_of(topology.my_node()).iter().map(|&rank| int(rank)).collect()
}

/// # Safety
/// `ret` must have space for the answer.
unsafe fn query(context: &Context, engine: &Engine, query: c_int, ret: *mut c_int) -> Outcome {
    let eager = (0..engine.size()).map(|rank| engine.eager_limit(rank));
    let eager = eager.min().unwrap_or(0).min(MOST_PACKET);
    let settings = &context.settings;
    let of = |transport: TrafficKind| &context.traffic[transport as usize];
    let value = match query {
        TASK_ID => int(engine.rank()),
        NUM_TASKS => int(engine.size()),
        MAX_UHDR_SZ => int(MAX_UHDR),
        MAX_DATA_SZ => c_int::MAX,
        ERROR_CHK => settings.error_chk.load(Ordering::Relaxed),
        TIMEOUT => settings.timeout.load(Ordering::Relaxed),
        MIN_TIMEOUT => TIMEOUTS.0,
        MAX_TIMEOUT => TIMEOUTS.1,
        INTERRUPT_SET => settings.interrupt.load(Ordering::Relaxed),
        MAX_PORTS => 1,
        MAX_PKT_SZ => int(eager),
        // Nothing is retransmitted: the transport is reliable.
        NUM_REX_BUFS => 0,
        REX_BUF_SZ => 0,
        LOC_ADDRTBL_SZ => int(TABLE),
        EPOCH_NUM => 0,
        USE_THRESH => c_int::from(engine.has_thread()),
        RCV_FIFO_SIZE => int(engine.config.flight_bytes),
        MAX_ATOM_SIZE => 8,
        BUF_CP_SIZE => int(eager),
        MAX_PKTS_OUT => int(engine.config.flight_bytes / (eager + MAX_HEADER)),
        ACK_THRESHOLD => settings.ack_threshold.load(Ordering::Relaxed),
        QUERY_SHM_ENABLED => c_int::from(neighbours(engine).len() > 1),
        QUERY_SHM_NUM_TASKS => int(neighbours(engine).len()),
        QUERY_SHM_TASKS => {
            let tasks = neighbours(engine);
            // SAFETY: the caller guarantees space for QUERY_SHM_NUM_TASKS numbers.
            unsafe { std::ptr::copy_nonoverlapping(tasks.as_ptr(), ret, tasks.len()) };
            return Ok(());
        }
        QUERY_STATISTICS | QUERY_SHM_STATISTICS | QUERY_LOCAL_SEND_STATISTICS => {
            let statistics = match query {
                QUERY_SHM_STATISTICS => traffic::sum([of(TrafficKind::Node)].into_iter()),
                QUERY_LOCAL_SEND_STATISTICS => traffic::sum([of(TrafficKind::Own)].into_iter()),
                _ => traffic::sum(context.traffic.iter()),
            };
            // SAFETY: the caller guarantees that `ret` is the address of a lapi_statistics_t.
            unsafe { ret.cast::<Statistics>().write_unaligned(statistics) };
            return Ok(());
        }
        // No transfer uses remote direct memory access.
        BULK_XFER => 0,
        BULK_MIN_MSG_SIZE => c_int::MAX,
        RDMA_REMOTE_RCXT_AVAIL..=RC_QP_INIT_SETUP => 0,
        PRINT_STATISTICS => {
            let s = traffic::sum(context.traffic.iter());
            // One call prints the whole line, because other ranks may print at the same time.
            println!(
                "rank {}: LAPI: {} messages and {} bytes sent, {} messages and {} bytes received, \
                 {} replies sent, {} received",
                engine.rank(),
                s.pkt_sent,
                s.data_sent,
                s.pkt_recv,
                s.data_recv,
                s.ack_send,
                s.ack_recv
            );
            0
        }
        _ => refuse!(messages::QUERY_TYPE, "unknown query {query}"),
    };
    // SAFETY: the caller guarantees that `ret` is the address of an int.
    unsafe { ret.write(value) };
    Ok(())
}

export! {
    /// `QUERY_SHM_TASKS` fills an int array, statistics a `lapi_statistics_t`, all others an int.
    LAPI_Qenv / PLAPI_Qenv(
        hndl: Handle, query_type: c_int, ret_val: *mut c_int,
    ) -> c_int = local_call(|| {
        let (context, engine) = enter(hndl)?;
        if !(TASK_ID..LAST_QUERY).contains(&query_type) {
            refuse!(messages::QUERY_TYPE, "unknown query {query_type}");
        }
        if ret_val.is_null() {
            refuse!(messages::RET_PTR_NULL, "the pointer to the answer is null");
        }
        // SAFETY: `ret_val` is not null, and the caller guarantees space for the answer.
        unsafe { query(context, engine, query_type, ret_val) }
    });

    LAPI_Senv / PLAPI_Senv(
        hndl: Handle, query_type: c_int, set_val: c_int,
    ) -> c_int = local_call(|| {
        let (context, engine) = enter(hndl)?;
        let settings = &context.settings;
        let (setting, (least, most)) = match query_type {
            ERROR_CHK => (&settings.error_chk, (0, 1)),
            INTERRUPT_SET => (&settings.interrupt, (0, 1)),
            TIMEOUT => (&settings.timeout, TIMEOUTS),
            ACK_THRESHOLD => (&settings.ack_threshold, THRESHOLDS),
            _ => refuse!(messages::QUERY_TYPE, "query {query_type} cannot be set"),
        };
        if !(least..=most).contains(&set_val) {
            refuse!(messages::SET_VAL, "{set_val} is not within {least} and {most}");
        }
        setting.store(set_val, Ordering::Relaxed);
        if query_type == INTERRUPT_SET {
            engine.set_polling(&context.deferral, set_val == 0)?;
        }
        Ok(())
    });
}
