//! Non-blocking transfers on borrowed buffers.

use super::in_call::InCall;
use super::pending::{Flights, Order};
use super::{Accumulate, Block, Element, Runtime, Segment};
use crate::error::Result;
use crate::layout::Shape;
use crate::peer::CompletionCounter;
use crate::transfer::TransferKind;
use std::marker::PhantomData;
use std::sync::Arc;

/// In which non-blocking transfers may borrow buffers; see [`Runtime::scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    flights: &'scope Flights<'scope>,
    // Both lifetimes are invariant, as in `std::thread::Scope`: a longer scope
    // must not pass for a shorter one, nor a shorter borrow for a longer.
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

/// A get of a scope that may be under way. Dropping it waits for nothing: the
/// scope does, at its end.
#[derive(Debug)]
pub struct PendingGet<'scope, 'env, T: Element> {
    flights: &'scope Flights<'scope>,
    counter: Option<Arc<CompletionCounter>>,
    // A pointer, since the engine writes through it while this is moved about.
    target: *mut T,
    len: usize,
    _target: PhantomData<&'env mut [T]>,
}

/// A put or accumulate of a scope that may be under way.
#[derive(Debug)]
pub struct Pending<'scope> {
    flights: &'scope Flights<'scope>,
    counter: Option<Arc<CompletionCounter>>,
}

impl<'env, T: Element> PendingGet<'_, 'env, T> {
    /// Waits until the elements are there and gives the buffer back.
    ///
    /// # Errors
    /// `Address` or `Mpi` where the transfer failed; the buffer's contents are
    /// then unspecified, and it is free at the scope's end.
    pub fn wait(self) -> Result<&'env mut [T]> {
        self.flights.wait(self.counter.as_ref()).in_call("PendingGet::wait")?;
        // SAFETY: the pointer and length are those of the slice that was borrowed
        // for 'env when this was made, and that nobody has used since but the
        // engine, which is done with it. It is given back once, as `self` goes.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.target, self.len) })
    }

    /// Whether [`PendingGet::wait`] would return at once. Makes progress.
    ///
    /// # Errors
    /// `Mpi`.
    pub fn is_done(&self) -> Result<bool> {
        self.flights.is_done(self.counter.as_ref()).in_call("PendingGet::is_done")
    }
}

impl Pending<'_> {
    /// Waits until the source may be reused, as after a blocking put.
    ///
    /// # Errors
    /// `Address` or `Mpi` where the transfer failed.
    pub fn wait(self) -> Result<()> {
        self.flights.wait(self.counter.as_ref()).in_call("Pending::wait")
    }

    /// Whether [`Pending::wait`] would return at once. Makes progress.
    ///
    /// # Errors
    /// `Mpi`.
    pub fn is_done(&self) -> Result<bool> {
        self.flights.is_done(self.counter.as_ref()).in_call("Pending::is_done")
    }
}

