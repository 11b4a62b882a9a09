//! Typed functions: inputs and outputs are serde types.

use super::class::failure;
use super::origin::Origin;
use super::target::Function;
use super::target::Target;
use super::{Class, Context};
use crate::checksum::Method;
use crate::failure::{Failure, Result, Status};
use crate::na::Address;
use crate::na::memory::to_send;
use crate::proc;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

// A handler may pass its call to a thread that answers, so these must be `Send` and `Sync`.
static_assertions::assert_impl_all!(Context: Send, Sync, Clone);
static_assertions::assert_impl_all!(Call<String, Vec<u8>>: Send, Sync);
static_assertions::assert_impl_all!(Handle<String, Vec<u8>>: Send, Sync);

/// A registered function.
pub struct Rpc<I, O> {
    function: Arc<Function>,
    types: PhantomData<fn(I) -> O>,
}

impl<I, O> Clone for Rpc<I, O> {
    fn clone(&self) -> Self {
        Rpc { function: self.function.clone(), types: PhantomData }
    }
}

impl<I, O> std::fmt::Debug for Rpc<I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.function.fmt(f)
    }
}

impl<I, O> Rpc<I, O> {
    /// Makes calls one-way: they have no answer. They end when the request has left, or waits to
    /// leave, and, if the input does not fit a message, the server has pulled it. If too many
    /// requests wait, [`Handle::start`] fails with [`Status::AGAIN`].
    pub fn without_answer(self) -> Self {
        self.function.set_quiet(true);
        self
    }

    /// Returns the number of the function, which is the same on every rank.
    pub fn id(&self) -> u32 {
        self.function.id
    }
}

fn encode<T: Serialize>(value: &T) -> impl super::payload::Encode + '_ {
    move |buffer: &mut [u8], method: Method| Ok(proc::to_slice_or(value, buffer, method, to_send)?)
}

impl Class {
    /// Registers a function that other ranks can call. The handler may answer at once, or keep the
    /// call and answer later. If it fails before it has answered, the origin receives that status.
    ///
    /// # Errors
    /// Returns `EXIST` if another function has the same number, `INVALID_ARG` if the name is empty.
    pub fn serve<I, O, F>(&self, name: &str, handler: F) -> Result<Rpc<I, O>>
    where
        I: Serialize + DeserializeOwned + 'static,
        O: Serialize + DeserializeOwned + 'static,
        F: Fn(Call<I, O>) -> Result<()> + Send + Sync + 'static,
    {
        let rpc = Arc::new(move |target: Arc<Target>| {
            match handler(Call { target, types: PhantomData }) {
                Ok(()) => Status::SUCCESS,
                Err(failure) => {
                    log::debug!("a handler fails: {failure}");
                    failure.status()
                }
            }
        });
        let function = self.shared.functions.add(name, Some(rpc), None)?;
        Ok(Rpc { function, types: PhantomData })
    }

    /// Registers a plain function with [`Class::serve`]. Its result is the answer.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), portolan::rpc::Failure> {
    /// # let class = portolan::rpc::Class::init("mpi", portolan::rpc::Listen::Yes)?;
    /// let add = class.serve_fn("add", |(a, b): (i64, i64)| Ok(a + b))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails like [`Class::serve`].
    pub fn serve_fn<I, O, F>(&self, name: &str, function: F) -> Result<Rpc<I, O>>
    where
        I: Serialize + DeserializeOwned + 'static,
        O: Serialize + DeserializeOwned + 'static,
        F: Fn(I) -> Result<O> + Send + Sync + 'static,
    {
        self.serve(name, move |call: Call<I, O>| call.answer(&function(call.input()?)?))
    }

    /// Returns a function for calls. Registers it, unless this class serves one of this name.
    ///
    /// # Errors
    /// Fails like [`Class::serve`].
    pub fn client<I, O>(&self, name: &str) -> Result<Rpc<I, O>>
    where
        I: Serialize + DeserializeOwned + 'static,
        O: Serialize + DeserializeOwned + 'static,
    {
        let functions = &self.shared.functions;
        let function = match functions.named(name).filter(|function| function.rpc.is_some()) {
            Some(served) => served,
            None => functions.add(name, None, None)?,
        };
        Ok(Rpc { function, types: PhantomData })
    }

    /// Returns the address of a rank of the job.
    ///
    /// # Errors
    /// Returns `ADDRNOTAVAIL` if the rank is outside the job, or the class is not over MPI.
    pub fn rank(&self, rank: usize) -> Result<Address> {
        self.lookup(&format!("mpi://{rank}"))
    }
}

