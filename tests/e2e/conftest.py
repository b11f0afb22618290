"""What several of these tests need."""

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.fork_server import FOLDER_VARIABLE


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
