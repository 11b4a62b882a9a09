//! Dependencies of the packages: each is used, the examples have few, licences are permissive, and
//! no new crate occurs in two versions.

use super::imports;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Dependencies that no source names, and why.
const UNNAMED: [(&str, &str); 3] = [
    ("portolan", "portolan"),                // the features of the examples
    ("portolan-kernels", "portolan-engine"), // its build script reads where the MPI is
    ("portolan-benches", "portolan-engine"), // the same
];

const PERMISSIVE: [&str; 7] =
    ["0BSD", "Apache-2.0", "BSD-3-Clause", "ISC", "MIT", "Unicode-3.0", "Zlib"];

/// Crates that occur in two versions, because others depend on the older one.
const TWICE: [&str; 8] = [
    "crypto-common", // crc-fast
    "digest",        // crc-fast
    "embedded-io",   // postcard
    "getrandom",     // ring
    "libloading",    // clang-sys
    "shlex",         // bindgen
    "syn",           // bindgen
    "windows-sys",   // ring; not compiled on Linux
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

/// The packages of the lock file, as `cargo metadata` describes them.
fn locked() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    let output = cargo.current_dir(root()).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// Returns whether each part of an expression like `(MIT OR GPL-3.0) AND ISC` permits free use.
fn is_permissive(licence: &str) -> bool {
    let one = |name: &str| {
        let name = name.split(" WITH ").next().unwrap_or(name);
        PERMISSIVE.contains(&name.trim_matches(['(', ')', ' ']))
    };
    let part = |part: &str| part.replace('/', " OR ").split(" OR ").any(one);
    licence.split(" AND ").all(part)
}

#[test]
fn dependencies_have_permissive_licences() {
    assert!(is_permissive("(MIT OR GPL-3.0) AND ISC") && is_permissive("Unlicense/MIT"));
    assert!(!is_permissive("MIT AND GPL-3.0") && !is_permissive(""));
    for package in locked() {
        let licence = package["license"].as_str().unwrap_or("");
        assert!(is_permissive(licence), "{} has the licence {licence:?}", package["name"]);
    }
}

#[test]
fn no_other_crate_occurs_in_two_versions() {
    let mut versions = BTreeMap::<String, usize>::new();
    for package in locked() {
        *versions.entry(package["name"].as_str().expect("a name").into()).or_default() += 1;
    }
    let twice: Vec<_> = versions.iter().filter(|(_, n)| **n > 1).map(|(name, _)| name).collect();
    assert_eq!(twice, TWICE, "crates in two versions");
}
