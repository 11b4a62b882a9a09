//! The texts of the library in the notation of Python.

use std::fmt::{Display, Formatter, Result};

/// A tuple of integers.
pub struct Tuple<'a>(pub &'a [usize]);

impl Display for Tuple<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            [one] => write!(f, "({one},)"),
            all => {
                let texts: Vec<String> = all.iter().map(usize::to_string).collect();
                write!(f, "({})", texts.join(", "))
            }
        }
    }
}

/// The texts before lists of integers that are tuples in Python.
const BEFORE: [&str; 3] = ["shape [", "index [", "\" ["];

/// Writes shapes and indices, which are lists in Rust, as tuples.
pub fn with_tuples(text: &str) -> String {
    let (mut done, mut rest) = (String::new(), text);
    let next = |rest: &str| BEFORE.iter().filter_map(|b| Some(rest.find(b)? + b.len())).min();
    while let Some(begin) = next(rest) {
        let end = rest[begin..].find(']').map_or(rest.len(), |end| begin + end);
        let numbers = rest[begin..end].split(", ").map(str::parse::<usize>);
        let numbers: std::result::Result<Vec<usize>, _> = numbers.collect();
        match numbers {
            Ok(numbers) if end < rest.len() => {
                done += &format!("{}{}", &rest[..begin - 1], Tuple(&numbers));
                rest = &rest[end + 1..];
            }
            _ => {
                done += &rest[..begin];
                rest = &rest[begin..];
            }
        }
    }
    done + rest
}
