//! Listings of pages are parts of files that are compiled or run. A page contains the text, so that
//! it is complete without the book, and names its source in a comment before the listing:
//!
//! ````markdown
//! <!-- listing: ../examples/heat.rs:step -->
//! ```rust,ignore
//! ````
//!
//! The name after the colon selects the lines between `ANCHOR: step` and `ANCHOR_END: step` of the
//! file. `PORTOLAN_BLESS=1 cargo test --test docs` writes the listings.

use super::{pages, root};
use std::fs;
use std::path::Path;

const MARK: &str = "<!-- listing: ";

/// Returns the lines of a file or anchor, without anchors and without common indentation.
fn part(text: &str, name: &str) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    if !name.is_empty() {
        let find = |mark: &str| lines.iter().position(|line| line.ends_with(mark));
        let begin = find(&format!("ANCHOR: {name}"))?;
        let end = find(&format!("ANCHOR_END: {name}"))?;
        lines = lines.get(begin + 1..end)?.to_vec();
    }
    lines.retain(|line| !line.contains("ANCHOR: ") && !line.contains("ANCHOR_END: "));
    let indents = lines.iter().filter(|line| !line.trim().is_empty());
    let indent = indents.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let mut part = String::new();
    for line in lines {
        part.push_str(line.get(indent..).unwrap_or("").trim_end());
        part.push('\n');
    }
    Some(part)
}

/// Returns a page with current listings and their number, or a message if a source or an anchor
/// does not exist.
fn with_listings(page: &Path, text: &str) -> Result<(String, usize), String> {
    let (mut new, mut count) = (String::new(), 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        new.push_str(line);
        new.push('\n');
        let Some(what) = line.strip_prefix(MARK) else { continue };
        let what = what.trim_end_matches("-->").trim();
        let (file, name) = what.split_once(':').unwrap_or((what, ""));
        let source = root().join(page).parent().expect("a folder").join(file);
        let fault = |why: String| format!("{}: {what}: {why}", page.display());
        let source = fs::read_to_string(&source).map_err(|e| fault(e.to_string()))?;
        let part = part(&source, name).ok_or_else(|| fault("no such anchor".into()))?;
        match lines.next() {
            Some(fence) if fence.starts_with("```") => new.push_str(fence),
            _ => return Err(fault("no listing follows".into())),
        }
        new.push('\n');
        new.push_str(&part);
        lines.by_ref().take_while(|line| *line != "```").for_each(drop);
        new.push_str("```\n");
        count += 1;
    }
    Ok((new, count))
}

#[test]
fn listings_are_those_of_their_sources() {
    let (mut found, mut stale) = (0, Vec::new());
    for (path, page) in pages() {
        let (new, count) = with_listings(&path, &page.text).unwrap_or_else(|why| panic!("{why}"));
        found += count;
        if new != page.text {
            if std::env::var_os("PORTOLAN_BLESS").is_some() {
                fs::write(root().join(&path), new).expect("the page can be written");
            } else {
                stale.push(path.display().to_string());
            }
        }
        assert!(!page.text.contains("{{#"), "{} has a directive of mdbook", path.display());
    }
    assert!(found >= 6, "only {found} listings found");
    assert!(stale.is_empty(), "PORTOLAN_BLESS=1 cargo test --test docs writes {stale:?}");
}

/// Every Rust listing on a page is a part of a file that is compiled.
#[test]
fn every_listing_in_rust_is_compiled() {
    // Pages for contributors may contain Rust code that the reader has to write.
    for (path, page) in pages().into_iter().filter(|(path, _)| !path.starts_with("tests")) {
        let lines: Vec<&str> = page.text.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[1].starts_with("```rust")) {
            assert!(pair[0].starts_with(MARK), "{} has a listing of its own", path.display());
        }
    }
}

#[test]
fn parts_lose_their_indentation() {
    let text = "a\n  // ANCHOR: x\n    b\n\n      c\n  // ANCHOR_END: x\nd\n";
    assert_eq!(part(text, "x").as_deref(), Some("b\n\n  c\n"));
    assert_eq!(part(text, "").as_deref(), Some("a\n    b\n\n      c\nd\n"));
    assert_eq!(part(text, "y"), None);
    assert!(with_listings(Path::new("docs/x.md"), "<!-- listing: ../no-such-file -->\n").is_err());
}
