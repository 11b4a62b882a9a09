//! Sets the run path of the tests, and `PORTOLAN_BUILT_BY`: the MPI compiler that the engine was
//! built with. The tests find the launcher of this MPI by it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let value = |name| std::env::var(name).unwrap_or_default();
    let dirs = value("DEP_PORTOLAN_ENGINE_MPI_DIRS");
    for dir in dirs.split(':').filter(|dir| !dir.is_empty()) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    }
    println!("cargo::rustc-env=PORTOLAN_BUILT_BY={}", value("DEP_PORTOLAN_ENGINE_MPICC"));
}
