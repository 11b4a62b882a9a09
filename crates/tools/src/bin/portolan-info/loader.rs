//! Finds the shared libraries of a program as the dynamic loader of glibc does, from its files and
//! environment, without running it.
//!
//! The loader searches for a symbol in load order, which [`load`] returns: the program, the
//! preloaded libraries, then the needed ones, level by level. The subdirectories for processors
//! with extensions (`glibc-hwcaps`) are ignored.

use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader, Sym};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// The parts of an ELF file that the loader uses.
#[derive(Debug, Default)]
pub struct Elf {
    pub path: PathBuf,
    pub data: Vec<u8>,
    /// The class and the machine. All files of a process have the same.
    kind: (bool, u16),
    soname: Option<String>,
    needed: Vec<String>,
    rpath: Vec<String>,
    runpath: Vec<String>,
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
        // `$ORIGIN` is the directory of the file after symbolic links.
        file.path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        file.data = data;
        Ok(file)
    }

    /// Expands `$ORIGIN` in the directories of a run path. Directories with other variables, which
    /// depend on the processor, are left out.
    fn expanded(&self, dirs: &[String]) -> Vec<PathBuf> {
        let origin = self.path.parent().unwrap_or(Path::new("/")).display().to_string();
        dirs.iter()
            .map(|dir| dir.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
            .filter(|dir| !dir.contains('$'))
            .map(PathBuf::from)
            .collect()
    }
}

fn parse<H: FileHeader<Endian = Endianness>>(data: &[u8]) -> object::Result<Elf> {
    let header = H::parse(data)?;
    let endian = header.endian()?;
    let mut file =
        Elf { kind: (header.is_type_64(), header.e_machine(endian).0), ..Elf::default() };
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
    let dynamic = sections.dynamic_table(endian, data)?;
    for entry in &dynamic {
        let text = || dynamic.string(entry).map(|text| String::from_utf8_lossy(text).into_owned());
        let dirs = || text().map(|text| text.split(':').map(str::to_string).collect());
        match entry.tag {
            elf::DT_NEEDED => file.needed.push(text()?),
            elf::DT_SONAME => file.soname = Some(text()?),
            elf::DT_RPATH => file.rpath = dirs()?,
            elf::DT_RUNPATH => file.runpath = dirs()?,
            _ => {}
        }
    }
    // `DT_RUNPATH` disables `DT_RPATH`.
    if !file.runpath.is_empty() {
        file.rpath.clear();
    }
    Ok(file)
}

#[derive(Debug, Default)]
pub struct Search {
    pub library_path: Vec<PathBuf>,
    pub preload: Vec<String>,
    /// The names and paths of the cache, in its order.
    pub cache: Vec<(String, PathBuf)>,
}

impl Search {
    pub fn of_system() -> Search {
        let variable = |name| std::env::var(name).unwrap_or_default();
        // An empty directory is the current one.
        let directory = |dir: &str| PathBuf::from(if dir.is_empty() { "." } else { dir });
        let path = variable("LD_LIBRARY_PATH");
        let separate = |c: char| c == ':' || c == ';';
        let library_path = match path.as_str() {
            "" => Vec::new(),
            path => path.split(separate).map(directory).collect(),
        };
        let preload = variable("LD_PRELOAD");
        let preload = preload.split([':', ' ']).filter(|name| !name.is_empty());
        Search {
            library_path,
            preload: preload.map(str::to_string).collect(),
            cache: cache(&fs::read("/etc/ld.so.cache").unwrap_or_default()),
        }
    }

    /// Finds the file for a needed name. `chain` contains the file that needs it, then the file
    /// that needs that one, up to the program.
    fn find(&self, name: &str, chain: &[&Elf]) -> Option<Elf> {
        let kind = chain[0].kind;
        let read = |path: &Path| Elf::read(path).ok().filter(|file| file.kind == kind);
        if name.contains('/') {
            return read(Path::new(name));
        }
        let mut dirs = Vec::new();
        if chain[0].runpath.is_empty() {
            dirs.extend(chain.iter().flat_map(|file| file.expanded(&file.rpath)));
        }
        dirs.extend(self.library_path.iter().cloned());
        dirs.extend(chain[0].expanded(&chain[0].runpath));
        let cached = self.cache.iter().filter(|(key, _)| key == name).map(|(_, path)| path.clone());
        let standard = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from);
        let mut all = dirs
            .into_iter()
            .map(|dir| dir.join(name))
            .chain(cached)
            .chain(standard.iter().map(|dir| dir.join(name)));
        all.find_map(|path| read(&path))
    }
}

