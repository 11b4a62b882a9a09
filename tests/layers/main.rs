//! Checks the layers of the crate: each module imports only from layers below its own.
//!
//! The test reads the sources and resolves every path that begins with `crate`, `super` or `self`
//! to the file that defines the name. It fails on an import that goes up in the table below, and on
//! an import cycle that spans several folders or has more than [`MOST_IN_A_CIRCLE`] files.
//! `docs/layers.svg` is a drawing of the imports. If it is out of date, the test fails with the
//! command that draws it again:
//!
//!     PORTOLAN_BLESS=1 cargo test --test layers

mod circles;
mod imports;
mod picture;

use imports::{Crate, Import};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The layers from the bottom up, and the modules of each.
pub const LAYERS: [(&str, &[&str]); 9] = [
    (
        "floor",
        &[
            "process", "message", "mutation", "sync", "trace", "thread", "futex", "error", "shm",
            "config", "layout", "handles", "watchdog", "mpi", "wait",
        ],
    ),
    ("core", &["topology", "collective", "group", "memory", "peer", "core"]),
    ("transport", &["path"]),
    ("ops", &["ops", "transfer", "atomics"]),
    ("active messages", &["am"]),
    ("any memory", &["any_memory"]),
    ("engine", &["runtime", "progress"]),
    ("faces", &["api", "capi", "compose", "rpc", "sharing"]),
    ("arrays", &["array", "internals"]),
];

const MOST_IN_A_CIRCLE: usize = 5;

/// Returns the index of a module's layer.
fn layer_of(module: &str) -> usize {
    LAYERS
        .iter()
        .position(|(_, modules)| modules.contains(&module))
        .unwrap_or_else(|| panic!("the module {module} stands in no layer of tests/layers"))
}

/// Returns the top-level module of a file: `am` for `src/am/ring.rs`.
fn module_of(file: &str) -> &str {
    let rest = file.strip_prefix("src/").unwrap_or(file);
    rest.split('/').next().map_or(rest, |first| first.strip_suffix(".rs").unwrap_or(first))
}

fn of_the_house(file: &str) -> bool {
    module_of(file) != "lib" && module_of(file) != "bin"
}

fn house() -> Vec<Import> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut imports = Crate::read(root).imports();
    imports.retain(|i| of_the_house(&i.from) && of_the_house(&i.to));
    imports
}

#[test]
fn imports_go_down() {
    let mut upward = BTreeSet::new();
    for Import { from, to, name } in house() {
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
    for circle in circles::of(&house()) {
        let folders: BTreeSet<&str> = circle.iter().map(|file| module_of(file)).collect();
        if circle.len() > MOST_IN_A_CIRCLE || folders.len() > 1 {
            bad.push(format!("{} files: {}", circle.len(), circle.join(", ")));
        }
    }
    assert!(bad.is_empty(), "circles of imports:\n  {}", bad.join("\n  "));
}

#[test]
fn the_picture_is_of_today() {
    let mut arrows: BTreeMap<(String, String), usize> = BTreeMap::new();
    for Import { from, to, .. } in house() {
        let (from, to) = (module_of(&from).to_string(), module_of(&to).to_string());
        if from != to {
            *arrows.entry((from, to)).or_default() += 1;
        }
    }
    let drawn = picture::draw(&LAYERS, &arrows);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/layers.svg");
    if std::env::var_os("PORTOLAN_BLESS").is_some() {
        std::fs::write(&path, &drawn).expect("docs/layers.svg can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == drawn,
        "docs/layers.svg is not the picture of these sources; \
         `PORTOLAN_BLESS=1 cargo test --test layers` draws it anew"
    );
}
