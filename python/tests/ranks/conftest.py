"""Every rank runs the same tests in the same order. Rank 0 reports; a failure ends the job."""

from __future__ import annotations

import os
import sys
import time

import pytest
from hypothesis import HealthCheck, Phase, settings

import portolan as pt

# All ranks generate the same examples. Ranks that shrink a failure would be out of step.
settings.register_profile(
    "ranks",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60 if "PORTOLAN_TEST_RELEASE" in os.environ else 20,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("ranks")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if pt.rank() != 0:
        config.pluginmanager.unregister(config.pluginmanager.get_plugin("terminalreporter"))


def pytest_runtest_logreport(report):
    if report.failed and pt.size() > 1:
        print(f"rank {pt.rank()}: {report.nodeid}\n{report.longreprtext}", file=sys.stderr)
        print(f"1 failed on rank {pt.rank()}", file=sys.stderr)
        sys.stderr.flush()
        time.sleep(1)  # other ranks may fail, too, and report it
        pt.abort(1)


@pytest.fixture(autouse=True)
def _in_step():
    """Starts and ends each test with a barrier."""
    pt.barrier()
    yield
    pt.barrier()


@pytest.fixture
def shared_path(tmp_path_factory):
    """A path that all ranks have."""
    path = tmp_path_factory.mktemp("shared") if pt.rank() == 0 else None
    return pt.world.broadcast(path)
