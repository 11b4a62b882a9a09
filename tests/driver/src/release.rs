//! The checks before a release that are not part of the tests, and the list of public items.

use crate::mpi::{self, Mpi, output};
use crate::report::tail;
use crate::{launch, system};
use regex::Regex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const HELP: &str = "\
Checks:
  changelog   CHANGELOG.md has a section for the version of Cargo.toml, or `Unreleased`
  contents    the package contains what users build and run, and no test data
  publish     cargo publish --dry-run of the workspace succeeds without warnings, and the packed
              crates build
  symbols     every C call of the last release's shared library is still in this one
  items       the public Rust interface is the one that public-api.txt lists (scripts/dev
              public-api, with cargo-public-api)
  interface   lists what is new, changed or removed in that list since the last release
  semver      the version of Cargo.toml permits these changes, by cargo-semver-checks

The last release is the newest tag v*, or REF. If there is none, `symbols` only writes its list, and
`interface` and `semver` are skipped. A check whose tool is missing is skipped, with a message. The
output is in target/release-check, for the review of the release. The last line is `N passed,
N failed`.";

pub const API_HELP: &str = "\
The list is made by cargo-public-api, which needs a nightly toolchain. After the items of the crate
`portolan` come those of the types that it re-exports from internal crates of the workspace, under
their internal paths. Automatic traits that depend on the compiler are omitted, except Send and
Sync. public-api.txt is the output:

    scripts/dev public-api >public-api.txt";

/// The list of public items, relative to the root.
const ITEMS: &str = "public-api.txt";

/// Types that `portolan` re-exports from internal crates: package, module, names.
const REEXPORTED: &[(&str, &str, &[&str])] = &[
    ("portolan-base", "error", &["Error", "ErrorKind", "Result"]),
    ("portolan-engine", "collective", &["Reducible"]),
    ("portolan-engine", "memory::runs", &["Run"]),
    ("portolan-engine", "mpi::init", &["ThreadLevel"]),
    ("portolan-compose", "", &["CompositionKind"]),
    ("portolan-rpc", "hg", &["Call", "Class", "Context", "Handle", "Listen", "Rpc", "BulkOp"]),
    ("portolan-rpc", "na", &["Address", "OpId", "Permission"]),
    ("portolan-rpc", "failure", &["Failure", "Status"]),
    ("portolan-rpc", "bulk", &["Buffer", "Bulk", "BulkOffset"]),
    ("portolan-rpc", "checksum", &["Checksum", "Method"]),
    ("portolan-rpc", "proc", &["Fault", "HgString", "MAX_DEPTH", "from_slice", "to_vec"]),
];

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The MPI to build with, Debian's MPICH by default
    #[arg(long, value_name = "M")]
    mpi: Option<String>,
    /// The commit to compare with
    #[arg(long, value_name = "REF")]
    since: Option<String>,
    /// Install cargo-public-api from crates.io into target/tools
    #[arg(long)]
    install: bool,
}

#[derive(Debug, clap::Args)]
pub struct ApiOptions {
    /// The MPI to build with, Debian's MPICH by default
    #[arg(long, value_name = "M")]
    mpi: Option<String>,
}

/// Returns the MPI of an option, with the installed tools in its search path.
fn mpi_of(name: Option<&String>) -> Result<Mpi, String> {
    let name = name.map_or_else(mpi::default_name, |name| Ok(name.clone()))?;
    let mut mpi = Mpi::complete(&name)?;
    let tools = system::root().join("target/tools/bin");
    let path = mpi.environment.entry("PATH".into()).or_default();
    *path = format!("{}:{path}", tools.display());
    Ok(mpi)
}

pub fn print_items(options: &ApiOptions) -> Result<ExitCode, String> {
    print!("{}", items(&mpi_of(options.mpi.as_ref())?)?);
    Ok(ExitCode::SUCCESS)
}

