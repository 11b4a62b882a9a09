//! Trace entries for mutex calls and for waits on mutexes.

use super::FoundMutex;
use crate::memory::registry::SegmentId;
use crate::ops::traced::number_of;
use crate::trace::{Awaited, Call, CallInfo, Cause, Place};

impl FoundMutex<'_> {
    fn place_in_traces(&self) -> Place {
        let id = SegmentId { group: self.name.group, number: self.name.set };
        Place { segment: Some(number_of(id)), offset: u64::from(self.name.index) }
    }

    pub(super) fn call_info(&self, call: Call) -> CallInfo {
        let call_info = CallInfo::new(call).to(self.place.world).by(self.place.access.into());
        call_info.at(Some(self.place_in_traces()))
    }

    pub(super) fn awaited(&self) -> Awaited {
        let place = Some(self.place_in_traces());
        Awaited { place, ..Awaited::of(Cause::Lock, self.place.world) }
    }
}
