//! A rank's trace, as a check reads it.

use crate::child::directory;
use portolan_trace_format::event::{Call, Event, Events, PathTaken};
use portolan_trace_format::format::{Role, file_name};
use portolan_trace_format::metadata::Metadata;
use portolan_trace_format::read::{Part, Reader};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

pub fn trace_dir() -> PathBuf {
    directory().join("trace")
}

pub struct Read {
    pub metadata: Metadata,
    pub threads: BTreeMap<u32, (Role, Vec<Event<'static>>)>,
    pub strings: BTreeMap<u64, String>,
    pub dropped: u64,
    pub damage: Vec<String>,
}

pub fn read(path: &std::path::Path) -> Read {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut reader = Reader::open(file).expect("the head of a trace");
    let metadata = serde_json::from_str(reader.metadata()).expect("the metadata is JSON");
    let mut read = Read {
        metadata,
        threads: BTreeMap::new(),
        strings: BTreeMap::new(),
        dropped: 0,
        damage: Vec::new(),
    };
    let mut next = BTreeMap::new();
    while let Some(part) = reader.next_part().expect("the file can be read") {
        let block = match part {
            Part::Block(block) => block,
            Part::Damage(damage) => {
                read.damage.push(damage.to_string());
                continue;
            }
        };
        let header = block.header;
        let number = next.entry(header.thread).or_insert(0u32);
        assert_eq!(header.sequence, *number, "a block of thread {} is missing", header.thread);
        *number += 1;
        read.dropped += header.dropped;
        let of = read.threads.entry(header.thread).or_insert((header.role, Vec::new()));
        let mut events = 0;
        // Leaked on purpose: the process ends soon.
        let payload: &'static [u8] = Vec::leak(block.payload);
        for event in Events::new(payload, header.first_time) {
            events += 1;
            match event.expect("an event of a whole block") {
                Event::String { string, text } => {
                    read.strings.insert(string, text.to_string());
                }
                event => {
                    if let Event::Call { begin, duration, .. } = event {
                        assert!(begin + duration <= header.last_time);
                    }
                    of.1.push(event);
                }
            }
        }
        assert_eq!(events, header.events);
    }
    read
}

impl Read {
    pub fn is_complete(&self) -> bool {
        self.events().any(|event| matches!(event, Event::End { .. }))
    }

    /// Reads this rank's trace, and checks that it is complete and not damaged.
    pub fn own(rank: usize) -> Read {
        let read = read(&trace_dir().join(file_name(rank)));
        assert_eq!(read.metadata.rank, rank as u64);
        assert_eq!(read.damage, [""; 0]);
        assert!(read.is_complete());
        read
    }

    pub fn events(&self) -> impl Iterator<Item = &Event<'static>> {
        self.threads.values().flat_map(|(_, events)| events)
    }

    /// Returns the number of calls of this kind to this rank (to all ranks if `to` is `None`),
    /// their paths, and their bytes.
    pub fn calls(&self, wanted: Call, to: Option<usize>) -> (u64, Vec<PathTaken>, u64) {
        let (mut number, mut paths, mut moved) = (0, Vec::new(), 0);
        for event in self.events() {
            if let Event::Call { call, peer, path, bytes, .. } = *event
                && call == wanted
                && (to.is_none() || peer == to.map(|to| to as u32))
            {
                number += 1;
                moved += bytes;
                paths.push(path);
            }
        }
        paths.sort_unstable();
        paths.dedup();
        (number, paths, moved)
    }

    /// Checks that any two events of a thread are nested or disjoint.
    pub fn check_nesting(&self) {
        for (role, events) in self.threads.values().filter(|(role, _)| *role != Role::Writer) {
            let mut ended: Vec<(u64, u64)> = Vec::new();
            for event in events {
                let (begin, end) = match *event {
                    Event::Call { begin, duration, .. }
                    | Event::Wait { begin, duration, .. }
                    | Event::Served { begin, duration, .. } => (begin, begin + duration),
                    _ => continue,
                };
                // Drop the events that this one contains. Clock ticks may be rounded either way.
                while ended.last().is_some_and(|&(b, _)| b + 2 >= begin) {
                    ended.pop();
                }
                if let Some(&(b, e)) = ended.last() {
                    assert!(e <= begin + 2, "{role:?}: {b}..{e} and {begin}..{end} cross");
                }
                ended.push((begin, end));
            }
        }
    }
}
