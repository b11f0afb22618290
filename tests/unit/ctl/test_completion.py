"""What shells are told of the commands."""

import subprocess
import sys

import pytest

from jupiterd.ctl.completion import VARIABLE
from jupiterd.ctl.main import COMMANDS

ASK = (sys.executable, "-c", "import sys; from jupiterd.ctl.main import run; run([])")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(ctl, shell: str):
    ran = ctl("completion", shell)
    assert (ran.exit_code, ran.err) == (0, "")
    assert f"{VARIABLE}={shell}_complete" in ran.out
    assert "jupiterctl" in ran.out


def test_another_shell_is_refused(ctl):
    assert ctl("completion", "tcsh").exit_code == 2


def asked(words: str, position: int, program: tuple[str, ...] = ASK) -> list[str]:
    """Return what may follow, as bash asks for it."""
    environment = {"COMP_WORDS": words, "COMP_CWORD": str(position), VARIABLE: "bash_complete"}
    done = subprocess.run(
        program, env=environment, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_verbs_and_options_are_completed():
    assert asked("jupiterctl ", 1) == list(COMMANDS)
    assert asked("jupiterctl mo", 1) == ["model", "monitor"]
    assert "approve" in asked("jupiterctl node ", 2)
    assert "--rounds" in asked("jupiterctl cycle start --r", 3)


def test_no_command_is_imported_to_complete_its_name():
    program = (
        "import atexit, sys; from jupiterd.ctl.main import run; "
        "atexit.register(lambda: print('plain,' + str('jupiterd.ctl.node' in sys.modules))); "
        "run([])"
    )
    assert asked("jupiterctl no", 1, (sys.executable, "-c", program)) == ["node", "False"]
