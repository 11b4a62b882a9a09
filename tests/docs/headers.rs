//! The programs `tests/c/*symbols.c` name every function of their headers, and no other. They link
//! only if the library has what they name, so the library has every function of these headers.

use super::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Returns the text without the parts that begin with `from` and end with `to`.
fn without(text: &str, from: &str, to: &str) -> String {
    let mut parts = text.split(from);
    let mut kept = parts.next().unwrap_or_default().to_string();
    for part in parts {
        kept.push_str(part.split_once(to).map_or("", |(_, rest)| rest));
    }
    kept
}

/// Returns the functions that a header declares. Names that end with `_` are private.
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
    let names = functions.filter_map(|d| d.split_once('(')?.0.split([' ', '\n', '*']).next_back());
    names.filter(|name| !name.is_empty() && !name.ends_with('_')).map(String::from).collect()
}

/// Returns the names in the table of a program, which has a line `#define NAME(name)` before them.
fn listed(program: &str) -> BTreeSet<String> {
    let names = program.split("NAME(").skip(2).filter_map(|rest| rest.split_once(')'));
    names.map(|(name, _)| name.to_string()).collect()
}

fn headers(folder: &str, select: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let files = fs::read_dir(root().join("include").join(folder)).expect("the headers").flatten();
    let files = files.map(|file| file.path()).filter(|path| path.is_file());
    files
        .filter(|path| path.file_name().is_some_and(|name| name.to_str().is_some_and(&select)))
        .collect()
}

#[test]
fn programs_name_every_function_of_their_headers() {
    let armci = ["armci.h", "armcix.h", "message.h", "portolan.h"];
    let programs = [
        ("symbols", headers("", |name| armci.contains(&name))),
        ("x10_symbols", headers("x10", |name| name.ends_with(".h"))),
        ("mercury_symbols", headers("", |name| name.starts_with("mercury") || name == "na.h")),
        ("mercury2_symbols", headers("mercury2", |name| name.ends_with(".h"))),
    ];
    for (program, headers) in programs {
        let file = root().join(format!("tests/c/{program}.c"));
        let listed = listed(&fs::read_to_string(&file).expect("the program"));
        let declared: BTreeSet<String> = headers
            .iter()
            .flat_map(|h| declared(&fs::read_to_string(h).expect("a header")))
            .collect();
        let missing: Vec<_> = declared.difference(&listed).collect();
        let unknown: Vec<_> = listed.difference(&declared).collect();
        assert!(declared.len() > 50, "{program}: only {declared:?} found in the headers");
        assert!(missing.is_empty(), "{} lacks NAME({missing:?})", file.display());
        assert!(unknown.is_empty(), "{}: the headers do not declare {unknown:?}", file.display());
    }
}
