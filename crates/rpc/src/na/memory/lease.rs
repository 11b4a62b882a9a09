//! Registered memory that is read on behalf of a peer, now or once the peer makes room.
//!
//! The reply to a get waits in its connection until the peer reads, which may take any time. It
//! borrows the memory meanwhile. If the owner withdraws the memory, the bytes that were not written
//! yet are copied, and the lease ends ([`Lease::recall`]). The owner therefore waits for no peer.
//!
//! Invariant: a lease that has not ended is in the list of its handle, unless the thread that
//! creates it is about to recall it.

use super::{Mem, Run};
use parking_lot::Mutex;
use portolan_engine::memory::registered::Inside;
use portolan_engine::memory::runs::{after, gather};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Limit on the copied bytes that wait for a peer that does not read.
pub(in crate::na) const MOST_COPIED: usize = 64 << 20;

/// Memory of this process in use on behalf of another process; it stays registered meanwhile.
#[derive(Debug)]
pub struct InUse {
    // The access ends before the handle, which waits for accesses when it is dropped.
    _inside: Inside,
    mem: Arc<Mem>,
}

impl InUse {
    pub(super) fn new(mem: Arc<Mem>, inside: Inside) -> InUse {
        InUse { _inside: inside, mem }
    }

    /// Lends `runs` until they are written. `copied` counts the copied bytes of the connection.
    pub(in crate::na) fn lend(self, runs: Vec<Run>, copied: &Arc<AtomicUsize>) -> Arc<Lease> {
        let mem = self.mem.clone();
        let state = Mutex::new(LeaseState::Lent { runs, guard: self });
        let loan = Arc::new(Lease { state, copied: copied.clone() });
        let mut loans = mem.loans.lock();
        if loans.len() == loans.capacity() {
            loans.retain(|loan| loan.strong_count() > 0);
        }
        loans.push(Arc::downgrade(&loan));
        drop(loans);
        // The owner may have recalled its loans before this one was in the list.
        if !mem.is_registered() {
            loan.recall();
        }
        loan
    }
}

impl std::ops::Deref for InUse {
    type Target = Mem;

    fn deref(&self) -> &Mem {
        &self.mem
    }
}

/// Bytes that wait in a connection, which counts them until they are dropped.
#[derive(Debug)]
pub(in crate::na) struct Copied {
    bytes: Vec<u8>,
    done: usize,
    count: Arc<AtomicUsize>,
}

impl Copied {
    pub fn new(bytes: Vec<u8>, count: &Arc<AtomicUsize>) -> Copied {
        count.fetch_add(bytes.len(), Ordering::Relaxed);
        Copied { bytes, done: 0, count: count.clone() }
    }

    pub fn left(&self) -> Run {
        let left = &self.bytes[self.done..];
        Run { address: left.as_ptr() as usize, len: left.len() }
    }

