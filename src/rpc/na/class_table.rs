//! The process's classes, and the one handler through which messages reach them.
//!
//! All classes of a process share one handler of active messages, which is registered
//! when the first class over MPI is made: that is collective over the job, and so is
//! finalising the last one. Classes are numbered by the lowest free number; class `n`
//! of a process talks to class `n` of the others. Messages for a class that is not there
//! yet are kept for it; the senders' windows bound them.

use super::address::Peer;
use super::class::Shared;
use super::wire::Head;
use crate::am::Am;
use crate::am::{Accept, Arrival, Destination, Handler, HandlerId, Then};
use crate::error::Result as EngineResult;
use crate::rpc::failure::{Result, refuse};
use crate::runtime::admission::{self, Guests};
use crate::runtime::{self, Engine};
use crate::sharing;
use parking_lot::{Mutex, RwLock};
use std::borrow::Cow;
use std::sync::{Arc, Weak};

/// A message for a class that is not there yet.
struct Early {
    from: Peer,
    head: Head,
    body: Vec<u8>,
}

#[derive(Default)]
struct Slot {
    class: Option<Arc<Shared>>,
    early: Vec<Early>,
}

static SLOTS: RwLock<Vec<Slot>> = RwLock::new(Vec::new());

/// The engine, while classes use it.
struct Attached {
    engine: Weak<Engine>,
    handler: HandlerId,
    classes: usize,
}

static ATTACHED: Mutex<Option<Attached>> = Mutex::new(None);

/// Most classes of a process.
const MOST_CLASSES: usize = 256;
/// Bytes kept for a class that is not there.
const MOST_EARLY: usize = 64 << 20;

struct Port;

impl Handler for Port {
    fn takes_fragments(&self) -> bool {
        true
    }

    fn arrive(&self, _: &Am, message: &Arrival<'_>) -> EngineResult<Accept> {
        let Some(head) = Head::parse(message.header) else {
            log::warn!(
                "a message from rank {} with a head of {} bytes that makes no sense is dropped",
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

/// Hands a message to its class.
pub(super) fn arrived(from: Peer, head: Head, body: Cow<'_, [u8]>) {
    let number = usize::from(head.class);
    {
        // Open meanwhile: the class stays, and nothing that it does now enlists or retires.
        let slots = SLOTS.read_recursive();
        if let Some(class) = slots.get(number).and_then(|slot| slot.class.as_ref()) {
            return class.arrived(from, &head, body);
        }
    }
    if number >= MOST_CLASSES {
        log::warn!("a message from {from:?} for class {number} is dropped: there is none");
        return;
    }
    let mut slots = SLOTS.write();
    if slots.len() <= number {
        slots.resize_with(number + 1, Slot::default);
    }
    if let Some(class) = slots[number].class.clone() {
        drop(slots);
        return class.arrived(from, &head, body);
    }
    let early = &mut slots[number].early;
    if early.iter().map(|e| e.body.len()).sum::<usize>() < MOST_EARLY {
        early.push(Early { from, head, body: body.into_owned() });
    }
}

/// Gives a class a number, and the messages that were received for it already.
pub(super) fn enlist(make: impl FnOnce(u16) -> Arc<Shared>) -> Result<Arc<Shared>> {
    let mut slots = SLOTS.write();
    let number = match slots.iter().position(|slot| slot.class.is_none()) {
        Some(number) => number,
        None if slots.len() < MOST_CLASSES => {
            slots.push(Slot::default());
            slots.len() - 1
        }
        None => refuse!(BUSY, "there are {MOST_CLASSES} classes; finalise some"),
    };
    let class = make(number as u16);
    slots[number].class = Some(class.clone());
    let early = std::mem::take(&mut slots[number].early);
    drop(slots);
    for Early { from, head, body } in early {
        class.arrived(from, &head, Cow::Owned(body));
    }
    Ok(class)
}

/// Takes a class out of the table.
pub(super) fn retire(class: &Shared) {
    let gone = SLOTS.write().get_mut(usize::from(class.number)).and_then(|slot| {
        // The runtime may have ended before, and another class may have the number now.
        slot.class.take_if(|found| std::ptr::eq(&**found, class))
    });
    drop(gone); // without the lock
}

/// What the classes do when the runtime ends before them.
const GUESTS: Guests = Guests { wake, leave, gone };

/// Classes that the runtime has ended before. Their transfers end when the engine is gone.
static LEFT: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Wakes the threads that wait in calls of classes.
fn wake() {
    let slots = SLOTS.read();
    slots.iter().filter_map(|slot| slot.class.as_ref()).for_each(|class| class.notify());
}

/// Ends the classes over MPI: another start of the runtime has others, with the same numbers.
fn leave() {
    let over_mpi = |class: &mut Arc<Shared>| class.engine().is_some();
    let gone: Vec<_> = SLOTS
        .write()
        .iter_mut()
        .filter_map(|slot| {
            slot.early.clear();
            slot.class.take_if(over_mpi)
        })
        .collect();
    gone.iter().for_each(|class| class.end_with_runtime());
    LEFT.lock().extend(gone.iter().map(Arc::downgrade));
}

/// Ends the transfers of the classes over MPI: no message of theirs arrives any more.
fn gone() {
    let left = std::mem::take(&mut *LEFT.lock());
    left.iter().filter_map(Weak::upgrade).for_each(|class| class.end_transfers());
}

/// Called for a new class over MPI: starts the engine and registers the handler for the
/// first one, which is collective over the job.
pub(super) fn attach() -> Result<(Arc<Engine>, HandlerId)> {
    let mut attached = ATTACHED.lock();
    if let Some(now) = &mut *attached
        && let Some(engine) = now.engine.upgrade()
        && engine.check_admits().is_ok()
    {
        now.classes += 1;
        return Ok((engine, now.handler));
    }
    // SAFETY: no communicator is given.
    unsafe { sharing::attach(None) }?;
    let engine = runtime::current_arc()?;
    admission::set_guests(GUESTS);
    let handlers = vec![("portolan.na".to_string(), Arc::new(Port) as Arc<dyn Handler>)];
    let registered = engine.admit_to_mpi().and_then(|inside| inside.register_handlers(handlers));
    match registered {
        Ok(ids) => {
            let handler = ids[0];
            *attached = Some(Attached { engine: Arc::downgrade(&engine), handler, classes: 1 });
            Ok((engine, handler))
        }
        Err(error) => {
            drop(engine);
            sharing::detach()?;
            Err(error.into())
        }
    }
}

/// Called for a class over MPI that ends. Collective over the job for the last one, unless the
/// runtime has ended before.
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
    {
        let inside = engine.admit_to_mpi()?;
        // No rank may send any more, and then the handler can go.
        inside.quiesce()?;
        inside.unregister_handlers(&[handler])?;
        SLOTS.write().iter_mut().for_each(|slot| slot.early.clear());
    }
    sharing::detach()?;
    Ok(())
}

/// Sends bytes as they are to the handler of another rank: for tests with damaged or
/// foreign messages.
pub fn inject(target: usize, head: &[u8], body: &[u8]) -> Result<()> {
    let attached = ATTACHED.lock();
    let Some(handler) = attached.as_ref().map(|now| now.handler) else {
        refuse!(FAIL, "no class is initialised");
    };
    drop(attached);
    let engine = runtime::current_arc()?;
    Ok(engine.admit()?.send_message(target, handler, head, body)?)
}
