# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

# For Spack 1.0 or newer. packaging/README.md of Portolan describes the use.

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *

WHEEL = "https://pypi.io/packages/py2.py3/l/libclang/libclang-18.1.1-py2.py3-none-{0}.whl"


class Portolan(Package):
    """One-sided communication for MPI programs: a drop-in ARMCI for Global Arrays, and X10Lib, LAPI,
    compose/perform and Mercury on the same engine."""

    # Your clone, for example file:///home/me/portolan.
    homepage = "https://example.org/portolan"
    git = "https://example.org/portolan.git"

    # The GitHub names of those who answer for the recipe:
    # maintainers("...")

    license("MIT")

    # A release has a tag: version("0.1.0", tag="v0.1.0", commit="...")
    version("main", branch="main")

    variant("debug", default=False, description="Keep the debug information")

    provides("armci")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("python@3:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("binutils", type="build")
    depends_on("mpi@3:")

    # bindgen reads mpi.h with libclang. Spack's py-libclang would build LLVM; the wheel is one file.
    resource(
        name="libclang",
        url=WHEEL.format("manylinux2010_x86_64"),
        sha256="c533091d8a3bbf7460a00cb6c1a71da93bffe148f172c7d03b1c31fbf8aa2a0b",
        expand=False,
        placement="libclang",
        when="target=x86_64:",
    )
    resource(
        name="libclang",
        url=WHEEL.format("manylinux2014_aarch64"),
        sha256="54dda940a4a0491a9d1532bf071ea3ef26e6dbaf03b5000ed94dd7174e8f9592",
        expand=False,
        placement="libclang",
        when="target=aarch64:",
    )
    depends_on("llvm+clang~lld~lldb~libomptarget", type="build", when="target=ppc64le:")

    def setup_build_environment(self, env):
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))
        if self.spec.satisfies("target=ppc64le:"):
            env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    @run_before("install")
    def unpack_libclang(self):
        for wheel in find("libclang", "libclang-*.whl"):
            self.spec["python"].command("-m", "zipfile", "-e", wheel, "libclang")
            # The wheel lacks the headers of a compiler.
            include = Executable(self.compiler.cc)("-print-file-name=include", output=str).strip()
            env["LIBCLANG_PATH"] = ancestor(find("libclang", "libclang.so")[0])
            env["BINDGEN_EXTRA_CLANG_ARGS"] = f"-I{include}"

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
