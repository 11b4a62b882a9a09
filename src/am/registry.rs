//! Registration: handlers get their numbers, the same on all ranks.

use super::cooperative_copy::{HELP, Help};
use super::{Am, Handler, HandlerId, Hook, state};
use crate::collective::{self, Kind};
use crate::error::{Result, fail};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Am {
    /// Makes the layer's own handlers known, before all others.
    pub(super) fn register_own(&self) -> Result<()> {
        let handlers = &self.state()?.handlers;
        let id = handlers.add("portolan::help", Arc::new(Help))?;
        if id != HELP {
            fail!(Internal, "the layer's own handler has the number {}", id.0);
        }
        Ok(())
    }

    /// Makes handlers known under names. Collective over all ranks, which give the
    /// same names in the same order; the first call starts active messages. When
    /// it returns, every rank knows them.
    ///
    /// # Errors
    /// `Argument` on all ranks where the names differ between ranks or one is in
    /// use; `Memory` where `PORTOLAN_AM=node` and there is no shared memory.
    pub fn add_handlers(
        &self,
        handlers: Vec<(String, Arc<dyn Handler>)>,
    ) -> Result<Vec<HandlerId>> {
        collective::scope(Kind::Register, 0, || self.add_all(handlers))
    }

    fn add_all(&self, handlers: Vec<(String, Arc<dyn Handler>)>) -> Result<Vec<HandlerId>> {
        let world = self.world();
        let state = self.state()?;
        let mut names = DefaultHasher::new();
        for (name, _) in &handlers {
            name.hash(&mut names);
        }
        let digests = world.allgather(self, &names.finish())?;
        let differs = digests.iter().position(|d| *d != digests[0]);
        let taken = handlers.iter().enumerate().find(|(n, (name, _))| {
            state.handlers.has(name) || handlers[..*n].iter().any(|(other, _)| other == name)
        });
        if let Some(rank) = differs {
            let mine: Vec<&str> = handlers.iter().map(|(name, _)| name.as_str()).collect();
            fail!(
                Argument,
                "rank {rank} registers other handlers than rank 0, or in another order; this rank \
                 registers {mine:?}"
            );
        }
        if let Some((_, (name, _))) = taken {
            fail!(Argument, "the handler name {name:?} is in use");
        }
        let ids = handlers
            .into_iter()
            .map(|(name, handler)| {
                state.add_gate(&*handler);
                state.handlers.add(state::intern(&name), handler)
            })
            .collect();
        // No message comes before all know what to do with it.
        world.barrier(self)?;
        ids
    }

    /// Forgets handlers. Collective, after [`Am::quiesce`].
    pub fn unregister_handlers(&self, ids: &[HandlerId]) -> Result<()> {
        let state = self.state()?;
        collective::scope(Kind::Unregister, 0, || self.world().barrier(self))?;
        for id in ids {
            match state.handlers.get(*id) {
                Some(entry) => entry.gone.store(true, Ordering::Relaxed),
                None => fail!(Argument, "no handler has the number {}", id.0),
            }
        }
        state.gates.write().retain(|gate| state.handlers.has_gate(gate));
        Ok(())
    }

    /// Adds a function that sends what a face has collected but not sent; it is
    /// called by [`Am::quiesce`], and now and then by the progress thread (the
    /// flag is then true: only what is old is to go). It must not wait for anything
    /// but room, and returns whether it sent anything.
    pub fn add_flush_hook(&self, hook: Hook) -> Result<()> {
        self.state()?.hooks.write().push(hook);
        Ok(())
    }

    /// Takes a hook out again.
    pub fn remove_flush_hook(&self, hook: &Hook) -> Result<()> {
        self.state()?.hooks.write().retain(|h| !Arc::ptr_eq(h, hook));
        Ok(())
    }
}
