//! The interface through which a thread last called the library. The panic boundary of the C
//! interfaces passes the name of each call to this module. If any engine of the process writes a
//! trace, the first letters of the name select the interface. Other threads belong to a Rust
//! program or to the engine.

use crate::thread::fast_tls;
use portolan_trace_format::kinds::Interface;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

static WANTED: AtomicBool = AtomicBool::new(false);
/// For threads that no C interface has called.
static DEFAULT: AtomicU8 = AtomicU8::new(Interface::Engine as u8);

const UNKNOWN: u8 = u8::MAX;

fast_tls! {
    static INTERFACE: u8 = UNKNOWN;
}

pub(super) fn want() {
    WANTED.store(true, Ordering::Relaxed);
}

/// For threads that have not called a C interface.
pub fn set_default(interface: Interface) {
    DEFAULT.store(interface as u8, Ordering::Relaxed);
}

/// The calling thread is in a call of a C interface. Inlined, so that the name is a constant and
/// the compiler knows its interface.
#[inline(always)]
pub fn enter(call: &'static str) {
    if WANTED.load(Ordering::Relaxed) {
        let known = of(call);
        // Other calls count for the previous interface of the thread.
        if known != Interface::Engine {
            INTERFACE.set(known as u8);
        }
    }
}

/// By the first letters of the name.
#[inline(always)]
pub fn of(call: &str) -> Interface {
    let letter = |at| call.as_bytes().get(at).map_or(0, u8::to_ascii_lowercase);
    match (letter(0), letter(1)) {
        (b'a', _) | (b'p', b'a') => Interface::Armci,
        (b'x' | b'_', _) => Interface::X10,
        (b'l', _) => Interface::Lapi,
        (b'c', _) | (b'p', b'e') => Interface::Compose,
        (b'h' | b'n', _) => Interface::Mercury,
        _ => Interface::Engine,
    }
}

#[inline]
pub(super) fn current() -> Interface {
    let number = match INTERFACE.get() {
        UNKNOWN => DEFAULT.load(Ordering::Relaxed),
        known => known,
    };
    Interface::ALL.get(number as usize).copied().unwrap_or(Interface::Engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_calls_tell_the_interface() {
        for (call, interface) in [
            ("ARMCI_PutS", Interface::Armci),
            ("armci_msg_brdcst", Interface::Armci),
            ("x10_async_spawn", Interface::X10),
            ("LAPI_Amsend", Interface::Lapi),
            ("HG_Core_forward", Interface::Mercury),
            ("NA_Put", Interface::Mercury),
            ("portolan_malloc_many", Interface::Engine),
            ("ä", Interface::Engine),
        ] {
            assert_eq!(of(call), interface, "{call}");
        }
    }
}
