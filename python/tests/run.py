"""Runs the tests of the Python package with one MPI, and prints `N passed, N failed`.

    python tests/run.py [--quick] [--ranks 1,2,3,4] [--paths rma,message] [-- PYTEST ARGUMENTS]

`ranks/` runs on several ranks: every rank runs the same tests in the same order, and a test that
fails on one rank ends the job. `jobs/` starts jobs of its own and looks at how they end. The
launcher is PORTOLAN_MPIEXEC, a command with its flags, or mpiexec.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RELEASE = bool(os.environ.get("PORTOLAN_TEST_RELEASE"))
#: The longest time of one launch, in seconds.
DEADLINE = 900 if RELEASE else 300


def launcher() -> list[str]:
    return shlex.split(os.environ.get("PORTOLAN_MPIEXEC", "mpiexec"))


def launch(title: str, command: list[str], extra: dict[str, str]) -> tuple[int, int]:
    """Run one launch. Return the numbers of tests that passed and failed."""
    begun = time.monotonic()
    environment = {**os.environ, **extra, "PYTHONFAULTHANDLER": "1", "NO_COLOR": "1"}
    # The package chooses the MPI of the launcher.
    environment.pop("PORTOLAN_MPI", None)
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
    )
    late = False
    try:
        output, _ = process.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        late = True
        process.terminate()
        try:
            output, _ = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
    # The last line of pytest, such as `1 failed, 5 passed in 0.38s`.
    ends = re.findall(r"(?m)^\W*((?:\d+ \w+, )*\d+ \w+) in [\d.]+s", output)
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (\w+)", ends[-1])} if ends else {}
    passed = counts.get("passed", 0)
    failed = sum(n for what, n in counts.items() if what in ("failed", "error", "errors"))
    if late or process.returncode != 0 or passed == 0:
        failed = max(failed, 1)
    verdict = "ok  " if failed == 0 else "FAIL"
    print(f"{verdict} {title} {time.monotonic() - begun:.1f}s: {passed} passed, {failed} failed")
    if failed:
        why = f"not at its end after {DEADLINE} seconds" if late else f"exit {process.returncode}"
        print("\n".join("    " + line for line in output.splitlines()[-80:]))
        print(f"    {title}: {why}")
    sys.stdout.flush()
    return passed, failed


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="two ranks, and the jobs")
    parser.add_argument("--ranks", default="1,2,3,4")
    parser.add_argument("--paths", default="rma,message", help="on virtual nodes")
    parser.add_argument("pytest", nargs="*")
    arguments = parser.parse_args()
    ranks = [2] if arguments.quick else [int(n) for n in arguments.ranks.split(",")]
    pytest = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider"]
    configurations: list[tuple[str, int, dict[str, str]]] = [(f"n={n}", n, {}) for n in ranks]
    if not arguments.quick:
        for path in arguments.paths.split(","):
            extra = {"PORTOLAN_NODE_SIZE": "1", "PORTOLAN_PATH": path}
            # Three ranks on two cores take minutes with MPICH's windows.
            n = 2 if path == "rma" and not RELEASE else 3
            configurations.append((f"n={n} node-size=1 path={path}", n, extra))
    if RELEASE:
        configurations.append(("n=2 PORTOLAN_CHECK=1", 2, {"PORTOLAN_CHECK": "1"}))
    totals = [0, 0]
    for title, n, extra in configurations:
        command = [*launcher(), "-n", str(n), *pytest, "-x", os.path.join(HERE, "ranks"), *arguments.pytest]
        for k, count in enumerate(launch(f"ranks [{title}]", command, extra)):
            totals[k] += count
    command = [*pytest, os.path.join(HERE, "jobs"), *arguments.pytest]
    for k, count in enumerate(launch("jobs", command, {})):
        totals[k] += count
    print(f"{totals[0]} passed, {totals[1]} failed")
    return int(totals[1] > 0)


if __name__ == "__main__":
    sys.exit(main())
