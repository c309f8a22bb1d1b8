"""Shared fixtures, and the rule for optional parts: a user's machine may skip them, CI may not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

# Properties are tried on the same examples everywhere, so that a change is judged by itself; `make explore` tries new
# ones. A busy machine must not fail a property by its deadline.
settings.register_profile("pairlens", deadline=None, derandomize=not os.environ.get("PAIRLENS_EXPLORE"))
settings.load_profile("pairlens")

# A shell ignores Ctrl-C for what it starts in the background, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REQUIRE_OPTIONAL = bool(os.environ.get("PAIRLENS_REQUIRE_OPTIONAL"))
HAS_DATA = bool(os.environ.get("PAIRLENS_DATA"))


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure if nothing may be skipped, except for data sets that this machine does not have."""
    without_data = not HAS_DATA and "set PAIRLENS_" in str(report.longrepr)
    if REQUIRE_OPTIONAL and report.skipped and not without_data and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although PAIRLENS_REQUIRE_OPTIONAL is set: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None]:
    outcome = yield
    _forbid_skip(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None]:
    outcome = yield
    _forbid_skip(outcome.get_result())


Table = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Table]:
    """Load ``X, y`` of a real data set by name, or skip if it is neither in the repository nor in PAIRLENS_DATA."""
    from reproduction.datasets import MissingDatasetError, load

    def load_or_skip(name: str) -> Table:
        try:
            X, y = load(name, download=False, return_X_y=True)
        except MissingDatasetError:
            pytest.skip(f"{name} is not in the repository: set PAIRLENS_DATA to a folder with {name}.npz")
        return X.astype(np.float64), y

    return load_or_skip
