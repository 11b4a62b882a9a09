//! Suspension of the yields that Open MPI makes in its polls.
//!
//! If a node has more ranks than slots, Open MPI yields the core in each poll that finds nothing.
//! Beside other work, a yield takes a time slice of milliseconds. A wait of the engine polls MPI, and
//! [`crate::wait`] decides when the thread yields or naps, so MPI does not yield during a wait. It
//! yields again in the calls that the program makes itself.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Sets whether Open MPI yields. Returns the old setting.
type Setter = unsafe extern "C" fn(bool) -> bool;

/// Number of waits.
static WAITS: AtomicU32 = AtomicU32::new(0);
/// Whether MPI yields outside of waits. Never reset, so that two threads that begin and end a wait at
/// the same time cannot lose the setting.
static YIELDS: AtomicBool = AtomicBool::new(false);

/// Returns Open MPI's function, or `None` in another MPI or in a release without it.
fn setter() -> Option<Setter> {
    static SETTER: OnceLock<Option<Setter>> = OnceLock::new();
    *SETTER.get_or_init(|| {
        let name = c"opal_progress_set_yield_when_idle";
        // SAFETY: the name is terminated, and the handle stands for all loaded libraries.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if found.is_null() {
            return None;
        }
        // SAFETY: the function of this name has this type in all releases of Open MPI since 1.7.
        Some(unsafe { std::mem::transmute::<*mut libc::c_void, Setter>(found) })
    })
}

/// Sets whether MPI yields, and returns the old setting.
fn set(yields: bool) -> bool {
    // SAFETY: the function stores a bool. MPI reads it in each poll, and either value is valid.
    setter().is_some_and(|set| unsafe { set(yields) })
}

/// Begins a wait. MPI does not yield until the last wait ends.
pub(crate) fn suspend() {
    if WAITS.fetch_add(1, Ordering::Relaxed) == 0 && set(false) {
        YIELDS.store(true, Ordering::Relaxed);
    }
}

/// Ends a wait.
pub(crate) fn resume() {
    if WAITS.fetch_sub(1, Ordering::Relaxed) == 1 && YIELDS.load(Ordering::Relaxed) {
        set(true);
    }
}
