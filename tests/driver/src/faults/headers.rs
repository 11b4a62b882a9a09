//! The symbols of the functions that the C headers declare.

use super::system;
use std::collections::BTreeSet;
use std::fs;

/// Returns the text without the parts that begin with `from` and end with `to`.
fn without(text: &str, from: &str, to: &str) -> String {
    let mut parts = text.split(from);
    let mut kept = parts.next().unwrap_or_default().to_string();
    for part in parts {
        kept.push_str(part.split_once(to).map_or("", |(_, rest)| rest));
    }
    kept
}

/// Returns the symbols of the functions that a header declares: their names, or the label `mercury2_X`
/// of `HG_LABEL(X)`. Names that end with `_` are private.
fn declared(header: &str) -> BTreeSet<String> {
    let text = without(&without(header, "/*", "*/"), "//", "\n").replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n").replace("extern \"C\" {", "");
    // Bodies of structs and of inline functions.
    let (mut outer, mut depth) = (String::new(), 0);
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if depth > 0 => {}
            _ => outer.push(c),
        }
        if c == '}' && depth == 0 {
            outer.push(';');
        }
        depth = depth.max(0); // the end of extern "C"
    }
    let declarations = outer.split(';').map(str::trim);
    let functions = declarations.filter(|d| {
        !d.starts_with("typedef")
            && !d.contains('=')
            && !d.split_whitespace().any(|w| w == "static" || w == "inline")
    });
    let symbols = functions.filter_map(|d| match d.split_once("HG_LABEL(") {
        Some((_, label)) => Some(format!("mercury2_{}", label.split_once(')')?.0)),
        None => d.split_once('(')?.0.split([' ', '\n', '*']).next_back().map(String::from),
    });
    symbols.filter(|name| !name.is_empty() && !name.ends_with('_')).collect()
}

/// Returns the symbols of the headers in `include/` whose paths begin with one of these texts.
pub fn symbols(begins: &[&str]) -> BTreeSet<String> {
    let include = system::root().join("include");
    let folders = ["", "x10", "mercury2"].map(|folder| fs::read_dir(include.join(folder)));
    let files = folders.into_iter().flat_map(|files| files.expect("the headers").flatten());
    let paths = files.map(|file| file.path()).filter(|path| path.is_file());
    let selected = paths.filter(|path| {
        let name = path.strip_prefix(&include).expect("a path in include/").to_string_lossy();
        begins.iter().any(|begin| name.starts_with(begin))
    });
    selected.flat_map(|path| declared(&fs::read_to_string(path).expect("a header"))).collect()
}
