"""Traces of Python programs."""

import csv
import os
import subprocess
import sys
import textwrap

PROGRAM = textwrap.dedent(
    """
    import portolan as pt

    def step(a):
        for _ in range(10):
            a[a.shape[0] - 1, 0] = 1.0
            x = a[0]
        return a + 1

    a = pt.zeros((pt.size(), 1000), name="a", distribution="rows")
    b = step(a)
    b.sum()
    """
)


def line_of(text):
    return 1 + next(n for n, line in enumerate(PROGRAM.splitlines()) if text in line)


def test_call_sites_are_lines_of_python(jobs):
    ended = jobs.run(PROGRAM, PORTOLAN_TRACE="trace")
    assert ended.code == 0, ended.text
    report = os.path.join(os.path.dirname(sys.executable), "portolan-report")
    command = [report, "trace", "--csv", "tables", "--no-page", "--quiet"]
    done = subprocess.run(command, cwd=jobs.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(jobs.folder / "tables" / "sites.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    calls = {}
    for row in rows:
        calls[row["called_at"]] = calls.get(row["called_at"], 0) + int(row["count"])
    # Both ranks put and get ten times.
    assert calls[f"program.py:{line_of('= 1.0')} (step)"] == 20, calls
    assert calls[f"program.py:{line_of('a[0]')} (step)"] == 20, calls
    for text, function in [("a + 1", " (step)"), ("pt.zeros", ""), ("b.sum", "")]:
        assert f"program.py:{line_of(text)}{function}" in calls, calls
    assert not any(".py:" in place and not place.startswith("program.py:") for place in calls), calls
