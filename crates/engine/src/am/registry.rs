//! Registration of handlers, with the same numbers on all ranks.

use super::state::AmState;
use super::{Am, Handler, HandlerId, Hook, state};
use crate::collective::{self, Kind};
use portolan_base::error::{Result, fail};
use portolan_base::trace::{Call, CallInfo};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn withdraw(state: &AmState, ids: &[HandlerId]) {
    for entry in ids.iter().filter_map(|id| state.handlers.get(*id)) {
        entry.gone.store(true, Ordering::Relaxed);
    }
    state.deferrals.write().retain(|deferral| state.handlers.has_deferral(deferral));
}

impl Am {
    /// Collective over all ranks, which must pass the same names and element sizes in the same order. On return,
    /// every rank has registered the handlers. Fails with `Argument` on all ranks if the names
    /// differ or one is in use, and with `State` if active messages were not started.
    pub fn add_handlers(
        &self,
        handlers: Vec<(String, Arc<dyn Handler>)>,
    ) -> Result<Vec<HandlerId>> {
        self.observed(
            || CallInfo::new(Call::Other),
            || collective::scope(Kind::Register, 0, || self.add_all(handlers)),
        )
    }

    fn add_all(&self, handlers: Vec<(String, Arc<dyn Handler>)>) -> Result<Vec<HandlerId>> {
        let world = self.world();
        let state = self.state()?;
        let all: Vec<_> = handlers.iter().map(|(name, of)| (name, of.element_size())).collect();
        let digests = world.allgather(self, &world.digest(&all))?;
        let differs = digests.iter().position(|d| *d != digests[0]);
        let taken = handlers.iter().enumerate().find(|(n, (name, _))| {
            state.handlers.has(name) || handlers[..*n].iter().any(|(other, _)| other == name)
        });
        if let Some(rank) = differs {
            let mine: Vec<&str> = handlers.iter().map(|(name, _)| name.as_str()).collect();
            fail!(
                Argument,
                "rank {rank} registers different handlers from rank 0, or registers them in a \
                 different order; this rank registers {mine:?}"
            );
        }
        if let Some((_, (name, _))) = taken {
            fail!(Argument, "the handler name {name:?} is in use");
        }
        let mut ids = Vec::new();
        let added = handlers.into_iter().try_for_each(|(name, handler)| {
            state.add_deferral(&*handler);
            ids.push(state.handlers.add(state::intern(&name), handler)?);
            Ok(())
        });
        // No message may arrive before all ranks know its handler.
        let met = world.barrier(self);
        match added.and(met) {
            Ok(()) => Ok(ids),
            Err(error) => {
                // The caller gets no number, so only this call can free the names.
                withdraw(state, &ids);
                Err(error)
            }
        }
    }

    /// Collective, after [`Am::quiesce`]. Fails with `Argument` for an unknown number.
    pub fn unregister_handlers(&self, ids: &[HandlerId]) -> Result<()> {
        let state = self.state()?;
        let object = ids.first().map_or(0, |id| u64::from(id.0));
        self.observed(
            || CallInfo::new(Call::Other),
            || collective::scope(Kind::Unregister, object, || self.world().barrier(self)),
        )?;
        if let Some(id) = ids.iter().find(|id| state.handlers.get(**id).is_none()) {
            fail!(Argument, "no handler has the number {}", id.0);
        }
        withdraw(state, ids);
        Ok(())
    }

    /// Adds a function that sends what an interface has collected. [`Am::quiesce`] calls it. The
    /// progress thread, or a waiting call without one, also calls it from time to time, for aged
    /// items only. It must wait for nothing but room in the transport.
    pub fn add_flush_hook(&self, hook: Hook) -> Result<()> {
        self.state()?.hooks.write().push(hook);
        Ok(())
    }

    pub fn remove_flush_hook(&self, hook: &Hook) -> Result<()> {
        self.state()?.hooks.write().retain(|h| !Arc::ptr_eq(h, hook));
        Ok(())
    }
}
