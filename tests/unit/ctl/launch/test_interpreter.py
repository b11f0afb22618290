import sys
from pathlib import Path

import pytest

from jupiterd.ctl.launch.interpreter import choose_interpreter, with_interpreter
from jupiterd.ctl.launch.program import CommandLine
from jupiterd.errors import UsageError

BARE = CommandLine(("python", "train.py"))
ALONE = CommandLine(("python", "train.py"), is_alone=True)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return tmp_path


def chosen(program: CommandLine, wanted: str = "", **environment: str):
    found = choose_interpreter(wanted, program, Path("/"), environment)
    assert found is not None
    return found


@pytest.mark.parametrize("program", [BARE, ALONE])
def test_an_active_environment_is_honoured(venv: Path, program: CommandLine):
    found = chosen(program, VIRTUAL_ENV=str(venv))
    assert (found.path, found.is_own) == (str(venv / "bin" / "python"), False)
    assert "VIRTUAL_ENV" in found.reason
    assert with_interpreter(program, found).argv == (found.path, "train.py")


def test_an_active_environment_of_conda_runs_a_script_that_is_named_alone(venv: Path):
    found = chosen(ALONE, CONDA_PREFIX=str(venv))
    assert (found.path, found.is_own) == (str(venv / "bin" / "python"), False)
    assert chosen(ALONE, CONDA_PREFIX="/gone").is_own


def test_the_environment_of_jupiter_itself_is_each_machine_s_own():
    assert chosen(BARE, VIRTUAL_ENV=sys.prefix).is_own
    assert chosen(BARE, PATH=str(Path(sys.executable).parent)).is_own


def test_what_the_shell_would_run_is_what_runs(venv: Path):
    found = chosen(BARE, PATH=str(venv / "bin"))
    assert (found.path, found.is_own) == (str(venv / "bin" / "python"), False)


def test_a_script_alone_is_run_by_jupiter_s_own_where_no_environment_is_active(venv: Path):
    found = chosen(ALONE, PATH=str(venv / "bin"))
    assert (found.path, found.is_own) == (sys.executable, True)


def test_a_version_that_the_environment_has_not_is_looked_for_on_the_path(venv: Path):
    found = chosen(CommandLine(("python9.9", "x.py")), VIRTUAL_ENV=str(venv), PATH="/nowhere")
    assert found.is_own
    assert "no python9.9" in found.reason


def test_one_that_is_named_counts_before_all_others(venv: Path):
    path = str(venv / "bin" / "python")
    assert chosen(ALONE, path, VIRTUAL_ENV="/elsewhere").path == path
    assert chosen(ALONE, path.removeprefix("/")).path == path  # below the working folder
    assert chosen(BARE, "jupiter", VIRTUAL_ENV=str(venv)).is_own
    assert chosen(BARE, "venv", CONDA_PREFIX=str(venv)).path == path
    assert chosen(CommandLine((path, "x.py"))).path == path


@pytest.mark.parametrize(
    ("program", "wanted", "words"),
    [
        (BARE, "venv", "no environment is active"),
        (BARE, "/no/such/python", "there is no Python at /no/such/python"),
        (CommandLine(("accelerate", "launch")), "venv", "this is accelerate"),
    ],
)
def test_what_can_not_be_is_said(program: CommandLine, wanted: str, words: str):
    with pytest.raises(UsageError, match=words):
        choose_interpreter(wanted, program, Path("/"), {})


def test_an_environment_that_is_gone_is_said():
    with pytest.raises(UsageError, match="there is no Python at /gone/bin/python"):
        choose_interpreter("venv", BARE, Path("/"), {"VIRTUAL_ENV": "/gone"})


def test_another_program_finds_its_own():
    assert choose_interpreter("", CommandLine(("accelerate", "launch")), Path("/"), {}) is None