/// A call at its server. If it is dropped without an answer, it fails at its origin.
#[derive(Debug)]
#[must_use = "a call that is dropped without an answer fails at its origin"]
pub struct Call<I, O> {
    target: Arc<Target>,
    types: PhantomData<fn(I) -> O>,
}

impl<I: DeserializeOwned, O: Serialize> Call<I, O> {
    /// Returns the address of the caller.
    pub fn source(&self) -> Address {
        self.target.source()
    }

    /// Returns the context that received the call, for operations that the handler starts.
    pub fn context(&self) -> Context {
        Context { shared: self.target.context().clone() }
    }

    /// Decodes the input.
    ///
    /// # Errors
    /// Returns `PROTOCOL_ERROR`, `OVERFLOW` or `CHECKSUM_ERROR` if the input is invalid, or `NOMEM`
    /// if memory is exhausted. The origin receives the same status unless the handler answers.
    pub fn input(&self) -> Result<I> {
        proc::from_slice(self.target.input(), self.target.method()).map_err(|fault| {
            let failure = Failure::from(fault);
            self.target.set_failure(failure.status());
            failure
        })
    }

    /// Answers with an output.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if the call was answered already or the class is finalised, or the
    /// error of encoding or sending. After such an error, the call is still unanswered.
    pub fn answer(&self, output: &O) -> Result<()> {
        self.target.answer(encode(output), None)
    }

    /// Answers with a failure.
    pub fn refuse(self, status: Status) {
        self.target.answer_failure(status);
    }
}

/// A call at its origin. It can be forwarded repeatedly.
#[derive(Debug)]
#[must_use = "a handle does nothing until the call is forwarded or started"]
pub struct Handle<I, O> {
    origin: Arc<Origin>,
    types: PhantomData<fn(I) -> O>,
}

impl Context {
    /// Creates a handle for calls of a function at an address.
    pub fn handle<I, O>(&self, address: &Address, rpc: &Rpc<I, O>) -> Handle<I, O> {
        let origin = Origin::new(&self.shared, *address, rpc.function.clone());
        Handle { origin, types: PhantomData }
    }

    /// Calls a function and waits for its output. Runs incoming calls meanwhile.
    ///
    /// # Errors
    /// Returns the failure of the call, or `TIMEOUT` after the timeout, which cancels the call.
    pub fn call<I: Serialize, O: DeserializeOwned>(
        &self,
        address: &Address,
        rpc: &Rpc<I, O>,
        input: &I,
        timeout: Duration,
    ) -> Result<O> {
        let handle = self.handle(address, rpc);
        handle.start(input)?;
        if !handle.wait(timeout)? {
            handle.cancel();
            let function = handle.origin.function();
            return Err(failure(Status::TIMEOUT, &function));
        }
        handle.output()
    }
}

fn decode<O: DeserializeOwned>(body: &[u8], method: Method) -> Result<O> {
    Ok(proc::from_slice(body, method)?)
}

impl<I: Serialize, O: DeserializeOwned> Handle<I, O> {
    /// Forwards the call. `callback` runs in trigger with the output.
    ///
    /// # Errors
    /// Returns `BUSY` if the call is under way or its last callback has not run, `INVALID_ARG` if
    /// the context is destroyed or the class finalised, `ADDRNOTAVAIL` if the address belongs to
    /// another class, `AGAIN` if too many one-way calls wait to leave, or the error of encoding or
    /// sending.
    pub fn forward(
        &self,
        input: &I,
        callback: impl FnOnce(Result<O>) + Send + 'static,
    ) -> Result<()> {
        let then = move |origin: &Arc<Origin>| callback(output_of(origin));
        self.origin.forward(encode(input), Some(Box::new(then)))
    }

    /// Forwards the call without a callback.
    ///
    /// # Errors
    /// Fails like [`Handle::forward`].
    pub fn start(&self, input: &I) -> Result<()> {
        self.origin.forward(encode(input), None)
    }

    /// Waits until the call has ended, and runs incoming calls. Returns false after the timeout.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if the call was never forwarded or the class is finalised, or the
    /// error of the network.
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        self.origin.wait(timeout)
    }

    /// Returns whether the call has ended.
    pub fn is_done(&self) -> bool {
        self.origin.is_done()
    }

    /// Returns the output of the call, which must have ended.
    ///
    /// # Errors
    /// Returns the call's failure, `INVALID_ARG` if it has not ended, or the error of decoding.
    pub fn output(&self) -> Result<O> {
        output_of(&self.origin)
    }

    /// Cancels the call. Its callback receives `CANCELED`. The server may still run the call.
    pub fn cancel(&self) {
        self.origin.cancel();
    }
}

