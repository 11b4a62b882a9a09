//! Sets the run path by which programs find the MPI library that the engine was built for.

fn main() {
    // Not `build.rs`: other packages use this file, and a missing file would rebuild it each time.
    println!("cargo::rerun-if-env-changed=MPICC");
    let dirs = std::env::var("DEP_PORTOLAN_ENGINE_MPI_DIRS").unwrap_or_default();
    for dir in dirs.split(':').filter(|dir| !dir.is_empty()) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    }
}
