//! RPC calls, including calls that make the server pull the client's memory.
//!
//! The targets are the servers. In each batch they serve until every origin has reported, with a
//! call of the stop function, that it has finished.

use crate::Result;
use crate::bounds::{copies, two_sided};
use crate::measure::{By, Contender, Lab};
use crate::plan::Case;
use portolan::rpc::Failure;
use portolan::rpc::bulk::{Buffer, Bulk};
use portolan::rpc::checksum::Method;
use portolan::rpc::hg::{Call, Class, Context, Handle, Rpc};
use portolan::rpc::na::{Access, Address};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that serialize as a byte string, not as a sequence of elements.
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Bytes, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> std::result::Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        from.deserialize_bytes(Visitor)
    }
}

/// The registered functions of a rank, and the context that serves them.
pub struct Server {
    class: Class,
    context: Context,
    take: Rpc<Bytes, ()>,
    pull: Rpc<Bulk, ()>,
    stop: Rpc<(), ()>,
    /// Number of origins that have reported the end of their batch to this rank.
    stopped: Arc<AtomicUsize>,
    /// Longest wait for progress in one turn.
    patience: Duration,
}

/// The server, started when a test first needs it.
pub(super) type Started = OnceCell<Server>;

pub(super) fn free(started: Started) -> Result<()> {
    let Some(Server { class, context, take, pull, stop, .. }) = started.into_inner() else {
        return Ok(());
    };
    drop((context, take, pull, stop));
    Ok(class.finalize()?)
}

/// Pulls all of the caller's memory and then replies.
fn pull(call: Call<Bulk, ()>) -> std::result::Result<(), Failure> {
    let data = call.input()?;
    let (context, origin, size) = (call.context(), call.source(), data.len());
    let buffer = Buffer::zeroed(size)?;
    context.pull(&origin, (&data, 0), buffer, size, move |ended, _| {
        if ended.is_ok() {
            // If the reply cannot be sent, the call fails at its origin.
            let _ = call.answer(&());
        }
    });
    Ok(())
}

impl Server {
    fn start(lab: &Lab<'_>) -> Result<Server> {
        let class = Class::init_with("mpi", true, Method::None)?;
        let stopped = Arc::new(AtomicUsize::new(0));
        let counter = stopped.clone();
        let server = Server {
            take: class.serve_fn("perf take", |_: Bytes| Ok(()))?,
            pull: class.serve("perf pull", pull)?,
            stop: class.serve_fn("perf stop", move |()| {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })?,
            context: class.context()?,
            class,
            stopped,
            patience: Duration::from_millis(if lab.is_crowded() { 10 } else { 0 }),
        };
        lab.rt.world().barrier()?; // From here on, all ranks serve.
        Ok(server)
    }

    fn turn(&self) -> Result<()> {
        self.context.progress(self.patience)?;
        self.context.trigger(64);
        Ok(())
    }

    /// Serves until `origins` origins have finished their batch.
    fn serve(&self, origins: usize) -> Result<()> {
        while self.stopped.load(Ordering::Relaxed) < origins {
            self.turn()?;
        }
        self.stopped.fetch_sub(origins, Ordering::Relaxed);
        Ok(())
    }

    fn ask<I: Serialize>(&self, handle: &Handle<I, ()>, input: &I) -> Result<()> {
        handle.start(input)?;
        while !handle.is_done() {
            self.turn()?;
        }
        Ok(handle.output()?)
    }
}

/// Returns a contender that calls a function with this input, at each target in turn.
fn calls<'a, I: Serialize + 'a>(
    lab: &'a Lab<'_>,
    case: Case,
    (rpc, input): (impl Fn(&'a Server) -> &'a Rpc<I, ()>, I),
) -> Result<Contender<'a>> {
    let cell = &lab.services.rpc;
    if cell.get().is_none() {
        let _ = cell.set(Server::start(lab)?);
    }
    let server = cell.get().expect("set above");
    let targets = lab.targets(case.pattern);
    let origins = case.pattern.origins(lab.size());
    let callers = origins
        .iter()
        .filter(|&&origin| case.pattern.targets(origin, lab.size()).contains(&lab.me()))
        .count();
    let addresses: Vec<Address> = targets
        .iter()
        .map(|&rank| server.class.rank(rank))
        .collect::<std::result::Result<_, _>>()?;
    let handles: Vec<Handle<I, ()>> =
        addresses.iter().map(|to| server.context.handle(to, rpc(server))).collect();
    let body = move |n: usize| -> Result<()> {
        for turn in (0..n).filter(|_| !handles.is_empty()) {
            server.ask(&handles[turn % handles.len()], &input)?;
        }
        for to in &addresses {
            server.ask(&server.context.handle(to, &server.stop), &())?;
        }
        server.serve(callers)
    };
    let body = Box::new(body);
    Ok(Contender { name: "portolan", by: By::Portolan, both: true, body, ops: 1.0 })
}

pub(super) fn call<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let input = Bytes(vec![1; case.bytes]);
    let mut all = vec![calls(lab, case, (|server: &'a Server| &server.take, input))?];
    if lab.bounds.two_sided && lab.size() > 1 {
        all.push(two_sided::round_trips(lab, case, (case.bytes, 0), 1.0));
    }
    Ok(all)
}

pub(super) fn bulk<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let memory = Bulk::allocate(&[case.bytes], Access::ReadOnly)?;
    let mut all = vec![calls(lab, case, (|server: &'a Server| &server.pull, memory))?];
    if lab.bounds.plain {
        all.push(copies(lab, case, 1));
    }
    if lab.bounds.two_sided && lab.size() > 1 {
        all.push(two_sided::round_trips(lab, case, (case.bytes, 0), 1.0));
    }
    Ok(all)
}
