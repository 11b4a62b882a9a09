//! The RPC functions that every rank serves.

use crate::result::Result;
use portolan::Runtime;
use portolan::rpc::bulk::{Buffer, Bulk};
use portolan::rpc::checksum::Method;
use portolan::rpc::{Call, Class, Context, Failure, Handle, Listen, Rpc};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A byte string, which is serialised as such and not as a sequence of elements.
pub struct ByteString(pub Vec<u8>);

impl Serialize for ByteString {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for ByteString {
    fn deserialize<D: serde::Deserializer<'de>>(
        from: D,
    ) -> std::result::Result<ByteString, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = ByteString;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> std::result::Result<ByteString, E> {
                Ok(ByteString(bytes.to_vec()))
            }
        }
        from.deserialize_bytes(Visitor)
    }
}

pub struct RpcServer {
    pub class: Class,
    pub context: Context,
    pub take: Rpc<ByteString, ()>,
    pub pull: Rpc<Bulk, ()>,
    pub stop: Rpc<(), ()>,
    /// Number of origins that have reported the end of their batch to this rank.
    stopped: Arc<AtomicUsize>,
    /// Longest wait for progress in one turn.
    patience: Duration,
}

/// Pulls all of the caller's memory and then replies.
fn pull(call: Call<Bulk, ()>) -> std::result::Result<(), Failure> {
    let data = call.input()?;
    let (context, origin, size) = (call.context(), call.source(), data.len());
    let buffer = Buffer::zeroed(size)?;
    context.pull(&origin, data.at(0), buffer, size, move |ended, _| {
        if ended.is_ok() {
            // If the reply cannot be sent, the call fails at its origin.
            let _ = call.answer(&());
        }
    });
    Ok(())
}

impl RpcServer {
    /// Registers the functions. A turn waits up to `patience` for progress. Collective.
    pub fn start(rt: &Runtime, patience: Duration) -> Result<RpcServer> {
        let class = Class::init_with("mpi", Listen::Yes, Method::None)?;
        let stopped = Arc::new(AtomicUsize::new(0));
        let counter = stopped.clone();
        let server = RpcServer {
            take: class.serve_fn("perf take", |_: ByteString| Ok(()))?,
            pull: class.serve("perf pull", pull)?,
            stop: class.serve_fn("perf stop", move |()| {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })?,
            context: class.context()?,
            class,
            stopped,
            patience,
        };
        rt.world().barrier()?; // From here on, all ranks serve.
        Ok(server)
    }

    /// Ends the server. Collective.
    pub fn free(self) -> Result<()> {
        let RpcServer { class, context, take, pull, stop, .. } = self;
        drop((context, take, pull, stop));
        Ok(class.finalize()?)
    }

    fn turn(&self) -> Result<()> {
        self.context.progress(self.patience)?;
        self.context.trigger(64);
        Ok(())
    }

    /// Serves until `origins` origins have finished their batch.
    pub fn serve(&self, origins: usize) -> Result<()> {
        while self.stopped.load(Ordering::Relaxed) < origins {
            self.turn()?;
        }
        self.stopped.fetch_sub(origins, Ordering::Relaxed);
        Ok(())
    }

    /// Serves others until a started call has its reply.
    pub fn wait<I: Serialize>(&self, handle: &Handle<I, ()>) -> Result<()> {
        while !handle.is_done() {
            self.turn()?;
        }
        Ok(handle.output()?)
    }
}