fn output_of<O: DeserializeOwned>(origin: &Origin) -> Result<O> {
    let body = origin.output()?;
    // The body of a one-way call is empty and has no checksum either.
    let quiet = origin.function().is_quiet();
    decode(&body, if quiet { Method::None } else { origin.context().class.method })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hg::class::MOST_QUEUED;
    use crate::hg::{Class, Listen};

    #[test]
    fn an_address_belongs_to_one_class() {
        let [a, b] = [(); 2].map(|()| Class::init("na+sm", Listen::Yes).unwrap());
        let context = b.context().unwrap();
        let add = b.serve_fn("add one", |n: u32| Ok(n + 1)).unwrap();
        assert_ne!(a.own_address(), b.own_address());
        let refused = context.call(&a.own_address(), &add, &1, Duration::ZERO).unwrap_err();
        assert_eq!(refused.status(), Status::ADDRNOTAVAIL);
        assert!(b.address_text(&a.own_address()).contains("another class"));
        assert_eq!(context.call(&b.own_address(), &add, &1, Duration::from_secs(9)).unwrap(), 2);
        context.destroy().unwrap();
        drop(context);
        for class in [a, b] {
            class.finalize().unwrap();
        }
    }

    #[test]
    fn a_function_that_is_served_can_be_called_by_name() {
        let class = Class::init("self", Listen::Yes).unwrap();
        let context = class.context().unwrap();
        class.serve_fn("add one", |n: u32| Ok(n + 1)).unwrap();
        for _ in 0..2 {
            let add = class.client::<u32, u32>("add one").unwrap();
            let sum = context.call(&class.own_address(), &add, &1, Duration::from_secs(9));
            assert_eq!(sum.unwrap(), 2);
        }
        context.destroy().unwrap();
        drop(context);
        class.finalize().unwrap();
    }

    #[test]
    fn a_full_context_does_not_stop_the_others() {
        const TIME: Duration = Duration::from_secs(20);
        let (server, client) =
            (Class::init("na+sm", Listen::Yes).unwrap(), Class::init("na+sm", Listen::No).unwrap());
        let [full, free] = [1, 2].map(|id| server.context_numbered(id).unwrap());
        let asking = client.context_numbered(7).unwrap();
        server
            .serve("origin", |call: Call<(), u8>| call.answer(&call.target.origin_context()))
            .unwrap();
        let rpc = client.client::<(), u8>("origin").unwrap();
        let to = client.lookup(&server.address_text(&server.own_address())).unwrap();
        let call = |id| {
            let handle = asking.handle(&to, &rpc);
            handle.origin.set_target_context(id);
            handle.start(&()).unwrap();
            handle
        };
        let waiting: Vec<_> = (0..3 * MOST_QUEUED).map(|_| call(1)).collect();
        let last = call(2);
        let begun = std::time::Instant::now();
        while !last.is_done() && begun.elapsed() < TIME {
            free.progress(Duration::from_millis(1)).unwrap();
            free.trigger(usize::MAX);
            asking.progress(Duration::ZERO).unwrap();
        }
        assert!(last.is_done() && !waiting[0].is_done());
        assert_eq!(last.output().unwrap(), 7);
        while !waiting.iter().all(Handle::is_done) && begun.elapsed() < TIME {
            full.progress(Duration::from_millis(1)).unwrap();
            full.trigger(usize::MAX);
            asking.progress(Duration::ZERO).unwrap();
        }
        assert!(waiting.iter().all(Handle::is_done));
        drop((waiting, last));
        for context in [full, free, asking] {
            context.destroy().unwrap();
        }
        server.finalize().unwrap();
        client.finalize().unwrap();
    }

    #[test]
    fn progress_returns_when_a_call_without_a_callback_has_ended() {
        let class = Class::init_with("self", Listen::Yes, Method::None).unwrap();
        let (asking, serving) = (class.context().unwrap(), class.context_numbered(1).unwrap());
        let rpc = class.serve_fn("nothing", |()| Ok(())).unwrap();
        let handle = asking.handle(&class.own_address(), &rpc);
        handle.origin.set_target_context(1);
        handle.start(&()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                serving.trigger(1);
            });
            assert!(asking.progress(Duration::from_secs(30)).unwrap(), "the time is over");
        });
        assert!(handle.is_done());
        assert!(!asking.progress(Duration::ZERO).unwrap());
        drop((handle, rpc, asking, serving));
        class.finalize().unwrap();
    }
}
