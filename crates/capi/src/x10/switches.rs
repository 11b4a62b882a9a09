//! Switches: counters of transfers in flight.
//!
//! The value of a switch is the program's own count minus the outstanding operations of its
//! [`CompletionCounter`]. An `x10_switch_t` is a token of [`Handles`], which detects the use of a
//! freed switch.

use super::{code, engine, failed};
use crate::boundary::{export, guard};
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_base::handles::Handles;
use portolan_base::trace::Cause;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::runtime::Engine;
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Values that puts read in place until no transfer is outstanding.
#[derive(Debug, Default)]
struct Kept {
    #[allow(clippy::vec_box)] // addresses stay valid when the list grows
    values: Vec<Box<u64>>,
    /// Number of calls that have kept a value and are about to issue its put.
    issuing: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Switch {
    counter: Arc<CompletionCounter>,
    counted: AtomicI64,
    kept: Mutex<Kept>,
}

impl Switch {
    pub(crate) fn counter(&self) -> &Arc<CompletionCounter> {
        &self.counter
    }

    /// Calls `issue` with the address of a copy of `value`, which has at most eight bytes. The copy
    /// is kept until no transfer on the switch is outstanding.
    pub(crate) fn with_kept(
        &self,
        value: &[u8],
        issue: impl FnOnce(usize) -> Result<()>,
    ) -> Result<()> {
        let mut word = [0u8; 8];
        word[..value.len()].copy_from_slice(value);
        let value = Box::new(u64::from_ne_bytes(word));
        let address = (&raw const *value) as usize;
        {
            let mut kept = self.kept.lock();
            if kept.issuing == 0 && self.counter.outstanding() == 0 {
                kept.values.clear();
            }
            kept.values.push(value);
            kept.issuing += 1;
        }
        let issued = issue(address);
        self.kept.lock().issuing -= 1;
        issued
    }

