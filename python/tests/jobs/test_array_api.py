"""The tests of the array API standard, from their repository, with the package alone."""

import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = "https://github.com/data-apis/array-api-tests"


@pytest.mark.skipif("PORTOLAN_TEST_RELEASE" not in os.environ, reason="takes minutes")
def test_the_standard(tmp_path):
    """PORTOLAN_ARRAY_API_TESTS names a checkout of the tests, with their submodule."""
    for needed in ("ndindex", "pytest_jsonreport"):
        pytest.importorskip(needed)
    suite = os.environ.get("PORTOLAN_ARRAY_API_TESTS", str(tmp_path / "suite"))
    if not os.path.exists(suite):
        clone = ["git", "clone", "-q", "--depth=1", "--recurse-submodules", "--shallow-submodules", REPOSITORY, suite]
        try:
            subprocess.run(clone, check=True, timeout=200, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"the tests of the standard cannot be fetched: {error}")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "--disable-warnings"),
            *("--max-examples=4", "--derandomize", "array_api_tests"),
        ],
        cwd=suite,
        env={**os.environ, "ARRAY_API_TESTS_MODULE": "portolan.array_api"},
        capture_output=True,
        text=True,
    )
    with open(os.path.join(HERE, "array_api_left_out.txt")) as file:
        left_out = tuple(line.strip() for line in file if not line.startswith("#"))
    failed = re.findall("(?m)^FAILED (.*?)(?: - .*)?$", done.stdout)
    others = [name for name in failed if not name.startswith(left_out)]
    assert not others and "error" not in done.stdout.splitlines()[-1], done.stdout[-8000:] + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 1000
