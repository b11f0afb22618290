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


@pytest.mark.timeout(180)  # it imports what it names, unless this is `make test`
def test_make_test_runs_a_test_of_every_capability(request: pytest.FixtureRequest) -> None:
    chosen = TAKEN_BY_MAKE_TEST.search((ROOT / "Makefile").read_text())
    assert chosen is not None
    here = {name_of(item.nodeid) for item in request.session.items}
    is_make_test = request.config.getoption("markexpr") == chosen[1] and here >= NAMED
    taken = here if is_make_test else taken_by_another_process(chosen[1])
    left_out = {name for name in taken if name.partition("::")[0] == LEFT_TO_TEST_ALL}
    assert (taken & NAMED) | left_out == NAMED


def name_of(test: str) -> str:
    """Return the name of a test without its parameters and without its group."""
    return test.partition("[")[0].partition("@")[0]


def taken_by_another_process(marks: str) -> set[str]:
    """Return which of the named tests are chosen by marks, and any of the file that none is of."""
    ran = subprocess.run(
        [*(sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"),
         "-m", marks, *sorted(NAMED), LEFT_TO_TEST_ALL],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return {name_of(line) for line in ran.stdout.splitlines() if "::" in line}


def test_every_command_is_a_capability() -> None:
    assert set(AREAS["commands"]) == {f"jupiterctl {name}" for name, _ in commands(cli)}
