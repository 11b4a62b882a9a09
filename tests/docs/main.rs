//! Checks the pages of `docs/`: every link has a target, every listing matches its source, and
//! every page is in the table of contents. Also checks that the sources contain the names that
//! ARCHITECTURE.md and docs/performance.md use, and that every script prints its usage.

mod listings;
mod scripts;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

struct Page {
    /// The targets of its links, without links to other sites.
    links: Vec<String>,
    /// The anchors of its headings, as they appear in links.
    anchors: BTreeSet<String>,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in a folder").to_path_buf()
}

fn anchor(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

fn page(path: &Path) -> Page {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut links, mut anchors, mut heading) = (Vec::new(), BTreeSet::new(), None);
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. })
                if !dest_url.contains("://") =>
            {
                links.push(dest_url.to_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                anchors.extend(heading.take().map(|h| anchor(&h)));
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            _ => {}
        }
    }
    Page { links, anchors, text }
}

/// Pages for contributors. The package for users does not contain all of them.
const MORE: [&str; 4] =
    ["ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md", "tests/README.md"];

/// All pages of `docs/`, the README and [`MORE`], by their path from the root.
fn pages() -> BTreeMap<PathBuf, Page> {
    let mut found = BTreeMap::from([(PathBuf::from("README.md"), page(&root().join("README.md")))]);
    for name in MORE.into_iter().filter(|name| root().join(name).exists()) {
        found.insert(PathBuf::from(name), page(&root().join(name)));
    }
    for entry in fs::read_dir(root().join("docs")).expect("docs/ is there").flatten() {
        if entry.path().extension().is_some_and(|e| e == "md") {
            found.insert(Path::new("docs").join(entry.file_name()), page(&entry.path()));
        }
    }
    assert!(found.len() > 10, "only {} pages found", found.len());
    found
}

fn broken(from: &Path, link: &str, pages: &BTreeMap<PathBuf, Page>) -> Option<String> {
    let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
    let to = match file {
        "" => from.to_path_buf(),
        file => from.parent().unwrap_or(Path::new("")).join(file),
    };
    if !root().join(&to).exists() {
        return Some(format!("{}: {link} leads to no file", from.display()));
    }
    // The book contains only the files of docs/.
    if from.starts_with("docs") && file.contains('/') {
        return Some(format!("{}: {link} leads out of the book", from.display()));
    }
    if fragment.is_empty() {
        return None;
    }
    match pages.get(&to) {
        Some(page) if page.anchors.contains(fragment) => None,
        Some(_) => Some(format!("{}: {link} names no heading there", from.display())),
        None => Some(format!("{}: {link} names a heading of what is no page", from.display())),
    }
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let faults: Vec<String> = pages
        .iter()
        .flat_map(|(path, page)| page.links.iter().filter_map(|l| broken(path, l, &pages)))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(broken(Path::new("docs/index.md"), "no-such-page.md", &pages).is_some());
    assert!(broken(Path::new("docs/index.md"), "clusters.md#no-such-heading", &pages).is_some());
    assert!(broken(Path::new("docs/index.md"), "../examples/c/hello.c", &pages).is_some());
    assert!(broken(Path::new("docs/index.md"), "clusters.md#containers", &pages).is_none());
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let pages = pages();
    let listed: BTreeSet<&str> =
        pages[Path::new("docs/SUMMARY.md")].links.iter().map(String::as_str).collect();
    for path in pages.keys().filter(|p| p.starts_with("docs")) {
        let name = path.file_name().and_then(|n| n.to_str()).expect("names are ASCII");
        assert!(name == "SUMMARY.md" || listed.contains(name), "docs/SUMMARY.md lacks {name}");
    }
}

fn words(module: &Path) -> BTreeSet<String> {
    let mut files = vec![module.with_extension("rs")];
    files.extend(fs::read_dir(module).into_iter().flatten().flatten().map(|entry| entry.path()));
    let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    texts
        .flat_map(|text| {
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.map(str::to_string).collect::<Vec<_>>()
        })
        .collect()
}

