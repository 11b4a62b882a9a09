//! Exclusion of the calls that the library makes for itself, so that the record contains only calls
//! of the program.

use super::Observer;
use super::entered::Entered;

/// A period whose calls are not recorded ([`Observer::exclude_calls`]).
#[derive(Debug)]
pub struct Excluded<'a> {
    entered: Entered<'a>,
    meeting: bool,
}

impl Observer {
    /// Excludes the calls of this thread from the record until the result is dropped. Their waits
    /// are recorded.
    pub fn exclude_calls(&self) -> Option<Excluded<'_>> {
        let entered = self.enter(false)?;
        Some(Excluded { meeting: entered.log.meeting.get(), entered })
    }

    /// Performs [`Observer::exclude_calls`], and also excludes the waits in collective calls.
    pub fn exclude_meetings(&self) -> Option<Excluded<'_>> {
        let excluded = self.exclude_calls()?;
        excluded.entered.log.meeting.set(true);
        Some(excluded)
    }
}

impl Drop for Excluded<'_> {
    fn drop(&mut self) {
        self.entered.log.meeting.set(self.meeting);
    }
}
