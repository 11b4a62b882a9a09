//! Numbers of compositions: [`Handles`] of 31 bits, so one is reused after about two billion
//! others. Each run of the runtime starts with an empty table, because compositions contain
//! addresses.

use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_base::handles::Handles;
use portolan_compose::{Composer, Composition};
use portolan_engine::runtime::{self, Engine};
use std::os::raw::c_int;
use std::sync::{Arc, Weak};

/// Compositions by number. All numbers are positive.
#[derive(Debug)]
pub(crate) struct Table<T = Composition>(Handles<T, 20, 11>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table(Handles::default())
    }
}

impl<T> Table<T> {
    /// Fails with `Memory` if there are about a million live compositions.
    pub(crate) fn insert(&mut self, composition: T) -> Result<c_int> {
        if self.0.is_full() {
            let most = Handles::<T, 20, 11>::MOST;
            fail!(
                Memory,
                "the limit of {most} compositions is reached; destroy those that are not needed"
            );
        }
        Ok(self.0.insert(composition) as c_int)
    }

    /// Fails with `Handle` if no live composition has this number.
    pub(crate) fn get(&mut self, number: c_int) -> Result<&mut T> {
        match self.0.get_mut(handle(number)) {
            Some(composition) => Ok(composition),
            None => fail!(Handle, "{number} is not the number of a live composition"),
        }
    }

    pub(crate) fn remove(&mut self, number: c_int) -> Result<()> {
        match self.0.remove(handle(number)) {
            Some(_) => Ok(()),
            None => fail!(Handle, "{number} is not the number of a live composition"),
        }
    }
}

/// Converts a number to a handle. A negative number becomes 0, which is never a handle.
fn handle(number: c_int) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[derive(Debug)]
pub(crate) struct Interface {
    of: Weak<Engine>,
    pub composer: Arc<Composer>,
    pub table: Table,
}

static INTERFACE: Mutex<Option<Interface>> = Mutex::new(None);

/// Runs `body` on the state of the current run, which it creates at the first use.
pub(crate) fn with<R>(
    engine: &Engine,
    body: impl FnOnce(&mut Interface) -> Result<R>,
) -> Result<R> {
    let mut interface = INTERFACE.lock();
    // The weak reference keeps the allocation of its engine, so a later engine has another address.
    let of_now = interface.as_ref().is_some_and(|f| std::ptr::eq(f.of.as_ptr(), engine));
    if !of_now {
        *interface = Some(Interface {
            of: Arc::downgrade(&runtime::current_arc()?),
            composer: Arc::default(),
            table: Table::default(),
        });
    }
    match interface.as_mut() {
        Some(interface) => body(interface),
        None => fail!(Internal, "the state that was just made is gone"),
    }
}

pub(crate) fn composer(engine: &Engine) -> Result<Arc<Composer>> {
    with(engine, |interface| Ok(interface.composer.clone()))
}

/// Fails with `State`, without a change, if another thread is in a call.
pub(crate) fn take() -> Result<Option<Interface>> {
    let mut interface = INTERFACE.lock();
    if interface.as_ref().is_some_and(|interface| Arc::strong_count(&interface.composer) > 1) {
        fail!(State, "another thread is in a call of this interface");
    }
    Ok(interface.take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positive_and_dead_ones_name_nothing() {
        let mut table = Table::<()>::default();
        assert_eq!(table.insert(()).unwrap(), 1);
        assert_eq!(table.insert(()).unwrap(), 2);
        let mut last = 1;
        for _ in 0..5000 {
            table.remove(last).unwrap();
            assert!(table.get(last).is_err());
            assert!(table.remove(last).is_err());
            let next = table.insert(()).unwrap();
            assert!(next > 0 && next != last && next != 2);
            assert!(table.get(last).is_err());
            last = next;
        }
        table.get(2).unwrap();
        for bad in [0, -1, 3, c_int::MIN, c_int::MAX, 1 << 20] {
            assert!(table.get(bad).is_err(), "{bad}");
        }
    }
}
