//! Active messages: calls with replies, streams of messages, and aggregated items.

use crate::bounds::two_sided;
use crate::lab::{Contender, Lab, Library, get_or_create};
use crate::plan::Case;
use crate::result::Result;
use bytemuck::{Pod, Zeroable};
use portolan::messages::{Batches, Delivery, Handlers, Item, Message, Messages};
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// Sizes of the items in bytes. Each has its own registered type.
pub const ITEM_SIZES: &[usize] = &[8, 32, 128, 512];

/// A message whose handler reads the payload and returns an empty reply.
#[derive(Serialize, Deserialize)]
struct Ping;
impl Message for Ping {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        black_box(delivery.payload());
    }
    fn name() -> &'static str {
        "portolan-perf ping"
    }
}

#[derive(Debug, Clone, Copy, Zeroable, Pod)]
#[repr(transparent)]
struct Words<const N: usize>([u64; N]);
impl<const N: usize> Item for Words<N> {
    fn apply(batch: &[Self], _: &Delivery<'_>) {
        let sum = batch.iter().fold(0u64, |sum, item| sum.wrapping_add(item.0[N - 1]));
        black_box(sum);
    }
}

fn messages<'a, 'rt>(lab: &'a Lab<'rt>) -> Result<&'a Messages<'rt>> {
    get_or_create(&lab.resources.messages, || {
        let handlers = Handlers::new()
            .message::<Ping>()
            .item::<Words<1>>()
            .item::<Words<4>>()
            .item::<Words<16>>()
            .item::<Words<64>>();
        Ok(handlers.register(lab.rt)?)
    })
}

pub(super) fn call<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let messages = messages(lab)?;
    let payload = vec![1u8; case.bytes];
    let step = move |target| Ok(messages.call_with(target, &Ping, &payload[..])?.wait()?);
    let mut all = vec![Contender::at_targets(lab, case, 1, step)];
    all.extend(two_sided::round_trips(lab, case, (case.bytes, 0), 1));
    Ok(all)
}

/// Sends separate messages and waits, collectively, until all are handled.
fn one_by_one<'a>(lab: &'a Lab<'_>, case: Case, name: &'static str) -> Result<Contender<'a>> {
    let messages = messages(lab)?;
    let targets = lab.targets(case.pattern);
    let (window, payload) = (case.window(), vec![1u8; case.bytes]);
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            for _ in 0..window {
                messages.spawn_with(targets[turn % targets.len()], &Ping, &payload[..])?;
            }
        }
        Ok(messages.quiesce()?)
    };
    Ok(Contender::new(name, Library::Portolan, true, window, body))
}

pub(super) fn rate<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let mut all = vec![one_by_one(lab, case, "portolan")?];
    all.extend(two_sided::windows(lab, case, case.window()));
    Ok(all)
}

/// Returns a contender that pushes items of `N` words and then waits until all are handled.
fn pushes<'a, const N: usize>(lab: &'a Lab<'_>, case: Case) -> Result<Contender<'a>>
where
    [u64; N]: Zeroable,
    Words<N>: Item,
{
    let messages = messages(lab)?;
    let targets = lab.targets(case.pattern);
    let window = case.window();
    let body = move |n: usize| {
        let batches: Batches<'_, Words<N>> = messages.batches()?;
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            for _ in 0..window {
                batches.push(targets[turn % targets.len()], Words([turn as u64; N]))?;
            }
        }
        Ok(messages.quiesce()?)
    };
    Ok(Contender::new("portolan", Library::Portolan, true, window, body))
}

pub(super) fn items<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let mut all = vec![match case.bytes {
        8 => pushes::<1>(lab, case)?,
        32 => pushes::<4>(lab, case)?,
        128 => pushes::<16>(lab, case)?,
        _ => pushes::<64>(lab, case)?,
    }];
    all.push(one_by_one(lab, case, "messages")?);
    all.extend(two_sided::windows(lab, case, case.window()));
    Ok(all)
}
