//! Names the places in the program that call the library: function, file and line.
//!
//! A trace has return addresses, relative to the start of a module. The debug information of the
//! module's file gives the line. If the file has changed since the program ran, its addresses have
//! no names. Without debug information, the symbol of the function is used, or the address. A
//! binding to another language records source lines instead. Some calls of the Rust interface
//! record their line besides the return addresses. It is used if debug information has none, unless
//! it is a line of the library's arrays, which make such calls for the program.

use addr2line::Loader;
use object::{Object, ObjectSegment, ReadCache};
use portolan_base::process::message;
use portolan_trace_format::event::SOURCE_LINE;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// A return address: the file of the module, and the address relative to its start. Or a source
/// line and [`SOURCE_LINE`].
pub type Address = (String, u64);

#[derive(Default)]
pub struct Symbols {
    modules: HashMap<String, Option<Module>>,
    /// Start of the job in nanoseconds since 1970, or 0 if unknown.
    started: u64,
    /// Descriptions of the modules that cannot be used.
    pub problems: Vec<String>,
}

struct Module {
    loader: Loader,
    /// The address at which the module's first segment is linked.
    base: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// Empty if unknown.
    function: String,
    at: At,
    in_library: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    /// File and line.
    Line(String, u32),
    /// The program or library, for a symbol without debug information.
    Module(String),
    Unknown,
}

impl Place {
    fn new(name: &str, at: Option<(&str, u32)>) -> Place {
        Place {
            function: short(name).into(),
            in_library: is_library(name, at.map_or("", |(file, _)| file)),
            at: at.map_or(At::Unknown, |(file, line)| At::Line(last_part(file).into(), line)),
        }
    }

    fn text(&self) -> String {
        match &self.at {
            At::Line(file, line) => at_line(&format!("{file}:{line}"), &self.function),
            At::Module(file) => format!("{} of {file}", self.function),
            At::Unknown => self.function.clone(),
        }
    }

    fn has_line(&self) -> bool {
        matches!(self.at, At::Line(..))
    }
}

fn at_line(line: &str, function: &str) -> String {
    if function.is_empty() { line.into() } else { format!("{line} ({function})") }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Symbols {
    /// Creates a table for a job that started at this time in ns since 1970; 0 if unknown.
    pub fn new(started: u64) -> Symbols {
        Symbols { started, ..Symbols::default() }
    }

    /// Describes the call site with this chain of return addresses, innermost first, such as
    /// `solver.c:42 (main)`. In a dynamically linked program, only the last address is outside of
    /// the library. Otherwise the names of the functions show which of them is the program's.
    pub fn describe(&mut self, chain: &[Address]) -> String {
        if let [(line, SOURCE_LINE), addresses @ ..] = chain {
            let places = self.all_places(addresses);
            return match places.iter().find(|place| !place.in_library) {
                Some(own) if own.has_line() || line.contains("src/array/") => own.text(),
                own => at_line(last_part(line), own.map_or("", |place| &place.function)),
            };
        }
        let Some((outermost, first)) = chain.last().zip(chain.first()) else { return "?".into() };
        if outermost.0 != first.0 {
            return self.places(outermost).first().map_or_else(|| unnamed(outermost), Place::text);
        }
        let places = self.all_places(chain);
        let own = places.iter().find(|place| !place.in_library).or(places.last());
        own.map_or_else(|| unnamed(outermost), Place::text)
    }

    fn all_places(&mut self, chain: &[Address]) -> Vec<Place> {
        chain.iter().flat_map(|address| self.places(address)).collect()
    }

    /// Returns the function at an address, after the functions that are inlined there.
    fn places(&mut self, (file, address): &Address) -> Vec<Place> {
        let (started, problems) = (self.started, &mut self.problems);
        let module = self.modules.entry(file.clone()).or_insert_with(|| {
            if started == 0 || !changed_since(Path::new(file), started) {
                return Module::open(Path::new(file));
            }
            problems
                .push(format!("{file} has changed since the run; source lines in it are omitted"));
            None
        });
        let Some(module) = module else { return Vec::new() };
        // The call instruction precedes the return address.
        let probe = module.base + address.saturating_sub(1);
        let mut places = Vec::new();
        if let Ok(mut frames) = module.loader.find_frames(probe) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
                let name = name.or_else(|| module.loader.find_symbol(probe).map(Into::into));
                let at = frame.location.and_then(|place| Some((place.file?, place.line?)));
                if name.is_some() || at.is_some() {
                    places.push(Place::new(name.as_deref().unwrap_or(""), at));
                }
            }
        }
        if places.is_empty()
            && let Some(symbol) = module.loader.find_symbol(probe)
        {
            let place = Place::new(&addr2line::demangle_auto(symbol.into(), None), None);
            places.push(Place { at: At::Module(last_part(file).into()), ..place });
        }
        places
    }
}

impl Module {
    fn open(path: &Path) -> Option<Module> {
        Some(Module { loader: Loader::new(path).ok()?, base: link_base(path)? })
    }
}

/// Returns whether a file was written after a time in nanoseconds since 1970.
fn changed_since(path: &Path, time: u64) -> bool {
    let written = std::fs::metadata(path).and_then(|file| file.modified());
    let since = written.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.is_some_and(|since| since.as_nanos() > u128::from(time))
}

