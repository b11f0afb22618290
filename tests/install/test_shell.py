"""The shell scripts as a checker of shell scripts sees them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.install.machine import SCRIPT
from tests.install.packages import ROOT

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
