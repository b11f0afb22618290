"""The shell scripts as a checker of shell scripts sees them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.install.machine import SCRIPT
from tests.install.packages import ROOT, bare_surroundings

SCRIPTS = sorted([ROOT / ".ci" / "run", *(ROOT / "installers").rglob("*.sh")])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: str(script.relative_to(ROOT)))
def test_the_checker_finds_nothing(script: Path) -> None:
    command = [Path(sys.executable).parent / "shellcheck", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_option_of_the_installer_is_explained() -> None:
    text = SCRIPT.read_text()
    read = text[text.index("read_options() {") : text.index("choose_places() {")]
    options = set(re.findall(r"--[a-z0-9-]+(?=[ )])", read))
    told = subprocess.run(["sh", SCRIPT, "--help"], check=True, capture_output=True, text=True)
    assert options <= set(re.findall(r"^  (--[a-z0-9-]+)", told.stdout, re.MULTILINE))


def test_where_the_systems_python_is_3_10_it_says_how_to_get_a_newer_one(tmp_path: Path) -> None:
    """As on Ubuntu 22.04, whose own packages have no other."""
    usual = tmp_path / "python3"
    usual.write_text("#!/bin/sh\necho 'it is Python 3.10'\nexit 1\n")
    usual.chmod(0o755)
    done = subprocess.run(
        ["sh", SCRIPT, "--from", "index", "--python", usual, "--dry-run"],
        check=False,
        capture_output=True,
        text=True,
        env=bare_surroundings(tmp_path / "home"),
    )
    error, _, hint = done.stderr.strip().partition("\n\nhint: ")
    assert (done.returncode, error) == (
        1, f"install: error: {usual} won't do: it is Python 3.10",
    )  # fmt: skip
    assert "uv python install 3.12" in hint
    assert "apt-get" not in hint
    assert "\n" not in hint


TOOLS = ("sh", "uname", "sed", "awk", "grep", "cat", "mktemp", "rm", "mkdir", "ls", "id", "dirname",
         "basename", "tr", "cut", "head", "readlink", "sort", "timeout")  # fmt: skip


def test_the_python_that_its_hint_brings_is_found_beside_an_older_one(tmp_path: Path) -> None:
    """A path with Python 3.10 alone, as people have it; uv puts what it brings below the home."""
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    for tool in TOOLS:
        (programs / tool).symlink_to(shutil.which(tool) or pytest.fail(f"no {tool}"))
    for name in ("python3", "python3.10"):
        (programs / name).write_text("#!/bin/sh\necho 'it is Python 3.10'\nexit 1\n")
        (programs / name).chmod(0o755)
    command = ["sh", SCRIPT, "--from", ROOT, "--dry-run", "--yes", "--no-service"]
    surroundings = bare_surroundings(home, str(programs))

    def install() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, check=False, capture_output=True, text=True, env=surroundings
        )

    refused = install()
    error, _, hint = refused.stderr.strip().partition("\n\nhint: ")
    assert (refused.returncode, error) == (
        1, "install: error: no Python from 3.11 to 3.14 was found; python3: it is Python 3.10",
    )  # fmt: skip
    assert "uv python install 3.12" in hint
    newer = home / ".local" / "bin" / "python3.12"
    newer.parent.mkdir(parents=True)
    newer.symlink_to(sys.executable)
    found = install()
    assert found.returncode == 0, found.stderr
    assert f"Python       {newer}\n" in found.stdout
