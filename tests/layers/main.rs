//! Checks the layers of the workspace: each crate and each folder inside it imports only from
//! layers below its own.
//!
//! The test reads the sources and resolves every path that begins with `crate`, `super`, `self` or
//! a crate of the workspace to the file that defines the name. It fails on an import that goes up
//! in the table below, on an import cycle that spans several folders or has more than
//! [`MOST_IN_A_CIRCLE`] files, and if the engine has more than [`MOST_FLOORS`] floors. The table in
//! ARCHITECTURE.md must list the same modules.

mod circles;
mod imports;
mod manifests;

use imports::{Import, Sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The crates whose sources are read: the short name of each and its folder.
const CRATES: [(&str, &str); 11] = [
    ("trace_format", "crates/trace-format/src"),
    ("base", "crates/base/src"),
    ("engine", "crates/engine/src"),
    ("interpose", "crates/interpose/src"),
    ("compose", "crates/compose/src"),
    ("rpc", "crates/rpc/src"),
    ("portolan", "src"),
    ("capi", "crates/capi/src"),
    ("perf", "crates/tools/src/bin/portolan-perf"),
    ("report", "crates/tools/src/bin/portolan-report"),
    ("sim", "crates/sim/src"),
];

/// The layers from the bottom up, and the modules of each: folders and files of `base` and the
/// engine, the other crates, and the folders of these.
pub const LAYERS: [(&str, &[&str]); 10] = [
    (
        "base",
        &[
            "process", "mutation", "digest", "sync", "trace", "thread", "futex", "error", "shm",
            "config", "layout", "handles", "wait",
        ],
    ),
    ("MPI", &["mpi"]),
    ("core", &["topology", "collective", "memory", "core"]),
    ("transport", &["path"]),
    ("ops", &["ops", "transfer", "atomics"]),
    ("active messages", &["am"]),
    ("any memory", &["any_memory"]),
    ("engine", &["runtime"]),
    ("on the engine", &["interpose", "compose", "rpc", "rpc/proc", "rpc/na", "rpc/bulk", "rpc/hg"]),
    (
        "interfaces",
        &[
            "portolan",
            "portolan/messages",
            "portolan/transfer",
            "portolan/array",
            "capi",
            "capi/armci",
            "capi/compose",
            "capi/lapi",
            "capi/mercury",
            "capi/x10",
        ],
    ),
];

const MOST_IN_A_CIRCLE: usize = 3;
/// Modules with a larger circle: four types that contain each other, in a file each. They are a
/// class, its contexts, and a call at its origin and at its target.
const LARGER: [(&str, usize); 1] = [("rpc/hg", 4)];
/// A module stands one floor above the highest module that it imports.
const MOST_FLOORS: usize = 11;

fn layer_of(module: &str) -> usize {
    LAYERS
        .iter()
        .position(|(_, modules)| modules.contains(&module))
        .unwrap_or_else(|| panic!("the module {module} stands in no layer of tests/layers"))
}

/// Returns the module of a file in the table: `am` for `engine/am/send.rs`, `rpc/na` for
/// `rpc/na/wire.rs`, `rpc` for `rpc/failure.rs`.
fn module_of(file: &str) -> &str {
    let Some((krate, rest)) = file.split_once('/') else { return file };
    let folder = rest.split_once('/').map(|(folder, _)| folder);
    match (krate, folder) {
        ("base" | "engine", _) => {
            folder.unwrap_or_else(|| rest.strip_suffix(".rs").unwrap_or(rest))
        }
        (_, Some(folder)) => &file[..krate.len() + 1 + folder.len()],
        // `rpc/na.rs` belongs to `rpc/na`.
        (_, None) => {
            let stem = file.strip_suffix(".rs").unwrap_or(file);
            let known = LAYERS.iter().any(|(_, modules)| modules.contains(&stem));
            if known { stem } else { krate }
        }
    }
}

fn is_root(file: &str) -> bool {
    ["base/lib.rs", "engine/lib.rs", "capi/lib.rs", "portolan/lib.rs"].contains(&file)
        || file.ends_with("/main.rs")
}

fn all_imports() -> Vec<Import> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates: Vec<(&str, PathBuf)> =
        CRATES.iter().map(|(name, folder)| (*name, root.join(folder))).collect();
    let mut imports = Sources::read(&crates).imports();
    imports.retain(|i| !is_root(&i.from) && !is_root(&i.to));
    imports
}

