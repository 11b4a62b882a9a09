//! The peers of a class: their addresses, numbers and connections.
//!
//! A peer has one number, however it became known. Two processes that connect to each other at the
//! same time have two connections: both are read, and the older one is written, so messages stay in
//! order.
//!
//! If one connection of a peer ends, this side ends the other one too. Each side counts its losses
//! of the other one, and adds the count to a random number of its class. The sum, its *life*, is
//! part of every greeting. A connection with another life therefore comes from a successor at the
//! same address, or from a peer that has given up the existing connections, and replaces them.
//!
//! Invariant: a name of `names` is looked up, proven, or the claim of a client that does not listen
//! and was the first one with this name. No other process can take the number of such a peer.
//!
//! A peer that has not been looked up is forgotten when it is lost, and its index is reused, so the
//! memory of a server does not grow with its past clients. The new number differs ([`index_of`]),
//! so addresses of the old peer stay lost.

use super::link::Link;
use crate::failure::Result;
use crate::na::address::{INDEX_BITS, index_of};
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Usually one connection, two for a short time.
pub(super) type Connections = SmallVec<[Arc<Link>; 1]>;

#[derive(Default)]
struct Slot {
    number: u32,
    links: Connections,
    name: Option<Arc<str>>,
    /// Whether this process has looked the address up, and may thus connect again.
    looked_up: bool,
    /// Connections that are about to be added.
    arriving: u32,
    losses: u32,
    /// The peer's life during the connections.
    theirs: u64,
}

#[derive(Default)]
struct Table {
    slots: Vec<Slot>,
    /// Indices to reuse, the one that has been free longest first.
    free: VecDeque<usize>,
    names: HashMap<Arc<str>, u32>,
}

impl Table {
    #[inline]
    fn get(&self, n: u32) -> Option<&Slot> {
        self.slots.get(index_of(n)).filter(|slot| slot.number == n)
    }

    fn get_mut(&mut self, n: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index_of(n)).filter(|slot| slot.number == n)
    }

    fn is_open(&self, n: u32) -> bool {
        self.get(n).is_some_and(|slot| slot.links.iter().any(|link| link.is_open()))
    }

    fn new_number(&mut self) -> u32 {
        if let Some(index) = self.free.pop_front() {
            return self.slots[index].number;
        }
        let number = self.slots.len() as u32;
        self.slots.push(Slot { number, ..Slot::default() });
        number
    }

    /// Forgets a peer without connections, unless one is about to be added or it was looked up.
    fn forget(&mut self, n: u32) {
        let Some(slot) = self.get_mut(n) else { return };
        if slot.looked_up || slot.arriving > 0 || !slot.links.is_empty() {
            return;
        }
        if let Some(name) = slot.name.take()
            && self.names.get(&name) == Some(&n)
        {
            self.names.remove(&name);
        }
        // A slot whose numbers are used up stays empty.
        if let Some(number) = n.checked_add(1 << INDEX_BITS) {
            self.slots[index_of(n)] = Slot { number, ..Slot::default() };
            self.free.push_back(index_of(n));
        }
    }

    fn enter(&mut self, name: &str) -> u32 {
        if let Some(&n) = self.names.get(name) {
            return n;
        }
        let n = self.new_number();
        self.name(n, name);
        n
    }

    fn name(&mut self, n: u32, name: &str) {
        let name: Arc<str> = name.into();
        self.names.entry(name.clone()).or_insert(n);
        self.slots[index_of(n)].name = Some(name);
    }
}

static INSTANCES: Mutex<Vec<u64>> = Mutex::new(Vec::new());

pub(super) struct Peers {
    instance: u64,
    table: RwLock<Table>,
}

impl Peers {
    pub fn new() -> Result<Peers> {
        let instance = u64::from_ne_bytes(crate::na::secret::random()?);
        INSTANCES.lock().push(instance);
        Ok(Peers { instance, table: RwLock::default() })
    }

    /// Returns whether a peer is a class of this process, or `None` if it is not connected. Only a
    /// process that this one has connected to can imitate that, because it must know the life.
    pub fn is_of_this_process(&self, n: u32) -> Option<bool> {
        let table = self.table.read();
        let life = table.get(n).filter(|slot| !slot.links.is_empty())?.theirs;
        let lived = |&own: &u64| life.wrapping_sub(own) <= u32::MAX.into();
        Some(INSTANCES.lock().iter().any(lived))
    }

    pub fn count(&self) -> u32 {
        self.table.read().slots.len() as u32
    }

    pub fn at(&self, index: u32) -> u32 {
        self.table.read().slots.get(index as usize).map_or(index, |slot| slot.number)
    }

