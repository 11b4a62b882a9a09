//! MPI messages: round trips and windows, for all patterns.
//!
//! An origin sends to its targets in turn. A target knows how many messages come, from any source.
//! The functions return `None` if MPI messages are not a bound of the run.

use crate::lab::{Contender, Lab, Library};
use crate::plan::Case;
use crate::result::Result;
use mpi::Rank;
use mpi::traits::{Communicator, Destination, Source};

const DATA: i32 = 1;
const ANSWER: i32 = 2;

/// Returns whether MPI messages are a bound of this run. One rank has no partner for them.
fn is_bound(lab: &Lab<'_>) -> bool {
    lab.bounds.two_sided && lab.size() > 1
}

/// Sends `there` bytes and waits for `back` bytes. A round trip counts as `halves` operations.
pub fn round_trips<'a>(
    lab: &'a Lab<'_>,
    case: Case,
    (there, back): (usize, usize),
    halves: usize,
) -> Option<Contender<'a>> {
    if !is_bound(lab) {
        return None;
    }
    let (mpi, me, size) = (lab.mpi, lab.me(), lab.size());
    let targets = lab.targets(case.pattern);
    let (mut to, mut from) = (vec![1u8; there], vec![1u8; back]);
    let body = move |n: usize| -> Result<()> {
        if targets.is_empty() {
            for _ in 0..case.pattern.inbound(me, size, n) {
                let status = mpi.any_process().receive_into_with_tag(&mut to[..], DATA);
                let origin = mpi.process_at_rank(status.source_rank());
                origin.send_with_tag(&from[..], ANSWER);
            }
            return Ok(());
        }
        for turn in 0..n {
            let target = mpi.process_at_rank(targets[turn % targets.len()] as Rank);
            target.send_with_tag(&to[..], DATA);
            target.receive_into_with_tag(&mut from[..], ANSWER);
        }
        Ok(())
    };
    Some(Contender::new("MPI send", Library::Mpi, true, halves, body))
}

/// Sends windows of non-blocking messages. The target answers each with an empty message.
pub fn windows<'a>(lab: &'a Lab<'_>, case: Case, window: usize) -> Option<Contender<'a>> {
    if !is_bound(lab) {
        return None;
    }
    let (mpi, me, size) = (lab.mpi, lab.me(), lab.size());
    let targets = lab.targets(case.pattern);
    let bytes = case.bytes;
    let part = case.pattern.is_target(me, size) || !targets.is_empty();
    let mut buffer = vec![1u8; if part { bytes * window } else { 0 }];
    let body = move |n: usize| -> Result<()> {
        if targets.is_empty() {
            for _ in 0..case.pattern.inbound(me, size, n) {
                let status = mpi.any_process().probe_with_tag(DATA);
                let origin = mpi.process_at_rank(status.source_rank());
                let mut done = Vec::with_capacity(window);
                let parts = buffer.chunks_exact_mut(bytes);
                mpi::request::multiple_scope(window, |scope, requests| {
                    for part in parts {
                        requests.add(origin.immediate_receive_into_with_tag(scope, part, DATA));
                    }
                    requests.wait_all(&mut done);
                });
                origin.send_with_tag(&[] as &[u8], ANSWER);
            }
            return Ok(());
        }
        for turn in 0..n {
            let target = mpi.process_at_rank(targets[turn % targets.len()] as Rank);
            let part = &buffer[..bytes];
            let mut done = Vec::with_capacity(window);
            mpi::request::multiple_scope(window, |scope, requests| {
                for _ in 0..window {
                    requests.add(target.immediate_send_with_tag(scope, part, DATA));
                }
                requests.wait_all(&mut done);
            });
            target.receive_into_with_tag(&mut [] as &mut [u8], ANSWER);
        }
        Ok(())
    };
    Some(Contender::new("MPI send", Library::Mpi, true, window, body))
}
