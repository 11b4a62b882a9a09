//! Determines which implementation of ARMCI a program has, without running it.
//!
//! A program has the ARMCI of the first file that exports its functions, in the loader's order
//! ([`crate::loader`]). A program that was linked statically contains an implementation. Its symbol
//! table shows which one; if it is stripped, the texts of the implementation do.

use crate::loader::{Elf, load};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Every implementation has the first; a static program may contain only the one that it calls.
const STARTS: [&str; 4] = ["ARMCI_Init", "PARMCI_Init", "ARMCI_Init_args", "PARMCI_Init_args"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Armci {
    /// This library, with its version.
    Portolan(String),
    OverMpi,
    ComEx,
    Unknown,
}

impl fmt::Display for Armci {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Armci::Portolan(version) => write!(f, "Portolan {version}"),
            Armci::OverMpi => f.write_str("ARMCI-MPI"),
            Armci::ComEx => f.write_str("ComEx"),
            Armci::Unknown => f.write_str("an unknown implementation"),
        }
    }
}

/// Returns what follows each occurrence of `text`. Callers search for texts in two parts, because
/// this program must not contain them.
fn after<'a>(data: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let found = data.windows(text.len()).enumerate().filter(move |(_, window)| *window == text);
    found.map(move |(at, _)| &data[at + text.len()..])
}

/// Returns the version in the identity text of Portolan's ARMCI, `Portolan 0.1.0 provides ARMCI`.
fn version(data: &[u8]) -> Option<String> {
    after(data, b"Portolan ").find_map(|rest| {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b".-+".contains(byte);
        let end = rest.iter().position(|byte| !is_part(byte))?;
        let version = std::str::from_utf8(&rest[..end]).ok()?;
        rest[end..].starts_with(b" provides ARMCI").then(|| version.to_string())
    })
}

/// Returns the implementation in a file, by its symbols or its texts.
fn contained(file: &Elf) -> Option<Armci> {
    if let Some(version) = version(&file.data) {
        return Some(Armci::Portolan(version));
    }
    let defined = || file.exports.iter().chain(&file.symbols);
    let starts = defined().any(|name| STARTS.contains(&name.as_str()));
    let begins = |prefix| defined().chain(&file.imports).any(|name| name.starts_with(prefix));
    let has = |text, then| after(&file.data, text).any(|rest| rest.starts_with(then));
    if starts && begins("ARMCII_") || has(b"ARMCI-MPI ", b"initialized with") {
        return Some(Armci::OverMpi);
    }
    // The shared library of ComEx's ARMCI takes these functions from another library.
    if starts && begins("comex_") || has(b"comex_", b"malloc") {
        return Some(Armci::ComEx);
    }
    starts.then_some(Armci::Unknown)
}

#[derive(Debug)]
pub struct Report {
    program: PathBuf,
    /// The implementation, and the file that contains it.
    found: Option<(Armci, PathBuf)>,
    /// Needed libraries that the loader would not find.
    missing: Vec<String>,
}

impl Report {
    /// Inspects a program. Returns a message if the file is not a program of
    /// this architecture.
    pub fn of(name: &OsStr) -> Result<Report, String> {
        let program = Elf::read(&located(name))?;
        let loaded = load(program)?;
        let exports = |file: &&Elf| file.exports.iter().any(|name| STARTS.contains(&name.as_str()));
        // A program, or a library in it, that contains an implementation need not export it.
        let candidates = || {
            let (program, others) = (loaded.files.first(), loaded.files.iter().skip(1));
            let exporters = others.clone().filter(exports);
            let files = program.into_iter().chain(exporters).chain(others);
            files.filter_map(|file| Some((contained(file)?, file)))
        };
        // A tool or a program may define `ARMCI_Init` itself and call `PARMCI_Init`.
        let known = candidates().find(|(armci, _)| *armci != Armci::Unknown);
        let found = known.or_else(|| candidates().next());
        Ok(Report {
            program: loaded.files[0].path.clone(),
            found: found.map(|(armci, file)| (armci, file.path.clone())),
            missing: loaded.missing,
        })
    }

    /// Returns whether the answer is certain: an ARMCI was found, or no library is missing.
    pub fn is_certain(&self) -> bool {
        self.found.is_some() || self.missing.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<20}{}", "program", self.program.display())?;
        let armci = match &self.found {
            Some((armci, file)) if *file == self.program => format!("{armci}, in the program"),
            Some((armci, file)) => format!("{armci}, in {}", file.display()),
            None if self.missing.is_empty() => "none".into(),
            None => "unknown: libraries are missing".into(),
        };
        writeln!(f, "{:<20}{armci}", "ARMCI")?;
        for name in &self.missing {
            writeln!(f, "{:<20}{name}", "not found")?;
        }
        Ok(())
    }
}

/// Returns the path of a program. Searches `PATH` if the name does not denote a file.
fn located(name: &OsStr) -> PathBuf {
    let here = Path::new(name);
    if name.as_bytes().contains(&b'/') || here.is_file() {
        return here.into();
    }
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&dirs).map(|dir| dir.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| here.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_need_not_be_utf_8() {
        let why = Report::of(OsStr::from_bytes(b"/no/such/\xffplace")).expect_err("it is missing");
        assert!(why.contains("/no/such/\u{fffd}place"), "{why}");
        assert_eq!(located(OsStr::from_bytes(b"\xff")).as_os_str().as_bytes(), b"\xff");
    }
}
