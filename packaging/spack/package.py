# A recipe for Spack 1.0 or newer. packaging/README.md describes how to use it.

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Portolan(Package):
    """One-sided communication for MPI programs: a drop-in ARMCI for Global Arrays, X10Lib, LAPI,
    compose/perform and Mercury, on one engine."""

    homepage = "https://portolan.invalid"
    git = "https://portolan.invalid/portolan.git"

    license("MIT")

    version("main", branch="main")

    variant("debug", default=False, description="Keep the debug information")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    # bindgen reads mpi.h.
    depends_on("llvm+clang", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    depends_on("binutils", type="build")
    depends_on("mpi@3:")

    provides("armci")

    def setup_build_environment(self, env):
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))

    def install(self, spec, prefix):
        arguments = ["--mpi", spec["mpi"].mpicc, "--prefix", prefix]
        if spec.satisfies("+debug"):
            arguments.append("--debug")
        Executable("scripts/install.sh")(*arguments)

    def setup_run_environment(self, env):
        env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.join("portolan-info"))()
