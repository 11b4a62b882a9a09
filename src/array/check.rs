//! The race detector. A race means that two ranks use one element without a sync in between, and at
//! least one of them writes it.
//!
//! With `PORTOLAN_CHECK=1`, a program records each access to an array: the elements, the kind of
//! access, the source line, and the number of barriers so far of the array's group and of the
//! world. All ranks of the group take part in these barriers, so accesses with different counts are
//! ordered. Each collective call on the array gathers and compares the records. If two ranks race,
//! the call fails on all ranks, and the error names both source lines.
#![warn(clippy::arithmetic_side_effects)]

use super::dist_array::DistArray;
use super::patch::Patch;
use crate::{Element, Group};
use ndarray::Dimension;
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Kind {
    Get,
    Put,
    /// Atomic with respect to other additions.
    Add,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Note {
    kind: Kind,
    barriers: u64,
    /// First index, number of indices, and step, for each axis.
    spans: Vec<(usize, usize, usize)>,
    site: String,
}

/// The accesses of this rank to an array since the last comparison.
#[derive(Debug)]
pub(super) struct Checker {
    notes: Mutex<BTreeSet<Note>>,
    overflowed: AtomicBool,
}

/// Maximum number of records between two comparisons. More accesses are not recorded.
const MOST: usize = 1 << 16;

impl Checker {
    pub(super) fn new(group: &Group<'_>) -> Option<Checker> {
        group
            .looks_for_races()
            .then(|| Checker { notes: Mutex::default(), overflowed: AtomicBool::default() })
    }
}

impl Kind {
    fn races(self, other: Kind) -> bool {
        self == Kind::Put || other == Kind::Put || self != other
    }
}

impl Note {
    /// Returns whether both records contain a common element.
    fn meets(&self, other: &Note) -> bool {
        let axis = |(a, b): (&(usize, usize, usize), &(usize, usize, usize))| {
            let ((start, count, step), (other, n, by)) = (*a, *b);
            let number = |index: usize| index.checked_sub(other)?.checked_div(by);
            (0..count).map(|i| start.saturating_add(i.saturating_mul(step))).any(|index| {
                // The division rounds down, so multiply back to see whether it was exact.
                number(index)
                    .is_some_and(|i| i < n && other.saturating_add(i.saturating_mul(by)) == index)
            })
        };
        self.spans.iter().zip(&other.spans).all(axis)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Get => "a read",
            Kind::Put => "a write",
            Kind::Add => "an addition",
        };
        let spans: Vec<String> = self
            .spans
            .iter()
            .map(|(start, count, step)| {
                let far = count.saturating_sub(1).saturating_mul(*step);
                let end = start.saturating_add(far).saturating_add(1);
                let by = if *step > 1 { format!(" step {step}") } else { String::new() };
                format!("{start}..{end}{by}")
            })
            .collect();
        write!(f, "{kind} of [{}] at {}", spans.join(", "), self.site)
    }
}

impl<T: Element, D: Dimension> DistArray<'_, T, D> {
    /// Records an access to a patch, which must have been checked.
    #[inline]
    #[track_caller]
    pub(super) fn note_patch(&self, kind: Kind, patch: &Patch) {
        if let Some(checker) = self.inner.check.as_ref().filter(|_| !patch.is_empty()) {
            let patch = patch.once(self.shape());
            let mut boxes = vec![Vec::new()];
            for axis in 0..patch.ndim() {
                let mut parts = Vec::new();
                patch.straight(axis, self.shape()[axis], |start, count, step, _| {
                    parts.push((start, count, step));
                });
                boxes = boxes
                    .iter()
                    .flat_map(|b: &Vec<_>| {
                        parts.iter().map(|p| b.iter().copied().chain([*p]).collect::<Vec<_>>())
                    })
                    .collect();
            }
            for spans in boxes {
                self.note(checker, kind, spans);
            }
        }
    }

    #[inline]
    #[track_caller]
    pub(super) fn note_index(&self, kind: Kind, index: &[usize]) {
        if let Some(checker) = &self.inner.check {
            self.note(checker, kind, index.iter().map(|i| (*i, 1, 1)).collect());
        }
    }

    /// Records an access to all elements of this rank.
    #[inline]
    #[track_caller]
    pub(super) fn note_own(&self, kind: Kind) {
        if let Some(checker) = &self.inner.check {
            for part in self.own_boxes() {
                let spans = part.global.iter().map(|r| (r.start, r.len(), 1)).collect();
                self.note(checker, kind, spans);
            }
        }
    }

    #[track_caller]
    fn note(&self, checker: &Checker, kind: Kind, spans: Vec<(usize, usize, usize)>) {
        let place = Location::caller();
        let site = portolan_base::process::caller()
            .unwrap_or_else(|| format!("{}:{}", place.file(), place.line()));
        let note = Note { kind, barriers: self.inner.group.barriers(), spans, site };
        let mut notes = checker.notes.lock();
        if notes.len() < MOST {
            notes.insert(note);
        } else if !checker.overflowed.swap(true, Ordering::Relaxed) {
            log::warn!("array \"{}\": too many accesses to look for races", self.name());
        }
    }

    /// Compares the accesses of all ranks since the last comparison, after a barrier. Collective.
    pub(super) fn check_races(&self) -> Result<()> {
        let Some(checker) = &self.inner.check else {
            return Ok(());
        };
        let notes = std::mem::take(&mut *checker.notes.lock());
        checker.overflowed.store(false, Ordering::Relaxed);
        let all = self.exchange(&notes)?;
        for (rank, notes) in all.iter().enumerate() {
            for (other, others) in all.iter().enumerate().skip(rank.saturating_add(1)) {
                for a in notes {
                    let race = others
                        .iter()
                        .find(|b| a.barriers == b.barriers && a.kind.races(b.kind) && a.meets(b));
                    if let Some(b) = race {
                        fail!(
                            State,
                            "array \"{}\": a race: {a} by rank {rank}, and {b} by rank {other}, \
                             without a sync between",
                            self.name()
                        );
                    }
                }
            }
        }
        Ok(())
    }

    fn exchange(&self, notes: &BTreeSet<Note>) -> Result<Vec<Vec<Note>>> {
        let group = &self.inner.group;
        let packed = postcard::to_stdvec(notes)
            .map_err(|e| crate::Error::new(crate::ErrorKind::Internal, format!("notes: {e}")))?;
        let mut all = Vec::with_capacity(group.size());
        for (rank, len) in group.all_gather(packed.len())?.into_iter().enumerate() {
            let mut bytes = if rank == group.rank() { packed.clone() } else { vec![0; len] };
            if len > 0 {
                group.broadcast(rank, &mut bytes)?;
            }
            all.push(postcard::from_bytes(&bytes).map_err(|e| {
                crate::Error::new(
                    crate::ErrorKind::Internal,
                    format!("cannot decode the access records of rank {rank}: {e}"),
                )
            })?);
        }
        Ok(all)
    }
}
