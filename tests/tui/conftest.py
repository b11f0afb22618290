import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupiter_tui.widgets.panel import Panel

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch) -> None:
    """Textual reads the environment; whoever runs the tests may like another theme."""
    for name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS", "JUPITER_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_drawing_may_fail(monkeypatch) -> None:
    """What people see as a line in the panel is a failure here."""
    monkeypatch.setattr(Panel, "FORGIVES", False)


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A state folder whose socket a server can bind directly: pytest's own may lie too deep."""
    with tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare with tests/tui/golden; JUPITER_UPDATE_GOLDEN=1 writes the files instead."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("JUPITER_UPDATE_GOLDEN"):
            path.write_text(text)
        assert path.exists(), f"{path} is missing: JUPITER_UPDATE_GOLDEN=1 make test"
        # Not `==` in the assertion itself: a difference of two pictures is no reading matter.
        is_same = text == path.read_text()
        assert is_same, f"{name} has changed; JUPITER_UPDATE_GOLDEN=1 make test, then look at it"

    return compare
