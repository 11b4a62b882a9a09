"""The examples, the type stubs, and the version."""

import os
import re
import subprocess
import sys

import pytest

PYTHON = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = sorted(f for f in os.listdir(os.path.join(PYTHON, "examples")) if f.endswith(".py"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_check_themselves(jobs, example):
    with open(os.path.join(PYTHON, "examples", example), encoding="utf-8") as file:
        program = file.read()
    if "mpi4py" in example:
        jobs.needs_mpi4py()
    ended = jobs.run(program, n=3)
    assert ended.code == 0, ended.text
    assert "correct" in ended.out or "skipped" in ended.out, ended.text


def test_a_picture(jobs):
    pytest.importorskip("matplotlib")
    with open(os.path.join(PYTHON, "examples", "heat.py"), encoding="utf-8") as file:
        program = file.read().replace('add_argument("--picture")', 'add_argument("--picture", default="p.png")')
    ended = jobs.run(program)
    assert ended.code == 0, ended.text
    assert (jobs.folder / "p.png").read_bytes().startswith(b"\x89PNG")


def mypy(*arguments, cwd=PYTHON):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_of_the_package():
    mypy("mypy", "--strict", "--cache-dir=/dev/null", "portolan")


def test_types_of_the_examples():
    mypy("mypy", "--check-untyped-defs", "--ignore-missing-imports", "--config-file=", "--cache-dir=/dev/null", "examples")


def test_stubs_match_the_package(tmp_path):
    # In an empty folder, Python finds the installed package and not its source.
    mypy("mypy.stubtest", "--ignore-missing-stub", "--ignore-disjoint-bases", "portolan", cwd=tmp_path)


def test_one_version():
    import importlib.util

    path = importlib.util.find_spec("portolan").origin
    with open(path, encoding="utf-8") as file:
        found = re.search(r'__version__ = "(.*)"', file.read()).group(1)
    with open(os.path.join(PYTHON, "Cargo.toml"), encoding="utf-8") as file:
        assert re.search(r'(?m)^version = "(.*)"', file.read()).group(1) == found


def test_every_public_name_has_a_docstring(jobs):
    ended = jobs.run(
        """
        import inspect
        import portolan as pt
        missing = []
        for name in pt.__all__:
            thing = getattr(pt, name)
            if callable(thing) and not inspect.getdoc(thing):
                missing.append(name)
            if inspect.isclass(thing):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and not inspect.getdoc(value):
                        missing.append(f"{name}.{member}")
        print("missing", missing)
        """,
        n=0,
    )
    assert "missing []" in ended.out, ended.text
