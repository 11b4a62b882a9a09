//! Reads a trace file as a stream. The reader reports each damaged part with its position and
//! continues at the next block magic. Memory use is bounded by the largest block.

use crate::event::Events;
use crate::format::{
    BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, FILE_HEADER, Fault, MAX_METADATA, MAX_PAYLOAD,
    decode_file_header,
};
use std::io::{self, Read};

/// A valid block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Position in the file.
    pub at: u64,
    /// The header.
    pub header: BlockHeader,
    /// The encoded events.
    pub payload: Vec<u8>,
}

impl Block {
    /// Decodes the events. The checksum is correct, so an error means a faulty encoder.
    pub fn events(&self) -> Events<'_> {
        Events::new(&self.payload, self.header.first_time)
    }
}

/// A part of a file that is not a valid block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Position in the file.
    pub at: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// The reason. A killed job leaves `Truncated` at the end of its file.
    pub fault: Fault,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {} are lost: {}", self.bytes, self.at, self.fault)
    }
}

/// The next part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A block.
    Block(Block),
    /// A damaged part. Blocks may follow.
    Damage(Damage),
}

/// Reads one file.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    /// Bytes read; those before `start` are used up.
    held: Vec<u8>,
    start: usize,
    /// Position of `held[start]` in the file.
    at: u64,
    version: u32,
    metadata: String,
    ended: bool,
}

/// The reason why a file cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The file cannot be read.
    Io(io::Error),
    /// The header is invalid.
    Fault(Fault),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Io(error) => error.fmt(f),
            OpenError::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Io(error)
    }
}

impl<R: Read> Reader<R> {
    /// Reads the file header. The reader buffers, so `from` need not.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not start with a valid header.
    pub fn open(from: R) -> Result<Reader<R>, OpenError> {
        let mut reader = Reader {
            from,
            held: Vec::new(),
            start: 0,
            at: 0,
            version: 0,
            metadata: String::new(),
            ended: false,
        };
        let mut want = FILE_HEADER;
        loop {
            reader.fill(want)?;
            match decode_file_header(reader.rest()) {
                Ok(header) => {
                    let (version, length) = (header.version, header.length);
                    reader.metadata = header.metadata.to_string();
                    reader.version = version;
                    reader.skip(length);
                    return Ok(reader);
                }
                Err(Fault::Truncated) if !reader.ended && want == FILE_HEADER => {
                    want = FILE_HEADER + MAX_METADATA + 4;
                }
                Err(fault) => return Err(OpenError::Fault(fault)),
            }
        }
    }

    /// Returns the version of the format.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the description of the rank, the JSON of [`crate::metadata::Metadata`].
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// Returns the next part, or `None` at the end of the file.
    ///
    /// # Errors
    /// Returns the errors of the underlying reader.
    pub fn next_part(&mut self) -> io::Result<Option<Part>> {
        self.fill(BLOCK_HEADER)?;
        if self.rest().is_empty() {
            return Ok(None);
        }
        let fault = match self.block()? {
            Ok(block) => return Ok(Some(Part::Block(block))),
            Err(fault) => fault,
        };
        let at = self.at;
        self.seek_magic()?;
        Ok(Some(Part::Damage(Damage { at, bytes: self.at - at, fault })))
    }

    /// Reads the block at the current position. Advances only if it is valid.
    fn block(&mut self) -> io::Result<Result<Block, Fault>> {
        let header = match BlockHeader::decode(self.rest()) {
            Ok(header) => header,
            Err(fault) => return Ok(Err(fault)),
        };
        let whole = BLOCK_HEADER + header.payload_bytes;
        self.fill(whole)?;
        let payload = &self.rest()[BLOCK_HEADER..whole.min(self.rest().len())];
        if let Err(fault) = header.check(payload) {
            return Ok(Err(fault));
        }
        let block = Block { at: self.at, header, payload: payload.to_vec() };
        self.skip(whole);
        Ok(Ok(block))
    }

    /// Advances by at least one byte, to the next magic or to the end of the file.
    fn seek_magic(&mut self) -> io::Result<()> {
        self.skip(1);
        loop {
            self.fill(MAX_PAYLOAD)?;
            let rest = self.rest();
            if let Some(found) = rest.windows(8).position(|bytes| bytes == BLOCK_MAGIC) {
                self.skip(found);
                return Ok(());
            }
            if self.ended {
                self.skip(rest.len());
                return Ok(());
            }
            self.skip(rest.len() - 7);
        }
    }

    fn rest(&self) -> &[u8] {
        &self.held[self.start..]
    }

    fn skip(&mut self, bytes: usize) {
        self.start += bytes;
        self.at += bytes as u64;
    }

    /// Buffers at least `want` bytes unless the file ends.
    fn fill(&mut self, want: usize) -> io::Result<()> {
        if self.rest().len() >= want || self.ended {
            return Ok(());
        }
        self.held.drain(..self.start);
        self.start = 0;
        let missing = want.max(64 << 10) - self.held.len();
        let read = (&mut self.from).take(missing as u64).read_to_end(&mut self.held)?;
        self.ended = read < missing;
        Ok(())
    }
}
