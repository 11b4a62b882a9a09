//! The state of a registration: handler numbers, batches, user state, pending replies.

use super::{Delivery, Item, Message, codec};
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_base::handles::Handles;
use portolan_engine::am::HandlerId;
use portolan_engine::am::aggregate::Aggregator;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, OnceLock};

/// Keeps the value of a type id, which is already a hash.
#[derive(Debug, Default)]
pub(super) struct TypeHasher(u64);

impl Hasher for TypeHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_ne_bytes(word);
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }
}

pub(super) type ByType<T> = HashMap<TypeId, T, BuildHasherDefault<TypeHasher>>;

/// Gets the encoded reply and the delivery of the reply handler.
pub(super) type OnReply = Box<dyn FnOnce(&[u8], &Delivery<'_>) -> Result<()> + Send>;

/// Returns a callback that decodes a reply and runs `then` with it.
pub(super) fn on_reply<M: Message>(
    then: impl FnOnce(M::Reply, &Delivery<'_>) + Send + 'static,
) -> OnReply {
    Box::new(move |bytes, delivery| {
        then(codec::decode(bytes, std::any::type_name::<M::Reply>(), delivery.origin())?, delivery);
        Ok(())
    })
}

/// Known once the handlers are registered.
#[derive(Default)]
pub(super) struct Numbers {
    pub messages: ByType<HandlerId>,
    pub items: ByType<Arc<Aggregator>>,
    /// `None` if no messages are registered.
    pub reply: Option<HandlerId>,
    /// All handlers, to unregister them.
    pub all: Vec<HandlerId>,
}

/// A registration. Its handlers keep it alive.
#[derive(Default)]
pub(super) struct Shared {
    pub numbers: OnceLock<Numbers>,
    states: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    /// By the token that a reply returns.
    awaited: Mutex<Handles<OnReply>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let handlers = self.numbers.get().map_or(0, |n| n.all.len());
        f.debug_struct("Shared").field("handlers", &handlers).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(states: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>) -> Shared {
        Shared { states, ..Shared::default() }
    }

    fn numbers(&self) -> Result<&Numbers> {
        match self.numbers.get() {
            Some(numbers) => Ok(numbers),
            None => fail!(State, "messages are sent before they are registered"),
        }
    }

    #[inline]
    pub(super) fn message<M: Message>(&self) -> Result<HandlerId> {
        match self.numbers()?.messages.get(&TypeId::of::<M>()) {
            Some(id) => Ok(*id),
            None => fail!(
                Argument,
                "messages of {} are not registered: name the type in Handlers::message",
                M::name()
            ),
        }
    }

    #[inline]
    pub(super) fn items<I: Item>(&self) -> Result<&Aggregator> {
        match self.numbers()?.items.get(&TypeId::of::<I>()) {
            Some(batches) => Ok(batches),
            None => fail!(
                Argument,
                "items of {} are not registered: name the type in Handlers::item",
                I::name()
            ),
        }
    }

    pub(super) fn all_items(&self) -> impl Iterator<Item = &Aggregator> {
        self.numbers.get().into_iter().flat_map(|n| n.items.values().map(|a| &**a))
    }

    pub(super) fn reply(&self) -> Result<HandlerId> {
        match self.numbers()?.reply {
            Some(id) => Ok(id),
            None => fail!(Internal, "no handler for replies, because no messages are registered"),
        }
    }

    #[inline]
    pub(super) fn state<S: Any + Send + Sync>(&self) -> Option<&S> {
        let id = TypeId::of::<S>();
        self.states.iter().find(|(t, _)| *t == id)?.1.downcast_ref()
    }

    /// Stores the callback of a reply. Returns its token, which is never zero.
    pub(super) fn expect(&self, on_reply: OnReply) -> u64 {
        self.awaited.lock().insert(on_reply)
    }

    /// A token works only once.
    pub(super) fn take(&self, token: u64) -> Option<OnReply> {
        self.awaited.lock().remove(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_once() {
        let shared = Shared::default();
        let a = shared.expect(Box::new(|_, _| Ok(())));
        let b = shared.expect(Box::new(|_, _| Ok(())));
        assert!(a != b && a != 0);
        assert!(shared.take(a).is_some());
        assert!(shared.take(a).is_none());
        let c = shared.expect(Box::new(|_, _| Ok(())));
        assert!(c != a && shared.take(a).is_none());
        assert!(shared.take(0).is_none());
        assert!(shared.take(b).is_some() && shared.take(c).is_some());
    }

    #[test]
    fn states_are_found_by_type() {
        let shared = Shared::new(vec![
            (TypeId::of::<u8>(), Arc::new(3u8)),
            (TypeId::of::<String>(), Arc::new(String::from("x"))),
        ]);
        assert_eq!(shared.state::<u8>(), Some(&3));
        assert_eq!(shared.state::<String>().map(String::as_str), Some("x"));
        assert_eq!(shared.state::<u16>(), None);
    }
}
