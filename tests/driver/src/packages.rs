//! The packages of `scripts/package.sh`, on a bare system.

use crate::programs::exit_code;
use crate::report::Report;
use crate::{launch, mpi, system};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

pub const HELP: &str = "\
Makes the packages of scripts/package.sh, and tests them on a bare system of scripts/dev fresh. The
Debian package must pass lintian. It is installed, the first program of its README and a Global
Arrays program are built against it and run, and the package is removed; no files may remain. The
tarball is unpacked in one place and then moved to another. In each place, a program is built with
pkg-config and run. The last line is `N passed, N failed`. The exit code is 77 if no bare system can
be made.";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// mpich, openmpi or all
    #[arg(long, value_name = "M", default_value = "all")]
    mpi: String,
}

/// The exit code of a command that cannot run on this machine.
const CANNOT_RUN: u8 = 77;

/// The releases of Debian that `scripts/dev fresh` installs.
const RELEASES: [&str; 2] = ["bookworm", "trixie"];

pub fn main(options: &Options) -> Result<ExitCode, String> {
    let (names, (_, debians)) = (mpi::choose(&options.mpi)?, mpi::wheels_and_debians()?);
    let check = system::script("fresh").arg("check").status();
    let code = check.map_err(|e| format!("scripts/dev fresh: {e}"))?.code();
    if code != Some(0) {
        return Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)));
    }
    let about = launch::text_of(Path::new("/etc/os-release"));
    let release = about.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let Some(release) = release.filter(|release| RELEASES.contains(release)) else {
        eprintln!("package-test: cannot run here: packages are made on Debian 12 or 13");
        return Ok(ExitCode::from(CANNOT_RUN));
    };
    let mut report = Report::new(&options.mpi, "packages");
    let dir = system::root().join("target/package-test");
    for name in names.iter().filter(|name| debians.contains(name)) {
        test(name, release, &dir, &mut report)?;
    }
    report.end(None)
}

/// Makes and tests the packages for an MPI.
fn test(mpi: &str, release: &str, dir: &Path, report: &mut Report) -> Result<(), String> {
    let packages = dir.join("packages").display().to_string();
    let _ = std::fs::remove_dir_all(&packages);
    let mut package = Command::new(system::root().join("scripts/package.sh"));
    package.args(["--mpi", mpi, "--output", &packages]).current_dir(system::root());
    let run =
        |command, name: &str| launch::follow(command, &dir.join(name), |line| println!("{line}"));
    if run(package, "package.log")? != Some(0) {
        return Err("scripts/package.sh makes no packages".into());
    }
    let files = std::fs::read_dir(&packages).map_err(|e| format!("{packages}: {e}"))?;
    let files: Vec<_> = files.flatten().map(|entry| entry.path()).collect();

    let mut count = |case: &str, command, log: &str| -> Result<(), String> {
        let begun = Instant::now();
        let code = run(command, log)?;
        let seconds = begun.elapsed().as_secs_f64();
        match code {
            Some(0) => report.ok(&format!("{mpi}: {case}"), seconds, ""),
            code => report.fail(&format!("{mpi}: {case}"), seconds, &exit_code(code), Vec::new()),
        }
        Ok(())
    };
    if system::on_path("lintian") {
        let mut lintian = Command::new("lintian");
        let debs = files.iter().filter(|file| file.extension().is_some_and(|end| end == "deb"));
        lintian.args(["--fail-on", "error", "--allow-root"]).args(debs);
        count("lintian", lintian, "lintian.log")?;
    } else {
        println!("skip {mpi}: lintian: it is not installed");
    }
    let mut fresh = system::script("fresh");
    fresh.args(["--release", release]);
    for file in &files {
        fresh.arg("--with").arg(file);
    }
    fresh.args(["--", "bash", "scripts/dev.d/lib/use-packages.sh", mpi]);
    count("install, use, remove", fresh, "use.log")
}
