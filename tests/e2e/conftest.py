"""What several of these tests need."""

import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.support.daemons.cluster import Cluster
from tests.support.daemons.shared_cluster import SharedCluster
from tests.support.fork_server import FOLDER_VARIABLE

LENDER = pytest.StashKey[SharedCluster]()


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in this hook, too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one process run all tests that share a cluster."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("shared cluster"))


@pytest.hookimpl(trylast=True)  # once the fixtures of the test have ended
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the cluster after the last test that shares it: idle daemons take their time, too."""
    lender = item.config.stash.get(LENDER, None)
    if lender is not None and "cluster" not in getattr(nextitem, "fixturenames", ()):
        lender.end()


@pytest.fixture(autouse=True, scope="session")
def _warm_workers(fork_server: None) -> None:
    """Torch is imported once for all of these tests, not for each of their workers."""


@pytest.fixture
def cold_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this test's daemons start their workers as on people's machines."""
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)


@pytest.fixture
def stage() -> Generator[Path]:
    """Return a folder that every user can enter; pytest's own are for one user alone."""
    with tempfile.TemporaryDirectory(prefix="jupiter-users-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def _lender(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory, fork_server: None
) -> Generator[SharedCluster]:
    lender = pytestconfig.stash[LENDER] = SharedCluster(tmp_path_factory.mktemp("shared"))
    yield lender
    lender.end()


@pytest.fixture
async def cluster(_lender: SharedCluster) -> AsyncGenerator[Cluster]:
    """Return three daemons that have met, for a test that changes nothing that lasts.

    Tests that have it run one after another, in one process.
    """
    yield await _lender.lend()
    _lender.take_back()
