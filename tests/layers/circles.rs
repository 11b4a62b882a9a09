//! Import cycles: sets of files that all reach each other by imports.

use super::imports::Import;
use std::collections::{BTreeMap, BTreeSet};

/// Returns all cycles of more than one file, found with Tarjan's algorithm, longest first.
pub fn of(imports: &[Import]) -> Vec<Vec<String>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for import in imports {
        next.entry(&import.from).or_default().insert(&import.to);
        next.entry(&import.to).or_default();
    }
    let mut walk =
        Walk { next: &next, seen: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
    for file in next.keys() {
        if !walk.seen.contains_key(file) {
            walk.visit(file);
        }
    }
    let mut found = walk.found;
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

struct Walk<'a> {
    next: &'a BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// For each file: the order of its first visit, the earliest file that it reaches, and whether
    /// it is on the stack.
    seen: BTreeMap<&'a str, (usize, usize, bool)>,
    stack: Vec<&'a str>,
    found: Vec<Vec<String>>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, file: &'a str) -> usize {
        let number = self.seen.len();
        self.seen.insert(file, (number, number, true));
        self.stack.push(file);
        let mut lowest = number;
        for to in &self.next[file] {
            match self.seen.get(to) {
                None => lowest = lowest.min(self.visit(to)),
                Some((met, _, true)) => lowest = lowest.min(*met),
                Some(_) => {}
            }
        }
        if lowest == number {
            let from = self.stack.iter().position(|f| *f == file).expect("it was pushed");
            let circle = self.stack.split_off(from);
            for file in &circle {
                self.seen.get_mut(file).expect("it was met").2 = false;
            }
            if circle.len() > 1 {
                self.found.push(circle.into_iter().map(str::to_string).collect());
            }
        }
        lowest
    }
}
