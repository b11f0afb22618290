"""Every command, setting, error and key is documented, by the code itself."""

import runpy
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from jupiter_tui.widgets.keys import KEYS
from jupiterd.cluster.health import health
from jupiterd.ctl.main import COMMANDS
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.errors import BY_CODE, ExitCode

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def page() -> Callable[[str], str]:
    return runpy.run_path(str(ROOT / "scripts" / "reference.py"))["page"]


def test_every_error_warning_and_exit_status_is_there_with_its_hint(page) -> None:
    text = page("errors.md")
    for code, error in BY_CODE.items():
        assert f"| `{code}` | {int(error.exit_code)} | " in text
        assert error.default_hint.replace("|", "\\|") in text
    for code, row in health.TABLE.items():
        assert f"| `{code}` | {row.severity} | {row.title} | {row.hint} |" in text
    assert all(f"| {int(status)} | " in text for status in ExitCode)


def test_every_setting_is_there_with_its_meaning(page) -> None:
    rows = [line for line in page("settings.md").splitlines() if line.startswith("| `")]
    assert len(rows) == len(fields(Settings))
    assert all(row.rstrip(" |").endswith(".") for row in rows)


def test_every_command_is_there_as_its_help_has_it(page) -> None:
    text = page("commands.md")
    assert all(f"## jupiterctl {name}\n" in text for name in COMMANDS)
    assert "## jupiterctl cycle start\n" in text
    assert "## jupiterd doctor\n" in text
    assert "--dry-run" in text


def test_every_key_that_works_everywhere_is_there_once_and_screens_have_their_own(page) -> None:
    text = page("keys.md")
    everywhere, _, screens = text.partition("## Cluster")
    assert all(f"| `{key.shown}` | {key.explanation} |" in everywhere for key in KEYS)
    assert "| yes |" in screens


def test_pages_that_are_as_the_code_has_them_are_not_stale(page, tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "reference.py"))
    stale = script["stale"]
    stale.__globals__["FOLDER"] = tmp_path
    (tmp_path / "errors.md").write_text(page("errors.md"))
    (tmp_path / "keys.md").write_text("# Keys\n")
    assert stale() == ["commands.md", "settings.md", "keys.md"]