fn items(mpi: &Mpi) -> Result<String, String> {
    let automatic = r"^impl.* !?core::(marker::(Freeze|Unpin|UnsafeUnpin|StructuralPartialEq)|panic::unwind_safe::[A-Za-z]+) for ";
    let automatic = Regex::new(automatic).expect("a pattern");
    let of = |package: &str, more: &[&str]| {
        let words = [&["cargo", "public-api", "-p", package, "--simplified"], more].concat();
        let text = output(&mut mpi.command(&words))?;
        Ok::<_, String>(text.lines().filter(|l| !automatic.is_match(l)).map(String::from).collect())
    };
    let mut all: Vec<String> = of("portolan", &["--features", "array,rpc"])?;
    for (package, module, names) in REEXPORTED {
        // The items whose path is the module, any modules below it, and one of the names, and the
        // implementations for them.
        let module = if module.is_empty() { String::new() } else { format!("{module}::") };
        let path = package.replace('-', "_") + "::" + &module;
        let path = format!("{path}([a-z_]+::)*({})", names.join("|"));
        let begin = r"(impl(<.*>)? |impl.* for |(#\[[^]]*\] )*pub [a-z ]*)";
        let item = Regex::new(&format!("^{begin}{path}([:<( ;]|$)")).expect("a pattern");
        let mut seen = BTreeSet::new();
        let lines: Vec<String> = of(package, &[])?;
        all.extend(lines.into_iter().filter(|l| item.is_match(l) && seen.insert(l.clone())));
    }
    Ok(all.join("\n") + "\n")
}

struct Check {
    mpi: Mpi,
    out: PathBuf,
    /// The last release.
    since: Option<String>,
    version: String,
    passed: usize,
    failed: usize,
}

