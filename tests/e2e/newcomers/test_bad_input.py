"""What a newcomer does wrong: one clear line, a hint, the right exit status, and nothing lost."""

import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from jupiterd.errors import ExitCode, MissingExtraError
from tests.support.daemons.bare_python import bare_python
from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.users import as_user, why_not
from tests.support.fork_server import jupiterd_command
from tests.support.sources.tiny_domain import write_domain
from tests.support.warm_program import run_program

pytestmark = [
    pytest.mark.smoke,
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(120),
]

NOBODY = 64_999
TIMEOUT_S = 30


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Run one daemon that finds nobody."""
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "solo", prefix)]) as cluster:
            await cluster.meet()
            yield cluster


def refusal(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    """Return exit status, message and hint of a command that failed as commands should."""
    assert "Traceback" not in done.stderr, done.stderr
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) == 2, done.stderr
    assert ": error: " in lines[0]
    assert lines[1].startswith("hint: ")
    return done.returncode, lines[0].partition(": error: ")[2], lines[1].removeprefix("hint: ")


def jupiterd(*options: str | Path, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a daemon that is expected to give up at once."""
    command = [*prefix, *jupiterd_command(), "--local", "--port", "0", *options]
    return run_program(command, TIMEOUT_S)


def test_without_a_daemon_the_socket_is_named_and_how_to_start_one(tmp_path: Path) -> None:
    cluster = Cluster([Daemon(tmp_path, "nobody")])
    for command in (("status",), ("cycle", "start", "--domain", "python"), ("cycle", "watch")):
        status, message, hint = refusal(cluster.ctl(*command))
        assert status == ExitCode.UNREACHABLE
        assert str(tmp_path / "nobody" / "control.sock") in message
        assert hint == f"start it with: jupiterd --state-dir {tmp_path / 'nobody'}"


async def test_a_node_that_finds_no_other_says_so_and_works_alone(alone: Cluster) -> None:
    shown = alone.ctl("status")
    assert shown.returncode == 0
    assert "info: this node is alone, and keeps to this machine" in shown.stdout
    assert "hint: start it without --local to find others" in shown.stdout
    assert "the only node that can work" in shown.stdout


@pytest.mark.full
async def test_without_a_machine_learning_library_the_extra_is_named(tmp_path: Path) -> None:
    python = bare_python(tmp_path / "python")
    with own_network() as prefix:
        command = (python, "-m", "jupiterd.daemon.app.main")
        async with running([Daemon(tmp_path, "bare", prefix, command=command)]) as cluster:
            shown = cluster.ctl("status")
            while ", led by" not in shown.stdout or "1 of 1 nodes alive" not in shown.stdout:
                shown = cluster.ctl("status")
            assert "error: no node that is alive has a machine learning library" in shown.stdout
            found = refusal(cluster.ctl("cycle", "start", "--domain", "python"))
            assert found[0] == ExitCode.FAILED
            assert "no node that is alive has a machine learning library installed" in found[1]
            assert found[2] == MissingExtraError.default_hint


async def test_a_domain_that_is_wrong_starts_nothing(alone: Cluster, tmp_path: Path) -> None:
    broken, wrong = tmp_path / "broken.yaml", tmp_path / "wrong.yaml"
    broken.write_text("version: 1\ndomain: x\n  title: [\n")
    wrong.write_text(write_domain(tmp_path).read_text().replace("steps: 30", "steps: many"))
    expected = {
        "cookng": (ExitCode.NOT_FOUND, "there is no domain 'cookng'"),
        str(tmp_path / "gone.yaml"): (ExitCode.NOT_FOUND, "gone.yaml doesn't exist"),
        str(broken): (ExitCode.USAGE, "broken.yaml:3: expected valid YAML"),
        str(wrong): (ExitCode.USAGE, "wrong.yaml:13: training.steps: expected a whole number"),
    }
    for domain, (status, message) in expected.items():
        found = refusal(alone.ctl("cycle", "start", "--domain", domain))
        assert found[0] == status, found
        assert message in found[1]
    assert alone.ctl("cycle", "status").stdout == "no cycle has been started\n"


@pytest.mark.full
async def test_what_is_not_text_is_left_out_and_a_source_of_nothing_else_is_named(
    alone: Cluster, tmp_path: Path
) -> None:
    domain = write_domain(tmp_path, steps=2)
    code = tmp_path / "code"
    texts = [path for path in sorted(code.rglob("*.py")) if path.is_file()]
    (code / "noise.py").write_bytes(os.urandom(5000))
    done = alone.ctl("cycle", "start", "--domain", str(domain), "--wait")
    assert done.returncode == 0, alone.failure_text(done.stdout + done.stderr)
    assert "left out 1 (not text 1: folder:code/noise.py)" in done.stdout

    for path in texts:
        path.unlink()
    status, message, hint = refusal(alone.ctl("cycle", "start", "--domain", str(domain), "--wait"))
    assert status == ExitCode.NOT_FOUND
    assert f"the folder {code} has no text" in message
    assert "data_sources" in hint

    (code / "noise.py").unlink()
    failed = alone.ctl("cycle", "start", "--domain", str(domain), "--wait")
    notice, _, failed.stderr = failed.stderr.partition("\n")
    assert "no file in it matches **/*.py" in notice
    status, message, _ = refusal(failed)
    assert status == ExitCode.NOT_FOUND
    assert f"the folder {code} has no file" in message


async def test_a_second_daemon_disturbs_neither_the_folder_nor_the_port_of_the_first(
    alone: Cluster, tmp_path: Path
) -> None:
    first = alone[0]
    status, message, hint = refusal(jupiterd("--state-dir", first.state_dir))
    assert status == ExitCode.CONFLICT
    assert f"held by a running jupiterd (process {first.pid})" in message
    assert "--state-dir" in hint

    view = await first.ask()
    assert view is not None
    port = view["nodes"][0]["addresses"][0].rpartition(":")[2]
    taken = jupiterd("--state-dir", tmp_path / "second", "--port", port, prefix=first.prefix)
    status, message, hint = refusal(taken)
    assert status == ExitCode.CONFLICT
    assert f"port {port} on 127.0.0.1 is taken" in message
    assert "--port 0" in hint
    assert alone.ctl("status").returncode == 0


@pytest.mark.full
def test_a_state_folder_that_cannot_be_written_is_named(stage: Path) -> None:
    closed = stage / "closed"
    closed.mkdir(mode=0o555)
    prefix: Sequence[str] = ()
    if os.getuid() == 0:  # to whom nothing is closed
        if reason := why_not(NOBODY, stage):
            pytest.skip(reason)
        prefix = as_user(NOBODY, stage)
    status, message, hint = refusal(jupiterd("--state-dir", closed / "node", prefix=prefix))
    assert status == ExitCode.CONFLICT
    assert f"the state folder {closed / 'node'} can't be written: Permission denied" in message
    assert "--state-dir" in hint


def test_settings_that_are_wrong_are_named_with_their_line(tmp_path: Path) -> None:
    settings = tmp_path / "jupiter.yaml"
    settings.write_text("name: desk\nport: many\n")
    status, message, _ = refusal(jupiterd("--config", settings, "--state-dir", tmp_path / "node"))
    assert status == ExitCode.USAGE
    assert message == f"{settings}:2: port: expected a whole number from 0 to 65535, got 'many'"
    assert not (tmp_path / "node").exists()
