"""Workers that a crashed daemon left behind."""

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from jupiterd.processes import orphans
from tests.unit.processes.conftest import Start, is_running

SLEEP = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture
def left_behind(tmp_path: Path):
    with subprocess.Popen(SLEEP, start_new_session=True) as process:
        orphans.remember(tmp_path / "train.pid", process.pid)
        yield process
        process.kill()


def test_a_worker_left_behind_is_ended_and_crossed_out(
    tmp_path: Path, left_behind: subprocess.Popen[bytes]
):
    assert orphans.reap(tmp_path) == [left_behind.pid]
    assert not is_running(left_behind.pid)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_got_the_pid_later_is_left_alone(
    tmp_path: Path, left_behind: subprocess.Popen[bytes]
):
    path = tmp_path / "train.pid"
    fields = json.loads(path.read_text())
    path.write_text(json.dumps(fields | {"started_s": fields["started_s"] - 60}))
    assert orphans.reap(tmp_path) == []
    assert is_running(left_behind.pid)
    assert not path.exists()


def test_a_process_that_leads_no_group_is_left_alone(tmp_path: Path):
    with subprocess.Popen(SLEEP) as process:
        orphans.remember(tmp_path / "train.pid", process.pid)
        assert orphans.reap(tmp_path) == []
        assert is_running(process.pid)
        process.kill()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"pid": "x", "started_s": 1}', '{"pid": 1'])
def test_a_file_that_says_nothing_is_thrown_away(tmp_path: Path, text: str):
    (tmp_path / "odd.pid").write_text(text)
    (tmp_path / "train.log").write_text("kept")
    assert orphans.reap(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["train.log"]


def test_a_worker_that_is_gone_already_is_not_written_down(tmp_path: Path):
    with subprocess.Popen(SLEEP) as process:
        process.kill()
    orphans.remember(tmp_path / "train.pid", process.pid)
    assert list(tmp_path.iterdir()) == []


async def test_a_running_worker_is_written_down_and_an_ended_one_is_not(
    start: Start, tmp_path: Path
):
    async with start("obey") as worker:
        await anext(worker.frames())
        fields = json.loads((tmp_path / "obey.pid").read_text())
        assert fields["pid"] == worker.pid
        assert fields["started_s"] == psutil.Process(worker.pid).create_time()
    assert not (tmp_path / "obey.pid").exists()
