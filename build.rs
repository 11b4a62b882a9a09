//! Sets the run path of this crate's tests, and passes the directories of the MPI's libraries to
//! dependents (`DEP_PORTOLAN_MPI_DIRS`). Links the system's CBLAS for the feature `blas`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PORTOLAN_BLAS");
    if std::env::var_os("CARGO_FEATURE_BLAS").is_some() {
        let name = std::env::var("PORTOLAN_BLAS").unwrap_or_else(|_| "blas".to_string());
        println!("cargo::rustc-link-lib={name}");
    }
    let dirs = std::env::var("DEP_PORTOLAN_ENGINE_MPI_DIRS").unwrap_or_default();
    for dir in dirs.split(':').filter(|dir| !dir.is_empty()) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    }
    println!("cargo::metadata=MPI_DIRS={dirs}");
}
