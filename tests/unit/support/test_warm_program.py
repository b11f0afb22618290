"""A program from the warm process does what one that was started cold does, and is waited for."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from jupiterd.ctl.preflight import held_out_look, source_survey
from jupiterd.ctl.preflight.source_survey import answer_of
from tests.support.daemons.cluster import Daemon
from tests.support.fork_server import FOLDER_VARIABLE, LOOKS, READERS, READING, jupiterd_command
from tests.support.warm_children import LookStarts
from tests.support.warm_program import (
    JUPITERCTL,
    Fork,
    ForkedProgram,
    fork_for,
    reads_at_start,
    run_program,
)

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.usefixtures("warm_starts"),
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the fork server is Linux's"),
]

COMMANDS = (("version",), ("--help",), ("cycle", "starrt"), ("--state-dir", "none", "status"))
WITHIN_S = 20.0


@pytest.fixture
def daemon(tmp_path: Path):
    """Run one that nobody meets, and end it for certain."""
    found = Daemon(tmp_path, "alone", environment={"JUPITER_TEST_WORD": "of this one"})
    found.start()
    yield found
    found.end()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_jupiterctl_says_the_same_and_ends_alike(words: tuple[str, ...], tmp_path: Path) -> None:
    cold = subprocess.run(
        [JUPITERCTL, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert fork_for([JUPITERCTL, *words]) is not None
    warm = run_program([JUPITERCTL, *words], WITHIN_S, tmp_path)
    assert (warm.returncode, warm.stdout, warm.stderr) == (
        cold.returncode,
        cold.stdout,
        cold.stderr,
    )


def test_a_daemon_has_its_folder_its_environment_and_a_session_of_its_own(daemon: Daemon) -> None:
    assert isinstance(daemon.process, ForkedProgram)
    assert psutil.Process(daemon.pid).cwd() == str(daemon.log.parent)
    assert os.getsid(daemon.pid) == daemon.pid
    with pytest.raises(subprocess.TimeoutExpired):
        daemon.process.wait(0.01)
    assert daemon.process.poll() is None


def test_the_signal_that_ends_it_is_reported(daemon: Daemon) -> None:
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGKILL)
    assert daemon.process.wait(WITHIN_S) == -signal.SIGKILL
    daemon.process.terminate()  # as with any child that has ended, nothing happens
    assert daemon.process.poll() == -signal.SIGKILL


def test_a_look_at_text_has_the_same_answer_and_says_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text"
    text.mkdir()
    (text / "one.md").write_text("dear all\n")
    asked = {"source": {"kind": "folder", "path": str(text)}, "within_s": WITHIN_S}
    command = [sys.executable, *held_out_look.PROGRAM]
    assert fork_for(command) == Fork(command[-1], (), kind=LOOKS)

    def looked(name: str) -> tuple[object, str]:
        scratch = tmp_path / name
        scratch.mkdir()
        answer = answer_of(held_out_look.PROGRAM, asked, scratch)
        return answer, (scratch / "saying").read_text()

    cold = looked("cold")
    monkeypatch.setattr(source_survey, "subprocess", LookStarts)
    assert looked("warm") == cold


def test_a_network_is_entered_and_whatever_else_comes_first_is_started_cold() -> None:
    daemon = jupiterd_command()
    entered = ("nsenter", "--net=/proc/1/ns/net", "--")
    arguments = ("--port", "0")
    module = "tests.support.warm_jupiterd"
    assert fork_for([*daemon, *arguments]) == Fork(module, list(arguments))
    assert fork_for([*entered, *daemon, *arguments]) == Fork(
        module, list(arguments), "/proc/1/ns/net"
    )
    assert fork_for(["setpriv", "--reuid=1", *daemon]) is None
    assert fork_for([*entered, "setpriv", "--reuid=1", *daemon]) is None
    assert fork_for(["/usr/bin/true"]) is None
    assert fork_for([sys.executable, "-m", READING, "7"]) == Fork(READING, ["7"], kind=READERS)
    assert fork_for([sys.executable, "-m", "zipfile", "7"]) is None


def test_without_a_fork_server_everything_is_started_cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE)
    assert fork_for([JUPITERCTL, "version"]) is None


def test_what_is_read_when_a_process_starts_decides() -> None:
    assert not reads_at_start(os.environ)
    assert not reads_at_start({**os.environ, "JUPITER_SCOPE": "attic"})
    assert reads_at_start({**os.environ, "LC_ALL": "tr_TR.UTF-8"})
    assert reads_at_start({**os.environ, "PYTHONMALLOC": "debug"})
    assert reads_at_start({**os.environ, "PYTHONPATH": "/elsewhere"})
