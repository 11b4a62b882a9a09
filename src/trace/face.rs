//! Which interface a thread was called by last.
//!
//! The C faces say the name of each call where they catch its panics; where some engine traces, its first letters are
//! kept for the thread. A thread that no C face has called is one of a Rust program, or of the engine.

use crate::thread::fast_tls;
use portolan_trace_format::kinds::Face;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Some engine of the process traces.
static WANTED: AtomicBool = AtomicBool::new(false);
/// Of threads that no face has named: that of the program.
static DEFAULT: AtomicU8 = AtomicU8::new(Face::Engine as u8);

const UNKNOWN: u8 = u8::MAX;

fast_tls! {
    static FACE: u8 = UNKNOWN;
}

/// From now on calls are to be named.
pub(super) fn want() {
    WANTED.store(true, Ordering::Relaxed);
}

/// The program's calls are those of this interface, where they do not say.
pub(crate) fn set_default(face: Face) {
    DEFAULT.store(face as u8, Ordering::Relaxed);
}

/// The calling thread is in a call of a C interface.
#[inline(always)]
pub(crate) fn enter(call: &'static str) {
    if WANTED.load(Ordering::Relaxed) {
        note(call);
    }
}

#[cold]
fn note(call: &str) {
    let known = of(call);
    // A call that belongs to no interface is one of the face that the thread was in.
    if known != Face::Engine {
        FACE.set(known as u8);
    }
}

/// The interface of a call's name, by its first letters: this is in the way of each call that is traced.
fn of(call: &str) -> Face {
    let letter = |at| call.as_bytes().get(at).map_or(0, u8::to_ascii_lowercase);
    match (letter(0), letter(1)) {
        (b'a', _) | (b'p', b'a') => Face::Armci,
        (b'x' | b'_', _) => Face::X10,
        (b'l', _) => Face::Lapi,
        (b'c', _) | (b'p', b'e') => Face::Compose,
        (b'h' | b'n', _) => Face::Mercury,
        _ => Face::Engine,
    }
}

/// The interface that the calling thread is in.
#[inline]
pub(super) fn current() -> Face {
    let number = match FACE.get() {
        UNKNOWN => DEFAULT.load(Ordering::Relaxed),
        known => known,
    };
    Face::ALL.get(number as usize).copied().unwrap_or(Face::Engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_calls_tell_the_interface() {
        for (call, face) in [
            ("ARMCI_PutS", Face::Armci),
            ("armci_msg_brdcst", Face::Armci),
            ("x10_async_spawn", Face::X10),
            ("LAPI_Amsend", Face::Lapi),
            ("HG_Core_forward", Face::Mercury),
            ("NA_Put", Face::Mercury),
            ("portolan_malloc_many", Face::Engine),
            ("ä", Face::Engine),
        ] {
            assert_eq!(of(call), face, "{call}");
        }
    }
}
