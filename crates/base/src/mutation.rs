//! Faults of the past, which the simulation must find. With the feature `mutations`, `put_back`
//! brings a fault back in this process. Without it, `is` is false at compile time.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Fault {
    /// The origin of a long MPI message was not notified if another thread saw the last part leave.
    LostSent = 1,
    /// A request near the limit of bytes waited for a confirmation that was never requested.
    NeverAsked,
    /// The job was considered quiescent when its counts agreed for the first time.
    CountedOnce,
    /// A fence marked its target complete while a request of another thread was in flight.
    FenceOfOthers,
    /// A request was served before earlier ones of its origin that still waited for their bytes.
    OutOfOrder,
    /// A direct operation kept the registry open while it waited for messages to its target.
    ReadsOn,
    /// A target returned credits by number only, though long requests used up the bytes first.
    CreditByCount,
    /// A message sent by a handler waited for credit like any other.
    HandlerWaits,
    /// A rank let another one perform its addition while its own put to that target was in flight.
    JoinedEarly,
}

impl Fault {
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

#[cfg(feature = "mutations")]
pub fn put_back(fault: Fault) {
    BACK.store(fault as usize, std::sync::atomic::Ordering::Relaxed);
}

#[cfg(feature = "mutations")]
pub fn is(fault: Fault) -> bool {
    BACK.load(std::sync::atomic::Ordering::Relaxed) == fault as usize
}

/// Lets other threads run if this fault is back: some faults need one between two statements.
#[cfg(feature = "mutations")]
pub fn window(fault: Fault) {
    if is(fault) {
        (0..8).for_each(|_| std::thread::yield_now());
    }
}

#[cfg(not(feature = "mutations"))]
#[inline(always)]
pub const fn window(_: Fault) {}

#[cfg(not(feature = "mutations"))]
#[inline(always)]
pub const fn is(_: Fault) -> bool {
    false
}
