"""What is said of a daemon that doesn't answer: its socket, its process, and how it is started."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jupiterd.client import daemon_process
from jupiterd.client.daemon_process import daemon_arguments, running_process
from jupiterd.client.reachability import (
    check_listens,
    not_answering,
    silent,
    start_command,
    unreachable,
)
from jupiterd.errors import DaemonUnreachableError
from jupiterd.locations import CONTROL_SOCKET, default_state_dir
from jupiterd.service.unit import unit_text
from tests.support.service.requests import OF_THE_MACHINE

WAITING = "print(flush=True); input()"


@pytest.fixture
def program(tmp_path: Path) -> str:
    """A script of the daemon's name."""
    script = tmp_path / "bin" / "jupiterd"
    script.parent.mkdir()
    script.write_text(WAITING)
    return str(script)


@pytest.fixture
def process(program: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like a daemon's."""
    with waiting(program) as running:
        yield running


@contextmanager
def waiting(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that is certain to have begun: for a moment before, it has no name."""
    command = [sys.executable, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as running:
        assert running.stdout is not None
        running.stdout.readline()
        yield running
        end(running)


def end(running: subprocess.Popen[bytes]) -> None:
    if running.poll() is None:
        running.communicate(b"\n")


def test_a_process_that_runs_without_answering_is_named(
    tmp_path: Path, process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_process, "STARTING_S", 0.0)
    (tmp_path / "lock").write_text(str(process.pid))
    error = unreachable(tmp_path)
    assert error.message.endswith(f"no socket in it; its process {process.pid} runs")
    logs = f"jupiterctl --state-dir {tmp_path} logs"
    assert error.hint.endswith(
        f"read its log: {logs}; "
        f"it is ended by: kill {process.pid} "
        f"(where that does nothing: kill -9 {process.pid})"
    )


def test_a_young_process_that_does_not_listen_yet_is_starting(tmp_path: Path, process) -> None:
    (tmp_path / "lock").write_text(str(process.pid))
    assert unreachable(tmp_path).message.endswith(f"; its process {process.pid} is starting")


def test_a_daemon_that_has_not_taken_its_folder_yet_is_starting(
    tmp_path: Path, program: str
) -> None:
    for option in (["--state-dir", str(tmp_path)], [f"--state-dir={tmp_path}", "run"]):
        with waiting(program, *option) as process:
            error = unreachable(tmp_path)
            assert error.message.endswith(f"; its process {process.pid} is starting")
            assert "no process" in unreachable(tmp_path / "another").message
    with waiting(program, "doctor", "--state-dir", str(tmp_path)):
        assert error.hint.startswith("wait a moment")
        assert "no process of it runs" in unreachable(tmp_path).message
    with waiting("-c", WAITING, "jupiterd", "--state-dir", str(tmp_path)):
        assert "no process of it runs" in unreachable(tmp_path).message


@pytest.mark.parametrize(
    ("command", "is_daemon"),
    [
        ("jupiterd --local", True),
        ("/opt/bin/jupiterd", True),
        ("/venv/bin/python3.13 /venv/bin/jupiterd run", True),
        ("/Library/Python.framework/MacOS/Python -sP -X utf8 -Wmodule bin/jupiterd", True),
        ("python -c import_this jupiterd", False),
        ("python -Im pip install jupiterd", False),
        ("python - jupiterd", False),
        ("python train.py jupiterd", False),
        ("python -X jupiterd", False),
        ("grep -r x jupiterd", False),
        ("git clone https://example.org/jupiterd", False),
        ("less /home/ada/jupiterd", False),
        ("python", False),
        ("", False),
    ],
)
def test_only_what_runs_the_daemons_program_is_a_daemon(command: str, is_daemon: bool) -> None:
    assert bool(daemon_arguments(command.split())) == is_daemon


def test_a_process_that_has_ended_is_none(tmp_path: Path, process) -> None:
    (tmp_path / "lock").write_text(str(process.pid))
    end(process)
    assert running_process(tmp_path) is None
    assert "no process of it runs" in unreachable(tmp_path).message


@pytest.mark.skipif(sys.platform != "linux", reason="states of processes are read from /proc")
def test_a_halted_process_is_told_of_and_how_it_goes_on(tmp_path: Path, process) -> None:
    (tmp_path / "lock").write_text(str(process.pid))
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    error, found = silent(tmp_path), not_answering(tmp_path)
    process.send_signal(signal.SIGCONT)
    assert found.message == error.message
    assert error.message == f"jupiterd didn't answer in time: its process {process.pid} is halted"
    assert error.hint == f"let it go on with: kill -CONT {process.pid}"


def test_a_busy_daemon_leads_to_its_log(tmp_path: Path, process) -> None:
    (tmp_path / "lock").write_text(str(process.pid))
    error = silent(tmp_path)
    assert error.message == "jupiterd didn't answer in time"
    assert error.hint.endswith(f"its log: jupiterctl --state-dir {tmp_path} logs")


@pytest.mark.skipif(sys.platform != "linux", reason="names of processes are read from /proc")
def test_another_program_with_its_number_is_not_it(tmp_path: Path) -> None:
    with waiting("-c", WAITING) as other:
        (tmp_path / "lock").write_text(str(other.pid))
        assert running_process(tmp_path) is None


@pytest.mark.parametrize("text", ["", "unknown", "-1", "9" * 30])
def test_a_lock_that_names_nobody_means_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "lock").write_text(text)
    assert running_process(tmp_path) is None


@pytest.mark.parametrize(
    ("system", "file", "command"),
    [
        ("linux", "", "jupiterd"),
        ("linux", "home/.config/systemd/user/jupiterd.service", "systemctl --user start jupiterd"),
        ("linux", "etc/systemd/system/jupiterd.service", "sudo systemctl start jupiterd"),
        ("darwin", "", "jupiterd"),
        (
            "darwin",
            "Library/LaunchDaemons/org.example.jupiterd.plist",
            "sudo launchctl kickstart system/org.example.jupiterd",
        ),
    ],
)
def test_a_service_that_is_installed_is_started_as_this_system_does(
    tmp_path: Path, system: str, file: str, command: str
) -> None:
    if file:
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    assert start_command(default_state_dir(), system, tmp_path / "home", tmp_path) == command


def test_the_service_of_the_machine_is_asked_where_its_state_lies(tmp_path: Path) -> None:
    unit = tmp_path / "etc" / "systemd" / "system" / "jupiterd.service"
    unit.parent.mkdir(parents=True)
    unit.write_text(unit_text(OF_THE_MACHINE))
    told = start_command(default_state_dir(), "linux", tmp_path / "home", tmp_path)
    assert told == (
        "sudo systemctl start jupiterd; then ask it with: "
        'sudo "$(command -v jupiterctl)" --state-dir /var/lib/jupiter status'
    )


def test_that_nobody_listens_is_known_without_a_question(tmp_path: Path) -> None:
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(DaemonUnreachableError, match="no jupiterd answers"):
            check_listens(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / CONTROL_SOCKET))
        listener.listen()
        check_listens(tmp_path)
    with pytest.raises(DaemonUnreachableError, match="left behind"):
        check_listens(tmp_path)


def test_another_state_folder_is_named_and_quoted(tmp_path: Path) -> None:
    odd = tmp_path / "my state"
    assert start_command(odd) == f"jupiterd --state-dir '{odd}'"


def test_a_file_is_no_state_folder_and_no_daemon_is_to_be_started_with_it(tmp_path):
    (tmp_path / "passwd").write_text("")
    found = unreachable(tmp_path / "passwd")
    assert found.message.endswith(": it is a file, and no folder")
    assert found.hint == "name the daemon's folder, or leave --state-dir out"


def test_a_daemon_that_ran_is_started_again_with_options_that_its_folder_does_not_record(
    tmp_path: Path,
) -> None:
    (tmp_path / "lock").write_text("4194304")
    command = f"jupiterd --state-dir {tmp_path}"
    assert unreachable(tmp_path).hint == f"start it again, with the options it had: {command}"
    (tmp_path / "lock").unlink()
    assert unreachable(tmp_path).hint == f"start it with: {command}"
