//! Active messages: calls with replies, streams of messages, and aggregated items.

use super::transfer::ours;
use crate::Result;
use crate::bounds::two_sided;
use crate::measure::{By, Contender, Lab};
use crate::plan::Case;
use bytemuck::{Pod, Zeroable};
use portolan::{Batches, Context, Handlers, Item, Message, Messages};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::hint::black_box;

/// Sizes of the items in bytes. Each has its own registered type.
pub const ITEM_SIZES: &[usize] = &[8, 32, 128, 512];

/// A message whose handler reads the payload and returns an empty reply.
#[derive(Serialize, Deserialize)]
struct Ping;
impl Message for Ping {
    type Reply = ();
    fn handle(self, context: &Context<'_>) {
        black_box(context.payload());
    }
    fn name() -> &'static str {
        "portolan-perf ping"
    }
}

/// An item of `N` words.
#[derive(Debug, Clone, Copy, Zeroable, Pod)]
#[repr(transparent)]
struct Words<const N: usize>([u64; N]);
impl<const N: usize> Item for Words<N> {
    fn apply(batch: &[Self], _: &Context<'_>) {
        let sum = batch.iter().fold(0u64, |sum, item| sum.wrapping_add(item.0[N - 1]));
        black_box(sum);
    }
}

/// The registered handlers, created when a test first needs them.
pub(super) type Started<'rt> = OnceCell<Messages<'rt>>;

pub(super) fn free(started: Started<'_>) -> Result<()> {
    Ok(started.into_inner().map_or(Ok(()), Messages::free)?)
}

fn messages<'a, 'rt>(lab: &'a Lab<'rt>) -> Result<&'a Messages<'rt>> {
    let cell = &lab.services.messages;
    if cell.get().is_none() {
        let handlers = Handlers::new()
            .message::<Ping>()
            .item::<Words<1>>()
            .item::<Words<4>>()
            .item::<Words<16>>()
            .item::<Words<64>>();
        let _ = cell.set(handlers.register(lab.rt)?);
    }
    Ok(cell.get().expect("set above"))
}

pub(super) fn call<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let messages = messages(lab)?;
    let targets = lab.targets(case.pattern);
    let payload = vec![1u8; case.bytes];
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            messages.call_with(targets[turn % targets.len()], &Ping, &payload[..])?.wait()?;
        }
        Ok(())
    };
    let mut all = vec![ours(1, Box::new(body))];
    if lab.bounds.two_sided && lab.size() > 1 {
        all.push(two_sided::round_trips(lab, case, (case.bytes, 0), 1.0));
    }
    Ok(all)
}

/// Returns a contender that sends separate messages and then waits until all are handled. All ranks
/// take part in the wait, which is collective.
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
    let body = Box::new(body);
    Ok(Contender { name, by: By::Portolan, both: true, body, ops: window as f64 })
}

pub(super) fn rate<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let mut all = vec![one_by_one(lab, case, "portolan")?];
    if lab.bounds.two_sided && lab.size() > 1 {
        all.push(two_sided::windows(lab, case, case.window()));
    }
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
    let body = Box::new(body);
    Ok(Contender { name: "portolan", by: By::Portolan, both: true, body, ops: window as f64 })
}

pub(super) fn items<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let mut all = vec![match case.bytes {
        8 => pushes::<1>(lab, case)?,
        32 => pushes::<4>(lab, case)?,
        128 => pushes::<16>(lab, case)?,
        _ => pushes::<64>(lab, case)?,
    }];
    all.push(one_by_one(lab, case, "messages")?);
    if lab.bounds.two_sided && lab.size() > 1 {
        all.push(two_sided::windows(lab, case, case.window()));
    }
    Ok(all)
}
