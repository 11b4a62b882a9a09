//! Puts and gets of values of four types. A non-blocking put copies its value until it is complete.

use super::refs::{self, Direction, GasRef};
use super::{ERR_LAPI, OK, code, engine, environment, failed, switches};
use crate::boundary::{export, guard};
use portolan_base::error::Result;
use portolan_engine::any_memory::Span;
use portolan_engine::runtime::Engine;
use std::cell::Cell;
use std::os::raw::{c_double, c_float, c_int, c_long};

thread_local! {
    static STATUS: Cell<c_int> = const { Cell::new(OK) };
}

fn get<T: bytemuck::Pod>(call: &'static str, src: GasRef) -> T {
    let body = || {
        let engine = engine()?;
        let mut value = T::zeroed();
        let bytes = size_of::<T>();
        let target = refs::rank(engine, src.place)?;
        let local = (&raw mut value) as usize;
        // SAFETY: `value` is a local variable that outlives the blocking call.
        unsafe {
            engine.move_anywhere(
                target,
                &[Span { local, remote: src.address(), bytes }],
                Direction::Get,
            )?
        };
        environment::count_transfer(Direction::Get, bytes);
        STATUS.set(OK);
        Ok(value)
    };
    let error = |error: &_| {
        failed(error);
        STATUS.set(ERR_LAPI);
        T::zeroed()
    };
    guard(call, error, body)
}

fn put<T: bytemuck::Pod>(engine: &Engine, value: T, dest: GasRef) -> Result<()> {
    let bytes = size_of::<T>();
    let target = refs::rank(engine, dest.place)?;
    let local = (&raw const value) as usize;
    // SAFETY: `value` is a local variable that outlives the blocking call.
    unsafe {
        engine.move_anywhere(
            target,
            &[Span { local, remote: dest.address(), bytes }],
            Direction::Put,
        )?
    };
    environment::count_transfer(Direction::Put, bytes);
    Ok(())
}

fn put_nb<T: bytemuck::Pod>(engine: &Engine, value: T, dest: GasRef, hndl: usize) -> Result<()> {
    let bytes = size_of::<T>();
    let target = refs::rank(engine, dest.place)?;
    let switch = switches::find(hndl)?;
    switch.with_kept(bytemuck::bytes_of(&value), |local| {
        let span = Span { local, remote: dest.address(), bytes };
        // SAFETY: `with_kept` keeps the copy until no transfer on the switch is outstanding.
        unsafe { engine.start_anywhere(target, &[span], Direction::Put, switch.counter()) }
    })?;
    environment::count_transfer(Direction::Put, bytes);
    Ok(())
}

export! {
    x10_get_value_status() -> c_int { STATUS.get() }
}

macro_rules! values {
    ($ty:ty, $get:ident, $put:ident / $put_short:ident, $put_nb:ident / $put_short_nb:ident) => {
        export! {
            $get(src: GasRef) -> $ty = get(src);

            $put(val: $ty, dest: GasRef) -> c_int = code(|engine| put(engine, val, dest));

            $put_short(val: $ty, dest: GasRef) -> c_int = code(|engine| put(engine, val, dest));

            $put_nb(val: $ty, dest: GasRef, hndl: usize) -> c_int =
                code(|engine| put_nb(engine, val, dest, hndl));

            $put_short_nb(val: $ty, dest: GasRef, hndl: usize) -> c_int =
                code(|engine| put_nb(engine, val, dest, hndl));
        }
    };
}

values!(
    c_int,
    x10_get_value_int,
    x10_put_value_int / x10_put_int,
    x10_put_value_int_nb / x10_put_int_nb
);
values!(
    c_long,
    x10_get_value_long,
    x10_put_value_long / x10_put_long,
    x10_put_value_long_nb / x10_put_long_nb
);
values!(
    c_float,
    x10_get_value_float,
    x10_put_value_float / x10_put_float,
    x10_put_value_float_nb / x10_put_float_nb
);
values!(
    c_double,
    x10_get_value_double,
    x10_put_value_double / x10_put_double,
    x10_put_value_double_nb / x10_put_double_nb
);
