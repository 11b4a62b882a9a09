//! Compiles the C shim with the MPI compiler that `MPICC` names, so that the
//! crate and the `mpi` crate agree on one MPI, and gives the shared library
//! its soname.

fn main() {
    println!("cargo:rerun-if-changed=src/mpi/shim.c");
    println!("cargo:rerun-if-env-changed=MPICC");
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_string());
    cc::Build::new()
        .compiler(&mpicc)
        .file("src/mpi/shim.c")
        .opt_level(2)
        .warnings(true)
        .compile("portolan_mpi_shim");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libportolan.so.0");
}
