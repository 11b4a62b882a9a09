//! Lists the files of a process, without running the program: the dynamic loader itself does so
//! (`LD_TRACE_LOADED_OBJECTS`, as `ldd` does).
//!
//! The loader searches for a symbol in load order, which [`load`] returns: the program, the
//! preloaded libraries, then the needed ones, level by level.

use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The parts of an ELF file that matter here.
#[derive(Debug, Default)]
pub struct Elf {
    pub path: PathBuf,
    pub data: Vec<u8>,
    /// The loader that the file requests. Libraries request none.
    loader: Option<PathBuf>,
    /// Whether the file has a dynamic section. A program that is linked statically has none.
    is_dynamic: bool,
    /// Names of the functions and variables that the file exports.
    pub exports: Vec<String>,
    /// Names of the functions and variables that it takes from other files.
    pub imports: Vec<String>,
    /// Names in its symbol table, which a stripped file lacks.
    pub symbols: Vec<String>,
}

impl Elf {
    /// Reads a file. Returns a message if it cannot be read or is not an ELF file for programs.
    pub fn read(path: &Path) -> Result<Elf, String> {
        let shown = path.display();
        let data = fs::read(path).map_err(|e| format!("{shown}: {e}"))?;
        let mut file = match object::FileKind::parse(data.as_slice()) {
            Ok(object::FileKind::Elf64) => parse::<elf::FileHeader64<Endianness>>(&data),
            Ok(object::FileKind::Elf32) => parse::<elf::FileHeader32<Endianness>>(&data),
            _ if data.starts_with(b"#!") => {
                return Err(format!("{shown} is a script: name the program that it starts"));
            }
            _ => return Err(format!("{shown} is not an ELF file")),
        }
        .map_err(|e| format!("{shown}: {e}"))?;
        file.path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        file.data = data;
        Ok(file)
    }
}

fn parse<H: FileHeader<Endian = Endianness>>(data: &[u8]) -> object::Result<Elf> {
    let header = H::parse(data)?;
    let endian = header.endian()?;
    let mut file = Elf::default();
    for segment in header.program_headers(endian, data)? {
        file.is_dynamic |= segment.p_type(endian) == elf::PT_DYNAMIC;
        if let Some(path) = segment.interpreter(endian, data)? {
            file.loader = Some(OsStr::from_bytes(path).into());
        }
    }
    let sections = header.sections(endian, data)?;
    for (kind, exported) in [(elf::SHT_DYNSYM, true), (elf::SHT_SYMTAB, false)] {
        let table = sections.symbols(endian, data, kind)?;
        for symbol in table.iter() {
            let Ok(name) = symbol.name(endian, table.strings()) else { continue };
            let Ok(name) = std::str::from_utf8(name) else { continue };
            let list = match (exported, symbol.is_undefined(endian)) {
                (true, true) => &mut file.imports,
                (true, false) => &mut file.exports,
                (false, false) => &mut file.symbols,
                (false, true) => continue,
            };
            list.push(name.to_string());
        }
    }
    Ok(file)
}

/// The files of a process in the order of symbol lookup, and the needed names without a file.
#[derive(Debug)]
pub struct Loaded {
    pub files: Vec<Elf>,
    pub missing: Vec<String>,
}

/// Lists the files that the loader would load for a program or a library. Returns a message if the
/// loader does not run, because the program is of another architecture.
pub fn load(program: Elf) -> Result<Loaded, String> {
    let mut loaded = Loaded { files: Vec::new(), missing: Vec::new() };
    if program.is_dynamic {
        // A library is listed by the loader of this program.
        let own = || Elf::read(Path::new("/proc/self/exe")).ok()?.loader;
        let loader = program.loader.clone().or_else(own).unwrap_or_default();
        let failed = |why: String| {
            format!(
                "{}: the loader {} does not list it: {why}",
                program.path.display(),
                loader.display()
            )
        };
        let output =
            Command::new(&loader).env("LD_TRACE_LOADED_OBJECTS", "1").arg(&program.path).output();
        let output = output.map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().into()));
        }
        // `name => path (address)`, `path (address)`, `name (address)` or `name => not found`.
        for line in output.stdout.split(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            let (name, place) = line.trim().split_once(" => ").unwrap_or(("", line.trim()));
            if place == "not found" {
                loaded.missing.push(name.into());
            } else if let Some((path, _)) =
                place.rsplit_once(" (").filter(|_| place.starts_with('/'))
            {
                loaded.files.push(Elf::read(Path::new(path))?);
            }
        }
    }
    loaded.files.insert(0, program);
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_errors() {
        let own = std::env::current_exe().expect("the test has a file");
        let file = Elf::read(&own).expect("the test is an ELF file");
        assert!(file.is_dynamic && file.loader.is_some(), "{:?}", file.loader);
        for end in [0, 4, 40, 64, 1000] {
            assert!(parse::<elf::FileHeader64<Endianness>>(&file.data[..end]).is_err());
        }
        assert!(Elf::read(Path::new("/no/such/file")).is_err());
        assert!(Elf::read(Path::new("/")).is_err());
    }

    #[test]
    fn own_libraries_are_found() {
        let own = std::env::current_exe().expect("the test has a file");
        let loaded = load(Elf::read(&own).expect("an ELF file")).expect("the loader runs");
        assert!(loaded.missing.is_empty(), "{:?}", loaded.missing);
        assert!(loaded.files.iter().any(|file| file.exports.iter().any(|name| name == "malloc")));
    }
}