    fn value(&self) -> i64 {
        self.counted.load(Ordering::Acquire) - self.counter.outstanding() as i64
    }
}

type Table = Handles<Arc<Switch>>;

static TABLE: Mutex<Table> = Mutex::new(Handles::new());

/// Fails with `Handle` if the table lacks the token.
fn look_up(table: &Table, token: usize) -> Result<&Arc<Switch>> {
    match table.get(token as u64) {
        Some(switch) => Ok(switch),
        None if token as u32 == 0 => {
            fail!(Handle, "the switch is null; create one with x10_alloc_switch")
        }
        None if table.has_slot(token as u64) => {
            fail!(Handle, "the switch {token:#x} was freed already")
        }
        None => fail!(Handle, "{token:#x} is not a switch"),
    }
}

pub(super) fn find(token: usize) -> Result<Arc<Switch>> {
    look_up(&TABLE.lock(), token).cloned()
}

/// Waits until no transfer is outstanding on any switch. Failures stay with their switches.
pub(super) fn settle(engine: &Engine) -> Result<()> {
    let all: Vec<_> = TABLE.lock().iter().map(|(_, switch)| switch.clone()).collect();
    for switch in all {
        let what = || format!("{} transfers on a switch", switch.counter.outstanding());
        engine.wait_for(&*switch.counter, &what, || Ok(switch.counter.outstanding() == 0))?;
    }
    Ok(())
}

pub(super) fn clear() {
    let gone = TABLE.lock().drain();
    drop(gone); // after the lock is released
}

/// Returns whether the value is at least 0. If so, fails with the first failure of its transfers.
fn done(switch: &Switch) -> Result<bool> {
    if switch.value() < 0 {
        return Ok(false);
    }
    switch.counter.check()?;
    Ok(true)
}

fn wait(engine: &Engine, token: usize) -> Result<()> {
    let switch = find(token)?;
    let what = || format!("a switch at {}", switch.value());
    engine.wait_for(Cause::Notify, &what, || done(&switch))
}

export! {
    x10_alloc_switch() -> usize {
        let error = |error: &_| {
            failed(error);
            0
        };
        guard("x10_alloc_switch", error, || {
            engine()?;
            Ok(TABLE.lock().insert(Arc::new(Switch::default())) as usize)
        })
    }

    x10_free_switch(hndl: usize) -> c_int = code(|_| {
        let mut table = TABLE.lock();
        let under_way = look_up(&table, hndl)?.counter.outstanding();
        if under_way > 0 {
            fail!(Handle, "{under_way} transfers are under way on the switch; wait for it first");
        }
        let gone = table.remove(hndl as u64);
        drop(table);
        drop(gone); // after the lock is released
        Ok(())
    });

    x10_decrement_switch(hndl: usize) -> c_int = code(|_| {
        find(hndl)?.counted.fetch_sub(1, Ordering::AcqRel);
        Ok(())
    });

    x10_increment_switch(hndl: usize) -> c_int = code(|_| {
        find(hndl)?.counted.fetch_add(1, Ordering::AcqRel);
        Ok(())
    });

    x10_switch_value(hndl: usize, value: *mut c_int) -> c_int = code(|engine| {
        let switch = find(hndl)?;
        // The program may call this in a loop, so it must make progress.
        engine.probe()?;
        let now = switch.value().clamp(c_int::MIN.into(), c_int::MAX.into()) as c_int;
        // SAFETY: the caller guarantees that the pointer is null or valid for writes.
        unsafe { store(value, now) }
    });
}

/// # Safety
/// `to` must be null or valid for writes.
unsafe fn store(to: *mut c_int, value: c_int) -> Result<()> {
    if to.is_null() {
        fail!(Argument, "the pointer to the result is null");
    }
    // SAFETY: the caller guarantees that `to` is valid for writes, and it is not null.
    unsafe { *to = value };
    Ok(())
}

export! {
    x10_wait(hndl: usize) -> c_int = code(|engine| wait(engine, hndl));

    x10_next_on_switch(hndl: usize) -> c_int = code(|engine| wait(engine, hndl));

    x10_test(hndl: usize, is_done: *mut c_int) -> c_int = code(|engine| {
        let switch = find(hndl)?;
        if is_done.is_null() {
            fail!(Argument, "the pointer to the result is null");
        }
        if switch.value() < 0 {
            engine.probe()?;
        }
        let now = done(&switch)?;
        // SAFETY: the caller guarantees that the pointer is null or valid for writes.
        unsafe { store(is_done, now.into()) }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_base::error::ErrorKind;

    #[test]
    fn freed_and_unknown_tokens_are_errors() {
        let mut table = Table::new();
        let kind = |table: &Table, token| look_up(table, token).err().map(|e| e.kind());
        assert_eq!(kind(&table, 0), Some(ErrorKind::Handle));
        assert_eq!(kind(&table, 7), Some(ErrorKind::Handle));
        let token = table.insert(Arc::default());
        assert_eq!(kind(&table, token as usize), None);
        table.remove(token);
        assert_eq!(kind(&table, token as usize), Some(ErrorKind::Handle));
        let again = table.insert(Arc::default());
        assert_ne!(again, token);
        assert!(look_up(&table, token as usize).is_err());
        assert!(look_up(&table, again as usize).is_ok());
    }

    #[test]
    fn the_value_counts_both() {
        let switch = Switch::default();
        switch.counter.begin();
        switch.counter.begin();
        assert_eq!(switch.value(), -2);
        switch.counted.fetch_add(1, Ordering::Relaxed);
        switch.counter.end();
        assert_eq!(switch.value(), 0);
        let mut seen = Vec::new();
        for value in [1u32, 2] {
            let kept = switch.with_kept(&value.to_ne_bytes(), |at| {
                seen.push(at);
                Ok(())
            });
            assert!(kept.is_ok());
        }
        assert_ne!(seen[0], seen[1]);
        assert_eq!(switch.kept.lock().values.len(), 2);
        switch.counter.end();
        assert_eq!(switch.value(), 1);
    }
}
