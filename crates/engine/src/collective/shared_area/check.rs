//! The comparison of calls in a step, and the report on missing ranks.

use super::SharedArea;
use crate::collective::call::{self, Call};
use crate::collective::message_group::Running;
use crate::collective::shared_counter::reached;
use crate::collective::slots::{KEPT, TURNS};
use portolan_base::config::agreed::listed;
use portolan_base::error::{Error, Result};
use std::sync::atomic::Ordering;

impl SharedArea {
    /// Checks for an alarm, and whether another rank has made a different call in this step.
    pub(super) fn check_others(&self, running: &Running<'_>, step: u32) -> Result<()> {
        running.alarm.check_others()?;
        let differs = (0..self.size()).any(|place| {
            let seen = self.slots.seen(place).load(Ordering::Acquire);
            reached(seen, step)
                && seen.wrapping_sub(step) < TURNS as u32
                && self.slots.read_call(place, step).signature != running.call
        });
        if differs { Err(self.disagree(running, step)) } else { Ok(()) }
    }

    #[cold]
    pub(super) fn disagree(&self, running: &Running<'_>, step: u32) -> Error {
        // Find the first step with different calls. `begin` has compared all earlier ones.
        let mut steps = (0..TURNS as u32).rev().map(|back| self.calls_of(step.wrapping_sub(back)));
        let differing = steps.find(|calls| calls.len() > 1);
        let calls = differing.unwrap_or_else(|| self.calls_of(step));
        let mut text = call::differ(&calls, running.alarm.members());
        if calls.len() == 1 {
            text.push_str("; an earlier call differed between them");
        }
        running.alarm.raise(&text)
    }

    fn calls_of(&self, step: u32) -> Vec<(Vec<usize>, Call)> {
        let mut calls: Vec<(Vec<usize>, Call)> = Vec::new();
        for (place, &rank) in self.members.iter().enumerate() {
            let seen = self.slots.seen(place).load(Ordering::Acquire);
            if !reached(seen, step) || seen.wrapping_sub(step) >= KEPT as u32 {
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

    pub(super) fn missing(&self, running: &Running<'_>, step: u32) -> String {
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
