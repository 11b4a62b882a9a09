//! The end of the job by an error in a message that its origin relies on.

use crate::error::Error;

#[cold]
pub(super) fn fatal(error: &Error) -> ! {
    error.clone().log_once();
    crate::process::end_job(error.kind().code())
}
