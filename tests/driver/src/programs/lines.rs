//! Parses the `TEST:` lines of a source and the families of `tests/families.txt`.
//!
//! ```text
//! TEST: FAMILY ...                  the cases of these families
//! TEST: n=3 node-size=2 -- write    a case: ranks, settings, arguments of the program
//! TEST: release n=4                 a case of the release run only
//! TEST: one of n=2 | n=1 | n=3      all of them in the release run, otherwise one; the next program
//!                                   with the same line takes the next one
//! TEST: n=2 build=static            built in another way: static, debian-header, pkg-config, mercury, cmake
//! TEST: abort n=2 -- index          the program must print EXPECT-ABORT and then end with an error
//! TEST: aborts n=2                  the same for every name that `PROGRAM list` prints
//! TEST: hosts                       the regression suite also runs it on several hosts
//! TEST: own-level                   it chooses MPI's thread level itself
//! TEST: faults                      only the suite `faults` runs it
//! ```
//! `{a,b}` in a line stands for each of the words in turn, as in a shell.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Exit code 0 and one line `PASS name`.
    Pass,
    /// A call must end the job: the exit code is not 0, and the program does not go on after it.
    Abort,
    /// An example of I/O forwarding: its files are read back as written and then removed.
    Forwarding,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub kind: Kind,
    pub ranks: usize,
    /// Words such as `path=rma`.
    pub settings: String,
    pub arguments: Vec<String>,
    /// An alternative way to build it.
    pub build: Option<String>,
}

#[derive(Debug, Clone)]
pub enum Entry {
    Case(Spec),
    /// A case of the release run.
    Release(Spec),
    /// A choice: one of the cases in turn, or all in the release run. The string is the line.
    OneOf(String, Vec<Spec>),
    /// Every case that `PROGRAM list` names must end the job. The case is the last argument.
    Aborts(Spec),
    Hosts,
    OwnLevel,
    Faults,
}

#[derive(Debug, Clone)]
pub struct Source {
    /// For example `c/values`.
    pub name: String,
    pub entries: Vec<Entry>,
}

pub type Families = HashMap<String, Vec<Entry>>;

/// Replaces every `{a,b}` by each of its words in turn.
fn expand(line: &str) -> Vec<String> {
    let Some((before, rest)) = line.split_once('{') else { return vec![line.into()] };
    let Some((inner, after)) = rest.split_once('}') else { return vec![line.into()] };
    let with = |word: &str| expand(&format!("{before}{word}{after}"));
    inner.split(',').flat_map(with).collect()
}

fn spec(text: &str, kind: Kind) -> Result<Spec, String> {
    let (head, arguments) = match text.split_once("--") {
        Some((head, arguments)) => (head, arguments),
        None => (text, ""),
    };
    let (mut ranks, mut build, mut settings) = (0, None, Vec::new());
    for word in head.split_whitespace() {
        match word.split_once('=') {
            Some(("n", count)) => ranks = count.parse().unwrap_or(0),
            Some(("build", how)) => build = Some(how.into()),
            Some(_) => settings.push(word),
            None => return Err(format!("there is no family or word '{word}'")),
        }
    }
    super::variables(&settings.join(" "))?;
    if ranks == 0 {
        return Err(format!("'{text}' does not say on how many ranks (n=2)"));
    }
    let arguments = arguments.split_whitespace().map(String::from).collect();
    Ok(Spec { kind, ranks, settings: settings.join(" "), arguments, build })
}

/// Returns the entries of a line, or a message if the line has an unknown word or a case without a
/// number of ranks.
pub fn parse(line: &str, families: &Families) -> Result<Vec<Entry>, String> {
    let line = line.trim();
    if let Some(options) = line.strip_prefix("one of ") {
        let specs: Result<Vec<Spec>, String> =
            options.split('|').map(|option| spec(option.trim(), Kind::Pass)).collect();
        return Ok(vec![Entry::OneOf(line.into(), specs?)]);
    }
    let mut entries = Vec::new();
    for line in expand(line) {
        if let Some(rest) = line.strip_prefix("release ") {
            entries.push(Entry::Release(spec(rest, Kind::Pass)?));
        } else if let Some(rest) = line.strip_prefix("abort ") {
            entries.push(Entry::Case(spec(rest, Kind::Abort)?));
        } else if let Some(rest) = line.strip_prefix("aborts ") {
            entries.push(Entry::Aborts(spec(rest, Kind::Abort)?));
        } else if line.starts_with("n=") {
            entries.push(Entry::Case(spec(&line, Kind::Pass)?));
        } else {
            for word in line.split_whitespace() {
                match (word, families.get(word)) {
                    ("hosts", _) => entries.push(Entry::Hosts),
                    ("own-level", _) => entries.push(Entry::OwnLevel),
                    ("faults", _) => entries.push(Entry::Faults),
                    (_, Some(family)) => entries.extend(family.iter().cloned()),
                    (_, None) => return Err(format!("there is no family or word '{word}'")),
                }
            }
        }
    }
    Ok(entries)
}

pub fn families(file: &Path) -> Result<Families, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let (mut all, none, mut name) = (Families::new(), Families::new(), String::new());
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        if let Some(head) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            name = head.into();
            all.entry(name.clone()).or_default();
        } else {
            let entries =
                parse(line, &none).map_err(|why| format!("{}: [{name}]: {why}", file.display()))?;
            all.get_mut(&name).ok_or(format!("{}: no [family]", file.display()))?.extend(entries);
        }
    }
    Ok(all)
}

pub fn sources(tests: &Path) -> Result<Vec<Source>, String> {
    let families = families(&tests.join("families.txt"))?;
    let mut all = Vec::new();
    for (folder, kinds) in
        [("c", &["c", "cpp"][..]), ("fortran", &["f90", "F90"]), ("ga", &["c", "F90"])]
    {
        let dir = tests.join(folder);
        let entries = std::fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let kind = |p: &PathBuf| p.extension().and_then(|e| e.to_str()).map(String::from);
        paths.retain(|path| kind(path).is_some_and(|kind| kinds.contains(&kind.as_str())));
        paths.sort();
        for path in paths {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            all.push(Source { name: format!("{folder}/{stem}"), entries: of(&path, &families)? });
        }
    }
    Ok(all)
}

fn of(path: &Path, families: &Families) -> Result<Vec<Entry>, String> {
    let text = super::super::launch::text_of(path);
    let mut entries = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '*', '/', '!']);
        if let Some(line) = line.strip_prefix("TEST:") {
            let some = parse(line, families).map_err(|why| format!("{}: {why}", path.display()))?;
            entries.extend(some);
        }
    }
    if entries.is_empty() {
        return Err(format!(
            "{}: no line `TEST: ...` says how it is run (tests/README.md)",
            path.display()
        ));
    }
    Ok(entries)
}
