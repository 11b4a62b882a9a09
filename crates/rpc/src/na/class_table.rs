//! The classes of the process, and the handler that delivers their messages.
//!
//! All classes share one active-message handler, registered when the first class over MPI is
//! created, which is collective over the job, as is finalising the last one. A new class gets the
//! lowest free number `n`, and communicates with class `n` of the other processes. Messages for a
//! class that does not exist yet are kept for it.

use super::address::Peer;
use super::class::Shared;
use super::flow;
use super::wire::Head;
use crate::failure::{Result, refuse};
use crate::na::limited::limited;
use parking_lot::{Mutex, RwLock};
use portolan_base::error::Result as EngineResult;
use portolan_engine::am::Am;
use portolan_engine::am::{Accept, Arrival, Destination, Handler, HandlerId, Then};
use portolan_engine::runtime::admission::{self, Guests};
use portolan_engine::runtime::sharing;
use portolan_engine::runtime::{self, Engine};
use std::borrow::Cow;
use std::sync::{Arc, Weak};

struct Early {
    from: Peer,
    head: Head,
    body: Vec<u8>,
}

#[derive(Default)]
struct ClassSlot {
    class: Option<Arc<Shared>>,
    early: Vec<Early>,
    /// Cost of these messages in bytes.
    early_cost: u64,
    /// Number of messages that were dropped because these cost too much.
    dropped: u64,
}

impl ClassSlot {
    /// Keeps a message for the class. Drops it, and logs the first one, if too many are kept.
    fn keep_early(&mut self, number: usize, early: Early) {
        if self.early_cost < MOST_EARLY {
            self.early_cost += flow::cost(early.body.len());
            self.early.push(early);
            return;
        }
        if self.dropped == 0 {
            log::error!(
                "messages from {:?} and perhaps others are lost: {} MiB of messages have arrived \
                 for class {number}, which this process has not created",
                early.from,
                MOST_EARLY >> 20
            );
        }
        self.dropped += 1;
    }

    fn take_early(&mut self, number: usize) -> Vec<Early> {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            log::error!("{dropped} messages for class {number} arrived too early and were lost");
        }
        self.early_cost = 0;
        std::mem::take(&mut self.early)
    }

    fn forget_early(&mut self) {
        (self.early_cost, self.dropped) = (0, 0);
        self.early.clear();
    }
}

static SLOTS: RwLock<Vec<ClassSlot>> = RwLock::new(Vec::new());

struct Attached {
    engine: Weak<Engine>,
    handler: HandlerId,
    classes: usize,
}

static ATTACHED: Mutex<Option<Attached>> = Mutex::new(None);

const MOST_CLASSES: usize = 256;
/// Maximum cost in bytes of the messages kept for a class that does not exist yet.
const MOST_EARLY: u64 = 64 << 20;

struct Port;

impl Handler for Port {
    fn takes_fragments(&self) -> bool {
        true
    }

    fn arrive(&self, _: &Am, message: &Arrival<'_>) -> EngineResult<Accept> {
        let Some(head) = Head::parse(message.header) else {
            limited!(
                Warn,
                "dropped a message from rank {} with an invalid head of {} bytes",
                message.origin,
                message.header.len()
            );
            return Ok(Accept::DONE);
        };
        let from = Peer::Rank(message.origin as u32);
        let _inside = admission::in_handler();
        match message.data {
            Some(data) => {
                arrived(from, head, Cow::Borrowed(data));
                Ok(Accept::DONE)
            }
            None => Ok(Accept {
                to: Destination::Buffer,
                then: Then::Inline(Box::new(move |_, data| {
                    let _inside = admission::in_handler();
                    arrived(from, head, Cow::Owned(data));
                })),
            }),
        }
    }
}

pub(super) fn arrived(from: Peer, head: Head, body: Cow<'_, [u8]>) {
    let number = usize::from(head.class);
    {
        // The read lock is held during delivery, so the class stays in the table. Delivery never
        // calls `enlist` or `retire`, which need the write lock.
        let slots = SLOTS.read_recursive();
        if let Some(class) = slots.get(number).and_then(|slot| slot.class.as_ref()) {
            return class.arrived(from, &head, body);
        }
    }
    if number >= MOST_CLASSES {
        limited!(Warn, "dropped a message from {from:?} for class {number}, which does not exist");
        return;
    }
    let mut slots = SLOTS.write();
    if slots.len() <= number {
        slots.resize_with(number + 1, ClassSlot::default);
    }
    if let Some(class) = slots[number].class.clone() {
        drop(slots);
        return class.arrived(from, &head, body);
    }
    slots[number].keep_early(number, Early { from, head, body: body.into_owned() });
}

/// Assigns a number to a new class and delivers the messages that arrived before it was created.
pub(super) fn enlist(make: impl FnOnce(u16) -> Arc<Shared>) -> Result<Arc<Shared>> {
    let mut slots = SLOTS.write();
    let number = match slots.iter().position(|slot| slot.class.is_none()) {
        Some(number) => number,
        None if slots.len() < MOST_CLASSES => {
            slots.push(ClassSlot::default());
            slots.len() - 1
        }
        None => refuse!(BUSY, "the limit of {MOST_CLASSES} classes is reached; finalise some"),
    };
    let class = make(number as u16);
    slots[number].class = Some(class.clone());
    let early = slots[number].take_early(number);
    drop(slots);
    for Early { from, head, body } in early {
        class.arrived(from, &head, Cow::Owned(body));
    }
    Ok(class)
}

