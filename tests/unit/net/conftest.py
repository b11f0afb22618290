"""Keys, servers and artifacts that the tests of this folder share."""

from pathlib import Path

import pytest

from jupiterd.net.call_guard import CallGuard
from jupiterd.net.identity import Identity
from jupiterd.net.refusals import Refusals


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return named_identity(tmp_path, "one")


@pytest.fixture
def other(tmp_path: Path) -> Identity:
    return named_identity(tmp_path, "other")


def named_identity(folder: Path, name: str) -> Identity:
    (folder / name).mkdir(exist_ok=True)
    return Identity.load_or_create(folder / name / "key.pem")


def open_border() -> CallGuard:
    """One that counts everybody as a member."""
    return CallGuard(lambda _: True, frozenset(), Refusals())
