//! Sets the run path by which programs find the MPI library that the engine was built for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let dirs = std::env::var("DEP_PORTOLAN_ENGINE_MPI_DIRS").unwrap_or_default();
    for dir in dirs.split(':').filter(|dir| !dir.is_empty()) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    }
}
