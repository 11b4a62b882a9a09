//! Dependencies of the packages: each is used, and the examples have few.

use super::imports;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Dependencies that no source names, and why.
const UNNAMED: [(&str, &str); 3] = [
    ("portolan", "portolan"),                // the features of the examples
    ("portolan-kernels", "portolan-engine"), // its build script reads where the MPI is
    ("portolan-benches", "portolan-engine"), // the same
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn dependencies(text: &str, table: &str) -> BTreeSet<String> {
    let lines = text.lines().skip_while(|line| *line != format!("[{table}]")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let name = |line: &str| line.split(['.', ' ', '=']).next().map(String::from);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).filter_map(name).collect()
}

fn manifest(folder: &Path) -> String {
    let path = folder.join("Cargo.toml");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The first example of a user compiles nothing that the library does not need.
#[test]
fn examples_depend_only_on_the_library_and_its_dependencies() {
    let text = manifest(&root());
    let mut library = dependencies(&text, "dependencies");
    assert!(library.contains("bytemuck"), "{library:?}");
    // fastrand makes random numbers for unit tests, and depends on nothing.
    library.extend(["portolan".into(), "fastrand".into()]);
    let examples = dependencies(&text, "dev-dependencies");
    let more: Vec<&String> = examples.difference(&library).collect();
    assert!(more.is_empty(), "the examples also depend on {more:?}");
}

#[test]
fn every_dependency_is_used() {
    let root = root();
    let crates = std::fs::read_dir(root.join("crates")).expect("the crates");
    let mut packages: Vec<PathBuf> = crates.map(|entry| entry.expect("a crate").path()).collect();
    packages
        .extend(["", "benches", "benches/kernels", "tests", "tests/driver"].map(|p| root.join(p)));
    let mut unused = Vec::new();
    for folder in packages {
        let text = manifest(&folder);
        let package = text.lines().find_map(|l| l.strip_prefix("name = \"")?.strip_suffix('"'));
        let package = package.expect("the package has a name");
        let parts = match package {
            "portolan" => vec![root.join("src"), root.join("examples")],
            // Its programs are checks of that folder.
            "portolan-sim" => vec![folder.clone(), root.join("tests/ranks")],
            _ => vec![folder.clone()],
        };
        let mut sources: Vec<_> = parts.iter().flat_map(|part| imports::texts(part)).collect();
        sources.retain(|(path, _)| !is_in_package_below(path, &folder));
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for name in dependencies(&text, table) {
                let word = name.replace('-', "_");
                let uses = [format!("{word}::"), format!("use {word} "), format!("use {word};")];
                let used = |(_, text): &(PathBuf, String)| uses.iter().any(|u| text.contains(u));
                if !sources.iter().any(used) && !UNNAMED.contains(&(package, &name)) {
                    unused.push(format!("{package}: {name}"));
                }
            }
        }
    }
    assert!(unused.is_empty(), "dependencies that no source uses: {unused:?}");
}

/// Returns whether a source belongs to another package inside the folder of this one.
fn is_in_package_below(source: &Path, folder: &Path) -> bool {
    let mut folders = source.ancestors().skip(1).take_while(|above| *above != folder);
    source.starts_with(folder) && folders.any(|above| above.join("Cargo.toml").exists())
}
