//! What the ranks of a step compare, and what is said of a rank that is missing.

use super::Board;
use crate::collective::call::{self, Call};
use crate::collective::circle::Running;
use crate::collective::mark::reached;
use crate::collective::slots::TURNS;
use crate::config::agreed::listed;
use crate::error::{Error, Result};
use crate::wait::Progress;
use std::sync::atomic::Ordering;

impl Board {
    /// Looks for an alarm, and whether another rank is or was in this step with another call.
    pub(super) fn look<P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
        step: u32,
    ) -> Result<()> {
        running.alarm.look()?;
        let differs = (0..self.size()).any(|place| {
            let seen = self.slots.seen(place).load(Ordering::Acquire);
            reached(seen, step)
                && seen.wrapping_sub(step) < TURNS as u32
                && self.slots.read_call(place, step).signature != running.call
        });
        if differs { Err(self.disagree(running, step)) } else { Ok(()) }
    }

    /// Ranks that have arrived at a step made different calls.
    #[cold]
    pub(super) fn disagree<P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
        step: u32,
    ) -> Error {
        // The first step that shows it, of those whose calls are still there. No rank begins the step
        // that uses the turn of this one again, but one may begin that of a step before.
        let most = TURNS as u32;
        let earlier =
            (1..most - 1).rev().map(|back| self.calls_of(step.wrapping_sub(back), most - 1));
        let calls = earlier.chain([self.calls_of(step, most)]).find(|calls| calls.len() > 1);
        let calls = calls.unwrap_or_else(|| self.calls_of(step, most));
        let mut text = call::differ(&calls, running.alarm.members());
        if calls.len() == 1 {
            text.push_str("; an earlier call was not the same on all of them");
        }
        running.alarm.raise(&text)
    }

    /// The calls that are known of a step, each with its ranks: of ranks that are less than `most` steps
    /// ahead.
    fn calls_of(&self, step: u32, most: u32) -> Vec<(Vec<usize>, Call)> {
        let mut calls: Vec<(Vec<usize>, Call)> = Vec::new();
        for (place, &rank) in self.members.iter().enumerate() {
            let seen = self.slots.seen(place).load(Ordering::Acquire);
            if !reached(seen, step) || seen.wrapping_sub(step) >= most {
                continue;
            }
            let call = self.slots.read_call(place, step);
            match calls.iter_mut().find(|(_, other)| other.signature == call.signature) {
                Some((ranks, _)) => ranks.push(rank),
                None => calls.push((vec![rank], call)),
            }
        }
        calls
    }

    /// What a rank waits for in a step, and which ranks have not arrived.
    pub(super) fn missing<P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
        step: u32,
    ) -> String {
        let what = running.what;
        let seen = |place: usize| self.slots.seen(place).load(Ordering::Relaxed);
        let missing: Vec<usize> = (0..self.size())
            .filter(|&place| !reached(seen(place), step))
            .map(|place| self.members[place])
            .collect();
        let here = self.size() - missing.len();
        match missing.len() {
            0 => format!("{} at which the {here} ranks of the node have arrived", what()),
            _ => {
                let members = running.alarm.members();
                let of = |&rank: &usize| self.whereabouts.as_ref()?.whereabouts(rank, members);
                let known: String =
                    missing.iter().take(4).filter_map(of).map(|text| format!("; {text}")).collect();
                format!(
                    "{} at which {here} of {} ranks have arrived, without {}{known}",
                    what(),
                    self.size(),
                    listed(&missing)
                )
            }
        }
    }
}
