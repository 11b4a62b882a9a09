//! What the modules of arrays have in common.

/// Numbers by axis.
pub(super) type Dims = smallvec::SmallVec<[usize; 6]>;

/// Names the public call in an error.
pub(super) trait InCall {
    fn in_call(self, call: &'static str) -> Self;
}

impl<T> InCall for crate::Result<T> {
    #[inline]
    fn in_call(self, call: &'static str) -> Self {
        self.map_err(|e| e.in_call(call))
    }
}
