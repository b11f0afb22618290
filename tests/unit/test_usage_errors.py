"""A wrong command line is one line and a hint, whichever of the programs it is."""

import subprocess
import sys

import pytest

from jupiter_tui.main import run as jupiter_tui
from jupiterd.ctl.main import run as jupiterctl
from jupiterd.daemon.app.main import main


def jupiterd(arguments: list[str]) -> int:
    sys.argv[1:] = arguments
    with pytest.raises(SystemExit) as ended:
        main()
    return int(str(ended.value.code))


@pytest.fixture(autouse=True)
def _arguments_stay_as_they_were(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["anything"])


@pytest.mark.parametrize("line", ["--local status", "status --scope mine", "model chat --local"])
def test_how_a_daemon_was_started_is_not_said_to_jupiterctl(line, capsys):
    assert jupiterctl(line.split()) == 2
    told = capsys.readouterr().err
    assert "no such option" in told
    assert "--state-dir DIR names whose daemon is asked" in told


@pytest.mark.parametrize(
    ("program", "line", "message", "hint"),
    [
        (jupiterd, "--prot 0", "no such option '--prot'", "did you mean: jupiterd --port"),
        (jupiterd, "statu", "no such command 'statu'", "jupiterd --help"),
        (
            jupiterd,
            "--port abc",
            "invalid value for '--port': 'abc' is not a whole number",
            "jupiterd --help",
        ),
        (
            jupiterd,
            "service logs --tail",
            "no such option '--tail'",
            "jupiterd service logs --help",
        ),
        (
            jupiterctl,
            "cycle start --rounds two",
            "invalid value for '--rounds': 'two' is not a whole number",
            "jupiterctl cycle start --help",
        ),
        (
            jupiterctl,
            "node list --jsn",
            "no such option '--jsn'",
            "did you mean: jupiterctl node list -o json",
        ),
        (
            jupiter_tui,
            "--redonly",
            "no such option '--redonly'",
            "did you mean: jupiter-tui --readonly",
        ),
        (
            jupiter_tui,
            "--refresh 0,5",
            "invalid value for '--refresh': '0,5' is not a number",
            "jupiter-tui --help",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line_and_a_hint(program, line, message, hint, capsys):
    assert program(line.split()) == 2
    name = hint.removeprefix("did you mean: ").split()[0]
    assert capsys.readouterr().err == f"{name}: error: {message}\n\nhint: {hint}\n"


def test_the_nearest_of_the_values_that_there_are_is_told(capsys):
    assert jupiterctl(["node", "role", "mini", "trainr"]) == 2
    assert capsys.readouterr().err.endswith("\n\nhint: did you mean: trainer\n")
    assert jupiterctl(["node", "role", "mini", "zzz"]) == 2
    assert capsys.readouterr().err.endswith("\n\nhint: jupiterctl node role --help\n")


def test_jupiterd_takes_the_short_word_for_help():
    command = [sys.executable, "-m", "jupiterd.daemon.app.main", "-h"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("Usage: jupiterd")
