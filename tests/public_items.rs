//! Compares the items that the crate `portolan` exports with the list in
//! `public-api.txt`. An item that is added, removed or renamed must also be changed
//! in the list, so a change of the public interface is visible in a review.
//!
//! The test reads only names, from the `pub use` and `pub mod` declarations of the sources, and
//! needs no nightly toolchain. `scripts/dev release-check` compares signatures too. To update the
//! list:
//!
//!     scripts/dev public-api >public-api.txt

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Attribute, File, Item, UseTree, Visibility};

fn source(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of)
}

fn parsed(file: &Path) -> File {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    let hides = |a: &Attribute| {
        a.path().is_ident("doc")
            && a.parse_args::<syn::Ident>().is_ok_and(|argument| argument == "hidden")
    };
    attributes.iter().any(hides)
}

fn names_of(tree: &UseTree, module: &str, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => names_of(&path.tree, module, names),
        UseTree::Group(group) => group.items.iter().for_each(|t| names_of(t, module, names)),
        UseTree::Name(name) => drop(names.insert(format!("{module}::{}", name.ident))),
        UseTree::Rename(name) if name.rename == "_" => {}
        UseTree::Rename(name) => drop(names.insert(format!("{module}::{}", name.rename))),
        UseTree::Glob(_) => panic!("{module} re-exports a glob, so its items are not listed"),
    }
}

/// Adds the items of a module and of its public modules, whose files are in `folder`.
fn exported(items: &[Item], module: &str, folder: &Path, names: &mut BTreeSet<String>) {
    names.insert(module.to_string());
    let mut add = |name: &syn::Ident| names.insert(format!("{module}::{name}"));
    let mut modules = Vec::new();
    let mut uses = Vec::new();
    for item in items {
        match item {
            Item::Mod(m) if is_public(&m.vis) && !is_hidden(&m.attrs) => modules.push(m),
            Item::Use(u) if is_public(&u.vis) => uses.push(u),
            Item::Struct(i) if is_public(&i.vis) => drop(add(&i.ident)),
            Item::Enum(i) if is_public(&i.vis) => drop(add(&i.ident)),
            Item::Trait(i) if is_public(&i.vis) => drop(add(&i.ident)),
            Item::Fn(i) if is_public(&i.vis) => drop(add(&i.sig.ident)),
            Item::Type(i) if is_public(&i.vis) => drop(add(&i.ident)),
            Item::Const(i) if is_public(&i.vis) => drop(add(&i.ident)),
            Item::Static(i) if is_public(&i.vis) => drop(add(&i.ident)),
            _ => {}
        }
    }
    uses.iter().for_each(|u| names_of(&u.tree, module, names));
    for m in modules {
        let (inner, below) = (format!("{module}::{}", m.ident), folder.join(m.ident.to_string()));
        match &m.content {
            Some((_, items)) => exported(items, &inner, &below, names),
            None => {
                let file = Some(below.with_extension("rs")).filter(|file| file.exists());
                let file = file.unwrap_or_else(|| below.join("mod.rs"));
                exported(&parsed(&file).items, &inner, &below, names);
            }
        }
    }
}

/// Returns the path of the item that a line of the list declares, unless it belongs to a type.
fn listed(line: &str) -> Option<String> {
    const KINDS: [&str; 9] =
        ["mod", "use", "struct", "enum", "trait", "fn", "type", "const", "static"];
    let line = line.strip_prefix("#[non_exhaustive] ").unwrap_or(line).strip_prefix("pub ")?;
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    let (kind, rest) = line.split_once(' ')?;
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let path = rest.split(|c| !is_path(c)).next()?.trim_end_matches(':');
    // The last segment but one of a method or associated item is a type.
    let mut parents = path.split("::").collect::<Vec<_>>();
    parents.pop();
    let in_type = parents.iter().any(|p| p.starts_with(char::is_uppercase));
    (KINDS.contains(&kind) && !in_type && path.split("::").next() == Some("portolan"))
        .then(|| path.to_string())
}

#[test]
fn the_list_has_the_names_that_the_crate_exports() {
    let mut names = BTreeSet::new();
    exported(&parsed(&source("src/lib.rs")).items, "portolan", &source("src"), &mut names);
    assert!(names.contains("portolan::Runtime") && names.contains("portolan::rpc::bulk::Bulk"));
    let text = fs::read_to_string(source("public-api.txt")).expect("the list is there");
    let list: BTreeSet<String> = text.lines().filter_map(listed).collect();
    let missing: Vec<_> = names.difference(&list).collect();
    let gone: Vec<_> = list.difference(&names).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "public-api.txt lacks {missing:?}, and lists {gone:?}, which the crate does \
         not export; update it by scripts/dev public-api"
    );
}

#[test]
fn lines_of_the_list_are_understood() {
    let path = |line| listed(line).unwrap_or_default();
    assert_eq!(
        path("pub struct portolan::transfer::Remote<'a, 'rt, T>"),
        "portolan::transfer::Remote"
    );
    assert_eq!(path("#[non_exhaustive] pub enum portolan::OnPanic"), "portolan::OnPanic");
    assert_eq!(path("pub fn portolan::run<E>(impl Fn()) -> u8"), "portolan::run");
    assert_eq!(path("pub fn portolan::Runtime::rank(&self) -> usize"), "");
    assert_eq!(path("pub fn portolan_rpc::proc::to_vec<T>(&T)"), "");
    assert_eq!(path("pub portolan::OnPanic::Abort"), "");
}
