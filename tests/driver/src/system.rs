//! The launchers, compilers and hosts of this machine.
//!
//! The tools of an MPI differ in names, flags and locations. `scripts/env.sh` exports them as
//! `PORTOLAN_MPI`, `PORTOLAN_MPIEXEC`, `PORTOLAN_PREFIX`, `MPICC` and so on. Only the checks in
//! Rust work without it: they know the MPI that they were built for, and find a launcher themselves.

use crate::mpi;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this is tests/driver")
}

/// The MPI that this program was built for, or that the driver has selected for it.
#[derive(Debug)]
struct Built {
    kind: String,
    compiler: String,
}

static BUILT: OnceLock<Built> = OnceLock::new();

/// States the MPI that this program was built for: `mpich`, `openmpi` or another, and its compiler.
pub fn set_built(kind: &str, compiler: &str) {
    let _ = BUILT.set(Built { kind: kind.into(), compiler: compiler.into() });
}

fn built() -> &'static Built {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    BUILT.get_or_init(|| Built { kind: variable(mpi::KIND), compiler: variable("MPICC") })
}

pub fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Returns the launcher beside the compiler that built this program. Both have the same suffix.
fn own_launcher() -> Option<String> {
    let compiler = Path::new(&built().compiler);
    let suffix = compiler.file_name()?.to_str()?.strip_prefix("mpicc").unwrap_or_default();
    let beside = compiler.with_file_name(format!("mpiexec{suffix}"));
    beside.is_file().then(|| beside.to_string_lossy().into_owned())
}

fn launcher_of(kind: &str) -> Vec<String> {
    let candidates: &[&[&str]] = match kind {
        "openmpi" => &[
            &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
            &["mpirun", "--allow-run-as-root", "--oversubscribe"],
        ],
        _ => &[&["mpiexec.mpich"], &["mpiexec"]],
    };
    let found = candidates.iter().find(|c| on_path(c[0])).unwrap_or(&candidates[1]);
    found.iter().map(|word| word.to_string()).collect()
}

/// Returns the launcher of the MPI that this program was not built for, if there is one.
pub fn other_launcher() -> Option<Vec<String>> {
    let (program, other) = match built().kind.as_str() {
        "mpich" => ("mpirun.openmpi", "openmpi"),
        "openmpi" => ("mpiexec.mpich", "mpich"),
        _ => return None,
    };
    on_path(program).then(|| launcher_of(other))
}

/// The caller appends `-n N PROGRAM`.
pub fn launcher() -> Vec<String> {
    let given = words("PORTOLAN_MPIEXEC");
    if !given.is_empty() {
        return given;
    }
    let mut found = launcher_of(&built().kind);
    if let Some(own) = own_launcher() {
        found[0] = own;
    }
    found
}

fn words(name: &str) -> Vec<String> {
    std::env::var(name).unwrap_or_default().split_whitespace().map(String::from).collect()
}

pub fn flavour() -> &'static str {
    if built().kind == "openmpi" { "openmpi" } else { "mpich" }
}

/// Returns the MPI's name in scripts. The caller may select another MPI of the same kind, for
/// example `mpich-wheel`, or give a path.
pub fn mpi_name() -> String {
    std::env::var("PORTOLAN_MPI")
        .ok()
        .filter(|name| {
            name.starts_with(flavour())
                || name.starts_with("intel")
                || name == "system"
                || name.contains('/')
        })
        .unwrap_or_else(|| flavour().into())
}

/// Returns the launcher for several hosts. `hosts` lists the ranks of each, for example `2,1`.
pub fn launcher_on(hosts: &str) -> Vec<String> {
    let script = root().join("mpirun.sh").display().to_string();
    [script.as_str(), "--mpi", &mpi_name(), "--per-host", hosts].map(String::from).into()
}

pub fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(root());
    command
}

pub fn script(name: &str) -> Command {
    let mut command = Command::new(root().join("scripts/dev"));
    command.arg(name).current_dir(root()).stdin(Stdio::null());
    command
}

fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let output = Command::new(&launcher()[0]).arg("--version").stdin(Stdio::null()).output();
        output.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).into_owned())
    })
}

/// Returns whether the launcher inserts parts of standard error into lines of standard output, as
/// Open MPI 5 does.
pub fn mixes_streams() -> bool {
    flavour() == "openmpi" && !version().lines().next().unwrap_or_default().contains(" 4.")
}

