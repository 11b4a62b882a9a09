//! Sets the soname of the shared library, and the run path by which it finds the MPI that the
//! engine was built for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libportolan.so.0");
    let list = format!("{}/preemptible.list", env!("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-changed={list}");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--dynamic-list={list}");
    let dirs = std::env::var("DEP_PORTOLAN_ENGINE_MPI_DIRS").unwrap_or_default();
    for dir in dirs.split(':').filter(|dir| !dir.is_empty()) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    }
}
