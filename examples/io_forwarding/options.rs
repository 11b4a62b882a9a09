//! The options, and the signal that ends the job early.

use crate::Roles;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

pub const USAGE: &str = "usage: io_forwarding [--dir DIR] [--size BYTES] [--files N] [--io-ranks N] \
                         [--segment BYTES] [--chunk BYTES] [--buffer BYTES] [--window N]\n       \
                         io_forwarding serve --address FILE [--network NAME] [OPTIONS]\n       \
                         io_forwarding client|end --address FILE [OPTIONS]";

#[derive(Debug, Clone)]
pub struct Options {
    pub dir: Option<PathBuf>,
    pub size: usize,
    pub files: usize,
    pub io_ranks: Option<usize>,
    pub segment: usize,
    pub chunk: usize,
    pub buffer: usize,
    pub window: usize,
    pub network: String,
    pub address: Option<PathBuf>,
}

impl Options {
    /// Parses the command line. Returns `None` if help is requested.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
        let mut options = Options {
            dir: None,
            size: 16 << 20,
            files: 2,
            io_ranks: None,
            segment: 64 << 10,
            chunk: 1 << 20,
            buffer: 8 << 20,
            window: 2,
            network: "na+sm".into(),
            address: None,
        };
        while let Some(word) = words.next() {
            if word == "-h" || word == "--help" {
                return Ok(None);
            }
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            let number = |text: String| positive(&word, &text);
            match word.as_str() {
                "--dir" => options.dir = Some(value()?.into()),
                "--size" => options.size = number(value()?)?,
                "--files" => options.files = number(value()?)?,
                "--io-ranks" => options.io_ranks = Some(number(value()?)?),
                "--segment" => options.segment = number(value()?)?,
                "--chunk" => options.chunk = number(value()?)?,
                "--buffer" => options.buffer = number(value()?)?,
                "--network" => options.network = value()?,
                "--address" => options.address = Some(value()?.into()),
                "--window" => options.window = number(value()?)?,
                _ => return Err(format!("there is no option '{word}'")),
            }
        }
        if options.chunk > options.buffer {
            let Options { chunk, buffer, .. } = options;
            return Err(format!("a chunk of {chunk} bytes does not fit a buffer of {buffer}"));
        }
        if options.size / options.segment > 1 << 20 {
            return Err(format!("{} bytes in too many segments; make them longer", options.size));
        }
        Ok(Some(options))
    }

    /// Returns a description of the job in one line.
    pub fn describe(&self, roles: &Roles) -> String {
        format!(
            "{} compute ranks, I/O ranks {:?}: {} files of {} bytes for each compute rank, chunks \
             of {} bytes through a buffer of {}",
            roles.clients.len(),
            roles.servers,
            self.files,
            self.size,
            self.chunk,
            self.buffer
        )
    }
}

/// Parses a positive number with an optional suffix K, M or G.
fn positive(option: &str, text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: Option<usize> = digits.parse().ok();
    let number = number.and_then(|n| n.checked_mul(1 << shift)).filter(|&n| n > 0);
    number.ok_or_else(|| format!("'{text}' is no number for {option}"))
}

static TERMINATED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    TERMINATED.store(true, Ordering::Relaxed);
}

/// Makes SIGTERM only set a flag from now on.
pub fn watch_sigterm() {
    let note: extern "C" fn(libc::c_int) = note;
    // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
    unsafe { libc::signal(libc::SIGTERM, note as libc::sighandler_t) };
}

pub fn terminated() -> bool {
    TERMINATED.load(Ordering::Relaxed)
}