impl Runtime {
    /// Runs `body`, which may issue non-blocking transfers on buffers that
    /// outlive the call, and waits for all of them before it returns, also when
    /// `body` panics.
    ///
    /// A buffer is borrowed until the scope ends, or until the transfer's `wait`
    /// gives it back. So nobody reads a buffer that a get still fills, whatever
    /// the program does with the [`PendingGet`].
    ///
    /// ```no_run
    /// # fn both(rt: &portolan::Runtime, s: &portolan::Segment<'_, f64>) -> portolan::Result<f64> {
    /// let (mut left, mut right) = (vec![0.0; 100], vec![0.0; 100]);
    /// let first = rt.scope(|scope| {
    ///     let pending = scope.get(s, 0, 0, &mut left)?;
    ///     scope.get(s, 1, 0, &mut right)?;
    ///     // compute on something else meanwhile
    ///     Ok(pending.wait()?[0])
    /// })?;
    /// # let _ = first;
    /// Ok(left[0] + right[99]) // both are here
    /// # }
    /// ```
    ///
    /// Reading before the wait does not compile:
    ///
    /// ```compile_fail,E0502
    /// # fn early(rt: &portolan::Runtime, s: &portolan::Segment<'_, f64>) -> portolan::Result<f64> {
    /// let mut left = vec![0.0; 100];
    /// rt.scope(|scope| {
    ///     let pending = scope.get(s, 0, 0, &mut left)?;
    ///     let first = left[0];
    ///     pending.wait()?;
    ///     Ok(first)
    /// })
    /// # }
    /// ```
    ///
    /// nor does it after the pending get was forgotten:
    ///
    /// ```compile_fail,E0502
    /// # fn forgotten(rt: &portolan::Runtime, s: &portolan::Segment<'_, f64>) -> portolan::Result<f64> {
    /// let mut left = vec![0.0; 100];
    /// rt.scope(|scope| {
    ///     std::mem::forget(scope.get(s, 0, 0, &mut left)?);
    ///     Ok(left[0])
    /// })
    /// # }
    /// ```
    ///
    /// A buffer that dies before the scope's end cannot be used:
    ///
    /// ```compile_fail,E0597
    /// # fn short(rt: &portolan::Runtime, s: &portolan::Segment<'_, f64>) -> portolan::Result<()> {
    /// rt.scope(|scope| {
    ///     let mut inside = vec![0.0; 100];
    ///     scope.get(s, 0, 0, &mut inside)?;
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// and the source of a put cannot be changed under it:
    ///
    /// ```compile_fail,E0506
    /// # fn changed(rt: &portolan::Runtime, s: &portolan::Segment<'_, f64>) -> portolan::Result<()> {
    /// let mut source = [1.0; 100];
    /// rt.scope(|scope| {
    ///     scope.put(s, 0, 0, &source)?;
    ///     source[0] = 2.0;
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `body`, else the first of a transfer that was not waited for.
    pub fn scope<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        // Its destructor waits. It is no part of `Scope`, whose lifetime makes it
        // borrowed until it dies.
        let flights = Flights::new(self.engine());
        let scope = Scope { flights: &flights, _scope: PhantomData, _env: PhantomData };
        let result = body(&scope);
        let waited = flights.wait_all().in_call("Runtime::scope");
        result.and_then(|r| waited.map(|()| r))
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts to get elements at `offset` of `rank`, as many as `target` has.
    ///
    /// # Errors
    /// As for [`Segment::get`].
    pub fn get<T: Element>(
        &'scope self,
        segment: &'env Segment<'_, T>,
        rank: usize,
        offset: usize,
        target: &'env mut [T],
    ) -> Result<PendingGet<'scope, 'env, T>> {
        const CALL: &str = "Scope::get";
        let order =
            contiguous(TransferKind::Get, segment, rank, offset, target.len()).in_call(CALL)?;
        // SAFETY: the order moves as many bytes as the target has.
        unsafe { self.start_get(&order, 0, target) }.in_call(CALL)
    }

    /// Starts to get the block `remote` of `rank`'s part into the block `local`
    /// of `target`.
    ///
    /// # Errors
    /// As for [`Segment::get_block`].
    pub fn get_block<T: Element>(
        &'scope self,
        segment: &'env Segment<'_, T>,
        rank: usize,
        remote: &Block,
        target: &'env mut [T],
        local: &Block,
    ) -> Result<PendingGet<'scope, 'env, T>> {
        const CALL: &str = "Scope::get_block";
        let plan = segment.plan(rank, remote, target.len(), local).in_call(CALL)?;
        let (start, order) = plan.order(TransferKind::Get);
        // SAFETY: the plan's local extent, from its start, lies in the target.
        unsafe { self.start_get(&order, start, target) }.in_call(CALL)
    }

