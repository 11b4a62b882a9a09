//! Fences: completion of operations at their targets.

use super::{aggregate, code, lock, switches};
use crate::boundary::export;
use portolan_base::error::Result;
use portolan_base::trace::{Call, CallInfo};
use portolan_engine::runtime::Engine;
use std::os::raw::c_int;

fn here(engine: &Engine) -> Result<()> {
    lock::may_wait()?;
    aggregate::flush_all(engine)?;
    switches::settle(engine)?;
    engine.fence_all()?;
    engine.fence_all_messages()
}

/// Completes everything that any place has issued, including operations of asyncs. Collective.
pub(super) fn everywhere(engine: &Engine) -> Result<()> {
    engine.observed(
        || CallInfo::new(Call::Barrier),
        || {
            here(engine)?;
            engine.quiesce()?;
            // Asyncs that ran meanwhile may have begun transfers. No more asyncs run.
            switches::settle(engine)?;
            engine.fence_all()?;
            engine.barrier_of(engine.world())
        },
    )
}

export! {
    x10_fence() -> c_int =
        code(|engine| engine.observed(|| CallInfo::new(Call::FenceAll), || here(engine)));

    x10_gfence() -> c_int = code(everywhere);
}
