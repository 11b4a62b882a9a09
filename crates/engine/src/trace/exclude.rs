//! Exclusion of the calls that the library makes for itself, so that the record contains only calls
//! of the program, and inclusion of the program's calls that the library completes inside others.

use super::Observer;
use super::entered::Entered;
use super::log::ThreadLog;

/// A period whose calls are not recorded ([`Observer::exclude_calls`]).
#[derive(Debug)]
pub struct Excluded<'a> {
    entered: Entered<'a>,
    meeting: bool,
}

/// A period whose calls are recorded, whatever call the thread is in
/// ([`Observer::include_calls`]).
#[derive(Debug)]
pub struct Included<'a> {
    log: &'a ThreadLog,
    depth: u32,
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

    /// Records the calls of this thread until the result is dropped, even inside another call or
    /// where calls are excluded. This is for work that the program has ordered earlier.
    pub fn include_calls(&self) -> Option<Included<'_>> {
        let log = self.own_log()?;
        Some(Included { log, depth: log.depth.replace(0) })
    }
}

impl Drop for Included<'_> {
    fn drop(&mut self) {
        self.log.depth.set(self.depth);
    }
}

impl Drop for Excluded<'_> {
    fn drop(&mut self) {
        self.entered.log.meeting.set(self.meeting);
    }
}
