//! Tests the findings about mutexes and counters.

use super::*;

/// Ranks take one mutex in turn, or each its own one if `own`, and hold it for a millisecond.
fn locks(own: bool) -> impl Fn(u32, &mut Rank) {
    move |rank, it| {
        for _ in 0..20 {
            let place = at(7, if own { u64::from(rank) } else { 2 });
            let waits = if own { 2_000 } else { 2_000 + u64::from(rank) * MS };
            it.wait(Cause::Lock, 1, waits, place.place);
            it.call(Call::Lock, 1, 0, waits + 1_000, place);
            it.compute(MS);
            it.call(Call::Unlock, 1, 0, 1_000, place);
            it.now = it.now.max(1000 * MS + (it.now - 1000 * MS).div_ceil(5 * MS) * 5 * MS);
        }
    }
}

#[test]
fn a_mutex_that_ranks_contend_for() {
    let finding = only(&found("lock", 4, locks(false)), "lock", 20.0 * 3.0 * MS as f64);
    assert!(finding.text.contains("Mutex 2 of set 7, owned by rank 1"), "{}", finding.text);
    assert_eq!(kinds(&found("lock-own", 4, locks(true))), [""; 0]);
    // The ranks take the mutex at different times and do not contend.
    let turns = found("lock-turns", 4, |rank, it| {
        it.compute(u64::from(rank) * 10 * MS);
        for _ in 0..5 {
            it.call(Call::Lock, 1, 0, 2_000, at(7, 2));
            it.compute(MS);
            it.call(Call::Unlock, 1, 0, 1_000, at(7, 2));
        }
    });
    assert_eq!(kinds(&turns), [""; 0]);
}

#[test]
fn a_mutex_that_two_ranks_contend_for() {
    // Each rank waits until the other one releases the mutex, so no lock call is quick, and barely
    // more than one rank at a time is in such a call.
    let program = |held: u64, rest: u64| {
        move |rank: u32, it: &mut Rank| {
            it.compute(u64::from(rank) * held);
            for _ in 0..100 {
                let waits = held.saturating_sub(rest);
                if waits > 0 {
                    it.wait(Cause::Lock, 0, waits, at(7, 0).place);
                }
                it.call(Call::Lock, 0, 0, waits + 1_000, at(7, 0));
                it.compute(held - 2_000);
                it.call(Call::Unlock, 0, 0, 1_000, at(7, 0));
                it.compute(rest);
            }
        }
    };
    let finding = only(&found("lock-two", 2, program(3 * MS, 0)), "lock", 100.0 * 3.0 * MS as f64);
    assert!(finding.title.starts_with("2 ranks contend"), "{}", finding.title);
    assert!(finding.text.contains("without contention it takes 1.00 µs"), "{}", finding.text);
    // The ranks wait for a tenth of the time, or find the mutex free.
    assert_eq!(kinds(&found("lock-seldom", 2, program(3 * MS, 28 * MS / 10))), [""; 0]);
    assert_eq!(kinds(&found("lock-free", 2, program(3 * MS, 4 * MS))), [""; 0]);
}

/// Ranks increment a counter in calls of `length` nanoseconds and compute for `pause` nanoseconds
/// between them. If `spread` is true, each rank has its own counter.
fn counts(spread: bool, pause: u64, length: u64) -> impl Fn(u32, &mut Rank) {
    move |rank, it| {
        for n in 0..1000 {
            let place = at(3, if spread { u64::from(rank) * 64 } else { 64 });
            let quick = n == 0;
            it.call(Call::Rmw, 0, 8, if quick { 1_000 } else { length }, place);
            it.compute(pause);
        }
    }
}

#[test]
fn a_hot_counter() {
    // The 2 % quantile estimates the uncontended time of a call, so more than 20 of the 1000 calls
    // must be quick. Here 25 are.
    let hot = |rank: u32, it: &mut Rank| {
        for n in 0..1000 {
            it.call(Call::Rmw, 0, 8, if n % 40 == 0 { 1_000 } else { 21_000 }, at(3, 64));
            it.compute(u64::from(rank) + 500);
        }
    };
    let finding = only(&found("counter", 4, hot), "counter", 975.0 * 20_000.0);
    assert!(finding.text.contains("Byte 64 of segment 3, owned by rank 0"), "{}", finding.text);
    assert_eq!(kinds(&found("counter-own", 4, counts(true, 500, 21_000))), [""; 0]);
    assert_eq!(kinds(&found("counter-seldom", 4, counts(false, 400_000, 1_100))), [""; 0]);
}

#[test]
fn counters_that_are_made_anew_count_together() {
    // Each phase has its own counter. None of them alone costs 1 % of the time, and on average less
    // than one rank is in a call.
    let phases = |slow: u64| {
        move |rank: u32, it: &mut Rank| {
            for phase in 0..200u64 {
                for n in 0..5 {
                    let ns = if n == 0 { 1_000 } else { slow };
                    it.call(Call::Rmw, 0, 8, ns, at(100 + phase, 0));
                    it.compute(100_000 + u64::from(rank));
                }
            }
        }
    };
    let finding = only(&found("counters", 4, phases(21_000)), "counter", 800.0 * 20_000.0);
    assert!(finding.title.contains("rank 0: 200 words, 4\u{202f}000 read"), "{}", finding.title);
    assert!(finding.text.contains("; byte 0 of segment 1"), "{}", finding.text);
    assert_eq!(kinds(&found("counters-quick", 4, phases(1_100))), [""; 0]);
}

#[test]
fn a_counter_at_a_rank_that_computes_is_not_hot() {
    let findings = found("counter-starved", 4, |rank, it| {
        for n in 0..60u64 {
            if rank == 0 {
                it.compute(9 * MS);
                it.serves(false, 1, it.now);
                it.now += 500;
                it.compute(MS - 500);
            } else {
                let ns = if n == 0 { 2_000 } else { 9 * MS };
                it.wait(Cause::Answer, 0, ns - 100, None);
                it.call(Call::Rmw, 0, 8, ns, at(3, 64));
                it.compute(10 * MS - ns);
            }
        }
    });
    assert_eq!(findings.first().map(|f| f.kind), Some("progress"), "{findings:#?}");
    let counter = findings.iter().find(|f| f.kind == "counter").map_or(0.0, |f| f.worth);
    assert!(counter < 0.15 * findings[0].worth, "{counter} of {}", findings[0].worth);
}
