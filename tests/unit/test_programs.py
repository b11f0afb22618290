"""Where the three programs begin, and what Ctrl-C means before they have."""

import importlib
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jupiterd.startup import ends_at_ctrl_c

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

PRESSED = (
    "import os, signal; from jupiterd.startup import ends_at_ctrl_c\n"
    "with ends_at_ctrl_c(): os.kill(os.getpid(), signal.SIGINT)"
)


@pytest.mark.parametrize("program", SCRIPTS)
def test_each_program_begins_where_the_package_says(program):
    module, _, name = SCRIPTS[program].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_ctrl_c_while_a_program_is_loaded_ends_it_without_a_word():
    done = subprocess.run(
        (sys.executable, "-c", PRESSED), capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_afterwards_ctrl_c_means_what_it_meant():
    before = signal.getsignal(signal.SIGINT)
    with ends_at_ctrl_c():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("program", SCRIPTS)
def test_a_program_whose_streams_are_closed_does_what_it_is_told(program: str) -> None:
    path = Path(sys.executable).with_name(program)
    closed = ("sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', str(path), "--help")
    assert subprocess.run(closed, check=False).returncode == 0


def test_a_file_that_is_opened_first_gets_nothing_that_is_printed(tmp_path: Path) -> None:
    said = (
        "import sys; from jupiterd.startup import open_standard_streams\n"
        "open_standard_streams(); file = open(sys.argv[1], 'w')\n"
        "print('said', flush=True); print('said', file=sys.stderr, flush=True); file.close()\n"
    )
    command = (sys.executable, "-c", said, str(tmp_path / "file"))
    closed = ("sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', *command)
    assert subprocess.run(closed, check=False, cwd=ROOT).returncode == 0
    assert (tmp_path / "file").read_text() == ""
