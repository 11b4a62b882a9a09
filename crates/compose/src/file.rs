//! The file format of compositions: a sequence of records, one for each composition. All numbers
//! are little-endian. A record begins with this head:
//!
//! | bytes | contents |
//! |---|---|
//! | 0..8 | `PORTOCMP` |
//! | 8..12 | version, [`VERSION`] |
//! | 12..16 | kind: 1 simple, 2 merged, 3 mapped |
//! | 16..20, 20..24 | the rank that stored it, and the number of ranks |
//! | 24..32 | length of the body in bytes |
//! | 32..40 | CRC-64 of the body |
//! | 40..48 | CRC-64 of bytes 0..40 |
//!
//! The body is a table of segment parts, followed by the runs and shapes for each target. Their
//! addresses consist of a row of the table and an offset ([`super::store`]).
//!
//! **File names.** A file number and the rank select a file in `PORTOLAN_COMPOSE_DIR`. The first
//! composition that a composer stores under a number replaces the file, and later ones are
//! appended. Loading reads the records in order.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use super::composition::CompositionKind;
use portolan_base::error::{Result, fail, reserve};
use portolan_engine::runtime::Engine;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The version that is written, and the only version that is accepted.
pub const VERSION: u32 = 2;
const MAGIC: &[u8; 8] = b"PORTOCMP";
const HEAD: usize = 48;

/// Returns the CRC-64/XZ of some bytes.
pub fn crc(bytes: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Xz, bytes)
}

/// A complete record whose checksums are correct.
#[derive(Debug)]
pub struct Record {
    pub kind: CompositionKind,
    pub body: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub rank: usize,
    pub ranks: usize,
}

/// Encodes a record. Fails with `Memory` if it cannot be allocated.
pub fn encode(place: Place, kind: CompositionKind, body: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    reserve(&mut out, HEAD.saturating_add(body.len()), "parts of a record")?;
    out.extend_from_slice(MAGIC);
    for number in [VERSION, kind.code(), place.rank as u32, place.ranks as u32] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(&crc(body).to_le_bytes());
    out.extend_from_slice(&crc(&out[..40]).to_le_bytes());
    out.extend_from_slice(body);
    Ok(out)
}

fn u32_at(head: &[u8; HEAD], at: usize) -> u32 {
    u32::from_le_bytes(*head[at..].first_chunk().expect("four bytes of a head"))
}

fn u64_at(head: &[u8; HEAD], at: usize) -> u64 {
    u64::from_le_bytes(*head[at..].first_chunk().expect("eight bytes of a head"))
}

/// Reads the record at the current position, `left` bytes before the end of the file. Returns it
/// and its length in bytes, including the head. Fails with `Argument` if the bytes are not a
/// record, or if the record is damaged or has another version, rank or job size. Fails with
/// `Memory` if the body cannot be allocated.
pub fn read(file: &mut impl Read, left: u64, place: Place, name: &str) -> Result<(Record, u64)> {
    let mut head = [0u8; HEAD];
    if left < HEAD as u64 {
        fail!(Argument, "{name} ends in the middle of a record: it is damaged");
    }
    if let Err(e) = file.read_exact(&mut head) {
        fail!(Argument, "cannot read {name}: {e}");
    }
    if &head[..8] != MAGIC {
        fail!(Argument, "{name} is not a file of compositions, or is damaged");
    }
    let version = u32_at(&head, 8);
    if version != VERSION {
        fail!(
            Argument,
            "{name} has version {version}, but this library reads version {VERSION}: \
             store its compositions again"
        );
    }
    if crc(&head[..40]) != u64_at(&head, 40) {
        fail!(Argument, "the head of a record of {name} is damaged: its checksum is wrong");
    }
    let kind = match u32_at(&head, 12) {
        1 => CompositionKind::Simple,
        2 => CompositionKind::Merged,
        3 => CompositionKind::Mapped,
        other => fail!(Argument, "{name} holds a composition of an unknown kind, {other}"),
    };
    let stored = Place { rank: u32_at(&head, 16) as usize, ranks: u32_at(&head, 20) as usize };
    if stored != place {
        fail!(
            Argument,
            "{name} was stored by rank {} of {}, but this is rank {} of {}",
            stored.rank,
            stored.ranks,
            place.rank,
            place.ranks
        );
    }
    let bytes = u64_at(&head, 24);
    let whole = bytes.checked_add(HEAD as u64).filter(|&whole| whole <= left);
    let (Some(whole), Ok(len)) = (whole, usize::try_from(bytes)) else {
        fail!(Argument, "{name} ends in the middle of a record: it is damaged");
    };
    let mut body = Vec::new();
    reserve(&mut body, len, "parts of a record")?;
    body.resize(len, 0u8);
    if let Err(e) = file.read_exact(&mut body) {
        fail!(Argument, "cannot read {name}: {e}");
    }
    if crc(&body) != u64_at(&head, 32) {
        fail!(Argument, "a record of {name} is damaged: its checksum is wrong");
    }
    Ok((Record { kind, body }, whole))
}

