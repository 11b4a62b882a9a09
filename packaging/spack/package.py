# A recipe for Spack 1.0 or newer. packaging/README.md describes its use.

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Portolan(Package):
    """One-sided communication for MPI programs: a drop-in ARMCI for Global Arrays, and X10Lib, LAPI,
    compose/perform and Mercury on the same engine."""

    license("MIT")

    # The clone to build from, for example file:///home/me/portolan.
    git = "https://example.org/portolan.git"
    version("main", branch="main")

    variant("debug", default=False, description="Keep the debug information")

    provides("armci")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("llvm+clang", type="build")  # bindgen reads mpi.h
    depends_on("python@3:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("binutils", type="build")
    depends_on("mpi@3:")

    def setup_build_environment(self, env):
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))

    def install(self, spec, prefix):
        arguments = ["--no-setup", "--mpi", spec["mpi"].mpicc, "--prefix", prefix]
        if spec.satisfies("+debug"):
            arguments.append("--debug")
        bash = which("bash", required=True)
        bash("scripts/install.sh", *arguments)

    def setup_run_environment(self, env):
        env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib)

    def test_info(self):
        """the installed library prints its settings"""
        info = which(self.prefix.bin.join("portolan-info"), required=True)
        assert "PORTOLAN_PATH" in info(output=str.split, error=str.split)
