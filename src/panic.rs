//! Ends the job when a rank panics.
//!
//! A rank that unwinds leaves the other ranks waiting in the next collective call, and finalising
//! during the unwinding would wait for them in turn. The first runtime of the process therefore
//! installs a panic hook for the life of the process, which acts only while armed.

use std::panic::PanicHookInfo;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a Rust process that panics.
const CODE: i32 = 101;

static INSTALLED: Once = Once::new();
static ARMED: AtomicBool = AtomicBool::new(false);

pub(crate) fn arm() {
    INSTALLED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let armed = ARMED.load(Ordering::Relaxed);
            if armed {
                announce(info);
            }
            before(info);
            if armed {
                portolan_base::process::end_job(CODE);
            }
        }));
    });
    ARMED.store(true, Ordering::Relaxed);
}

pub(crate) fn disarm() {
    ARMED.store(false, Ordering::Relaxed);
}

fn announce(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message");
    let blocking = crate::messages::running_blocking().map(str::to_string);
    let place = match portolan_engine::runtime::Engine::running_handler().or(blocking) {
        Some(handler) => format!(" in the handler {handler}"),
        None => String::new(),
    };
    portolan_base::process::message::say(&format!("a panic{place} aborts the job: {message}"));
}
