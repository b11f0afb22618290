"""How long a script lives under jupiterctl launch: restarts, terminals, ranks left alone."""

import json
import os
import pty
import signal
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from jupiterd.ctl.launch import run as launch_run

JUPITERCTL = str(Path(sys.executable).parent / "jupiterctl")
TIMEOUT_S = 20.0
LAUNCH = ("launch", "--engine", "mlx")


def test_all_ranks_are_started_again_so_often_and_know_it(ctl, script):
    name = script(
        "import os, sys\n"
        "print(*(os.environ[f'TORCHELASTIC_{n}'] for n in ('RESTART_COUNT', 'MAX_RESTARTS')))\n"
        "sys.exit(int(os.environ['TORCHELASTIC_RESTART_COUNT'] != '2') * 7)\n"
    )
    argv = (*LAUNCH, "--max-restarts", "2", "--", sys.executable, name)
    ran = ctl(*argv)
    assert (ran.exit_code, ran.out.split("\n")) == (
        0, ["[rank 0] 0 2", "[rank 0] 1 2", "[rank 0] 2 2", ""],
    )  # fmt: skip
    assert "all ranks are started again (2 of 2)" in ran.err


def test_after_the_last_restart_the_failure_is_the_launch_s(ctl, script):
    name = script("import sys; sys.exit(7)")
    ran = ctl(*LAUNCH, "--max-restarts", "1", "--", sys.executable, name)
    assert ran.exit_code == 7
    assert ran.err.count("rank 0 ended with status 7") == 2


def test_a_rank_that_is_done_while_others_go_on_is_named(ctl, script, tmp_path, monkeypatch):
    say = launch_run.LaunchRun._say_alone

    def said(run):
        say(run)
        (tmp_path / "said").touch()

    monkeypatch.setattr(launch_run, "ENDED_ALONE_S", 0.1)
    monkeypatch.setattr(launch_run.LaunchRun, "_say_alone", said)
    name = script(
        "import os, time\n"
        "while os.environ['RANK'] == '1' and not os.path.exists('said'):\n"
        "    time.sleep(0.01)\n"
    )
    ran = ctl(*LAUNCH, "--per-node", "2", "--", sys.executable, name)
    assert ran.exit_code == 0
    assert "rank 0; still at work: rank 1" in ran.err


@contextmanager
def at_a_terminal(argv: Sequence[str], *, is_leader: bool = True) -> Iterator[tuple[int, int]]:
    """Start a program at a terminal of 80 columns; yield its pid and our end of the terminal."""
    pid, ours = pty.fork()
    if not pid:
        os.execvp(argv[0], argv)
    termios.tcsetwinsize(ours, (24, 80))
    try:
        yield pid, ours
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        with suppress(OSError):
            os.close(ours)


def read_until(terminal: int, *words: bytes) -> bytes:
    said = b""
    with suppress(OSError):  # its end
        while not all(each in said for each in words) and (data := os.read(terminal, 4096)):
            said += data
    return said


@pytest.mark.full
@pytest.mark.timeout(TIMEOUT_S)
def test_ranks_of_a_terminal_have_a_terminal_beside_their_prefix(script):
    name = script(
        "import os, sys\n"
        "print(sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size().columns)\n"
        "sys.stderr.write('\\r 10%\\r 20%\\n'); print('over')\n"
    )
    with at_a_terminal([JUPITERCTL, *LAUNCH, "--", sys.executable, name]) as (_, terminal):
        said = read_until(terminal, b"over")
    assert b"[rank 0] True True 71" in said
    assert said.index(b"True 71\r\n") < said.index(b"[rank 0]  20%\r\n") < said.index(b"over")


@pytest.mark.full
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("prefix", [(), ("nohup",)], ids=["plain", "nohup"])
def test_a_terminal_that_closes_ends_a_script_unless_it_is_to_be_ignored(
    script, tmp_path: Path, prefix: tuple[str, ...]
):
    name = script(
        "import os, time\n"
        "try:\n"
        "    print('up', flush=True); os.close(os.open('up', os.O_CREAT))\n"
        f"    time.sleep({2.0 if prefix else TIMEOUT_S})\n"
        "    open('ended', 'w').write('alone')\n"
        "except KeyboardInterrupt:\n"
        "    open('ended', 'w').write('saved')\n"
    )
    argv = [*prefix, JUPITERCTL, *LAUNCH, "--", sys.executable, name]
    with at_a_terminal(argv) as (pid, terminal):
        while not (tmp_path / "up").exists():
            os.sched_yield()
        os.close(terminal)
        os.waitpid(pid, 0)
    assert (tmp_path / "ended").read_text() == ("alone" if prefix else "saved")


def test_a_later_try_that_can_not_be_prepared_is_written_down(
    ctl, script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("JUPITER_STATE_DIR", str(tmp_path))
    (tmp_path / "tool").symlink_to(sys.executable)
    name = script("import os; os.remove('tool'); raise SystemExit(7)")
    ran = ctl(*LAUNCH, "--max-restarts", "1", "--", "./tool", name)
    assert (ran.exit_code, "can't be started again" in ran.err) == (6, True)
    (row,) = json.loads(ctl("launch", "list", "-o", "json").out)["launches"]
    assert (row["state"], row["words"]) == ("failed (6)", "there is no program ./tool")
