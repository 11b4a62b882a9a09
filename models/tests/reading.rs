//! Readers of a value exclude the thread that changes it, and the owner of a biased lock excludes
//! all other threads.

use loom::cell::UnsafeCell;
use loom::thread::spawn;
use portolan_models::sync::biased_lock::BiasedLock;
use portolan_models::sync::brlock::BrLock;
use portolan_models::sync::{check, check_without_fences};
use std::sync::Arc;

/// A number whose accesses the checker tracks.
#[derive(Debug, Default)]
struct Watched(UnsafeCell<u32>);

impl Watched {
    fn get(&self) -> u32 {
        // SAFETY: the checker ends the model if another thread writes at the same time.
        self.0.with(|value| unsafe { *value })
    }
    fn add(&mut self) {
        // SAFETY: the checker ends the model if another thread reads or writes at the same time.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

// SAFETY: the checker ends the model if threads access the number at the same time.
unsafe impl Sync for Watched {}

fn a_reader_and_a_changer() {
    let value = Arc::new(BrLock::new(Watched::default()));
    let reader = value.clone();
    let thread = spawn(move || {
        let outer = reader.read();
        let first = outer.get();
        assert_eq!(reader.read().get(), first, "the value changed within a reading");
        drop(outer);
        reader.read().get() >= first
    });
    value.change(Watched::add);
    value.change(Watched::add);
    assert!(thread.join().unwrap());
    assert_eq!(value.read().get(), 2);
}

#[test]
fn readers_and_changers_never_meet() {
    check(3, a_reader_and_a_changer);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn readers_and_changers_meet_without_fences() {
    check_without_fences(3, a_reader_and_a_changer);
}

#[test]
fn two_changers_and_a_reader() {
    check(2, || {
        let value = Arc::new(BrLock::new(Watched::default()));
        let (reader, changer) = (value.clone(), value.clone());
        let threads = [
            spawn(move || assert!(reader.read().get() <= 2)),
            spawn(move || changer.change(Watched::add)),
        ];
        value.change(Watched::add);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(value.read().get(), 2);
    });
}

/// Takes the lock by its fast or slow path, like a thread that adds an item to a batch.
fn add(lock: &BiasedLock<Watched>) {
    lock.with(Watched::add);
}

fn an_owner_and_another() {
    let lock = Arc::new(BiasedLock::new(Watched::default()));
    add(&lock); // this thread becomes the owner
    let other = lock.clone();
    let thread = spawn(move || {
        add(&other);
        add(&other);
    });
    add(&lock);
    add(&lock);
    thread.join().unwrap();
    assert_eq!(lock.lock().get(), 5);
}

/// Repeated use by another thread removes the bias.
fn an_owner_and_another_who_comes_often() {
    let lock = Arc::new(BiasedLock::new(Watched::default()));
    add(&lock); // this thread becomes the owner
    let other = lock.clone();
    let thread = spawn(move || (0..3).for_each(|_| add(&other)));
    add(&lock);
    add(&lock);
    thread.join().unwrap();
    assert_eq!(lock.lock().get(), 6);
}

#[test]
fn owner_and_others_exclude_each_other_without_a_bias() {
    check(3, an_owner_and_another_who_comes_often);
}

#[test]
fn owner_and_others_exclude_each_other() {
    check(3, an_owner_and_another);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn owner_and_others_meet_without_fences() {
    check_without_fences(3, an_owner_and_another);
}
