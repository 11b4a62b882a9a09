//! Registration of message and item types, in the same order on all ranks.

use super::endpoint::Messages;
use super::serve::{OfItem, OfMessage, OfReply};
use super::shared::{Numbers, Shared};
use super::{Item, Message};
use crate::Runtime;
use crate::in_call::InCall;
use portolan_base::error::{Error, ErrorKind, Result, fail};
use portolan_engine::am::Am;
use portolan_engine::am::aggregate::{Aggregator, DEFAULT_LIMIT};
use portolan_engine::am::{Handler, HandlerId};
use portolan_engine::runtime::Engine;
use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::mem::size_of;
use std::sync::Arc;

type Make = Box<dyn FnOnce(&Arc<Shared>) -> Arc<dyn Handler>>;
type Note = Box<dyn FnOnce(&Am, HandlerId, &mut Numbers) -> Result<()>>;

struct Planned {
    name: String,
    make: Make,
    note: Note,
}

/// The types to handle, and the state that their handlers use.
///
/// All ranks name the same types in the same order, which [`Handlers::register`] checks.
#[derive(Default)]
#[must_use = "the types are registered by `Handlers::register`"]
pub struct Handlers {
    planned: Vec<Planned>,
    states: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    messages: bool,
    twice: Option<&'static str>,
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.planned.iter().map(|p| &p.name)).finish()
    }
}

impl Handlers {
    /// Returns an empty set of types.
    pub fn new() -> Handlers {
        Handlers::default()
    }

    /// Adds a message type whose handler does not wait.
    pub fn message<M: Message>(self) -> Handlers {
        self.any_message::<M>(false)
    }

    /// Adds a message type whose handler may wait. Such handlers run one after another, in the
    /// order of arrival, on a separate thread.
    pub fn blocking_message<M: Message>(self) -> Handlers {
        self.any_message::<M>(true)
    }

    fn any_message<M: Message>(mut self, blocking: bool) -> Handlers {
        self.messages = true;
        self.planned.push(Planned {
            name: M::name().to_string(),
            make: Box::new(move |shared| {
                Arc::new(OfMessage::<M> { shared: shared.clone(), blocking, _type: PhantomData })
            }),
            note: Box::new(|_, id, numbers| {
                numbers.messages.insert(TypeId::of::<M>(), id);
                Ok(())
            }),
        });
        self
    }

    /// Adds an item type, with batches of at most 60 KiB.
    pub fn item<I: Item>(self) -> Handlers {
        self.item_with::<I>(DEFAULT_LIMIT)
    }

    /// Adds an item type whose batches have at most `limit` bytes, but at least one item. The
    /// transport may limit batches further, and no batch has more than 8,192 items.
    pub fn item_with<I: Item>(mut self, limit: usize) -> Handlers {
        self.planned.push(Planned {
            name: I::name().to_string(),
            make: Box::new(|shared| {
                Arc::new(OfItem::<I> { shared: shared.clone(), _type: PhantomData })
            }),
            note: Box::new(move |engine, id, numbers| {
                let batches = Aggregator::new(engine, id, &[], size_of::<I>(), limit)?;
                numbers.items.insert(TypeId::of::<I>(), batches);
                Ok(())
            }),
        });
        self
    }

    /// Adds this rank's state of type `S`, which handlers access through
    /// [`Delivery::state`](super::Delivery::state). It is kept until the runtime ends.
    pub fn state<S: Any + Send + Sync>(mut self, state: Arc<S>) -> Handlers {
        if self.states.iter().any(|(id, _)| *id == TypeId::of::<S>()) {
            self.twice = Some(std::any::type_name::<S>());
        }
        self.states.push((TypeId::of::<S>(), state));
        self
    }

    /// Registers the types. Collective over all ranks.
    ///
    /// # Errors
    /// Returns `Argument` on all ranks if they name different types or a different order, if a type
    /// is already registered, or if a rank adds two states of one type. Returns `Memory` if there
    /// is no memory for the message rings.
    pub fn register(self, rt: &Runtime) -> Result<Messages<'_>> {
        self.register_in(rt.engine()).in_call("Handlers::register")
    }

    /// Registers the types in an engine that a test started. The messages must not be used after
    /// the engine has stopped. Fails as [`Handlers::register`] does.
    pub(crate) fn register_in(self, engine: &Engine) -> Result<Messages<'_>> {
        let Handlers { planned, states, messages, twice } = self;
        let verdict = match twice {
            Some(state) => Err(Error::new(
                ErrorKind::Argument,
                format!("two states of type {state}: handlers find states by their type"),
            )),
            None => Ok(()),
        };
        engine.world().agree(engine, verdict)?;
        let shared = Arc::new(Shared::new(states));
        let mut handlers: Vec<(String, Arc<dyn Handler>)> = Vec::new();
        let mut notes = Vec::new();
        if messages && let Some(first) = planned.first() {
            // Each registration has its own reply handler, named after the first type.
            let reply = Arc::new(OfReply { shared: shared.clone() });
            handlers.push((format!("answers ({})", first.name), reply));
        }
        for Planned { name, make, note } in planned {
            handlers.push((name, make(&shared)));
            notes.push(note);
        }
        let ids = engine.register_handlers(handlers)?;
        let mut numbers = Numbers { all: ids.clone(), ..Numbers::default() };
        let mut rest = &ids[..];
        if messages && let Some((reply, others)) = rest.split_first() {
            (numbers.reply, rest) = (Some(*reply), others);
        }
        let noted =
            notes.into_iter().zip(rest).try_for_each(|(note, id)| note(engine, *id, &mut numbers));
        let noted = noted.and_then(|()| match shared.numbers.set(numbers) {
            Ok(()) => Ok(()),
            Err(_) => fail!(Internal, "registered twice"),
        });
        // No message may arrive before this rank knows the handler numbers for its replies.
        engine.world().agree(engine, noted)?;
        Ok(Messages::new(engine, shared))
    }
}