pub(super) fn retire(class: &Shared) {
    let gone = SLOTS.write().get_mut(usize::from(class.number)).and_then(|slot| {
        // If the runtime has ended in the meantime, another class may have this number.
        slot.class.take_if(|found| std::ptr::eq(&**found, class))
    });
    drop(gone); // dropped without the lock held
}

/// The hooks that the runtime calls if it ends before the classes.
const GUESTS: Guests = Guests { wake, leave, gone };

/// Classes removed when the runtime ended. `gone` ends their transfers after the engine's end.
static LEFT: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

fn wake() {
    let slots = SLOTS.read();
    slots.iter().filter_map(|slot| slot.class.as_ref()).for_each(|class| class.notify());
}

/// Removes the classes over MPI from the table, because a restarted runtime numbers classes afresh.
fn leave() {
    let over_mpi = |class: &mut Arc<Shared>| class.engine().is_some();
    let gone: Vec<_> = SLOTS
        .write()
        .iter_mut()
        .filter_map(|slot| {
            slot.forget_early();
            slot.class.take_if(over_mpi)
        })
        .collect();
    LEFT.lock().extend(gone.iter().map(Arc::downgrade));
}

/// Ends the transfers of the classes over MPI, because their messages can no longer arrive.
fn gone() {
    let left = std::mem::take(&mut *LEFT.lock());
    left.iter().filter_map(Weak::upgrade).for_each(|class| class.end_transfers());
}

/// Attaches a new class over MPI to the engine. The first class starts the engine and registers the
/// handler, which is collective over the job.
pub(super) fn attach() -> Result<(Arc<Engine>, HandlerId)> {
    let mut attached = ATTACHED.lock();
    if let Some(now) = &mut *attached
        && let Some(engine) = now.engine.upgrade()
        && engine.check_admits().is_ok()
    {
        now.classes += 1;
        return Ok((engine, now.handler));
    }
    sharing::attach_service()?;
    let engine = runtime::current_arc()?;
    admission::set_guests(GUESTS);
    let handlers = vec![("portolan.na".to_string(), Arc::new(Port) as Arc<dyn Handler>)];
    let own = engine.observer().exclude_calls();
    let registered = engine.admit_to_mpi().and_then(|inside| inside.register_handlers(handlers));
    drop(own);
    match registered {
        Ok(ids) => {
            let handler = ids[0];
            *attached = Some(Attached { engine: Arc::downgrade(&engine), handler, classes: 1 });
            Ok((engine, handler))
        }
        Err(error) => {
            drop(engine);
            sharing::detach_service()?;
            Err(error.into())
        }
    }
}

/// Detaches a class over MPI. This is collective for the last one, unless the runtime has ended.
pub(super) fn detach(engine: &Arc<Engine>) -> Result<()> {
    let mut attached = ATTACHED.lock();
    let ours = |now: &&mut Attached| std::ptr::eq(now.engine.as_ptr(), Arc::as_ptr(engine));
    let Some(now) = attached.as_mut().filter(ours) else { return Ok(()) };
    now.classes -= 1;
    if now.classes > 0 {
        return Ok(());
    }
    let handler = now.handler;
    *attached = None;
    if engine.is_over() {
        return Ok(());
    }
    let unregistered = engine.admit_to_mpi().and_then(|inside| {
        let _own = engine.observer().exclude_calls();
        // After quiescence no message for the handler is in flight, so it can be unregistered.
        inside.quiesce()?;
        inside.unregister_handlers(&[handler])
    });
    SLOTS.write().iter_mut().for_each(ClassSlot::forget_early);
    // Even after a failure, because the class no longer uses the engine.
    let detached = sharing::detach_service();
    Ok(unregistered.and(detached)?)
}

/// Sends a raw message to the handler of another rank. Tests send damaged messages with it.
pub fn inject(target: usize, head: &[u8], body: &[u8]) -> Result<()> {
    let attached = ATTACHED.lock();
    let Some(handler) = attached.as_ref().map(|now| now.handler) else {
        refuse!(FAIL, "no class is initialised");
    };
    drop(attached);
    let engine = runtime::current_arc()?;
    Ok(engine.admit()?.send_message(target, handler, head, body)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::na::wire::Kind;

    #[test]
    fn messages_that_come_too_early_are_bounded_and_counted() {
        let head = Head { kind: Kind::Unexpected, class: 0, tag: 0, word: 0 };
        let keep = |slot: &mut ClassSlot, bytes| {
            slot.keep_early(0, Early { from: Peer::Rank(1), head, body: vec![0; bytes] });
        };
        for bytes in [1000, 1 << 20] {
            let (mut slot, most) = (ClassSlot::default(), MOST_EARLY.div_ceil(flow::cost(bytes)));
            (0..most + 3).for_each(|_| keep(&mut slot, bytes));
            assert_eq!((slot.early.len() as u64, slot.dropped), (most, 3), "{bytes} bytes");
            assert_eq!(slot.take_early(0).len() as u64, most);
            keep(&mut slot, bytes);
            assert_eq!((slot.early.len(), slot.dropped), (1, 0));
        }
    }
}
