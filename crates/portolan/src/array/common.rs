//! Helpers that the array modules share.

/// One number for each axis.
pub(super) type Dims = smallvec::SmallVec<[usize; 6]>;

/// Adds the name of the public call to an error.
pub(super) trait InCall {
    fn in_call(self, call: &'static str) -> Self;
}

impl<T> InCall for crate::Result<T> {
    #[inline]
    fn in_call(self, call: &'static str) -> Self {
        self.map_err(|e| e.in_call(call))
    }
}
