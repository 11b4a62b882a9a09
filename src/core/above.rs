//! Pointers from a layer to what stands on it.
//!
//! A layer owns the one below it by value, and calls it directly. Now and then a lower layer
//! has to call up: a wait polls what the layers above serve, a message is handed to the layer
//! that registered for its kind. It does so through a place that the upper layer fills when
//! all layers stand, with a trait of the lower layer's own: so it names nothing above itself.

use std::ptr::NonNull;
use std::sync::OnceLock;

/// A place for a pointer to a part of the same allocation that stands higher.
pub(crate) struct Above<T: ?Sized>(OnceLock<NonNull<T>>);

// SAFETY: the place gives out shared references only, as a plain reference would.
unsafe impl<T: ?Sized + Sync> Send for Above<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for Above<T> {}

impl<T: ?Sized> std::fmt::Debug for Above<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Above").field(&self.0.get().is_some()).finish()
    }
}

impl<T: ?Sized> Default for Above<T> {
    fn default() -> Self {
        Above(OnceLock::new())
    }
}

impl<T: ?Sized> Above<T> {
    /// What was set.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: `set`'s caller has vouched that the part lives as long as this place.
        self.0.get().map(|part| unsafe { part.as_ref() })
    }

    /// Sets it, once: a second call changes nothing.
    ///
    /// # Safety
    /// `part` must stay where it is, alive, for as long as `self` may be used: both are parts
    /// of one allocation that does not move, and `self` is not used while that is dropped.
    pub(crate) unsafe fn set(&self, part: &T) {
        let _ = self.0.set(NonNull::from(part));
    }
}
