//! Non-blocking transfers on borrowed buffers.

use super::pending::{Flights, Order, Pending};
use crate::in_call::InCall;
use crate::transfer::Block;
use crate::{Accumulate, Element, Runtime, Segment};
use portolan_base::error::Result;
use portolan_base::layout::Shape;
use portolan_engine::transfer::TransferKind;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A scope for non-blocking transfers on borrowed buffers; see [`Runtime::scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    flights: &'scope Flights<'scope>,
    // Both lifetimes are invariant, as in `std::thread::Scope`: a longer scope must not pass for a
    // shorter one, nor a shorter borrow for a longer one.
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

impl Runtime {
    /// Runs `body`, which may issue non-blocking transfers on buffers that outlive the call.
    ///
    /// The call waits for all transfers before it returns, even if `body` panics. A buffer stays
    /// borrowed until the scope ends or until the `wait` of the transfer returns it. No code can
    /// therefore read a buffer that a get still fills.
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
    /// Reading after the pending get was forgotten does not compile either:
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
    /// A buffer that is dropped before the scope ends cannot be used:
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
    /// The source of a put cannot be changed during the transfer:
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
    /// Returns the error of `body`, or the first error of a transfer that was not waited for.
    pub fn scope<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        // The destructor of `flights` waits. It is not part of `Scope`, whose lifetime keeps the
        // scope borrowed until it is dropped.
        let flights = Flights::new(self.engine());
        let scope = Scope { flights: &flights, _scope: PhantomData, _env: PhantomData };
        let result = body(&scope);
        let waited = flights.wait_all().in_call("Runtime::scope");
        result.and_then(|r| waited.map(|()| r))
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts to fill `target` with elements from the part of `rank`, from element `offset` on.
    ///
    /// # Errors
    /// Fails as [`Segment::get`] does.
    pub fn get<T: Element>(
        &'scope self,
        segment: &'env Segment<'_, T>,
        rank: usize,
        offset: usize,
        target: &'env mut [T],
    ) -> Result<Pending<'scope, &'env mut [T]>> {
        const CALL: &str = "Scope::get";
        let order =
            contiguous(TransferKind::Get, segment, rank, offset, target.len()).in_call(CALL)?;
        // SAFETY: the order moves exactly the bytes of `target`.
        unsafe { self.start_get(&order, 0, target) }.in_call(CALL)
    }

    /// Starts to get the block `remote` of the part of `rank` into the block `local` of `target`.
    ///
    /// # Errors
    /// Fails as [`Segment::get_block`] does.
    pub fn get_block<T: Element>(
        &'scope self,
        segment: &'env Segment<'_, T>,
        rank: usize,
        remote: &Block,
        target: &'env mut [T],
        local: &Block,
    ) -> Result<Pending<'scope, &'env mut [T]>> {
        const CALL: &str = "Scope::get_block";
        let plan = segment.plan(rank, remote, target.len(), local).in_call(CALL)?;
        let (start, order) = plan.order(TransferKind::Get);
        // SAFETY: the local extent of the plan, from its start on, lies in `target`.
        unsafe { self.start_get(&order, start, target) }.in_call(CALL)
    }

    /// Starts to put `source` into the part of `rank`, from element `offset` on.
    ///
    /// # Errors
    /// Fails as [`Segment::put`] does.
    pub fn put<T: Element>(
        &'scope self,
        segment: &'env Segment<'_, T>,
        rank: usize,
        offset: usize,
        source: &'env [T],
    ) -> Result<Pending<'scope, ()>> {
        const CALL: &str = "Scope::put";
        let order =
            contiguous(TransferKind::Put, segment, rank, offset, source.len()).in_call(CALL)?;
        // SAFETY: the order moves exactly the bytes of `source`.
        unsafe { self.start_put(&order, 0, source) }.in_call(CALL)
    }

    /// Starts to put the block `local` of `source` into the block `remote` of the part of `rank`.
    ///
    /// # Errors
    /// Fails as [`Segment::put_block`] does.
    pub fn put_block<T: Element>(
        &'scope self,
        segment: &'env Segment<'_, T>,
        rank: usize,
        remote: &Block,
        source: &'env [T],
        local: &Block,
    ) -> Result<Pending<'scope, ()>> {
        const CALL: &str = "Scope::put_block";
        let plan = segment.plan(rank, remote, source.len(), local).in_call(CALL)?;
        let (start, order) = plan.order(TransferKind::Put);
        // SAFETY: the local extent of the plan, from its start on, lies in `source`.
        unsafe { self.start_put(&order, start, source) }.in_call(CALL)
    }

    /// Starts to add `scale * source` to the part of `rank`, from element `offset` on.
    ///
    /// # Errors
    /// Fails as [`Segment::accumulate`] does.
    pub fn accumulate<T: Accumulate>(
        &'scope self,
        segment: &'env Segment<'_, T>,
        rank: usize,
        offset: usize,
        scale: T,
        source: &'env [T],
    ) -> Result<Pending<'scope, ()>> {
        const CALL: &str = "Scope::accumulate";
        let kind = TransferKind::Accumulate(scale.scale());
        let order = contiguous(kind, segment, rank, offset, source.len()).in_call(CALL)?;
        // SAFETY: the order moves exactly the bytes of `source`.
        unsafe { self.start_put(&order, 0, source) }.in_call(CALL)
    }

    /// Waits until all transfers that the scope has issued so far are complete locally.
    ///
    /// # Errors
    /// Returns the first error of a transfer that was not waited for.
    pub fn wait_all(&'scope self) -> Result<()> {
        self.flights.wait_all().in_call("Scope::wait_all")
    }

    #[cfg(feature = "array")]
    pub(crate) fn flights(&self) -> &'scope Flights<'scope> {
        self.flights
    }

    /// # Safety
    /// The local extent of the order, from element `start` of `target` on, must lie in `target`.
    unsafe fn start_get<T: Element>(
        &'scope self,
        order: &Order,
        start: usize,
        target: &'env mut [T],
    ) -> Result<Pending<'scope, &'env mut [T]>> {
        let target = NonNull::from(target);
        let first = target.cast::<T>().as_ptr();
        // SAFETY: by contract, the extent lies in `target`. The slice is borrowed exclusively for
        // 'env, which outlives the flights; only a wait for this counter returns it earlier. Any
        // bytes are valid values of its elements.
        let counter = unsafe { self.flights.issue(order, first.wrapping_add(start).cast()) }?;
        Ok(Pending::new(self.flights.engine(), counter, target))
    }

    /// # Safety
    /// The local extent of the order, from element `start` of `source` on, must lie in `source`.
    unsafe fn start_put<T: Element>(
        &'scope self,
        order: &Order,
        start: usize,
        source: &'env [T],
    ) -> Result<Pending<'scope, ()>> {
        let from = source.as_ptr().wrapping_add(start).cast_mut().cast();
        // SAFETY: by contract, the extent lies in `source`. The slice is borrowed for 'env, which
        // outlives the flights, and puts and accumulates only read it.
        let counter = unsafe { self.flights.issue(order, from) }?;
        Ok(Pending::new(self.flights.engine(), counter, ()))
    }
}

/// Returns a transfer of `count` contiguous elements, checked against the bounds of the part.
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