/// Describes the first name in `path::to::something` that does not exist, if the path begins with a
/// module of `base`, of the engine or of the Rust interface, or with a crate.
fn unknown(path: &str) -> Option<String> {
    let is_module = |m: &Path| m.is_dir() || m.with_extension("rs").is_file();
    let mut rest = path.split("::").peekable();
    let inside = |name: &str| match name {
        "portolan" => root().join("src"),
        name => root().join("crates").join(name).join("src"),
    };
    // The first word is a crate (`rpc::na`), or a module of one of three crates.
    let own = inside(rest.peek()?);
    let mut module = if own.is_dir() {
        rest.next();
        own
    } else {
        let first = rest.peek()?;
        ["base", "engine", "portolan"]
            .map(inside)
            .into_iter()
            .find(|src| is_module(&src.join(first)))?
    };
    while let Some(deeper) = rest.peek().map(|n| module.join(n)).filter(|m| is_module(m)) {
        module = deeper;
        rest.next();
    }
    let known = words(&module);
    rest.find(|name| !known.contains(*name)).map(|name| format!("{path}: no {name} there"))
}

/// Describes the tests that a page names and that do not exist: checks of the targets `ranks` and
/// `sim` (a name may end in `*`), and models.
fn unknown_tests(text: &str) -> Vec<String> {
    let all = |folder: &str| -> String {
        let files = fs::read_dir(root().join(folder)).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect()
    };
    let targets =
        [("ranks `", "name: \"", all("tests/ranks")), ("sim `", "case(\"", all("crates/sim/src"))];
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut missing = Vec::new();
    for (target, before, sources) in targets {
        for list in text.split(target).skip(1) {
            for pair in list.split('`').collect::<Vec<_>>().chunks(2) {
                let name = pair[0];
                let found = match name.strip_suffix('*') {
                    Some(prefix) => sources.contains(&format!("{before}{prefix}")),
                    None => sources.contains(&format!("{before}{name}\"")),
                };
                if !found {
                    missing.push(format!("{target}{name}`"));
                }
                if pair.get(1) != Some(&", ") {
                    break;
                }
            }
        }
    }
    let models = text.split('`').filter(|code| code.starts_with("models/tests/"));
    missing.extend(models.filter(|model| !root().join(model).exists()).map(String::from));
    missing
}

#[test]
fn what_the_architecture_names_is_there() {
    let Ok(architecture) = fs::read_to_string(root().join("ARCHITECTURE.md")) else { return };
    let performance = fs::read_to_string(root().join("docs/performance.md")).expect("the page");
    let is_path = |code: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        code.contains("::") && code.chars().all(plain)
    };
    for (page, least) in [(architecture, 50), (performance, 25)] {
        let paths: BTreeSet<&str> = page.split('`').skip(1).step_by(2).filter(is_path).collect();
        assert!(paths.len() > least, "only {} paths found", paths.len());
        let faults: Vec<String> = paths.into_iter().filter_map(unknown).collect();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        let missing = unknown_tests(&page);
        assert!(missing.is_empty(), "there is no test {missing:?}");
    }
    assert!(unknown("am::no_such_module").is_some());
    assert!(unknown("am::send::no_such_name").is_some());
    assert!(unknown("wait::no_such_name").is_some());
    assert!(unknown("std::fmt").is_none());
    let named =
        "ranks `random`, `no_such_check`; sim `programs`, `watch*`, and `models/tests/no.rs`";
    let missing = ["ranks `no_such_check`", "sim `watch*`", "models/tests/no.rs"];
    assert_eq!(unknown_tests(named), missing);
}

#[test]
fn the_page_of_mercury_has_the_variables_of_mercury() {
    let text = |name: &str| fs::read_to_string(root().join("docs").join(name)).expect(name);
    let (all, mercury) = (text("environment.md"), text("mercury.md"));
    let own = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("| `PORTOLAN_RPC_")).map(String::from).collect()
    };
    assert_eq!(own(&mercury), own(&all), "copy the rows of docs/environment.md to docs/mercury.md");
    assert!(!own(&all).is_empty());
}
