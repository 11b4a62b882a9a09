//! Compiles the C shim with the MPI compiler named by `MPICC`, so that this crate and the `mpi`
//! crate use the same MPI, and passes the directories of its libraries to dependents. Without an
//! MPI the build ends here with one message, before the build script of `mpi-sys` fails with a long
//! one.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src/mpi/shim.c");
    println!("cargo::rerun-if-env-changed=MPICC");
    let chosen = std::env::var("MPICC");
    let mpicc = chosen.clone().unwrap_or_else(|_| "mpicc".to_string());
    let shown = match show(&mpicc) {
        Ok(shown) => shown,
        Err(why) => {
            println!(
                "cargo::error={why}. Portolan is built for one MPI, by its compiler wrapper. \
                 On Debian, `scripts/setup.sh` installs MPICH and Open MPI; then \
                 `MPICC=mpicc.mpich cargo build`, or `mpicc.openmpi`. \
                 Elsewhere have `mpicc` in PATH (`module load` on a cluster), or name it: \
                 `MPICC=/path/to/mpicc cargo build`."
            );
            return;
        }
    };
    cc::Build::new()
        .compiler(&mpicc)
        .file("src/mpi/shim.c")
        .opt_level(2)
        .warnings(true)
        .compile("portolan_mpi_shim");
    // Cargo drops the run path that the wrapper requests. Packages that depend on this one get it
    // as `DEP_PORTOLAN_ENGINE_MPI_DIRS` in their build scripts.
    let dirs = shown.split_whitespace().filter_map(|word| word.strip_prefix("-L"));
    let dirs: Vec<&str> = dirs
        .map(|dir| dir.trim_matches(['"', '\'']))
        .filter(|dir| !["/usr/lib", "/lib"].iter().any(|system| Path::new(dir).starts_with(system)))
        .collect();
    for dir in &dirs {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    }
    println!("cargo::metadata=MPI_DIRS={}", dirs.join(":"));
    let found = on_path(&mpicc).unwrap_or_else(|| PathBuf::from(&mpicc));
    if chosen.is_err() {
        warn_of_others(&found);
    }
    println!("cargo::metadata=MPICC={}", found.display());
}

/// Returns the command that the wrapper would run, after a check that it finds its `mpi.h`.
fn show(mpicc: &str) -> Result<String, String> {
    let run = |arguments: &[&str]| Command::new(mpicc).args(arguments).output();
    let shown =
        run(&["-show"]).map_err(|e| format!("the MPI compiler `{mpicc}` cannot be run ({e})"))?;
    let source = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("probe.c");
    let includes = std::fs::write(&source, "#include <mpi.h>\n").is_ok()
        && run(&["-E", &source.to_string_lossy()]).is_ok_and(|output| output.status.success());
    if !includes {
        return Err(format!(
            "the MPI compiler `{mpicc}` finds no `mpi.h`: its MPI's development files are missing"
        ));
    }
    Ok(String::from_utf8_lossy(&shown.stdout).into_owned())
}

/// Debian can have both MPIs, and `mpicc` is one of them. mpirun.sh takes MPICH then, so the choice
/// must be visible. `MPICC` makes it, and ends the warning.
fn warn_of_others(found: &Path) {
    let Some(own) = name_of(found) else { return };
    let others = ["mpicc.mpich", "mpicc.openmpi"];
    let other = others.into_iter().find(|wrapper| {
        on_path(wrapper).and_then(|path| name_of(&path)).is_some_and(|name| name != own)
    });
    if let Some(other) = other {
        println!(
            "cargo::warning=MPICC is not set, so this build is for {own}, whose {} is first in PATH. \
             Start its programs with the mpiexec of {own} (`mpirun.sh --mpi system`), or build for \
             the other MPI with MPICC={other}",
            found.display()
        );
    }
}

/// Returns the MPI of a compiler wrapper, from the macros of its `mpi.h`.
fn name_of(mpicc: &Path) -> Option<&'static str> {
    let probe = PathBuf::from(std::env::var_os("OUT_DIR")?).join("probe.c");
    let output = Command::new(mpicc).args(["-E", "-dM"]).arg(probe).output().ok()?;
    let macros = String::from_utf8_lossy(&output.stdout).into_owned();
    let has = |name: &str| macros.contains(&format!("#define {name} "));
    if has("OMPI_MAJOR_VERSION") {
        return Some("Open MPI");
    }
    has("MPICH_VERSION").then_some("MPICH")
}

fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}
