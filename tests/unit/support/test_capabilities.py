"""Every capability that is listed has a test, and `make test` runs it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jupiterd.ctl.main import cli
from tests.support.ctl.command_tree import commands

ROOT = Path(__file__).parents[3]
AREAS: dict[str, dict[str, str]] = tomllib.loads((ROOT / "tests/capabilities.toml").read_text())
NAMED = {test for area in AREAS.values() for test in area.values()}
LEFT_TO_TEST_ALL = "tests/e2e/islands/test_cycle_of_islands.py"
TAKEN_BY_MAKE_TEST = re.compile(r'^test: setup\n\t@\$\(PYTEST\) -m "([^"]+)"$', re.MULTILINE)


@pytest.mark.timeout(180)  # it imports what it names
def test_make_test_runs_a_test_of_every_capability() -> None:
    chosen = TAKEN_BY_MAKE_TEST.search((ROOT / "Makefile").read_text())
    assert chosen is not None
    ran = subprocess.run(
        [*(sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"),
         "-m", chosen[1], *sorted(NAMED), LEFT_TO_TEST_ALL],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {line.partition("[")[0] for line in ran.stdout.splitlines() if "::" in line} == NAMED


def test_every_command_is_a_capability() -> None:
    assert set(AREAS["commands"]) == {f"jupiterctl {name}" for name, _ in commands(cli)}
