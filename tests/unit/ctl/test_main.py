import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

import jupiterd
from jupiterd.ctl.main import COMMANDS, run
from jupiterd.errors import ConflictError, ExitCode
from tests.support.ctl.documents import STATUS

CTL = (sys.executable, "-m", "jupiterd.ctl.main")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("statuz",), "jupiterctl status"),
        (("cycle", "strat"), "jupiterctl cycle start"),
        (("cycle", "start", "--round"), "jupiterctl cycle start --rounds"),
    ],
)
def test_a_misspelt_word_is_guessed(ctl, arguments, meant):
    ran = ctl(*arguments)
    assert ran.exit_code == 2
    assert ran.err.startswith("jupiterctl: error: no such ")
    assert ran.err.endswith(f"\n\nhint: did you mean: {meant}\n")


def test_a_missing_option_points_to_the_help_of_its_command(ctl):
    ran = ctl("data", "purge")
    assert ran.exit_code == 2
    assert ran.err == (
        "jupiterctl: error: missing option '--source'\n\nhint: jupiterctl data purge --help\n"
    )


@pytest.mark.parametrize("limit", ["soon", "5x", "-3"])
def test_a_time_limit_that_is_none_is_refused(ctl, limit):
    ran = ctl("cycle", "watch", "--timeout", limit)
    assert ran.exit_code == 2
    assert "no length of time" in ran.err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_one_line_in_the_list(ctl, name):
    ran = ctl(name, "--help")
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: jupiterctl {name}")


def test_the_help_of_the_program(ctl, golden, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    golden("help.txt", ctl("--help").out)


def test_a_noun_without_a_verb_shows_its_help_on_standard_error(ctl):
    ran = ctl("cycle")
    assert (ran.exit_code, ran.out) == (2, "")
    assert "Usage: jupiterctl cycle" in ran.err


def test_without_a_daemon_the_socket_and_the_way_to_start_one_are_named(ctl, state_dir):
    ran = ctl("status")
    assert (ran.exit_code, ran.out) == (3, "")
    assert f"{state_dir}/control.sock" in ran.err
    assert ran.err.endswith(f"hint: start it with: jupiterd --state-dir {state_dir}\n")


def test_a_daemon_from_before_the_question_socket_is_asked_all_the_same(older_daemon, ctl, golden):
    golden("status.txt", ctl("status").out)
    older_daemon.failure = ConflictError("a cycle is running", "jupiterctl cycle stop")
    ran = ctl("status")
    assert (ran.exit_code, ran.err) == (
        7,
        "jupiterctl: error: a cycle is running\n\nhint: jupiterctl cycle stop\n",
    )


def test_the_flag_wins_over_the_environment(ctl, state_dir):
    ran = ctl("status", "--state-dir", str(state_dir / "other"))
    assert f"{state_dir}/other/control.sock" in ran.err


def test_a_hint_names_the_folder_that_the_flag_named(ctl, state_dir, older_daemon):
    older_daemon.failure = ConflictError("a cycle is running", "jupiterctl cycle stop")
    ran = ctl("--state-dir", str(state_dir), "status")
    assert ran.err.endswith(f"\n\nhint: jupiterctl --state-dir {state_dir} cycle stop\n")


def test_global_options_may_stand_before_the_command(ctl, state_dir):
    ran = ctl("--state-dir", str(state_dir / "other"), "status", "--yes")
    assert f"{state_dir}/other/control.sock" in ran.err


def test_a_mistake_of_ours_shows_a_traceback_only_with_debug(ctl, monkeypatch):
    monkeypatch.setattr("jupiterd.ctl.version.platform", None)
    quiet, loud = ctl("version"), ctl("version", "--debug")
    assert (quiet.exit_code, loud.exit_code) == (1, 1)
    assert "Traceback" not in quiet.err
    assert "Traceback" in loud.err
    assert "--debug" in quiet.err


def test_version_asks_no_daemon(ctl):
    document = json.loads(ctl("version", "-o", "json").out)
    assert document["version"] == jupiterd.__version__


@pytest.fixture
def heeded_ctrl_c() -> Iterator[None]:
    """Have SIGINT heeded by children too: a shell's background commands inherit it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_exits_with_130_and_no_traceback(daemon, state_dir, heeded_ctrl_c):
    command = (*CTL, "--state-dir", str(state_dir), "cycle", "watch", "-o", "jsonl")
    daemon.watched.put(daemon.documents["cycle"]["cycle"])
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it follows now
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in err


def test_a_reader_that_goes_away_early_is_no_error(daemon, state_dir):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            (*CTL, "--state-dir", str(state_dir), "status", "-o", "json"),
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=20,
            check=False,
        )
    assert (done.returncode, done.stderr) == (ExitCode.FAILED, "")


def test_output_survives_a_terminal_that_knows_ascii_alone(daemon, state_dir):
    daemon.documents["status"] = STATUS | {"node": {"id": "a1", "name": "Jüpiter"}}
    done = subprocess.run(
        (*CTL, "--state-dir", str(state_dir), "status", "-o", "json"),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "J?piter" in done.stdout


def test_run_never_raises(capsys):
    assert run(["\x00"]) == ExitCode.USAGE
