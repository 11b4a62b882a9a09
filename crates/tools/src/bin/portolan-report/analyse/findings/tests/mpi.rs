//! Tests the findings about MPI calls of the program.

use super::*;

#[test]
fn ranks_that_wait_for_the_root_of_a_broadcast() {
    let program = |computes: u64| {
        move |rank: u32, it: &mut Rank| {
            for step in 0..20u64 {
                it.now = 1000 * MS + step * 10 * MS;
                let root_comes = it.now + computes;
                it.compute(if rank == 0 { computes } else { MS });
                it.mpi(MpiCall::Bcast, Some(0), if rank == 0 { 0 } else { root_comes + 2000 });
            }
        }
    };
    let finding =
        only(&found("bcast", 3, program(8 * MS)), "imbalance", 20.0 * 7.0 * 2.0 / 3.0 * MS as f64);
    assert!(finding.text.contains("Rank 0 was last at 20"), "{}", finding.text);
    assert_eq!(kinds(&found("bcast-even", 3, program(MS))), [""; 0]);
}

#[test]
fn waits_for_ranks_that_the_trace_does_not_name() {
    // Ranks 1 and 2 wait for an operation that rank 0 starts late, and rank 1 comes last to the
    // barrier. The trace cannot show that rank 0 is the cause.
    let program = |named: bool| {
        move |rank: u32, it: &mut Rank| {
            for step in 0..20u64 {
                let begin = 1000 * MS + step * 10 * MS;
                it.now = begin;
                it.compute(if rank == 0 { 6 * MS } else { MS });
                let late = begin + 6 * MS + u64::from(rank) * MS / 2;
                match (rank, named) {
                    (0, true) => (1..3).for_each(|to| it.mpi(MpiCall::Send, Some(to), 0)),
                    (0, false) => {}
                    (_, true) => it.mpi(MpiCall::Recv, Some(0), late),
                    (_, false) => it.mpi(MpiCall::Waitall, None, late),
                }
                it.compute(if rank == 1 { MS } else { 0 });
                it.barrier(begin + 8 * MS);
            }
        }
    };
    let findings = found("unknown", 3, program(false));
    assert!(kinds(&findings).contains(&"unknown"), "{findings:#?}");
    for finding in findings.iter().filter(|finding| finding.kind == "imbalance") {
        assert!(!finding.text.contains("Rank "), "{}", finding.text);
    }
    // The messages show it. Rank 1 is last at the barrier because it has waited for rank 0.
    let finding = only(&found("unknown-named", 3, program(true)), "sender", 100.0 * MS as f64);
    assert!(finding.title.contains("of rank 0"), "{}", finding.title);
}
