//! Sets the run path of the examples to the MPI that Portolan was built for. A program needs this
//! only if that library is in no standard directory.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let dirs = std::env::var("DEP_PORTOLAN_MPI_DIRS").unwrap_or_default();
    for dir in dirs.split(':').filter(|dir| !dir.is_empty()) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    }
}
