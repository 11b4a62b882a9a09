//! Faults of the past, for the simulation that must find them.
//!
//! With the feature `mutations`, `put_back` brings one back in this process. Without it, as
//! the library is built for users, `is` is false at compile time and nothing is there.

/// A fault that was mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Fault {
    /// A long message over MPI whose last piece another thread saw leave never told its origin.
    LostSent = 1,
    /// A request nearly as long as all that may be under way waited for a confirmation that
    /// nobody asked for.
    NeverAsked,
    /// The job was taken to be at rest when its counts agreed once.
    CountedOnce,
    /// A fence marked its target clean while another thread's request was under way.
    FenceOfOthers,
    /// A request was served before those of its origin that wait for their bytes.
    OutOfOrder,
    /// A direct operation held the registry open while it waited for what went to its target
    /// by messages.
    ReadsOn,
    /// A target gave credits back by the number of requests alone: long ones used up an
    /// origin's bytes before.
    CreditByCount,
    /// A message that a handler sends waited for credit, as others do.
    HandlerWaits,
    /// A rank had another one carry its addition to a number while its own put to it was under way.
    JoinedEarly,
}

impl Fault {
    /// All of them, with their names.
    pub const ALL: &[(&str, Fault)] = &[
        ("lost_sent", Fault::LostSent),
        ("never_asked", Fault::NeverAsked),
        ("counted_once", Fault::CountedOnce),
        ("fence_of_others", Fault::FenceOfOthers),
        ("out_of_order", Fault::OutOfOrder),
        ("reads_on", Fault::ReadsOn),
        ("credit_by_count", Fault::CreditByCount),
        ("handler_waits", Fault::HandlerWaits),
        ("joined_early", Fault::JoinedEarly),
    ];
}

#[cfg(feature = "mutations")]
static BACK: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Brings a fault back in this process.
#[cfg(feature = "mutations")]
pub fn put_back(fault: Fault) {
    BACK.store(fault as usize, std::sync::atomic::Ordering::Relaxed);
}

/// Whether this fault is back.
#[cfg(feature = "mutations")]
pub(crate) fn is(fault: Fault) -> bool {
    BACK.load(std::sync::atomic::Ordering::Relaxed) == fault as usize
}

/// Lets other threads run between two statements, where this fault is back and shows only if one
/// comes between them.
#[cfg(feature = "mutations")]
pub(crate) fn window(fault: Fault) {
    if is(fault) {
        (0..8).for_each(|_| std::thread::yield_now());
    }
}

/// Nothing.
#[cfg(not(feature = "mutations"))]
#[inline(always)]
pub(crate) const fn window(_: Fault) {}

/// Whether this fault is back: never.
#[cfg(not(feature = "mutations"))]
#[inline(always)]
pub(crate) const fn is(_: Fault) -> bool {
    false
}
