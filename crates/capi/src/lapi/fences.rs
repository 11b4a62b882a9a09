//! Ordering: fences, and purged targets.
//!
//! A fence waits for data: puts and gets are complete, and the data of active messages is in place.
//! It does not wait for completion handlers; only a completion counter shows that one has run. A
//! target in polling mode receives the data of active messages during its calls and fences.

use super::context::{self, Context, call};
use super::finish;
use super::types::Handle;
use crate::boundary::export;
use portolan_base::error::Result;
use portolan_base::trace::{Call, CallInfo, Cause};
use portolan_engine::am::Am;
use std::os::raw::{c_int, c_uint};
use std::sync::atomic::Ordering;

pub(crate) fn fence(context: &Context, engine: &Am) -> Result<()> {
    finish::serve(context, engine)?;
    let left = || context.pending.left() + context.asked.load(Ordering::SeqCst);
    if left() > 0 {
        engine.wait_for(Cause::Fence, &|| format!("{} transfers at a fence", left()), || {
            context.pending.advance(context, engine)?;
            Ok(left() == 0)
        })?;
    }
    if context.purged_any() {
        for target in (0..engine.size()).filter(|&t| !context.is_purged(t)) {
            engine.fence(target)?;
            engine.fence_messages(target)?;
        }
    } else {
        engine.fence_all()?;
        engine.fence_all_messages()?;
    }
    let targets: Vec<usize> = (0..engine.size()).filter(|&t| !context.is_purged(t)).collect();
    engine.fence_deferral(context.handlers.message, &targets)
}

export! {
    LAPI_Fence / PLAPI_Fence(hndl: Handle) -> c_int = call(|| {
        let (context, engine) = context::enter(hndl)?;
        context::may_wait()?;
        let call_info = || CallInfo::new(Call::FenceAll);
        Ok(engine.observed(call_info, || fence(context, engine))?)
    });

    LAPI_Gfence / PLAPI_Gfence(hndl: Handle) -> c_int = call(|| {
        let (context, engine) = context::enter(hndl)?;
        context::may_wait()?;
        let call_info = || CallInfo::new(Call::Barrier);
        Ok(engine.observed(call_info, || {
            fence(context, engine)?;
            engine.barrier_of(engine.world())
        })?)
    });

    /// Purges `dest`: later calls to it return `LAPI_ERR_TGT_PURGED`, fences do not wait for it,
    /// and threads in `LAPI_Nopoll_wait` return. Messages sent before still arrive.
    LAPI_Purge_totask / PLAPI_Purge_totask(hndl: Handle, dest: c_uint) -> c_int = call(|| {
        let (context, _) = context::enter(hndl)?;
        context.set_purged(context.task(dest)?, true);
        Ok(())
    });

    LAPI_Resume_totask / PLAPI_Resume_totask(hndl: Handle, dest: c_uint) -> c_int = call(|| {
        let (context, _) = context::enter(hndl)?;
        context.set_purged(context.task(dest)?, false);
        Ok(())
    });
}
