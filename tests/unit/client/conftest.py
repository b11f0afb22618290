import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A state folder whose socket a server can bind directly: pytest's own may lie too deep."""
    with tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as folder:
        yield Path(folder)