#[derive(Debug, Default, Clone, Copy)]
struct Known {
    begun: bool,
    read_to: u64,
}

/// The files that a composer has used, by number.
#[derive(Debug, Default)]
pub struct Files {
    known: HashMap<i32, Known>,
}

fn path_of(dir: &Path, number: i32, place: Place) -> Result<PathBuf> {
    if number < 0 {
        fail!(Argument, "file number {number} is negative");
    }
    Ok(dir.join(format!("compose-{number}.{}", place.rank)))
}

pub fn place_of(engine: &Engine) -> Place {
    Place { rank: engine.rank(), ranks: engine.size() }
}

fn append(path: &Path, record: &[u8]) -> std::io::Result<()> {
    let mut file = File::options().append(true).create(true).open(path)?;
    let before = file.metadata()?.len();
    file.write_all(record).inspect_err(|_| {
        // A part of a record would make the records after it unreadable.
        let _ = file.set_len(before);
    })
}

fn replace(path: &Path, record: &[u8]) -> std::io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    std::fs::write(&new, record).and_then(|()| std::fs::rename(&new, path)).inspect_err(|_| {
        let _ = std::fs::remove_file(&new);
    })
}

impl Files {
    /// Writes a record. If this fails, the file keeps its old contents. Fails with `Argument` if
    /// the number is negative or the file cannot be written.
    pub fn store(&mut self, dir: &Path, number: i32, place: Place, record: &[u8]) -> Result<()> {
        let path = path_of(dir, number, place)?;
        let known = self.known.entry(number).or_default();
        let written = match known.begun {
            true => append(&path, record),
            false => replace(&path, record),
        };
        if let Err(e) = written {
            fail!(
                Argument,
                "cannot write {} (PORTOLAN_COMPOSE_DIR names the directory): {e}",
                path.display()
            );
        }
        if !known.begun {
            *known = Known { begun: true, read_to: 0 };
        }
        Ok(())
    }

    /// Reads the next record. Fails with `Argument` if there is none, and as [`read`] does.
    pub fn load(&mut self, dir: &Path, number: i32, place: Place) -> Result<Record> {
        let path = path_of(dir, number, place)?;
        let name = path.display().to_string();
        let known = self.known.entry(number).or_default();
        let opened = File::open(&path).and_then(|mut file| {
            let len = file.metadata()?.len();
            file.seek(SeekFrom::Start(known.read_to))?;
            Ok((file, len))
        });
        let (mut file, len) = match opened {
            Ok(opened) => opened,
            Err(e) => fail!(
                Argument,
                "cannot open {name} (PORTOLAN_COMPOSE_DIR names the directory): {e}"
            ),
        };
        let left = len.saturating_sub(known.read_to);
        if left == 0 {
            fail!(Argument, "{name} contains no further composition; rewind it to start again");
        }
        let (record, bytes) = read(&mut file, left, place, &name)?;
        known.read_to = known.read_to.saturating_add(bytes);
        Ok(record)
    }

    /// Makes the next load start at the first record. Fails with `Argument` for a negative number.
    pub fn rewind(&mut self, number: i32) -> Result<()> {
        if number < 0 {
            fail!(Argument, "file number {number} is negative");
        }
        self.known.entry(number).or_default().read_to = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place = Place { rank: 1, ranks: 4 };

    fn why(bytes: &[u8], place: Place) -> String {
        read(&mut &bytes[..], bytes.len() as u64, place, "the file").unwrap_err().to_string()
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc(b"123456789"), 0x995d_c9bb_df19_39fa);
    }

