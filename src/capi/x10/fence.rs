//! Order: what was issued is complete at its target.
//!
//! Messages are fenced by the rank that sent them. Aggregated asyncs that travel by way of other
//! ranks (`am::gateway`) are sent on by those: so the fence asks the ranks on the
//! way, first those of the own node, then those of other nodes, to send on what they
//! have and to fence that.

use super::handler_ids::SETTLE;
use super::{aggregate, code, lock, switches};
use crate::am::Am;
use crate::am::{Accept, Arrival, Data, Destination, Handler, Signal, Signals, Then};
use crate::capi::boundary;
use crate::error::Result;
use crate::peer::CompletionCounter;
use crate::runtime::Engine;
use crate::trace::Cause;
use std::os::raw::c_int;
use std::sync::Arc;

/// All that this place has issued is complete.
fn here(engine: &Engine) -> Result<()> {
    lock::may_wait()?;
    aggregate::flush_all(engine)?;
    switches::settle(engine)?;
    engine.fence_all()?;
    engine.fence_all_messages()?;
    if travels_by_others(engine) { fence_the_way(engine) } else { Ok(()) }
}

/// Whether aggregated asyncs may take the way by other ranks.
fn travels_by_others(engine: &Engine) -> bool {
    engine.size() >= engine.config.route_ranks && engine.topology.nodes() > 1
}

/// Has all ranks of the own node, and then all others, send on what they have gathered.
fn fence_the_way(engine: &Engine) -> Result<()> {
    let here = engine.topology.my_node();
    for near in [true, false] {
        let ranks = (0..engine.size()).filter(|&r| (engine.topology.node_of(r) == here) == near);
        let counter = Arc::new(CompletionCounter::default());
        for rank in ranks {
            counter.begin();
            let completion = Signal::Counter(counter.clone());
            let signals = Signals { origin: Signal::None, completion };
            // SAFETY: no address is given.
            unsafe { engine.send_am(rank, SETTLE.id()?, &[], Data::NONE, signals)? };
        }
        let what = || format!("{} ranks to send on what they gather", counter.outstanding());
        engine.wait_for(Cause::Fence, &what, || counter.check())?;
    }
    Ok(())
}

/// Sends on what this rank has gathered for others, and fences it.
pub(super) struct Settle;

impl Handler for Settle {
    fn arrive(&self, _engine: &Am, _message: &Arrival<'_>) -> Result<Accept> {
        let then = |engine: &Am, _: Vec<u8>| {
            let sent = engine.flush_hooks(false).and_then(|_| engine.fence_all_messages());
            if let Err(error) = sent {
                boundary::abort(&error.to_string(), error.kind().code());
            }
        };
        Ok(Accept { to: Destination::Taken, then: Then::Later(Box::new(then)) })
    }
}

/// All that any place has issued is complete, what asyncs have issued included.
/// Collective.
pub(super) fn everywhere(engine: &Engine) -> Result<()> {
    here(engine)?;
    engine.quiesce()?;
    engine.barrier_of(engine.world())
}

/// Returns when all that this place has issued is complete at its target.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn x10_fence() -> c_int {
    code("x10_fence", here)
}

/// Returns when all that all places have issued is complete. Collective.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn x10_gfence() -> c_int {
    code("x10_gfence", everywhere)
}
