"""What several of these tests share."""

from collections.abc import Iterator

import pytest

from tests.support.workers.gangs import Gangs


@pytest.fixture(scope="session")
def gangs(fork_server: None) -> Iterator[Gangs]:
    """Return what trains small gangs; tests that use it are of the group `gangs`."""
    gangs = Gangs()
    try:
        yield gangs
    finally:
        gangs.end()
