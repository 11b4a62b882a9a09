//! The peers of a class: their addresses, numbers and connections.
//!
//! A peer has one number, whether this process has looked its address up, the peer has connected, or
//! both. Two processes that connect to each other at the same time have two connections: both are
//! read, and the older one is written, so messages stay in order.
//!
//! A peer is lost as a whole: if one of its connections ends, this side ends the other one too. Each side
//! counts how often it has lost the other one, and adds the count to a random number of its class.
//! The sum, its *life*, is part of every greeting. A connection with another life than the existing
//! ones therefore comes from a successor at the same address, or from a peer that has given the
//! existing ones up, and replaces them.
//!
//! Invariant: a name of `names` is looked up, proven, or the claim of a client that does not listen
//! and was the first one with this name. Nobody else can take the number of such a peer.

use super::link::Link;
use crate::failure::Result;
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// The connections of a peer: none, one, or two for a short time.
pub(super) type Connections = SmallVec<[Arc<Link>; 1]>;

#[derive(Default)]
struct Slot {
    links: Connections,
    name: Option<Arc<str>>,
    /// Whether this process has looked the address up, and thus may connect again.
    looked_up: bool,
    /// How often this process has lost the peer.
    losses: u32,
    /// The life of the peer that the connections belong to.
    theirs: u64,
}

impl Slot {
    fn is_open(&self) -> bool {
        self.links.iter().any(|link| link.is_open())
    }
}

#[derive(Default)]
struct Table {
    slots: Vec<Slot>,
    names: HashMap<Arc<str>, u32>,
}

impl Table {
    fn new_number(&mut self) -> u32 {
        self.slots.push(Slot::default());
        (self.slots.len() - 1) as u32
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
        self.slots[n as usize].name = Some(name);
    }
}

/// What a new connection has to displace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// The connection can be added.
    Free,
    /// The existing connections belong to an earlier life of the peer.
    Outlived,
}

/// The peers of a class.
pub(super) struct Peers {
    instance: u64,
    table: RwLock<Table>,
}

impl Peers {
    /// Creates an empty table.
    ///
    /// # Errors
    /// Fails if the system has no random bytes.
    pub fn new() -> Result<Peers> {
        let instance = u64::from_ne_bytes(crate::na::secret::random()?);
        Ok(Peers { instance, table: RwLock::default() })
    }

    /// Returns the number of peers that there have been.
    pub fn count(&self) -> u32 {
        self.table.read().slots.len() as u32
    }

    /// Returns the number of the peer with this address, which the program has looked up.
    pub fn look_up(&self, name: &str) -> u32 {
        let mut table = self.table.write();
        let n = table.enter(name);
        table.slots[n as usize].looked_up = true;
        n
    }

    /// Returns the number of the peer that has this address and has proven it.
    pub fn proven(&self, name: &str) -> u32 {
        self.table.write().enter(name)
    }

    /// Returns the number of a client that claims the address `name`, without proof, and connects
    /// from `from`. It gets the address only if it does not listen and no such client is connected.
    pub fn claimed(&self, name: &str, from: &str) -> u32 {
        let mut table = self.table.write();
        let taken = |n: &u32| table.slots[*n as usize].is_open();
        if name.ends_with(":0") && !table.names.get(name).is_some_and(taken) {
            return table.enter(name);
        }
        // The port of a client may have belonged to another one.
        match table.names.get(from) {
            Some(n) if !taken(n) => *n,
            Some(_) => table.new_number(),
            None => table.enter(from),
        }
    }

    /// Returns the life of this process that the peer with this address gets to know.
    pub fn life_for(&self, name: &str) -> u64 {
        let table = self.table.read();
        let slot = table.names.get(name).and_then(|n| table.slots.get(*n as usize));
        self.instance.wrapping_add(slot.map_or(0, |slot| slot.losses).into())
    }

    /// Returns whether a connection to peer `n` in this life can be added. `accepted` means that the
    /// peer has made it.
    pub fn room(&self, n: u32, life: u64, accepted: bool) -> Room {
        let table = self.table.read();
        let Some(slot) = table.slots.get(n as usize) else { return Room::Free };
        // A peer connects only if it has no connection.
        let twice = accepted && slot.links.iter().any(|link| link.is_accepted());
        match slot.links.is_empty() || slot.theirs == life && !twice {
            true => Room::Free,
            false => Room::Outlived,
        }
    }

    /// Adds a connection to its peer.
    pub fn add(&self, link: &Arc<Link>, life: u64) {
        let mut table = self.table.write();
        let n = link.number();
        table.name(n, link.name());
        let slot = &mut table.slots[n as usize];
        slot.links.push(link.clone());
        slot.theirs = life;
    }

    /// Returns the connections of a peer.
    pub fn connections(&self, n: u32) -> Connections {
        let table = self.table.read();
        table.slots.get(n as usize).map(|slot| slot.links.clone()).unwrap_or_default()
    }

    /// Returns the connection for messages to a peer.
    #[inline]
    pub fn open(&self, n: u32) -> Option<Arc<Link>> {
        let table = self.table.read();
        let links = &table.slots.get(n as usize)?.links;
        links.first().filter(|link| link.is_open()).cloned()
    }

    /// Returns the address of a peer that was looked up.
    pub fn dialled(&self, n: u32) -> Option<Arc<str>> {
        let table = self.table.read();
        table.slots.get(n as usize).filter(|slot| slot.looked_up)?.name.clone()
    }

    /// Returns the address of a peer, unless it is gone.
    pub fn name_of(&self, n: u32) -> Option<Arc<str>> {
        self.table.read().slots.get(n as usize)?.name.clone()
    }

    /// Removes the connections of a peer. Its address is forgotten unless it was looked up.
    pub fn lose(&self, n: u32) -> Connections {
        let mut table = self.table.write();
        let table = &mut *table;
        let Some(slot) = table.slots.get_mut(n as usize) else { return Connections::new() };
        let links = std::mem::take(&mut slot.links);
        if !links.is_empty() {
            slot.losses = slot.losses.wrapping_add(1);
            if !slot.looked_up
                && let Some(name) = slot.name.take()
                && table.names.get(&name) == Some(&n)
            {
                table.names.remove(&name);
            }
        }
        links
    }

    /// Returns all connections.
    pub fn all(&self) -> Vec<Arc<Link>> {
        self.table.read().slots.iter().flat_map(|slot| slot.links.iter().cloned()).collect()
    }
}
