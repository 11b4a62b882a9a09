//! The owner's side of mutexes: takes, releases and hands them over on behalf of other ranks.

pub(crate) mod state;

use self::state::{MutexState, state_bytes};
use crate::path::two_sided::service::{Served, Service};
use crate::path::two_sided::wire::{self, RequestHeader, RequestKind};
use crate::path::{Paths, lock_stripe};
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_base::futex;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MutexName {
    pub group: u64,
    pub set: u64,
    pub owner: u32,
    pub index: u32,
}

impl MutexName {
    pub(crate) fn operand(self) -> [u64; 3] {
        [self.group, self.set, u64::from(self.owner) << 32 | u64::from(self.index)]
    }

    pub fn of(header: &RequestHeader) -> MutexName {
        let [group, set, both] = header.operand;
        MutexName { group, set, owner: (both >> 32) as u32, index: both as u32 }
    }
}

/// Notifications that this rank has received and not yet used.
#[derive(Debug, Default)]
pub struct Mutexes {
    grants: Mutex<HashMap<MutexName, u32>>,
}

impl Mutexes {
    pub(crate) const KINDS: [RequestKind; 5] = [
        RequestKind::Lock,
        RequestKind::TryLock,
        RequestKind::Unlock,
        RequestKind::LockWithdrawal,
        RequestKind::LockGrant,
    ];

    fn granted(&self, header: &RequestHeader) {
        *self.grants.lock().entry(MutexName::of(header)).or_default() += 1;
    }

    pub(crate) fn take_grant(&self, name: MutexName) -> bool {
        let mut grants = self.grants.lock();
        match grants.get_mut(&name) {
            Some(n) => {
                *n -= 1;
                if *n == 0 {
                    grants.remove(&name);
                }
                true
            }
            None => false,
        }
    }
}

pub(crate) fn hand_over(
    paths: &Paths,
    state: MutexState,
    name: MutexName,
    next: std::result::Result<Option<usize>, u32>,
    owner: usize,
) -> Result<()> {
    let next = match next {
        Ok(Some(next)) => next,
        Ok(None) => return Ok(()),
        Err(holder) => fail!(
            State,
            "mutex {} of rank {} is released by a rank that does not hold it (holder {})",
            name.index,
            name.owner,
            i64::from(holder) - 1
        ),
    };
    // Ranks that map the owner's memory sleep on their granted word.
    if paths.reaches_directly(owner, next) {
        let word = state.granted(next);
        word.store(1, Ordering::Release);
        futex::wake_all(word);
        return Ok(());
    }
    let mut header = RequestHeader::new(RequestKind::LockGrant, 0);
    header.operand = name.operand();
    paths.two_sided()?.notice(next, header)
}

impl Service for Mutexes {
    fn serve(
        &self,
        paths: &Paths,
        source: usize,
        kind: RequestKind,
        message: &[u8],
    ) -> Result<Served> {
        let (header, ..) = wire::decode(message)?;
        match kind {
            RequestKind::Lock => serve_lock(paths, source, &header)?,
            RequestKind::TryLock => {
                let got = serve_try(paths, source, &header)?;
                paths.two_sided()?.answer_number(source, header.tag, i64::from(got))?;
            }
            RequestKind::Unlock => serve_unlock(paths, source, &header)?,
            RequestKind::LockWithdrawal => serve_withdrawal(paths, source, &header)?,
            RequestKind::LockGrant => self.granted(&header),
            kind => fail!(Internal, "the mutexes received a request of kind {kind:?}"),
        }
        Ok(Served::Done)
    }
}

fn own_state(paths: &Paths, header: &RequestHeader) -> Result<(MutexState, *mut u8, usize)> {
    let (arena, offset) = paths.own(header.address, state_bytes(paths.size()))?;
    // SAFETY: the state lies in this rank's region, mapped because the requesting rank keeps the
    // set alive until it has released the mutex.
    let state = unsafe { MutexState::at(arena.my_base().wrapping_add(offset)) };
    Ok((state, arena.my_base(), lock_stripe::of(offset)))
}

fn serve_lock(paths: &Paths, source: usize, header: &RequestHeader) -> Result<()> {
    let (state, region, lock_stripe) = own_state(paths, header)?;
    let got = {
        // SAFETY: `region` is the base of this rank's mapped region.
        let _held = unsafe { lock_stripe::take(region, lock_stripe) };
        state.acquire(source, true)
    };
    if got {
        let mut grant = RequestHeader::new(RequestKind::LockGrant, 0);
        grant.operand = header.operand;
        paths.two_sided()?.notice(source, grant)?;
    }
    Ok(())
}

fn serve_try(paths: &Paths, source: usize, header: &RequestHeader) -> Result<bool> {
    let (state, region, lock_stripe) = own_state(paths, header)?;
    // SAFETY: `region` is the base of this rank's mapped region.
    let _held = unsafe { lock_stripe::take(region, lock_stripe) };
    Ok(state.acquire(source, false))
}

fn serve_withdrawal(paths: &Paths, source: usize, header: &RequestHeader) -> Result<()> {
    let (state, region, lock_stripe) = own_state(paths, header)?;
    let next = {
        // SAFETY: `region` is the base of this rank's mapped region.
        let _held = unsafe { lock_stripe::take(region, lock_stripe) };
        state.withdraw(source)
    };
    hand_over(paths, state, MutexName::of(header), Ok(next), paths.rank())
}

fn serve_unlock(paths: &Paths, source: usize, header: &RequestHeader) -> Result<()> {
    let (state, region, lock_stripe) = own_state(paths, header)?;
    // The rank in whose name the node of `source` holds the mutex.
    let holder = header.tag as usize;
    if holder >= paths.size() || !paths.topology.same_node(holder, source) {
        fail!(Internal, "rank {source} releases a mutex on behalf of rank {holder}");
    }
    let next = {
        // SAFETY: `region` is the base of this rank's mapped region.
        let _held = unsafe { lock_stripe::take(region, lock_stripe) };
        state.release(holder)
    };
    hand_over(paths, state, MutexName::of(header), next, paths.rank())
}
