//! Each item that a thread appends to a list is taken once.

use loom::thread::spawn;
use portolan_models::sync::append_lists::{AppendLists, Batch};
use portolan_models::sync::{check, check_without_fences};
use std::sync::Arc;

const LIMIT: usize = 4;

fn push(lists: &AppendLists, item: u8) -> Option<Batch> {
    if lists.appending(|owner| owner.append(0, &[item])) == Some(true) {
        return None;
    }
    let mut lists = lists.lock();
    lists.claim();
    lists.append(0, &[item], || vec![0; LIMIT])
}

/// The batches stay allocated until the end, so that the model reports a late append as a lost
/// item.
fn items(batches: &[Option<Batch>]) -> Vec<u8> {
    let items = |(buffer, used): &Batch| buffer[used.clone()].to_vec();
    batches.iter().flatten().flat_map(items).collect()
}

fn an_owner_and_a_taker() {
    let lists = Arc::new(AppendLists::new(1, 1, LIMIT));
    let mut batches = vec![push(&lists, 1)]; // this thread becomes the owner
    let other = lists.clone();
    let taker = spawn(move || other.lock().take(0));
    batches.extend([push(&lists, 2), push(&lists, 3)]);
    batches.insert(0, taker.join().unwrap());
    batches.push(lists.lock().take(0));
    assert_eq!(items(&batches), [1, 2, 3]);
}

#[test]
fn items_are_taken_once() {
    check(3, an_owner_and_a_taker);
}

#[test]
#[should_panic(expected = "left == right")]
fn items_are_lost_without_fences() {
    check_without_fences(3, an_owner_and_a_taker);
}

#[test]
fn items_are_taken_while_the_owner_stays_inside() {
    check(3, || {
        let lists = Arc::new(AppendLists::new(1, 1, LIMIT));
        let mut batches = vec![push(&lists, 1)]; // this thread becomes the owner
        let other = lists.clone();
        let take = move || other.lock().take(0);
        let taker = spawn(move || {
            let first = take();
            vec![first, take()]
        });
        let added = lists.appending(|owner| [owner.append(0, &[2]), owner.append(0, &[3])]);
        for (added, item) in added.unwrap_or_default().into_iter().zip([2, 3]) {
            if !added {
                batches.push(push(&lists, item));
            }
        }
        let mut taken = taker.join().unwrap();
        taken.append(&mut batches);
        taken.push(lists.lock().take(0));
        assert_eq!(items(&taken), [1, 2, 3]);
    });
}
