//! `portolan-perf kernels` starts the program `kernels` of the package `portolan-kernels`.
//!
//! The package is not published, so this one cannot depend on it. The program replaces this process
//! before MPI is initialised, and gets the ranks of the launcher.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub fn requested() -> Option<Vec<OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == "kernels").then(|| arguments.collect())
}

/// Replaces this process by the program. Returns the reason if this fails.
pub fn start(arguments: Vec<OsString>) -> String {
    let program = match std::env::current_exe() {
        Ok(me) => me.with_file_name("kernels"),
        Err(error) => return format!("kernels: the directory of this program: {error}"),
    };
    let error = Command::new(&program).args(arguments).exec();
    format!(
        "cannot start {}: {error}. In a checkout, `cargo build --release -p portolan-kernels \
         -p portolan-tools` makes both programs.",
        program.display()
    )
}