    pub fn advance(&mut self, n: usize) {
        self.done += n;
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.count.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

#[derive(Debug)]
enum LeaseState {
    Lent {
        runs: Vec<Run>,
        #[expect(dead_code, reason = "it keeps the memory registered")]
        guard: InUse,
    },
    Copied(Copied),
    Lost,
}

/// Registered memory that waits in a connection.
#[derive(Debug)]
pub(in crate::na) struct Lease {
    state: Mutex<LeaseState>,
    copied: Arc<AtomicUsize>,
}

impl Lease {
    /// Passes what is left to `write`, which returns the number of bytes that it has written. The
    /// memory is valid for reads meanwhile. Returns that number, and whether all bytes are written.
    /// Returns the errors of `write`, and fails if the bytes are lost because too many wait.
    pub fn write(
        &self,
        write: impl FnOnce(&[Run]) -> io::Result<usize>,
    ) -> io::Result<(usize, bool)> {
        match &mut *self.state.lock() {
            LeaseState::Lent { runs, .. } => {
                let written = write(runs)?;
                *runs = after(runs, written).collect();
                Ok((written, runs.is_empty()))
            }
            LeaseState::Copied(copied) => {
                let written = write(&[copied.left()])?;
                copied.advance(written);
                Ok((written, copied.left().len == 0))
            }
            LeaseState::Lost => Err(io::Error::other("it receives nothing")),
        }
    }

    /// Ends the lease: copies what is left. The memory is not accessed afterwards.
    pub(super) fn recall(&self) {
        let mut state = self.state.lock();
        let LeaseState::Lent { runs, .. } = &*state else { return };
        let total: usize = runs.iter().map(|run| run.len).sum();
        let mut bytes = Vec::new();
        let fits = self.copied.load(Ordering::Relaxed) + total <= MOST_COPIED;
        let next = if fits && bytes.try_reserve_exact(total).is_ok() {
            bytes.resize(total, 0);
            // SAFETY: the guard keeps the memory registered, and the creator of the handle guarantees
            // that registered memory is readable.
            unsafe { gather(runs.iter().copied(), &mut bytes) };
            LeaseState::Copied(Copied::new(bytes, &self.copied))
        } else {
            LeaseState::Lost
        };
        let lent = std::mem::replace(&mut *state, next);
        drop(state);
        drop(lent); // without the lock: this may drop the handle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::na::Permission;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    fn in_use(len: usize) -> (Arc<Mem>, InUse) {
        let mem = Mem::allocate(&[len], Permission::ReadOnly).unwrap();
        mem.register();
        let in_use = Mem::find(mem.id()).expect("registered");
        (mem, in_use)
    }

    fn written(loan: &Lease, at_most: usize) -> io::Result<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        let (_, all) = loan.write(|runs| {
            for run in runs {
                // SAFETY: the memory is valid for reads during the call, and nothing writes to it.
                let run = unsafe { std::slice::from_raw_parts(run.address as *const u8, run.len) };
                bytes.extend_from_slice(&run[..run.len().min(at_most - bytes.len())]);
            }
            Ok(bytes.len())
        })?;
        Ok((bytes, all))
    }

    #[test]
    fn a_recalled_loan_has_the_bytes_of_before() {
        let ((mem, in_use), count) = (in_use(10), Arc::default());
        let address = mem.runs()[0].address;
        // SAFETY: the handle owns the memory, and nothing else accesses it now.
        let memory = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, 10) };
        memory.copy_from_slice(b"0123456789");
        let runs = [(0, 3), (5, 0), (5, 5)].map(|(at, len)| Run { address: address + at, len });
        let loan = in_use.lend(runs.to_vec(), &count);
        assert_eq!(written(&loan, 4).unwrap(), (b"0125".to_vec(), false));
        mem.deregister();
        memory.fill(b'x');
        assert_eq!(count.load(Ordering::Relaxed), 4);
        assert_eq!(written(&loan, 3).unwrap(), (b"678".to_vec(), false));
        assert_eq!(written(&loan, 9).unwrap(), (b"9".to_vec(), true));
        drop(loan);
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_lent_too_late_is_recalled_at_once() {
        let ((mem, in_use), count) = (in_use(4), Arc::default());
        let withdrawn = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                mem.deregister();
                withdrawn.store(true, Ordering::SeqCst);
            });
            while mem.is_registered() {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(20));
            assert!(!withdrawn.load(Ordering::SeqCst), "an access was not waited for");
            let loan = in_use.lend(mem.runs().to_vec(), &count);
            assert_eq!(count.load(Ordering::Relaxed), 4);
            assert_eq!(written(&loan, 4).unwrap(), (vec![0; 4], true));
        });
    }

    #[test]
    fn a_peer_that_does_not_read_cannot_use_up_the_memory() {
        let ((mem, in_use), count) = (in_use(4), Arc::new(AtomicUsize::new(MOST_COPIED - 3)));
        let loan = in_use.lend(mem.runs().to_vec(), &count);
        mem.deregister();
        assert!(written(&loan, 4).is_err());
    }

    #[test]
    fn the_last_holder_of_a_handle_may_be_its_loan() {
        let ((mem, in_use), count) = (in_use(4), Arc::default());
        let runs = mem.runs().to_vec();
        let loans: Vec<_> = (0..100)
            .map(|_| Mem::find(mem.id()).unwrap().lend(runs.clone(), &count))
            .chain([in_use.lend(runs.clone(), &count)])
            .collect();
        drop(mem);
        loans.iter().for_each(|loan| assert!(written(loan, 4).unwrap().1));
        drop(loans);
    }
}