pub fn main(options: &Options) -> Result<ExitCode, String> {
    let mpi = mpi_of(options.mpi.as_ref())?;
    let out = system::root().join("target/release-check");
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let describe = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"];
    let last = || output(&mut mpi.command(&describe)).ok().map(|tag| tag.trim().to_string());
    let since = options.since.clone().or_else(last);
    let id = output(&mut mpi.command(&["cargo", "pkgid", "-p", "portolan"]))?;
    let version = id.trim().rsplit(['#', '@']).next().unwrap_or_default().to_string();
    let mut check = Check { mpi, out, since, version, passed: 0, failed: 0 };
    if options.install && !check.has("public-api") {
        let words = "cargo install --locked --root target/tools --target-dir target/tools/build cargo-public-api";
        let words: Vec<&str> = words.split(' ').collect();
        let child = check.mpi.command(&words).spawn().map_err(|e| format!("cargo: {e}"))?;
        if !launch::wait_for(child) {
            return Err("cargo-public-api could not be installed".into());
        }
    }
    for (name, run) in CHECKS {
        match run(&check) {
            Ok(Verdict::Ok(note)) => {
                check.passed += 1;
                println!("ok   {name}: {note}");
            }
            Ok(Verdict::Skip(why)) => println!("skip {name}: {why}"),
            Err(Fault(why, text)) => {
                check.failed += 1;
                println!("FAIL {name}: {why}");
                tail(20, &[&text]).iter().for_each(|line| println!("     | {line}"));
            }
        }
    }
    println!("{} passed, {} failed", check.passed, check.failed);
    Ok(if check.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

enum Verdict {
    Ok(String),
    Skip(String),
}

/// Why a check fails, and the text that shows it.
struct Fault(String, String);

impl From<String> for Fault {
    fn from(why: String) -> Fault {
        Fault(why, String::new())
    }
}

type Outcome = Result<Verdict, Fault>;
type Run = fn(&Check) -> Outcome;

const CHECKS: [(&str, Run); 7] = [
    ("changelog", Check::changelog),
    ("contents", Check::contents),
    ("publish", Check::publish),
    ("symbols", Check::symbols),
    ("items", Check::items),
    ("interface", Check::interface),
    ("semver", Check::semver),
];

impl Check {
    fn has(&self, tool: &str) -> bool {
        output(&mut self.mpi.command(&["cargo", tool, "--version"])).is_ok()
    }

    fn read(path: &str) -> Result<String, Fault> {
        let text = std::fs::read_to_string(system::root().join(path));
        Ok(text.map_err(|e| format!("{path}: {e}"))?)
    }

    /// Runs a command with its output in a file of this check. Fails with `why` and the output.
    fn run(&self, words: &[&str], file: &str, why: &str) -> Result<String, Fault> {
        let log = self.out.join(file);
        let code = launch::follow(self.mpi.command(words), &log, |_| ())?;
        let text = launch::text_of(&log);
        if code == Some(0) { Ok(text) } else { Err(Fault(why.into(), text)) }
    }

    fn changelog(&self) -> Outcome {
        let version = regex::escape(&self.version);
        let head = Regex::new(&format!(r"(?m)^## (\[?{version}\b|Unreleased)")).expect("a pattern");
        if !head.is_match(&Check::read("CHANGELOG.md")?) {
            return Err(
                format!("no section for {} and none called Unreleased", self.version).into()
            );
        }
        Ok(Verdict::Ok(self.version.clone()))
    }

    /// --dry-run packs the crates, builds them and stops; it uploads nothing.
    fn publish(&self) -> Outcome {
        let words = ["cargo", "publish", "--workspace", "--dry-run", "--allow-dirty"];
        let text = self.run(&words, "publish.log", "cargo publish --workspace --dry-run fails")?;
        let warnings = text.lines().filter(|line| {
            line.starts_with("warning") && !line.contains("aborting upload due to dry run")
        });
        let warnings: Vec<&str> = warnings.collect();
        if !warnings.is_empty() {
            return Err(Fault("it warns".into(), warnings.join("\n")));
        }
        let packed = text.lines().filter(|line| line.trim_start().starts_with("Packaged "));
        Ok(Verdict::Ok(format!("{} crates are packed", packed.count())))
    }

    fn contents(&self) -> Outcome {
        let words = ["cargo", "package", "--list", "-p", "portolan", "--allow-dirty"];
        let text = output(&mut self.mpi.command(&words))?;
        let _ = std::fs::write(self.out.join("contents.txt"), &text);
        let strange = r"^(models|fuzz|scripts|target|\.ci)/|^tests/(c|ga|fortran|mpi-bugs)/";
        let strange = Regex::new(strange).expect("a pattern");
        let held: Vec<&str> = text.lines().filter(|line| strange.is_match(line)).collect();
        if !held.is_empty() {
            return Err(format!("it holds {}", held.join(", ")).into());
        }
        if !["src/lib.rs", "README.md"].iter().all(|name| text.lines().any(|l| l == *name)) {
            return Err(Fault("the sources or the README are not in it".into(), text));
        }
        Ok(Verdict::Ok(format!("{} files", text.lines().count())))
    }

    fn items(&self) -> Outcome {
        if !self.has("public-api") {
            let why =
                "no cargo-public-api (--install gets it); the test public_items compares names";
            return Ok(Verdict::Skip(why.into()));
        }
        let found = items(&self.mpi)?;
        let _ = std::fs::write(self.out.join(ITEMS), &found);
        let changes = differences(&Check::read(ITEMS)?, &found);
        if !changes.is_empty() {
            let why = format!("{ITEMS} is out of date: scripts/dev public-api >{ITEMS}");
            return Err(Fault(why, changes.join("\n")));
        }
        Ok(Verdict::Ok(format!("{} items", found.lines().count())))
    }

    /// Lists the changes. The reader decides whether they are allowed.
    fn interface(&self) -> Outcome {
        let Some(since) = self.since.clone() else { return Ok(no_release()) };
        let Ok(old) = output(&mut self.mpi.command(&["git", "show", &format!("{since}:{ITEMS}")]))
        else {
            return Ok(Verdict::Skip(format!("{since} has no {ITEMS}")));
        };
        let changes = differences(&old, &Check::read(ITEMS)?);
        let file = self.out.join("interface.txt");
        let _ = std::fs::write(&file, changes.join("\n") + "\n");
        let new = changes.iter().filter(|line| line.starts_with('+')).count();
        let gone = changes.len() - new;
        let file = file.display();
        Ok(Verdict::Ok(format!("{new} items new, {gone} gone since {since}, in {file}")))
    }

    fn semver(&self) -> Outcome {
        if !self.has("semver-checks") {
            return Ok(Verdict::Skip("no cargo-semver-checks".into()));
        }
        let Some(since) = self.since.clone() else { return Ok(no_release()) };
        let words = ["cargo", "semver-checks", "-p", "portolan", "--baseline-rev", &since];
        let why = format!("the version does not permit the changes since {since}");
        self.run(&words, "semver.txt", &why)?;
        Ok(Verdict::Ok(format!("the version permits all changes since {since}")))
    }

    fn symbols(&self) -> Outcome {
        let build = ["cargo", "build", "--release", "-p", "portolan-capi"];
        self.run(&build, "build.log", "it does not build")?;
        let names = self.names(&self.mpi.target)?;
        let list = self.out.join("symbols.txt");
        let text: Vec<&str> = names.iter().map(String::as_str).collect();
        let _ = std::fs::write(&list, text.join("\n") + "\n");
        let Some(since) = self.since.clone() else {
            let (count, list) = (names.len(), list.display());
            return Ok(Verdict::Ok(format!(
                "no release to compare with; the {count} names are in {list}"
            )));
        };
        let old = self.names_of_release(&since)?;
        let gone: Vec<&str> = old.difference(&names).map(String::as_str).collect();
        if !gone.is_empty() {
            return Err(format!("gone since {since}: {}", gone.join(", ")).into());
        }
        Ok(Verdict::Ok(format!("none is gone since {since}")))
    }

    fn names(&self, target: &Path) -> Result<BTreeSet<String>, Fault> {
        let library = target.join("release/libportolan.so").display().to_string();
        let text = output(&mut self.mpi.command(&["nm", "-D", "--defined-only", "-P", &library]))?;
        let symbols = text.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let (name, kind) = (words.next()?, words.next()?);
            matches!(kind, "T" | "W" | "D" | "B" | "V").then(|| name.to_string())
        });
        Ok(symbols.collect())
    }

    /// Builds the last release in a copy of its sources.
    fn names_of_release(&self, since: &str) -> Result<BTreeSet<String>, Fault> {
        let (sources, target) = (self.out.join("old"), self.out.join("old-build"));
        let path = sources.display().to_string();
        let _ = std::fs::remove_dir_all(&sources);
        std::fs::create_dir_all(&sources).map_err(|e| format!("{path}: {e}"))?;
        let archive = self.out.join("old.tar");
        let tar = archive.display().to_string();
        output(&mut self.mpi.command(&["git", "archive", "-o", &tar, since]))?;
        output(&mut self.mpi.command(&["tar", "-xf", &tar, "-C", &path]))?;
        let mut build = self.mpi.command(&["cargo", "build", "--release", "-p", "portolan-capi"]);
        build.current_dir(&sources).env("CARGO_TARGET_DIR", &target);
        let log = self.out.join("old-build.log");
        let code = launch::follow(build, &log, |_| ())?;
        let names = if code == Some(0) {
            self.names(&target)
        } else {
            Err(Fault(format!("{since} does not build"), launch::text_of(&log)))
        };
        for dir in [&sources, &target] {
            let _ = std::fs::remove_dir_all(dir);
        }
        let _ = std::fs::remove_file(archive);
        names
    }
}

fn no_release() -> Verdict {
    Verdict::Skip("no release to compare with".into())
}

/// Returns the lines that only one of the texts has: `-LINE` and `+LINE`.
fn differences(old: &str, new: &str) -> Vec<String> {
    let lines = |text: &'_ str| text.lines().map(String::from).collect::<BTreeSet<_>>();
    let (old, new) = (lines(old), lines(new));
    let gone = old.difference(&new).map(|line| format!("-{line}"));
    gone.chain(new.difference(&old).map(|line| format!("+{line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_both_sides() {
        assert_eq!(differences("a\nb\n", "b\nc\n"), ["-a", "+c"]);
        assert!(differences("a\nb\n", "b\na\n").is_empty());
    }
}
