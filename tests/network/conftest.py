"""What every test here needs: root, namespaces, and for some a packet filter."""

from pathlib import Path

import pytest

from tests.support.network.lab import why_there_is_no_lab
from tests.support.network.links import FILTER, THROTTLE

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before they are put in order
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marks = (pytest.mark.net, pytest.mark.root, pytest.mark.slow)
    for item in items:
        if item.path.is_relative_to(HERE):
            for mark in marks:
                item.add_marker(mark)


@pytest.fixture(autouse=True, scope="session")
def _warm_workers(fork_server: None) -> None:
    """Torch is imported once for all of these tests, not for each of their workers."""


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    if reason := why_there_is_no_lab():
        pytest.skip(reason)


@pytest.fixture
def packet_filter() -> None:
    """Skip where nothing can drop packets."""
    if reason := why_there_is_no_lab((FILTER,)):
        pytest.skip(reason)


@pytest.fixture
def traffic_shaper() -> None:
    """Skip where no link can be made slow."""
    if reason := why_there_is_no_lab((THROTTLE,)):
        pytest.skip(reason)