fn library_imports() -> Vec<Import> {
    let of_library = |file: &str| {
        !["perf/", "report/", "trace_format/", "sim/"].iter().any(|other| file.starts_with(other))
    };
    let mut imports = all_imports();
    imports.retain(|i| of_library(&i.from) && of_library(&i.to));
    imports
}

#[test]
fn imports_go_down() {
    let mut upward = BTreeSet::new();
    for Import { from, to, name } in library_imports() {
        if layer_of(module_of(&from)) < layer_of(module_of(&to)) {
            upward.insert(format!("{from} -> {to} ({name})"));
        }
    }
    let list: Vec<_> = upward.into_iter().collect();
    assert!(list.is_empty(), "imports that go up:\n  {}", list.join("\n  "));
}

#[test]
fn circles_stay_small_and_in_one_folder() {
    let mut bad = Vec::new();
    for circle in circles::of(&all_imports()) {
        let folders: BTreeSet<&str> = circle.iter().map(|file| module_of(file)).collect();
        let larger = LARGER.iter().find(|(module, _)| *module == module_of(&circle[0]));
        let most = larger.map_or(MOST_IN_A_CIRCLE, |(_, most)| *most);
        if circle.len() > most || folders.len() > 1 {
            bad.push(format!("{} files: {}", circle.len(), circle.join(", ")));
        }
    }
    assert!(bad.is_empty(), "circles of imports:\n  {}", bad.join("\n  "));
}

#[test]
fn the_modules_of_base_and_engine_stand_on_few_floors() {
    let imports = all_imports();
    let mut above: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Import { from, to, .. } in &imports {
        if [from, to].iter().all(|file| file.starts_with("base/") || file.starts_with("engine/")) {
            above.entry(module_of(from)).or_default().insert(module_of(to));
            above.entry(module_of(to)).or_default();
        }
    }
    let mut floors = 0;
    while !above.is_empty() {
        let (ground, rest): (Vec<_>, Vec<_>) = above.iter().partition(|(module, imports)| {
            imports.iter().all(|other| other == *module || !above.contains_key(other))
        });
        assert!(!ground.is_empty(), "modules import each other: {rest:?}");
        above = rest.into_iter().map(|(module, imports)| (*module, imports.clone())).collect();
        floors += 1;
    }
    assert!(floors <= MOST_FLOORS, "base and engine have {floors} floors");
}

/// A Rust program must not define `MPI_Init` or the calls of the C interfaces unless it asks for
/// them.
#[test]
fn only_the_c_library_exports_c_functions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (krate, folder) in CRATES {
        let exports = imports::texts(&root.join(folder))
            .into_iter()
            .filter(|(_, text)| text.contains("(no_mangle)") || text.contains("export_name"))
            .map(|(path, _)| path.display().to_string());
        let exports: Vec<String> = exports.collect();
        let may = ["capi", "interpose", "sim"].contains(&krate);
        assert_eq!(!exports.is_empty(), may, "{krate} exports C functions: {exports:?}");
    }
}

/// Reports and messages tell functions of the library from those of the program by these names.
#[test]
fn names_of_the_crates_are_known() {
    for (krate, _) in CRATES {
        let of_library = !["perf", "report", "sim", "portolan", "capi"].contains(&krate);
        let path = format!("portolan_{krate}::module::function");
        assert_eq!(portolan_base::process::message::is_of_library(&path), of_library, "{krate}");
    }
}

/// Every layer has a row in ARCHITECTURE.md, with the crates and the modules of the engine in it.
#[test]
fn the_page_has_the_same_layers() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let page = std::fs::read_to_string(page).expect("ARCHITECTURE.md can be read");
    for (layer, modules) in LAYERS {
        let row = page.lines().find_map(|line| line.strip_prefix(&format!("| **{layer}** | ")));
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row of the layer {layer}"));
        let listed: BTreeSet<&str> =
            row.split(" | ").next().unwrap_or("").split('`').skip(1).step_by(2).collect();
        let modules: BTreeSet<&str> =
            modules.iter().copied().filter(|module| !module.contains('/')).collect();
        assert_eq!(listed, modules, "the row of the layer {layer} in ARCHITECTURE.md");
    }
}
