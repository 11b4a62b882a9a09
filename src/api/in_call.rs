//! Errors name the public call.

use crate::error::Result;

/// Names the public call in an error.
pub(super) trait InCall {
    fn in_call(self, call: &'static str) -> Self;
}

impl<T> InCall for Result<T> {
    #[inline]
    fn in_call(self, call: &'static str) -> Self {
        self.map_err(|e| e.in_call(call))
    }
}
