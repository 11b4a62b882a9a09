//! Collects the imports between source files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::Visit;
use syn::{Attribute, Item, UseTree};

/// Maximum number of chained re-exports that are followed.
const MOST_HOPS: usize = 8;

/// The names of the workspace's crates in paths: the prefix and the short name of the crate.
const PREFIX: &str = "portolan_";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    pub from: String,
    pub to: String,
    pub name: String,
}

/// For example `["engine", "am", "ring"]`.
type Module = Vec<String>;

struct File {
    path: String,
    parsed: syn::File,
    /// Public re-exports of the module: the exported name and the path that it comes from.
    exports: BTreeMap<String, Vec<String>>,
}

pub struct Sources {
    files: BTreeMap<Module, File>,
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the sources are there");
    for entry in entries.map(|entry| entry.expect("a folder's entry").path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            found.push(entry);
        }
    }
}

pub fn texts(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    sources(folder, &mut paths);
    let text = |path: &PathBuf| std::fs::read_to_string(path).expect("a source can be read");
    paths.into_iter().map(|path| (path.clone(), text(&path))).collect()
}

fn module(krate: &str, path: &Path) -> Module {
    let mut parts: Module = vec![krate.to_string()];
    parts.extend(path.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()));
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|ident| ident == "test")
    })
}

fn leaves(tree: &UseTree, mut path: Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    match tree {
        UseTree::Path(part) => {
            path.push(part.ident.to_string());
            leaves(&part.tree, path, found);
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            if name != "self" {
                path.push(name.clone());
                found.push((path, name));
            } else if let Some(last) = path.last().cloned() {
                found.push((path, last));
            }
        }
        UseTree::Rename(rename) => {
            path.push(rename.ident.to_string());
            found.push((path, rename.rename.to_string()));
        }
        UseTree::Glob(_) => {
            path.push("*".into());
            found.push((path, "*".into()));
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                leaves(tree, path.clone(), found);
            }
        }
    }
}

impl Sources {
    /// Reads all files of crates, given by their short names and source folders.
    pub fn read(crates: &[(&str, PathBuf)]) -> Sources {
        let mut all = Sources { files: BTreeMap::new() };
        for (krate, src) in crates {
            all.add(krate, src);
        }
        all
    }

    fn add(&mut self, krate: &str, src: &Path) {
        let mut paths = Vec::new();
        sources(src, &mut paths);
        for path in paths {
            let text = std::fs::read_to_string(&path).expect("a source can be read");
            let parsed = syn::parse_file(&text).expect("a source is Rust");
            let mut exports = BTreeMap::new();
            for item in &parsed.items {
                if let Item::Use(import) = item
                    && !matches!(import.vis, syn::Visibility::Inherited)
                {
                    let mut found = Vec::new();
                    leaves(&import.tree, Vec::new(), &mut found);
                    exports.extend(found.into_iter().map(|(path, name)| (name, path)));
                }
            }
            let below = path.strip_prefix(src).expect("below src").to_path_buf();
            let file = File { path: format!("{krate}/{}", below.display()), parsed, exports };
            self.files.insert(module(krate, &below), file);
        }
    }

    /// All imports between two different files, except imports of test code.
    pub fn imports(&self) -> Vec<Import> {
        let mut all = BTreeSet::new();
        for (module, file) in &self.files {
            let mut walk = Walk { paths: Vec::new() };
            for item in &file.parsed.items {
                walk.visit_item(item);
            }
            for path in walk.paths {
                if let Some((to, name)) = self.find(module, &path, 0)
                    && to != file.path
                {
                    all.insert(Import { from: file.path.clone(), to, name });
                }
            }
        }
        all.into_iter().collect()
    }

    /// Returns the file that defines what `path` names in `module`, and the imported name.
    fn find(&self, module: &Module, path: &[String], depth: usize) -> Option<(String, String)> {
        let mut at: Module = module.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                at.truncate(1);
                rest = &rest[1..];
            }
            other if other.starts_with(PREFIX) => {
                at = vec![other[PREFIX.len()..].to_string()];
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            // A child module that is named without `self`.
            child => {
                let mut below = at.clone();
                below.push(child.to_string());
                self.files.get(&below)?;
            }
        }
        while let Some(part) = rest.first() {
            let mut below = at.clone();
            below.push(part.clone());
            if !self.files.contains_key(&below) {
                break;
            }
            at = below;
            rest = &rest[1..];
        }
        let file = self.files.get(&at)?;
        if let Some(elsewhere) = rest.first().and_then(|name| file.exports.get(name))
            && depth < MOST_HOPS
        {
            let mut path = elsewhere.clone();
            path.extend(rest[1..].iter().cloned());
            if let Some(found) = self.find(&at, &path, depth + 1) {
                return Some(found);
            }
        }
        let name = rest.first().or(path.last())?.clone();
        Some((file.path.clone(), name))
    }
}

struct Walk {
    paths: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return syn::visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        let mut found = Vec::new();
        leaves(&import.tree, Vec::new(), &mut found);
        self.paths.extend(found.into_iter().map(|(path, _)| path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        let first = parts[0].as_str();
        if parts.len() > 1
            && (["crate", "super", "self"].contains(&first) || first.starts_with(PREFIX))
        {
            self.paths.push(parts);
        }
        syn::visit::visit_path(self, path);
    }

    /// The path in `pub(in path)` restricts visibility and imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    /// The arguments of most macros of the crate are expressions, so they are parsed as such.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        let parser = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = call.parse_body_with(parser) {
            for argument in &arguments {
                // The parsed tree is local to this function, so only its paths are kept.
                let mut inner = Walk { paths: Vec::new() };
                inner.visit_expr(argument);
                self.paths.extend(inner.paths);
            }
        }
    }
}
