//! The commands of a stage: the words in braces of `tests/driver/stages.txt`.

use crate::mpi::{Mpi, output};
use crate::stages::{Level, Part};
use crate::{suite, system};

/// Test targets that start ranks.
const START_RANKS: [&str; 2] = ["ranks", "shared_name"];
/// Test targets of the part `quick`.
const QUICK_TARGETS: [&str; 2] = ["layers", "sim"];

/// The selection of the command line.
#[derive(Debug)]
pub struct Selected {
    /// The value of `--mpi`.
    pub mpis: String,
    pub level: Level,
    pub only: Option<Part>,
    pub filter: Option<String>,
}

impl Selected {
    /// Returns the variables by which the tests know their level. Except for a release, the second
    /// MPI runs at the level `quick`.
    pub fn variables(&self, first: bool) -> Vec<(&'static str, &'static str)> {
        let quick = self.only == Some(Part::Quick)
            || self.level == Level::Quick
            || self.level == Level::Full && !first;
        let variables = [
            ("PORTOLAN_TEST_QUICK", quick),
            // The random tests of services have ten times as many rounds.
            ("PORTOLAN_TEST_FULL", self.level >= Level::Full),
            ("PORTOLAN_TEST_RELEASE", self.level == Level::Release),
        ];
        variables.into_iter().filter(|(_, set)| *set).map(|(name, _)| (name, "1")).collect()
    }

    /// Returns the words of a command. Fails with the reason if it cannot run on this machine.
    pub fn words(&self, mpi: &Mpi, first: bool, line: &str) -> Result<Vec<String>, String> {
        let mut words: Vec<String> = Vec::new();
        let quick = self.only == Some(Part::Quick);
        for word in line.split_whitespace() {
            match word {
                "{driver}" => words.push(suite::this_program()?),
                "{mpi}" => words.push(mpi.name.clone()),
                "{mpis}" => words.push(self.mpis.clone()),
                "{prefix}" => words.push(mpi.prefix.display().to_string()),
                // The part `quick` alone uses a profile that builds fast and has the checks of a
                // debug build. Everything else shares the builds of the release profile.
                "{profile}" => words.push(if quick { "quick" } else { "release" }.into()),
                "{filter}" => words.extend(self.filter.clone()),
                "{cases}" => words.extend(self.filter.iter().flat_map(|filter| {
                    ["--suite", "programs,ranks", "--case", filter].map(String::from)
                })),
                "{unit-targets}" => words.extend(self.unit_targets(mpi)?),
                // The part `quick` lints only what it tests.
                "{lint-targets}" if quick => words.extend(self.unit_targets(mpi)?),
                "{lint-targets}" => {
                    words.extend(["--workspace", "--all-targets"].map(String::from))
                }
                "{tls}" if first && self.only != Some(Part::Rest) => {
                    words.extend(["--features", "portolan-rpc/tls"].map(String::from));
                }
                "{tls}" => {}
                "{first-example}" => {
                    words.push(if mpi.has_ga() { "ga_matmul" } else { "heat" }.into())
                }
                "{cblas}" => links_cblas(mpi)?,
                "{mdbook}" => words.push(mdbook()?),
                _ => words.push(word.into()),
            }
        }
        Ok(words)
    }

    /// Returns the options that select the unit tests: all test targets except those that start
    /// ranks. The examples take long to build, and the lints check that they compile.
    fn unit_targets(&self, mpi: &Mpi) -> Result<Vec<String>, String> {
        let metadata = ["cargo", "metadata", "--no-deps", "--format-version=1"];
        let mut names = test_targets(&output(&mut mpi.command(&metadata))?)?;
        let is_quick = |name: &String| QUICK_TARGETS.contains(&name.as_str());
        let options: &[&str] = match self.only {
            Some(Part::Quick) => &["--workspace", "--exclude", "portolan-tools", "--lib"],
            Some(Part::Rest) => &["--workspace", "--bins"],
            None => &["--workspace", "--lib", "--bins"],
        };
        names.retain(|name| self.only.is_none_or(|part| is_quick(name) == (part == Part::Quick)));
        let options = options.iter().map(|option| option.to_string());
        Ok(options.chain(names.into_iter().flat_map(|name| ["--test".into(), name])).collect())
    }
}

/// Returns the names of all test targets of the workspace that start no ranks.
fn test_targets(metadata: &str) -> Result<Vec<String>, String> {
    let metadata: serde_json::Value =
        serde_json::from_str(metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let targets = packages.iter().filter_map(|package| package["targets"].as_array()).flatten();
    let tests = targets.filter(|target| target["kind"][0] == "test");
    let names = tests.filter_map(|target| target["name"].as_str());
    Ok(names.filter(|name| !START_RANKS.contains(name)).map(String::from).collect())
}

/// Returns the program that makes the book.
fn mdbook() -> Result<String, String> {
    let own = system::root().join("target/tools/bin/mdbook");
    match own.is_file() {
        true => Ok(own.display().to_string()),
        false if system::on_path("mdbook") => Ok("mdbook".into()),
        false => Err("mdBook is not installed".into()),
    }
}

/// Checks that the compiler links the system's library of CBLAS, which `PORTOLAN_BLAS` names.
fn links_cblas(mpi: &Mpi) -> Result<(), String> {
    let value =
        |name: &str, default: &str| mpi.environment.get(name).cloned().unwrap_or(default.into());
    let (compiler, name) = (value("MPICC", "cc"), value("PORTOLAN_BLAS", "blas"));
    let (source, library) = (mpi.target.join("cblas.c"), format!("-l{name}"));
    let text = "void cblas_dgemm(void); int main(void) { cblas_dgemm(); }\n";
    std::fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    let source = source.display().to_string();
    let linked = output(&mut mpi.command(&[&compiler, &source, "-o", "/dev/null", &library]));
    linked.map(|_| ()).map_err(|_| format!("there is no library {name} with the calls of CBLAS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_on_ranks_are_no_unit_tests() {
        let metadata = r#"{"packages": [{"targets": [
            {"kind": ["lib"], "name": "portolan"}, {"kind": ["test"], "name": "docs"},
            {"kind": ["test"], "name": "ranks"}]}, {"targets": [{"kind": ["test"], "name": "sim"}]}]}"#;
        assert_eq!(test_targets(metadata), Ok(vec!["docs".into(), "sim".into()]));
        assert!(test_targets("{}").is_err());
    }

    #[test]
    fn the_second_mpi_runs_at_the_level_quick() {
        let selected = |level| Selected { mpis: "all".into(), level, only: None, filter: None };
        let is_quick = |level, first| {
            let variables = selected(level).variables(first);
            variables.contains(&("PORTOLAN_TEST_QUICK", "1"))
        };
        assert!(is_quick(Level::Quick, true) && is_quick(Level::Full, false));
        assert!(!is_quick(Level::Full, true) && !is_quick(Level::Release, false));
    }
}
