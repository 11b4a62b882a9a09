//! Pointers from a layer to a layer above it. A layer owns the layer below it by value. A lower
//! layer that has to call up, for example to poll services in a wait, defines a trait and a place
//! for a pointer, which the upper layer sets once all layers exist.

use std::ptr::NonNull;
use std::sync::OnceLock;

/// A pointer to a higher part of the same allocation.
pub(crate) struct UpperLayer<T: ?Sized>(OnceLock<NonNull<T>>);

// SAFETY: only shared references are given out, and `T` is `Sync`.
unsafe impl<T: ?Sized + Sync> Send for UpperLayer<T> {}
// SAFETY: only shared references are given out, and `T` is `Sync`.
unsafe impl<T: ?Sized + Sync> Sync for UpperLayer<T> {}

impl<T: ?Sized> std::fmt::Debug for UpperLayer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UpperLayer").field(&self.0.get().is_some()).finish()
    }
}

impl<T: ?Sized> Default for UpperLayer<T> {
    fn default() -> Self {
        UpperLayer(OnceLock::new())
    }
}

impl<T: ?Sized> UpperLayer<T> {
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: the caller of `set` guarantees that the part stays valid.
        self.0.get().map(|part| unsafe { part.as_ref() })
    }

    /// Only the first call has an effect.
    ///
    /// # Safety
    /// `part` must stay valid and must not move while `self` may be used. This holds if both are
    /// parts of one allocation that does not move, until that is dropped.
    pub unsafe fn set(&self, part: &T) {
        let _ = self.0.set(NonNull::from(part));
    }
}
