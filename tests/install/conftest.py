"""What several of these tests need."""

from pathlib import Path

import pytest

from tests.install.machine import Machine
from tests.install.packages import Built, build, links


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return the wheel and the sdist."""
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="session")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of links to everything that Jupiter needs."""
    return links(tmp_path_factory.mktemp("linked") / "packages")


@pytest.fixture
def machine(tmp_path: Path, linked: Path) -> Machine:
    """Return a machine that nobody has used."""
    return Machine(tmp_path / "machine", linked)
