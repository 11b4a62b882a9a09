//! Exclusion of the library's own calls, so that the record contains only calls of the program, and
//! inclusion of the program's calls that the library completes inside others.

use super::Observer;
use super::entered::Entered;
use super::log::ThreadLog;

#[derive(Debug)]
pub struct Excluded<'a> {
    entered: Entered<'a>,
    meeting: bool,
}

#[derive(Debug)]
pub struct Included<'a> {
    log: &'a ThreadLog,
    depth: u32,
}

impl Observer {
    /// Excludes the calls of this thread, but not their waits, until the result is dropped.
    pub fn exclude_calls(&self) -> Option<Excluded<'_>> {
        let entered = self.enter(|| false)?;
        Some(Excluded { meeting: entered.log.meeting.get(), entered })
    }

    /// Also excludes the waits in collective calls.
    pub fn exclude_meetings(&self) -> Option<Excluded<'_>> {
        let excluded = self.exclude_calls()?;
        excluded.entered.log.meeting.set(true);
        Some(excluded)
    }

    /// Records the calls of this thread until the result is dropped, even inside another or
    /// excluded call, for work that the program has ordered earlier.
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
