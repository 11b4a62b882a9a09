//! Index of the blocks of a file.
//!
//! Only block headers and the blocks of the file's writer (names, segments, clock samples) are
//! read. If a header is invalid, the search continues at the next magic number. If the block before
//! it is damaged too, the search restarts in that block, because its length cannot be trusted.

use portolan_trace_format::alignment::Sample;
use portolan_trace_format::event::{Event, Events, SegmentKind, Usage};
use portolan_trace_format::format::{
    BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, FILE_HEADER, Fault, MAX_METADATA, Role, crc,
    decode_file_header,
};
use portolan_trace_format::metadata::Metadata;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A block of a file, without its events.
#[derive(Debug, Clone, Copy)]
pub struct BlockRef {
    pub at: u64,
    pub bytes: u32,
    pub events: u32,
    pub thread: u32,
    pub role: Role,
    pub checksum: u32,
    pub first: u64,
    pub last: u64,
}

/// A return address, relative to the start of its module, or a source line.
#[derive(Debug, Clone, Copy)]
pub struct SiteAddress {
    pub caller: Option<u64>,
    /// String that names the file of the module.
    pub module: u64,
    pub address: u64,
}

/// Contents of a file that are known before its events are read.
#[derive(Debug)]
pub struct Index {
    pub meta: Metadata,
    /// Whether the file ends where its writer closed it. Unknown in version 1 of the format.
    pub complete: Option<bool>,
    /// Whether its format has MPI calls of the program.
    pub has_mpi: bool,
    pub blocks: Vec<BlockRef>,
    pub strings: HashMap<u64, String>,
    /// Kinds of the segments, by segment number.
    pub segments: HashMap<u64, SegmentKind>,
    pub sites: HashMap<u64, SiteAddress>,
    pub samples: Vec<Sample>,
    /// The first and the last record of the processor use, each with its time.
    pub usage: Option<[(u64, Usage); 2]>,
    pub dropped: u64,
    pub damages: Vec<String>,
}

/// Number of bytes read at once in the search for a block.
const STEP: usize = 1 << 20;

struct SizedFile {
    file: File,
    length: u64,
}

impl SizedFile {
    /// Reads `most` bytes at an offset, or fewer at the end of the file.
    fn bytes(&self, at: u64, most: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; most.min(self.length.saturating_sub(at) as usize)];
        self.file.read_exact_at(&mut bytes, at).map_err(|e| e.to_string())?;
        Ok(bytes)
    }

    /// Returns the offset of the next magic number at or after `from`, or the length of the file.
    fn magic(&self, mut from: u64) -> Result<u64, String> {
        loop {
            let bytes = self.bytes(from, STEP)?;
            if let Some(found) = bytes.windows(8).position(|w| w == BLOCK_MAGIC) {
                return Ok(from + found as u64);
            }
            if bytes.len() < STEP {
                return Ok(self.length);
            }
            from += (bytes.len() - 7) as u64;
        }
    }
}

impl Index {
    /// Reads the index of a file. Fails if the file cannot be read or is not a trace.
    pub fn read(path: &Path) -> Result<Index, String> {
        let file = File::open(path).map_err(|e| e.to_string())?;
        let length = file.metadata().map_err(|e| e.to_string())?.len();
        let source = SizedFile { file, length };
        let mut head = source.bytes(0, 64 << 10)?;
        if decode_file_header(&head) == Err(Fault::Truncated) {
            head = source.bytes(0, FILE_HEADER + MAX_METADATA + 4)?;
        }
        let header = decode_file_header(&head).map_err(|fault| fault.to_string())?;
        let meta =
            serde_json::from_str(header.metadata).map_err(|e| format!("its metadata: {e}"))?;
        let mut index = Index {
            meta,
            complete: (header.version > 1).then_some(false),
            has_mpi: header.version > 2,
            blocks: Vec::new(),
            strings: HashMap::new(),
            segments: HashMap::new(),
            sites: HashMap::new(),
            samples: Vec::new(),
            usage: None,
            dropped: 0,
            damages: Vec::new(),
        };
        index.scan(&source, header.length as u64)?;
        Ok(index)
    }

    fn scan(&mut self, source: &SizedFile, mut at: u64) -> Result<(), String> {
        let mut next: HashMap<u32, u32> = HashMap::new();
        while at < source.length {
            let head = match BlockHeader::decode(&source.bytes(at, BLOCK_HEADER)?) {
                Ok(head) => head,
                Err(fault) => {
                    at = self.search(source, at, fault)?;
                    continue;
                }
            };
            let end = at + (BLOCK_HEADER + head.payload_bytes) as u64;
            if end > source.length {
                // The block extends past the end of the file. A later block can begin inside it
                // only if bytes were lost.
                at = self.search(source, at, Fault::Truncated)?;
                continue;
            }
            let lost = head.sequence.saturating_sub(*next.get(&head.thread).unwrap_or(&0));
            if lost > 0 {
                self.damages.push(format!(
                    "{lost} blocks of its thread {} before byte {at} are missing",
                    head.thread
                ));
            }
            next.insert(head.thread, head.sequence.saturating_add(1));
            self.dropped += head.dropped;
            let block = BlockRef {
                at,
                bytes: head.payload_bytes as u32,
                events: head.events,
                thread: head.thread,
                role: head.role,
                checksum: head.checksum,
                first: head.first_time,
                last: head.last_time,
            };
            if head.role == Role::Writer {
                self.define(source, &block)?;
            }
            self.blocks.push(block);
            at = end;
        }
        Ok(())
    }

    /// Skips bytes that are not a block and records the damage. Returns where to continue.
    fn search(&mut self, source: &SizedFile, at: u64, fault: Fault) -> Result<u64, String> {
        let mut from = at;
        if let Some(before) = self.blocks.last()
            && before.at + BLOCK_HEADER as u64 + u64::from(before.bytes) == at
        {
            let payload = source.bytes(before.at + BLOCK_HEADER as u64, before.bytes as usize)?;
            if crc(&payload) != before.checksum {
                from = before.at;
                self.blocks.pop();
            }
        }
        let next = source.magic(from + 1)?;
        self.damages.push(format!("{} bytes at {from} are lost: {fault}", next - from));
        Ok(next)
    }

    fn define(&mut self, source: &SizedFile, block: &BlockRef) -> Result<(), String> {
        let payload = source.bytes(block.at + BLOCK_HEADER as u64, block.bytes as usize)?;
        if crc(&payload) != block.checksum {
            self.damages.push(format!(
                "a block of {} definitions at {} is damaged and skipped",
                block.events, block.at
            ));
            return Ok(());
        }
        for event in Events::new(&payload, block.first).map_while(Result::ok) {
            match event {
                Event::String { string, text } => {
                    self.strings.insert(string, text.to_string());
                }
                Event::Segment { segment, kind, .. } => {
                    self.segments.insert(segment, kind);
                }
                Event::Site { site, caller, module, address } => {
                    self.sites.insert(site, SiteAddress { caller, module, address });
                }
                Event::Clock { time, offset, bound } => {
                    self.samples.push(Sample { time, offset, bound });
                }
                Event::Usage { time, usage } => {
                    self.usage.get_or_insert([(time, usage); 2])[1] = (time, usage);
                }
                Event::End { .. } => self.complete = Some(true),
                _ => {}
            }
        }
        Ok(())
    }
}
