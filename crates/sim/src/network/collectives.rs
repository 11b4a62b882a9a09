//! Collectives. A rank gets its result once all ranks that it depends on have contributed.

use super::{Collective, Event, Kind};
use crate::machine::Machine;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Machine {
    /// Frees a communicator on one rank. The last rank to free it removes it.
    pub fn free_context(&mut self, rank: usize, id: u32) {
        self.members(id);
        let posted = self.network.mail[rank].posted.remove(&id);
        if posted.is_some_and(|posted| !posted.is_empty()) {
            self.fail(&format!("communicator {id} is freed while a receive waits on it"));
        }
        let context = self.network.contexts.get_mut(&id).expect("looked at above");
        context.freed += 1;
        if context.freed < context.members.len() {
            return;
        }
        self.network.contexts.remove(&id);
        for rank in 0..self.ranks {
            let left = self.network.mail[rank].here.remove(&id);
            if let Some(message) = left.and_then(|mut here| here.pop_front())
                && !self.behaviour.gives_up
            {
                self.fail(&format!(
                    "communicator {id} is freed, but rank {rank} never received {message:?}"
                ));
            }
        }
    }

    /// Begins the creation of a communicator by some ranks of `parent`. Returns the context on
    /// which these ranks meet, which no others use.
    pub fn meeting(&mut self, parent: u32, tag: i32, members: &[usize]) -> u32 {
        let key = (parent, tag, members.to_vec());
        if let Some((context, entered)) = self.network.creations.get_mut(&key) {
            let context = *context;
            *entered += 1;
            if *entered == members.len() {
                self.network.creations.remove(&key);
            }
            return context;
        }
        let context = self.network.new_context(members.to_vec());
        if members.len() > 1 {
            self.network.creations.insert(key, (context, 1));
        }
        context
    }

    /// Begins a collective: contributes `give`, gets the result at `to`. Returns the request.
    pub fn enter(&mut self, rank: usize, id: u32, kind: Kind, give: Vec<u8>, to: *mut u8) -> u32 {
        let name = kind.name();
        let request = self.network.new_request((rank, id), name, to as usize, give.len());
        let traffic = &mut self.network.traffic[rank];
        traffic.collectives += 1;
        self.trace("collective", rank as u64, u64::from(id));
        self.members(id);
        let context = self.network.contexts.get_mut(&id).expect("looked at above");
        let Some(place) = context.place(rank) else {
            self.fail(&format!("{name} on a communicator of which the rank is no member"));
        };
        let (index, len, size) = (context.begun[place], give.len(), context.members.len());
        context.begun[place] += 1;
        let new = || Collective {
            kind: kind.clone(),
            len,
            first: rank,
            parts: BTreeMap::new(),
            entered: 0,
            result: None,
        };
        let collective = context.collectives.entry(index).or_insert_with(new);
        if collective.kind.name() != name || collective.len != len {
            let why = format!(
                "{name} of {len} bytes where rank {} has begun {} of {}",
                collective.first,
                collective.kind.name(),
                collective.len
            );
            self.fail(&why);
        }
        collective.entered += 1;
        let all = collective.entered == size;
        collective.parts.insert(place, (give, request));
        let parts = match &collective.kind {
            Kind::Broadcast { root } | Kind::Scatter { root } => {
                if place == *root {
                    let (bytes, _) = &collective.parts[root];
                    collective.result = Some(Arc::new(bytes.clone()));
                }
                collective.result.is_some()
            }
            Kind::Reduce { root: Some(root), .. } | Kind::Gather { root } if !all => {
                // A rank that only contributes is done.
                if place != *root {
                    let part = collective.parts.get_mut(&place).expect("inserted above");
                    let request = std::mem::replace(&mut part.1, 0);
                    self.happen_later(rank, Event::Done { request });
                }
                return request;
            }
            _ => all,
        };
        if parts {
            self.complete(id, index, size, all);
        }
        request
    }

    /// Sends the result of a collective to the members that have entered, once it is known.
    fn complete(&mut self, id: u32, index: u64, size: usize, all: bool) {
        let context = self.network.contexts.get_mut(&id).expect("a collective is on it");
        let members = context.members.clone();
        let mut collective = context.collectives.remove(&index).expect("it was entered");
        let parts = std::mem::take(&mut collective.parts);
        let (len, kind) = (collective.len, collective.kind.clone());
        let result = match (&collective.result, &kind) {
            (Some(result), _) => result.clone(),
            (None, Kind::Allgather | Kind::Gather { .. }) => {
                Arc::new(parts.values().flat_map(|(bytes, _)| bytes.iter().copied()).collect())
            }
            (None, Kind::Reduce { combine, count, .. }) => {
                let mut all = parts.values();
                let mut sum = all.next().map(|(bytes, _)| bytes.clone()).unwrap_or_default();
                all.for_each(|(bytes, _)| combine(bytes.as_ptr(), sum.as_mut_ptr(), *count));
                Arc::new(sum)
            }
            (None, Kind::Scan { exclusive, combine, count }) => {
                let (mut rows, mut sum) = (Vec::new(), Vec::new());
                for (place, (bytes, _)) in &parts {
                    let before = std::mem::replace(&mut sum, bytes.clone());
                    if *place > 0 {
                        combine(before.as_ptr(), sum.as_mut_ptr(), *count);
                    }
                    rows.push(if *exclusive && *place > 0 { before } else { sum.clone() });
                }
                Arc::new(rows.concat())
            }
            (None, Kind::Exchange) => {
                let column = |place| parts.values().map(move |(bytes, _)| (place, bytes));
                let each = len / size;
                let piece =
                    |(place, bytes): (usize, &Vec<u8>)| bytes[place * each..][..each].to_vec();
                Arc::new((0..size).flat_map(column).flat_map(piece).collect())
            }
            (None, Kind::Dup) => {
                let made = self.network.new_context(members.to_vec());
                Arc::new(made.to_ne_bytes().to_vec())
            }
            (None, Kind::Create) => Arc::new(id.to_ne_bytes().to_vec()),
            (None, Kind::Barrier | Kind::Broadcast { .. } | Kind::Scatter { .. }) => {
                Arc::new(Vec::new())
            }
        };
        for (place, (_, request)) in parts {
            if request == 0 {
                continue;
            }
            let (from, len) = match &kind {
                Kind::Allgather => (0, len * size),
                Kind::Dup | Kind::Create => (0, 4),
                Kind::Barrier => (0, 0),
                Kind::Broadcast { root } if *root == place => (0, 0),
                Kind::Reduce { root: Some(root), .. } if *root != place => (0, 0),
                Kind::Broadcast { .. } | Kind::Reduce { .. } => (0, len),
                Kind::Gather { root } if *root != place => (0, 0),
                Kind::Gather { .. } => (0, len * size),
                Kind::Scan { exclusive: true, .. } if place == 0 => (0, 0),
                Kind::Scan { .. } | Kind::Exchange => (place * len, len),
                Kind::Scatter { .. } => (place * (len / size), len / size),
            };
            let result = result.clone();
            self.happen_later(members[place], Event::Collect { request, result, from, len });
        }
        if !all {
            let context = self.network.contexts.get_mut(&id).expect("as above");
            context.collectives.insert(index, collective);
        }
    }
}
