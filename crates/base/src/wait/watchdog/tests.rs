use super::*;

#[test]
fn reports_come_ever_later_and_start_anew_after_progress() {
    let mut watch = Watch { patience: Duration::from_secs(1), ..Watch::new() };
    let since = Instant::now();
    let mut at = |since, s: f64| {
        let now = since + Duration::from_secs_f64(s);
        watch.check(since, now).map(|(cause, _)| cause)
    };
    assert_eq!(at(since, 0.9), None);
    assert_eq!(at(since, 1.0), Some(ReportCause::Stalled));
    assert_eq!(at(since, 1.9), None);
    assert_eq!(at(since, 2.0), Some(ReportCause::Stalled));
    assert_eq!(at(since, 3.9), None);
    assert_eq!(at(since, 4.0), Some(ReportCause::Stalled));
    let later = since + Duration::from_secs(5);
    watch.progressed();
    let mut at = |s: f64| {
        let now = later + Duration::from_secs_f64(s);
        watch.check(later, now).map(|(cause, _)| cause)
    };
    assert_eq!(at(0.5), None);
    assert_eq!(at(1.0), Some(ReportCause::Stalled));
}

#[test]
fn the_time_to_end_the_job_is_counted_from_the_last_progress() {
    let limits = (Duration::from_secs(1), Duration::from_secs(3));
    let mut watch = Watch { patience: limits.0, fatal: limits.1, ..Watch::new() };
    let begun = Instant::now();
    let at = |s| begun + Duration::from_secs_f64(s);
    assert_eq!(watch.check(begun, at(2.9)).map(|r| r.0), Some(ReportCause::Stalled));
    watch.progressed();
    assert_eq!(watch.check(at(2.95), at(3.5)), None);
    assert_eq!(watch.check(at(2.95), at(6.0)).map(|r| r.0), Some(ReportCause::Fatal));
}

#[test]
fn a_long_wait_that_sees_other_things_reports_itself_too() {
    let mut watch = Watch { patience: Duration::from_secs(1), ..Watch::new() };
    let begun = Instant::now();
    let mut causes = Vec::new();
    for tenth in 0..250u64 {
        let now = begun + Duration::from_millis(100 * tenth);
        watch.progressed();
        causes.extend(watch.check(now, now).map(|(cause, _)| (tenth, cause)));
    }
    assert_eq!(causes, [(100, ReportCause::Slow), (200, ReportCause::Slow)]);
}

#[test]
fn progress_is_recorded_with_its_rank() {
    note(ProgressEvent::Request, 3);
    assert!(last_progress().contains("a request of rank 3 was handled"));
    note(ProgressEvent::Waited, usize::MAX);
    assert!(last_progress().ends_with("a wait ended"));
}

#[test]
fn a_host_is_lost_after_two_looks_and_the_whole_limit() {
    let lost = hosts::LostHost { address: [127, 0, 0, 1].into(), rank: 1, silent: Duration::ZERO };
    let limit = Duration::from_secs(80);
    let find = |looks: &mut Looks, second, silent: bool| {
        let mut looked = false;
        let found = looks.find_lost(limit, Duration::from_secs(second), |_| {
            looked = true;
            silent.then(|| lost.clone())
        });
        (looked, found)
    };
    let (mut looks, mut at) = (Looks::default(), Vec::new());
    for second in 0..=80 {
        let (looked, found) = find(&mut looks, second, true);
        at.extend(looked.then_some(second));
        assert_eq!(found, second == 80);
    }
    assert_eq!(at, [40, 50, 60, 70, 80]);
    // This process was stopped: the first look comes late, and the probes begin with it.
    let mut looks = Looks::default();
    assert_eq!(find(&mut looks, 300, true), (true, false));
    assert_eq!(find(&mut looks, 305, true), (false, false));
    assert_eq!(find(&mut looks, 310, false), (true, false));
    assert_eq!(find(&mut looks, 320, true), (true, false));
    assert_eq!(find(&mut looks, 330, true), (true, true));
}
