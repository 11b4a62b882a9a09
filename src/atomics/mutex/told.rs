//! What calls on mutexes, and waits for them, tell the observer.

use super::FoundMutex;
use crate::memory::registry::SegmentId;
use crate::ops::told::number_of;
use crate::trace::{About, Awaited, Call, Cause, Place};

impl FoundMutex<'_> {
    fn place_in_traces(&self) -> Place {
        let id = SegmentId { group: self.name.group, number: self.name.set };
        Place { segment: Some(number_of(id)), offset: u64::from(self.name.index) }
    }

    /// What a call on it was.
    pub(super) fn about(&self, call: Call) -> About {
        let about = About::new(call).to(self.place.world).by(self.place.path.into());
        about.at(Some(self.place_in_traces()))
    }

    /// What a thread waits for that waits for it.
    pub(super) fn awaited(&self) -> Awaited {
        let place = Some(self.place_in_traces());
        Awaited { place, ..Awaited::of(Cause::Lock, self.place.world) }
    }
}
