"""These tests start jobs, and are not part of one."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

import pytest


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


class Jobs:
    """Starts programs on several ranks, and ends them at the deadline."""

    def __init__(self, folder) -> None:
        self.folder = folder

    def start(self, program: str, n: int = 2, **environment: str) -> subprocess.Popen:
        path = self.folder / "program.py"
        path.write_text(textwrap.dedent(program))
        # Ranks share their output, so each line is one write.
        site = self.folder / "site"
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text("import sys\nsys.stdout.reconfigure(line_buffering=True)\n")
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        launcher = shlex.split(os.environ.get("PORTOLAN_MPIEXEC", "mpiexec"))
        command = [*launcher, "-n", str(n)] if n else []
        return subprocess.Popen(
            [*command, sys.executable, str(path)],
            cwd=self.folder,
            env={**inherited, "PYTHONPATH": str(site), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end(self, process: subprocess.Popen, deadline: float = 60) -> Ended:
        try:
            out, err = process.communicate(timeout=deadline)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"not at its end after {deadline} s:\n{out}\n{err}")
        return Ended(process.returncode, out, err)

    def run(self, program: str, n: int = 2, **environment: str) -> Ended:
        return self.end(self.start(program, n, **environment))

    def needs_mpi4py(self) -> None:
        """Skip the test if mpi4py does not work with the MPI of the launcher.

        The wheel of mpi4py does not find the MPICH of Debian, whose library has another name.
        """
        probe = "from mpi4py import MPI\nassert MPI.COMM_WORLD.size == 2\n"
        if self.run(probe, n=2).code != 0:
            pytest.skip("mpi4py does not work with this MPI")

    def file(self, name: str, deadline: float = 30) -> str:
        """Return the contents of a file that a rank writes, once it exists."""
        path, until = self.folder / name, time.monotonic() + deadline
        while not path.exists() or not path.read_text().endswith("\n"):
            assert time.monotonic() < until, f"{name} does not appear"
            time.sleep(0.02)
        return path.read_text()


@pytest.fixture
def jobs(tmp_path):
    return Jobs(tmp_path)
