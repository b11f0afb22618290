"""What several of these tests need."""

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.fixture
def stage() -> Generator[Path]:
    """Return a folder that every user can enter; pytest's own are for one user alone."""
    with tempfile.TemporaryDirectory(prefix="jupiter-users-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
