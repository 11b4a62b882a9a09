//! The table of groups. Only the task that created a group knows its list of tasks.

use super::messages;
use super::outcome::{Outcome, refuse};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::raw::c_uint;
use std::sync::Arc;

/// Numbers count up from 1 and are never reused.
#[derive(Debug, Default)]
pub(crate) struct Groups(Mutex<(c_uint, Members)>);

type Members = HashMap<c_uint, Arc<[c_uint]>>;

impl Groups {
    pub(super) fn add(&self, members: &[c_uint]) -> c_uint {
        let (last, groups) = &mut *self.0.lock();
        *last += 1;
        groups.insert(*last, members.into());
        *last
    }

    pub(super) fn get(&self, group: c_uint) -> Outcome<Arc<[c_uint]>> {
        match self.0.lock().1.get(&group) {
            Some(members) => Ok(members.clone()),
            None => refuse!(messages::GRP, "{group} is not a group of this task"),
        }
    }

    pub(super) fn remove(&self, group: c_uint) -> Outcome {
        match self.0.lock().1.remove(&group) {
            Some(_) => Ok(()),
            None => refuse!(messages::GRP, "{group} is not a group of this task"),
        }
    }
}