    /// Starts to put `source` to `offset` of `rank`.
    ///
    /// # Errors
    /// As for [`Segment::put`].
    pub fn put<T: Element>(
        &'scope self,
        segment: &'env Segment<'_, T>,
        rank: usize,
        offset: usize,
        source: &'env [T],
    ) -> Result<Pending<'scope>> {
        const CALL: &str = "Scope::put";
        let order =
            contiguous(TransferKind::Put, segment, rank, offset, source.len()).in_call(CALL)?;
        // SAFETY: the order moves as many bytes as the source has.
        unsafe { self.start_put(&order, 0, source) }.in_call(CALL)
    }

    /// Starts to put the block `local` of `source` to the block `remote` of
    /// `rank`'s part.
    ///
    /// # Errors
    /// As for [`Segment::put_block`].
    pub fn put_block<T: Element>(
        &'scope self,
        segment: &'env Segment<'_, T>,
        rank: usize,
        remote: &Block,
        source: &'env [T],
        local: &Block,
    ) -> Result<Pending<'scope>> {
        const CALL: &str = "Scope::put_block";
        let plan = segment.plan(rank, remote, source.len(), local).in_call(CALL)?;
        let (start, order) = plan.order(TransferKind::Put);
        // SAFETY: the plan's local extent, from its start, lies in the source.
        unsafe { self.start_put(&order, start, source) }.in_call(CALL)
    }

    /// Starts to add `scale * source` to the elements at `offset` of `rank`.
    ///
    /// # Errors
    /// As for [`Segment::accumulate`].
    pub fn accumulate<T: Accumulate>(
        &'scope self,
        segment: &'env Segment<'_, T>,
        rank: usize,
        offset: usize,
        scale: T,
        source: &'env [T],
    ) -> Result<Pending<'scope>> {
        const CALL: &str = "Scope::accumulate";
        let kind = TransferKind::Accumulate(scale.scale());
        let order = contiguous(kind, segment, rank, offset, source.len()).in_call(CALL)?;
        // SAFETY: the order moves as many bytes as the source has.
        unsafe { self.start_put(&order, 0, source) }.in_call(CALL)
    }

    /// Waits for all transfers that the scope has issued so far.
    ///
    /// # Errors
    /// The first of a transfer that was not waited for.
    pub fn wait_all(&'scope self) -> Result<()> {
        self.flights.wait_all().in_call("Scope::wait_all")
    }

    #[cfg(feature = "array")]
    pub(super) fn flights(&self) -> &'scope Flights<'scope> {
        self.flights
    }

    /// # Safety
    /// From element `start` of the target on, the order's local extent must lie
    /// in it.
    unsafe fn start_get<T: Element>(
        &'scope self,
        order: &Order,
        start: usize,
        target: &'env mut [T],
    ) -> Result<PendingGet<'scope, 'env, T>> {
        let len = target.len();
        let target = target.as_mut_ptr();
        // SAFETY: the caller vouches for the extent. The slice is borrowed
        // exclusively for 'env, which outlives the flights, and is given back
        // earlier only by a wait for this counter. Any bytes are values.
        let counter = unsafe { self.flights.issue(order, target.wrapping_add(start).cast()) }?;
        Ok(PendingGet { flights: self.flights, counter, target, len, _target: PhantomData })
    }

    /// # Safety
    /// As for `start_get`.
    unsafe fn start_put<T: Element>(
        &'scope self,
        order: &Order,
        start: usize,
        source: &'env [T],
    ) -> Result<Pending<'scope>> {
        let from = source.as_ptr().wrapping_add(start).cast_mut().cast();
        // SAFETY: the caller vouches for the extent. The slice is borrowed for
        // 'env, which outlives the flights; puts and accumulates only read it.
        let counter = unsafe { self.flights.issue(order, from) }?;
        Ok(Pending { flights: self.flights, counter })
    }
}

/// A transfer of `count` elements that is checked against the part's bounds.
pub(super) fn contiguous<T: Element>(
    kind: TransferKind,
    segment: &Segment<'_, T>,
    rank: usize,
    offset: usize,
    count: usize,
) -> Result<Order> {
    let place = segment.place(rank, offset, count)?;
    let shape = Shape::contiguous(count * size_of::<T>());
    Ok(Order { kind, world: place.world, address: place.address, shape })
}
