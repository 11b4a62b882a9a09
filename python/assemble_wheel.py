"""Makes one wheel for all MPIs from the wheels that maturin builds for each of them.

    assemble_wheel.py --output DIR mpich=WHEEL,INFO openmpi=WHEEL,INFO abi=WHEEL,INFO
                      --report PROGRAM

A native module names no MPI library, so that it uses the one that the package has loaded. The tag
of the wheel states the oldest C library that its files run with.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile

MPI = re.compile(r"lib(mpi|mpich|mpi_\w+|open-rte|open-pal|hwloc|ucp|ucs)\.so")
HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def prepare(path: str) -> None:
    """Strip a file, and remove the MPI from its needed libraries and search paths."""
    run("strip", "--strip-debug", path)
    for name in run("patchelf", "--print-needed", path).split():
        if MPI.match(name):
            run("patchelf", "--remove-needed", name, path)
    run("patchelf", "--remove-rpath", path)
    rest = [name for name in run("patchelf", "--print-needed", path).split()]
    allowed = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libdl.so.2",
               "libpthread.so.0", "librt.so.1", "ld-linux-aarch64.so.1"}  # fmt: skip
    if set(rest) - allowed:
        sys.exit(f"{path} needs {sorted(set(rest) - allowed)}")


def c_library(path: str) -> tuple[int, int]:
    """Return the oldest version of glibc that a file runs with."""
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", path))
    return max((int(major), int(minor)) for major, minor in versions)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--report", required=True)
    parser.add_argument("builds", nargs="+")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        binaries, root = [], ""
        for build in arguments.builds:
            kind, files = build.split("=")
            wheel, info = files.split(",")
            part = os.path.join(work, kind)
            run(sys.executable, "-m", "wheel", "unpack", "--dest", part, wheel)
            unpacked = os.path.join(part, os.listdir(part)[0])
            module = os.path.join(unpacked, "portolan", "_native.abi3.so")
            if not root:
                root = os.path.join(work, os.path.basename(unpacked))
                shutil.copytree(unpacked, root)
                os.remove(os.path.join(root, "portolan", "_native.abi3.so"))
                os.mkdir(os.path.join(root, "portolan", "bin"))
            for source, target in (
                (module, f"_native_{kind}.abi3.so"),
                (info, f"bin/portolan-info_{kind}"),
            ):
                binaries.append(os.path.join(root, "portolan", target))
                shutil.copy(source, binaries[-1])
        scripts = os.path.join(root, os.path.basename(root) + ".data", "scripts")
        os.makedirs(scripts)
        binaries.append(os.path.join(scripts, "portolan-report"))
        shutil.copy(arguments.report, binaries[-1])
        shutil.copy(os.path.join(HERE, "scripts", "portolan-info"), scripts)
        for path in binaries:
            prepare(path)
            os.chmod(path, 0o755)
        os.chmod(os.path.join(scripts, "portolan-info"), stat.S_IMODE(0o755))
        major, minor = max(c_library(path) for path in binaries)
        metadata = os.path.join(root, os.path.basename(root) + ".dist-info", "WHEEL")
        with open(metadata, encoding="utf-8") as file:
            text = file.read()
        tag = f"cp39-abi3-manylinux_{major}_{minor}_{platform.machine()}"
        with open(metadata, "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?m)^Tag: .*$", f"Tag: {tag}", text))
        os.makedirs(arguments.output, exist_ok=True)
        print(run(sys.executable, "-m", "wheel", "pack", "--dest-dir", arguments.output, root), end="")


if __name__ == "__main__":
    main()
