//! The target side: decodes messages, runs handlers, and sends replies.

use super::codec::{self, Encoded};
use super::endpoint::Endpoint;
use super::message::{Delivery, Item, Message, Payload};
use super::shared::Shared;
use portolan_base::error::{Result, fail};
use portolan_engine::am::Am;
use portolan_engine::am::{Accept, Arrival, Data, Destination, Handler, Signals, Then};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::size_of;
use std::sync::Arc;

thread_local! {
    static BLOCKING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Returns the message type whose blocking handler this thread runs.
pub(crate) fn running_blocking() -> Option<&'static str> {
    BLOCKING.get()
}

/// Ends the job on an error of a handler: no call can return it after the header handler.
fn must(result: Result<()>) {
    if let Err(error) = result {
        panic!("{}", error.detail());
    }
}

pub(super) struct OfMessage<M> {
    pub shared: Arc<Shared>,
    /// Whether the handler may wait.
    pub blocking: bool,
    pub _type: PhantomData<fn() -> M>,
}

/// Message data, borrowed from the received message or owned by this rank.
enum Bytes<'a> {
    Lent(&'a [u8]),
    Own(Vec<u8>),
}

impl<'a> Bytes<'a> {
    fn all(&self) -> &[u8] {
        match self {
            Bytes::Lent(bytes) => bytes,
            Bytes::Own(bytes) => bytes,
        }
    }

    fn payload(self, at: usize) -> Payload<'a> {
        match self {
            Bytes::Lent(bytes) => Payload::borrowed(&bytes[at..]),
            Bytes::Own(mut bytes) => {
                bytes.drain(..at);
                Payload::own(bytes)
            }
        }
    }
}

fn run<M: Message>(
    engine: &Am,
    shared: &Shared,
    origin: usize,
    header: &[u8],
    data: Bytes<'_>,
) -> Result<()> {
    let (head, rest) = codec::split(header)?;
    let (encoded, at) = codec::parts(&head, rest, data.all())?;
    let message: M = codec::decode(encoded, M::name(), origin)?;
    let endpoint = Endpoint { engine, shared };
    let delivery = Delivery::new(endpoint, origin, M::name(), data.payload(at));
    let reply = message.handle(&delivery);
    if head.token == 0 {
        return Ok(());
    }
    let encoded = Encoded::new(head.token, &reply, std::any::type_name::<M::Reply>())?;
    let data = Data::Owned(encoded.before_payload().to_vec());
    // SAFETY: the data is a vector and no signal is requested, so there is no raw address.
    unsafe { engine.send_am(origin, shared.reply()?, encoded.header(), data, Signals::default()) }
}

impl<M: Message> Handler for OfMessage<M> {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let origin = message.origin;
        if let Some(data) = message.data
            && !self.blocking
        {
            run::<M>(engine, &self.shared, origin, message.header, Bytes::Lent(data))?;
            return Ok(Accept::DONE);
        }
        let (shared, header) = (self.shared.clone(), message.header.to_vec());
        let blocking = self.blocking.then(M::name);
        let completion = Box::new(move |engine: &Am, data: Vec<u8>| {
            let before = BLOCKING.replace(blocking);
            must(run::<M>(engine, &shared, origin, &header, Bytes::Own(data)));
            BLOCKING.set(before);
        });
        let then = if self.blocking { Then::Later(completion) } else { Then::Inline(completion) };
        Ok(Accept { to: Destination::Buffer, then })
    }
}

pub(super) struct OfReply {
    pub shared: Arc<Shared>,
}

fn answer(engine: &Am, shared: &Shared, origin: usize, header: &[u8], data: &[u8]) -> Result<()> {
    let (head, rest) = codec::split(header)?;
    let (encoded, _) = codec::parts(&head, rest, data)?;
    let Some(on_reply) = shared.take(head.token) else {
        fail!(Internal, "rank {origin} sent a reply to a request that this rank did not make");
    };
    let endpoint = Endpoint { engine, shared };
    on_reply(encoded, &Delivery::new(endpoint, origin, "of an answer", Payload::borrowed(&[])))
}

impl Handler for OfReply {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let origin = message.origin;
        if let Some(data) = message.data {
            answer(engine, &self.shared, origin, message.header, data)?;
            return Ok(Accept::DONE);
        }
        let (shared, header) = (self.shared.clone(), message.header.to_vec());
        let then = Then::Inline(Box::new(move |engine, data| {
            must(answer(engine, &shared, origin, &header, &data));
        }));
        Ok(Accept { to: Destination::Buffer, then })
    }
}

pub(super) struct OfItem<I> {
    pub shared: Arc<Shared>,
    pub _type: PhantomData<fn() -> I>,
}

fn apply<I: Item>(
    engine: &Am,
    shared: &Shared,
    origin: usize,
    header: &[u8],
    data: &[u8],
) -> Result<()> {
    let Some(count) = header.last_chunk().map(|c| u64::from_ne_bytes(*c) as usize) else {
        fail!(Internal, "a batch without an item count");
    };
    if count.checked_mul(size_of::<I>()) != Some(data.len()) {
        fail!(Internal, "{count} items of {} in {} bytes", I::name(), data.len());
    }
    let endpoint = Endpoint { engine, shared };
    let delivery = Delivery::new(endpoint, origin, I::name(), Payload::borrowed(&[]));
    if size_of::<I>() == 0 {
        I::apply(&vec![I::zeroed(); count], &delivery);
        return Ok(());
    }
    match bytemuck::try_cast_slice(data) {
        Ok(items) => I::apply(items, &delivery),
        // The data is not aligned for the item type.
        Err(_) => {
            let mut items = vec![I::zeroed(); count];
            bytemuck::cast_slice_mut(&mut items).copy_from_slice(data);
            I::apply(&items, &delivery);
        }
    }
    Ok(())
}

impl<I: Item> Handler for OfItem<I> {
    fn element_size(&self) -> usize {
        size_of::<I>()
    }

    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let origin = message.origin;
        if let Some(data) = message.data {
            apply::<I>(engine, &self.shared, origin, message.header, data)?;
            return Ok(Accept::DONE);
        }
        let (shared, header) = (self.shared.clone(), message.header.to_vec());
        let then = Then::Inline(Box::new(move |engine, data| {
            must(apply::<I>(engine, &shared, origin, &header, &data));
        }));
        Ok(Accept { to: Destination::Buffer, then })
    }
}