/// Reads the loader's cache. Returns nothing if its format is unknown.
fn cache(data: &[u8]) -> Vec<(String, PathBuf)> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    // An older format may come first.
    let Some(start) = data.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return Vec::new();
    };
    let data = &data[start..];
    let number = |at: usize| -> Option<usize> {
        Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?) as usize)
    };
    let text = |at: usize| -> Option<String> {
        let rest = data.get(at..)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    let entry = |n: usize| {
        let at = HEADER + n * ENTRY;
        Some((text(number(at + 4)?)?, PathBuf::from(text(number(at + 8)?)?)))
    };
    (0..number(MAGIC.len()).unwrap_or(0)).map_while(entry).collect()
}

/// The files of a process in the order of symbol lookup, and the needed names without a file.
#[derive(Debug)]
pub struct Loaded {
    pub files: Vec<Elf>,
    pub missing: Vec<String>,
}

pub fn load(program: Elf, search: &Search) -> Loaded {
    let mut loaded = Loaded { files: vec![program], missing: Vec::new() };
    // The file that loads each file. The program loads itself.
    let mut parents = vec![0];
    let preload = search.preload.iter().map(|name| (name.clone(), 0));
    let first = loaded.files[0].needed.iter().map(|name| (name.clone(), 0));
    let mut queue: VecDeque<(String, usize)> = preload.chain(first).collect();
    let mut names: Vec<String> = Vec::new();
    while let Some((name, by)) = queue.pop_front() {
        let is_soname = |file: &Elf| file.soname.as_deref() == Some(name.as_str());
        if names.contains(&name) || loaded.files.iter().any(is_soname) {
            continue;
        }
        names.push(name.clone());
        let mut chain = vec![&loaded.files[by]];
        let mut at = by;
        while at != 0 {
            at = parents[at];
            chain.push(&loaded.files[at]);
        }
        match search.find(&name, &chain) {
            Some(found) if loaded.files.iter().any(|file| file.path == found.path) => {}
            Some(found) => {
                queue.extend(found.needed.iter().map(|name| (name.clone(), loaded.files.len())));
                loaded.files.push(found);
                parents.push(by);
            }
            None => loaded.missing.push(name),
        }
    }
    loaded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_of_the_loader() {
        let mut data = b"glibc-ld.so.cache1.1".to_vec();
        data.extend(2u32.to_ne_bytes());
        data.resize(48, 0);
        let text = b"liba.so.1\0/x/liba.so.1\0libb.so\0/y/libb.so\0";
        for (key, path) in [(0, 10), (23, 31)] {
            let start = 48 + 2 * 24;
            let entry = [3u32, start + key, start + path, 0, 0, 0];
            data.extend(entry.iter().flat_map(|word| word.to_ne_bytes()));
        }
        data.extend(text);
        let expected = [("liba.so.1", "/x/liba.so.1"), ("libb.so", "/y/libb.so")];
        let expected = expected.map(|(key, path)| (key.to_string(), PathBuf::from(path)));
        assert_eq!(cache(&data), expected);
        assert_eq!(cache(&[&b"ld.so-1.7.0\0"[..], &data].concat()), expected);
        for end in 0..data.len() {
            assert!(cache(&data[..end]).len() <= 2);
        }
    }

    #[test]
    fn damaged_files_are_errors() {
        let own = std::env::current_exe().expect("the test has a file");
        let file = Elf::read(&own).expect("the test is an ELF file");
        assert!(file.needed.iter().any(|name| name.starts_with("libc.so")), "{:?}", file.needed);
        for end in [0, 4, 40, 64, 1000] {
            assert!(parse::<elf::FileHeader64<Endianness>>(&file.data[..end]).is_err());
        }
        assert!(Elf::read(Path::new("/no/such/file")).is_err());
        assert!(Elf::read(Path::new("/")).is_err());
    }

    #[test]
    fn own_libraries_are_found() {
        let own = std::env::current_exe().expect("the test has a file");
        let loaded = load(Elf::read(&own).expect("an ELF file"), &Search::of_system());
        assert!(loaded.missing.is_empty(), "{:?}", loaded.missing);
        assert!(loaded.files.iter().any(|file| file.exports.iter().any(|name| name == "malloc")));
    }
}
