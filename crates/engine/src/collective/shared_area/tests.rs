use super::*;
use crate::collective::alarm::Alarm;
use crate::collective::call::{ElementType, Signature};
use crate::collective::kind::Kind;
use portolan_base::error::ErrorKind;
use portolan_base::wait::Boot;

const RANKS: usize = 3;

fn ranks(body: impl Fn(usize, &SharedArea) + Sync) {
    let dir = std::env::temp_dir();
    let len = Slots::file_len(RANKS);
    let mut file = SharedFile::create(dir.to_str().unwrap(), len, true).unwrap();
    Slots::prepare(&file, RANKS).unwrap();
    std::thread::scope(|scope| {
        for me in 0..RANKS {
            let (file, body) = (SharedFile::open(&file.descriptor().unwrap(), len), &body);
            scope.spawn(move || {
                body(me, &SharedArea::on(file.unwrap(), me, vec![5, 6, 7], me > 0, None))
            });
        }
    });
    file.unlink();
}

fn what() -> String {
    "a test".into()
}

fn alarm_of(shared_area: &SharedArea) -> Alarm {
    let alarm = Alarm::new(None, 0, Arc::from([5, 6, 7]));
    alarm.set_slots(shared_area.slots().clone());
    alarm
}

fn running(alarm: &Alarm, call: Signature) -> Running<'_> {
    Running { progress: &Boot, what: &what, call, alarm, warns: &|| true }
}

#[test]
fn a_root_is_not_too_far_ahead() {
    ranks(|me, shared_area| {
        let alarm = alarm_of(shared_area);
        let it = running(&alarm, Signature::here(Kind::Broadcast));
        for round in 0..200u32 {
            if me == 2 && round % 20 == 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let mut data = round.to_ne_bytes();
            if me != 0 {
                data.fill(0);
            }
            shared_area.broadcast(&it, &mut data, 0).unwrap();
            assert_eq!(u32::from_ne_bytes(data), round);
        }
        let ahead = shared_area.step.load(Ordering::Relaxed);
        assert!((0..RANKS).all(|rank| reached(
            shared_area.slots.has_done(rank),
            ahead.wrapping_sub(TURNS as u32)
        )));
    });
}

#[test]
fn the_first_different_calls_are_named() {
    for steps in 1..2 * TURNS {
        ranks(|me, shared_area| {
            let alarm = alarm_of(shared_area);
            for _ in 0..3 {
                shared_area
                    .barrier(&running(&alarm, Signature::here(Kind::Barrier)), None)
                    .unwrap();
            }
            let step = |n: usize| {
                let kind = if me == 0 { Kind::Broadcast } else { Kind::Reduce };
                let call = Signature::here(kind).of(ElementType::of::<i64>(), n).rooted(0);
                let it = running(&alarm, call);
                match me {
                    0 => shared_area.broadcast(&it, &mut [0; 8], 0),
                    _ => shared_area.reduce(&it, (&mut [1i64], Operator::Sum), 0),
                }
            };
            let given = (1..=steps).try_for_each(step);
            let barrier = running(&alarm, Signature::here(Kind::Barrier));
            let error = given.and_then(|()| shared_area.barrier(&barrier, None)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch);
            for text in ["rank 5: broadcast of 1 i64", "reduce of 1 i64"] {
                assert!(error.detail().contains(text), "{steps} steps: {error}");
            }
        });
    }
}