/// Returns the lowest address at which a segment of an ELF file is linked, rounded down to a page.
fn link_base(path: &Path) -> Option<u64> {
    let bytes = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&bytes).ok()?;
    let addresses = file.segments().map(|segment| segment.address());
    Some(addresses.min()? & !0xfff)
}

/// Returns whether a function belongs to the library or to Rust's own crates.
fn is_library(name: &str, file: &str) -> bool {
    let name = name.trim_start_matches(['<', '&', '*', '_', ' ']);
    let is_file = |krate: &str| {
        let folder = krate.strip_prefix("portolan_").unwrap_or("capi").replace('_', "-");
        file.contains(&format!("/crates/{folder}/src/"))
            || file.contains(&format!("/portolan-{folder}-"))
    };
    let of_rust = ["/rustc/", "/rustlib/src/"].iter().any(|folder| file.contains(folder))
        || ["core::", "alloc::", "std::"].iter().any(|krate| name.starts_with(krate));
    of_rust || message::is_of_library(name) || message::CRATES.iter().any(|krate| is_file(krate))
}

/// Shortens a function name: without the hash, parameters of types, and all but the last modules.
fn short(name: &str) -> &str {
    const MOST: usize = 60;
    let name = name.split(" as ").next().unwrap_or(name).trim_start_matches('<');
    match name.char_indices().nth(MOST) {
        Some((end, _)) => &name[..end],
        None => name,
    }
}

fn unnamed((file, address): &Address) -> String {
    format!("{}+{address:#x}", last_part(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn here() -> usize {
        std::hint::black_box(here as *const () as usize)
    }

    #[test]
    fn addresses_of_this_program_have_names() {
        // The address of a function, relative to the start of the program in memory.
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
        let program = std::fs::read_link("/proc/self/exe").expect("a program");
        let program = program.to_string_lossy().into_owned();
        let line = maps.lines().find(|line| line.ends_with(&program)).expect("it is mapped");
        let start = line.split('-').next().expect("an address");
        let start = usize::from_str_radix(start, 16).expect("a number");
        let address = &[(program.clone(), (here() - start) as u64 + 1)];
        let mut symbols = Symbols::default();
        let text = symbols.describe(address);
        assert!(text.starts_with("symbols.rs:") && text.ends_with("here)"), "{text}");
        assert_eq!(symbols.describe(&[("/no/such/file".into(), 0x12)]), "file+0x12");
        assert_eq!(symbols.describe(&[(program.clone(), u64::MAX / 2)]), unnamed_end(u64::MAX / 2));
        assert!(symbols.problems.is_empty(), "{:?}", symbols.problems);
        // The program was written after a job of 1970.
        let mut symbols = Symbols::new(1);
        let text = [symbols.describe(address), symbols.describe(address)];
        assert_eq!(text, [unnamed(&address[0]), unnamed(&address[0])]);
        let changed = format!("{program} has changed since the run; ");
        let [problem] = &symbols.problems[..] else { panic!("{:?}", symbols.problems) };
        assert!(problem.starts_with(&changed), "{problem}");
        let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let mut symbols = Symbols::new(now.as_nanos() as u64);
        let text = symbols.describe(address);
        assert!(text.ends_with("here)"), "{text}");
        // A recorded line is used if debug information has none.
        let mut with_line = |file: &str| {
            let address = (file.into(), address[0].1);
            symbols.describe(&[("/home/me/heat.rs:42".into(), SOURCE_LINE), address])
        };
        assert_eq!(with_line(&program), text);
        assert_eq!(with_line("/no/such/file"), "heat.rs:42");
    }

    fn unnamed_end(address: u64) -> String {
        let program = std::fs::read_link("/proc/self/exe").expect("a program");
        unnamed(&(program.to_string_lossy().into_owned(), address))
    }

    #[test]
    fn source_lines_are_shown_without_folders() {
        let mut symbols = Symbols::default();
        let mut shown = |line: &str| symbols.describe(&[(line.into(), SOURCE_LINE)]);
        assert_eq!(shown("/home/me/heat.py:12 (step)"), "heat.py:12 (step)");
        assert_eq!(shown("heat.py:7"), "heat.py:7");
    }

    #[test]
    fn functions_of_the_library_are_recognised() {
        for (name, file, library) in [
            ("portolan_engine::ops::Ops::put", "", true),
            ("portolan_base::wait::until", "", true),
            ("portolan_trace_format::event::Encoder::put", "", true),
            ("<portolan::Segment<f64>>::put", "", true),
            ("dims", "/a/crates/base/src/layout/mod.rs", true),
            ("ARMCI_Put", "/a/crates/capi/src/armci/contiguous.rs", true),
            ("core::ops::function::FnOnce::call_once", "", true),
            ("black_box<usize>", "/rustc/5980/library/core/src/hint.rs", true),
            ("put<f64>", "/home/me/.cargo/registry/src/x/portolan-engine-0.1.0/src/ops.rs", true),
            ("portolan_game::main", "main.rs", false),
            ("main", "/home/me/main.c", false),
            ("std", "std.c", false),
        ] {
            assert_eq!(is_library(name, file), library, "{name}");
        }
        assert_eq!(Place::new("work", Some(("/a/b/w.f90", 7))).text(), "w.f90:7 (work)");
    }
}
