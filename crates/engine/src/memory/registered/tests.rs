use super::*;
use Direction::{Get, Put};

fn table() -> Table {
    let len = 2 * size_of::<Area>();
    let file = SharedFile::create("/dev/shm", len, false).expect("a file");
    file.reserve(0, len).expect("room");
    let file = Arc::new(file);
    Table::new(file.clone(), 0, 2, 1); // this process acts as the other rank too
    Table::new(file, 0, 2, 0)
}

fn run(address: usize, len: usize) -> Run {
    Run { address, len }
}

fn other(table: &Table) -> Table {
    Table::new(table.file.clone(), 0, 2, 1)
}

#[test]
fn what_is_withdrawn_cannot_be_begun_and_what_has_begun_is_waited_for() {
    let mine = Arc::new(table());
    let theirs = other(&mine);
    let registration = Registration::new(77, vec![run(4096, 100)], (true, true), None);
    *registration.traced.lock() = Told { described: true, place: Some((mine.clone(), 5, 1)) };
    assert_eq!(theirs.begin(0, 5, 77, 1).unwrap_err().kind(), ErrorKind::Handle);
    registration.open();
    drop(theirs.begin(0, 5, 77, 1).unwrap().expect("room"));
    assert!(theirs.begin(0, 5, 78, 1).is_err() && theirs.begin(0, 6, 77, 1).is_err());
    assert!(theirs.begin(0, PLACES as u32, 77, 1).is_err());
    assert!(theirs.begin(0, 5, 77, 2).unwrap().is_none(), "another description");
    let copying = theirs.begin(0, 5, 77, 1).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            registration.withdraw(&Boot, || {});
            assert!(ended.load(SeqCst), "a copy was not waited for");
        });
        while theirs.begin(0, 5, 77, 1).is_ok() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        ended.store(true, SeqCst);
        drop(copying);
    });
    registration.open();
    assert!(theirs.begin(0, 5, 77, 1).unwrap().is_some(), "exposed again");
    registration.withdraw(&Boot, || {});
}

#[derive(Debug)]
struct Ended;

impl Progress for Ended {
    fn poll(&self) -> Result<bool> {
        Err(withdrawn())
    }
    fn may_wait(&self) -> Result<()> {
        Err(withdrawn())
    }
}

#[test]
fn copies_by_other_threads_are_waited_for_without_an_engine() {
    let id = u64::MAX - 6;
    let registration = Registration::new(id, vec![run(4096, 100)], (true, true), None);
    registration.describe((), || None);
    registration.open();
    let inside = registration.enter().unwrap();
    let (recalled, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            registration.withdraw(&Ended, || recalled.store(true, SeqCst));
            assert!(ended.load(SeqCst), "a copy was not waited for");
        });
        while !recalled.load(SeqCst) {
            std::thread::yield_now();
        }
        assert!(registration.enter().is_err());
        std::thread::sleep(Duration::from_millis(50));
        ended.store(true, SeqCst);
        drop(inside);
    });
    // A message that the engine has left behind never ends.
    registration.open();
    std::mem::forget(enter(id, Put, std::iter::once(run(4096, 1))).unwrap());
    registration.withdraw(&Ended, || {});
}

#[test]
fn the_dead_are_not_waited_for() {
    let mine = table();
    let theirs = other(&mine);
    let mut child = std::process::Command::new("true").spawn().expect("true");
    theirs.area(1).pid.store(child.id(), SeqCst);
    mine.open(3, 9, 1);
    std::mem::forget(theirs.begin(0, 3, 9, 1).unwrap());
    mine.close(3); // a zombie, not reaped yet
    child.wait().expect("wait");
    mine.open(3, 10, 1);
    std::mem::forget(theirs.begin(0, 3, 10, 1).unwrap());
    mine.close(3);
    assert!(lives(std::process::id()) && lives(1));
}

#[test]
fn copies_by_the_owner_stay_within_what_is_exposed() {
    let id = u64::MAX - 5;
    let keeper = Arc::new(());
    let kept: Arc<dyn Any + Send + Sync> = keeper.clone();
    let registration =
        Registration::new(id, vec![run(100, 10), run(200, 5)], (true, false), Some(kept));
    let ask = |direction, at, len| enter(id, direction, std::iter::once(run(at, len))).map(drop);
    assert_eq!(ask(Get, 100, 10).unwrap_err().kind(), ErrorKind::Handle);
    registration.open();
    assert!(ask(Get, 100, 10).is_err(), "nobody can know it");
    registration.describe((), || None);
    assert!(ask(Get, 100, 10).is_ok() && ask(Get, 204, 1).is_ok());
    for (direction, at, len) in
        [(Put, 100, 1), (Get, 99, 2), (Get, 105, 6), (Get, 110, 90), (Get, usize::MAX, 2)]
    {
        assert_eq!(ask(direction, at, len).unwrap_err().kind(), ErrorKind::Address, "{at} {len}");
    }
    assert!(Arc::strong_count(&keeper) == 2);
    let inside = enter(id, Get, std::iter::once(run(100, 1))).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| registration.withdraw(&Boot, || {}));
        while ask(Get, 100, 1).is_ok() {
            std::thread::yield_now();
        }
        drop(inside);
    });
    drop(registration);
    assert_eq!(Arc::strong_count(&keeper), 1);
}