    #[test]
    fn records_come_back_and_damage_is_found() {
        let whole = encode(HERE, CompositionKind::Merged, b"some body").unwrap();
        let (record, n) = read(&mut &whole[..], whole.len() as u64, HERE, "f").unwrap();
        assert_eq!(
            (record.kind, &record.body[..], n),
            (CompositionKind::Merged, &b"some body"[..], 57)
        );
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 0x10;
            let text = why(&bad, HERE);
            assert!(text.contains("damaged") || text.contains("version"), "byte {at}: {text}");
        }
        for len in 0..whole.len() {
            assert!(why(&whole[..len], HERE).contains("damaged"), "{len} bytes");
        }
        assert!(why(&whole, Place { rank: 2, ..HERE }).contains("rank 1 of 4"));
        assert!(why(&whole, Place { ranks: 2, ..HERE }).contains("rank 1 of 4"));
        assert!(why(&[7; 100], HERE).contains("not a file of compositions"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks for more memory than Miri gives")]
    fn a_record_longer_than_memory_is_an_error() {
        let mut head = encode(HERE, CompositionKind::Simple, b"").unwrap();
        head[24..32].copy_from_slice(&(1u64 << 60).to_le_bytes());
        let sum = crc(&head[..40]);
        head[40..48].copy_from_slice(&sum.to_le_bytes());
        // A sparse file can have any length.
        let error = read(&mut &head[..], u64::MAX, HERE, "the file").unwrap_err();
        assert_eq!(error.kind(), portolan_base::error::ErrorKind::Memory);
        head[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        let sum = crc(&head[..40]);
        head[40..48].copy_from_slice(&sum.to_le_bytes());
        assert!(why(&head, HERE).contains("damaged"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no limit of a file's size")]
    fn a_record_that_does_not_fit_leaves_no_part() {
        const LIMIT: u64 = 64 << 20;
        let dir = tempfile::tempdir().unwrap();
        let (at, path) = (dir.path(), dir.path().join("compose-3.1"));
        let mut files = Files::default();
        files.store(at, 3, HERE, b"first").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(LIMIT - 10).unwrap();
        let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `old` is writable. Ignoring the signal makes the write fail instead.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            assert_eq!(libc::getrlimit(libc::RLIMIT_FSIZE, &mut old), 0);
        }
        let set = |limit: &libc::rlimit| {
            // SAFETY: the limit is a valid structure.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, limit) }, 0);
        };
        set(&libc::rlimit { rlim_cur: LIMIT, ..old });
        let stored = files.store(at, 3, HERE, &[7; 100]);
        set(&old);
        assert!(stored.unwrap_err().detail().contains("cannot write"));
        assert_eq!(file.metadata().unwrap().len(), LIMIT - 10);
    }

    #[test]
    fn files_are_begun_anew_then_added_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        let body = |r: &Record| r.body.clone();
        let mut files = Files::default();
        assert!(files.load(at, 3, HERE).is_err());
        for text in [b"a", b"b"] {
            files
                .store(at, 3, HERE, &encode(HERE, CompositionKind::Simple, text).unwrap())
                .unwrap();
        }
        assert_eq!(body(&files.load(at, 3, HERE).unwrap()), b"a");
        assert_eq!(body(&files.load(at, 3, HERE).unwrap()), b"b");
        assert!(files.load(at, 3, HERE).unwrap_err().detail().contains("no further"));
        files.rewind(3).unwrap();
        assert_eq!(body(&files.load(at, 3, HERE).unwrap()), b"a");
        let mut later = Files::default();
        later.store(at, 3, HERE, &encode(HERE, CompositionKind::Simple, b"c").unwrap()).unwrap();
        assert_eq!(body(&later.load(at, 3, HERE).unwrap()), b"c");
        assert!(later.load(at, 3, HERE).is_err());
        assert!(later.store(at, -1, HERE, b"").is_err());
        assert!(later.store(Path::new("/nonexistent/place"), 1, HERE, b"").is_err());
    }
}