    /// Records that the program has looked up this address.
    pub fn look_up(&self, name: &str) -> u32 {
        let mut table = self.table.write();
        let n = table.enter(name);
        table.slots[index_of(n)].looked_up = true;
        n
    }

    pub fn is_looked_up(&self, name: &str) -> bool {
        let table = self.table.read();
        let slot = table.names.get(name).and_then(|&n| table.get(n));
        slot.is_some_and(|slot| slot.looked_up)
    }

    /// Returns the number of the peer that has proven this address. The caller must then call
    /// [`Peers::add`] or [`Peers::give_up`].
    pub fn proven(&self, name: &str) -> u32 {
        let mut table = self.table.write();
        let n = table.enter(name);
        table.slots[index_of(n)].arriving += 1;
        n
    }

    /// Returns the number of a client that connects from `from` and claims the address `name`
    /// without proof. It gets the address only if it does not listen and no such client is
    /// connected. The caller must then call [`Peers::add`].
    pub fn claimed(&self, name: &str, from: &str) -> u32 {
        let mut table = self.table.write();
        let known = |name: &str| table.names.get(name).copied();
        let n = match (known(name), known(from)) {
            (of_name, _) if name.ends_with(":0") && !of_name.is_some_and(|n| table.is_open(n)) => {
                table.enter(name)
            }
            // The port may have belonged to another client before.
            (_, Some(n)) if !table.is_open(n) => n,
            (_, Some(_)) => table.new_number(),
            (_, None) => table.enter(from),
        };
        table.slots[index_of(n)].arriving += 1;
        n
    }

    pub fn give_up(&self, n: u32) {
        let mut table = self.table.write();
        if let Some(slot) = table.get_mut(n) {
            slot.arriving = slot.arriving.saturating_sub(1);
            table.forget(n);
        }
    }

    /// Returns the life to send to the peer with this address.
    pub fn life_for(&self, name: &str) -> u64 {
        let table = self.table.read();
        let slot = table.names.get(name).and_then(|&n| table.get(n));
        self.instance.wrapping_add(slot.map_or(0, |slot| slot.losses).into())
    }

    /// Returns whether the existing connections belong to an earlier life than a new one, and must
    /// be lost before that is added. `accepted` means that the peer has made the new one.
    pub fn are_outlived(&self, n: u32, life: u64, accepted: bool) -> bool {
        let table = self.table.read();
        let Some(slot) = table.get(n) else { return false };
        // A peer connects only if it has no connection.
        let twice = accepted && slot.links.iter().any(|link| link.is_accepted());
        !slot.links.is_empty() && (slot.theirs != life || twice)
    }

    pub fn add(&self, link: &Arc<Link>, life: u64) {
        let mut table = self.table.write();
        let n = link.number();
        table.name(n, link.name());
        let slot = &mut table.slots[index_of(n)];
        slot.arriving = slot.arriving.saturating_sub(1); // 0 if this process has dialled
        slot.links.push(link.clone());
        slot.theirs = life;
    }

    pub fn connections(&self, n: u32) -> Connections {
        let table = self.table.read();
        table.get(n).map(|slot| slot.links.clone()).unwrap_or_default()
    }

    #[inline]
    pub fn open(&self, n: u32) -> Option<Arc<Link>> {
        let table = self.table.read();
        let links = &table.get(n)?.links;
        links.first().filter(|link| link.is_open()).cloned()
    }

    pub fn dialled(&self, n: u32) -> Option<Arc<str>> {
        let table = self.table.read();
        table.get(n).filter(|slot| slot.looked_up)?.name.clone()
    }

    pub fn name_of(&self, n: u32) -> Option<Arc<str>> {
        self.table.read().get(n)?.name.clone()
    }

    pub fn lose(&self, n: u32) -> Connections {
        let mut table = self.table.write();
        let Some(slot) = table.get_mut(n) else { return Connections::new() };
        let links = std::mem::take(&mut slot.links);
        if !links.is_empty() {
            slot.losses = slot.losses.wrapping_add(1);
            table.forget(n);
        }
        links
    }

    /// Drops the connections in a forked child, without ending them, unless a thread of the parent
    /// has held the lock.
    pub fn forget_all(&self) {
        if let Some(mut table) = self.table.try_write() {
            table.slots.iter_mut().for_each(|slot| slot.links.clear());
        }
    }

    pub fn all(&self) -> Vec<Arc<Link>> {
        self.table.read().slots.iter().flat_map(|slot| slot.links.iter().cloned()).collect()
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        INSTANCES.lock().retain(|&own| own != self.instance);
    }
}