/// Returns whether the launcher sometimes loses exit codes, as MPICH 4.2 does
/// (`tests/mpi-bugs/killed_rank.c`).
pub fn forgets_exit_codes() -> bool {
    let number = version().lines().find_map(|line| line.trim().strip_prefix("Version:"));
    flavour() == "mpich" && number.is_some_and(|number| number.trim().starts_with("4.2."))
}

/// Returns why this machine cannot run several hosts, or `None` if it can.
pub fn no_hosts() -> Option<String> {
    let output = script("cluster").arg("check").output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).trim().to_string()),
        Err(e) => Some(e.to_string()),
    }
}

/// The tools of the MPI, as `scripts/env.sh` exports them.
#[derive(Debug)]
pub struct Tools {
    pub launcher: Vec<String>,
    pub prefix: PathBuf,
    pub target: PathBuf,
    pub cc: String,
    pub cxx: String,
    pub fort: String,
    /// The program `ga-config` of Global Arrays, or `true` if it is not installed.
    pub ga_config: String,
}

impl Tools {
    /// Reads the tools from the environment. Returns a message if a variable is not set or the
    /// library is not installed.
    pub fn find() -> Result<Tools, String> {
        let get = |name: &str| {
            std::env::var(name).ok().filter(|v| !v.is_empty()).ok_or(format!(
                "{name} is not set: start this suite by `scripts/dev` (tests/README.md), which sets it"
            ))
        };
        let tools = Tools {
            launcher: launcher(),
            prefix: get("PORTOLAN_PREFIX")?.into(),
            target: get("CARGO_TARGET_DIR")?.into(),
            cc: get("MPICC")?,
            cxx: get("MPICXX")?,
            fort: get("MPIFORT")?,
            ga_config: get("GA_CONFIG")?,
        };
        if !tools.prefix.join("lib/libarmci.so").exists() {
            return Err(format!(
                "nothing is installed in {}: scripts/install.sh --mpi {} --prefix {0}",
                tools.prefix.display(),
                mpi_name()
            ));
        }
        Ok(tools)
    }

    /// Returns the MPI's C compiler: `MPICC`, or else the compiler that built this program.
    pub fn compiler() -> String {
        let named = std::env::var("MPICC").ok().filter(|name| !name.is_empty());
        named.unwrap_or_else(|| built().compiler.clone())
    }

    pub fn has_ga(&self) -> bool {
        self.ga_config != "true"
    }

    /// Returns whether Fortran programs can be built for this MPI. Its modules work with one
    /// compiler only, which may not be the installed one.
    pub fn has_fortran(&self) -> bool {
        let dir = std::env::temp_dir().join(format!("portolan-fortran.{}", std::process::id()));
        let source = dir.join("probe.f90");
        let _ = std::fs::remove_dir_all(&dir);
        let made = std::fs::create_dir(&dir);
        let written = std::fs::write(&source, "program probe\n  use mpi\nend program\n");
        let mut probe = Command::new(&self.fort);
        probe.arg("-c").arg(&source).current_dir(&dir);
        probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let builds = probe.status().is_ok_and(|status| status.success());
        let _ = std::fs::remove_dir_all(&dir);
        made.is_ok() && written.is_ok() && builds
    }

    pub fn ga(&self, flags: &[&str]) -> Vec<String> {
        let mut all = Vec::new();
        for flag in flags {
            let output = Command::new(&self.ga_config).arg(flag).output();
            let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
            all.extend(text.unwrap_or_default().split_whitespace().map(String::from));
        }
        all
    }
}

/// Waits until no other run uses a directory. The lock is held until the returned file is closed.
pub fn lock(dir: &Path) -> Result<File, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
    std::fs::create_dir_all(dir).map_err(failed)?;
    let file = File::create(dir.join(".lock")).map_err(failed)?;
    // SAFETY: the descriptor is open during the calls, and `flock` accesses no memory of this
    // process. Children do not inherit the descriptor, so the lock does not outlive the file.
    unsafe {
        if libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) != 0 {
            eprintln!("waiting for another run in {}", dir.display());
            while libc::flock(file.as_raw_fd(), libc::LOCK_EX) != 0 {
                super::launch::heed_signals();
            }
        }
    }
    Ok(file)
}
