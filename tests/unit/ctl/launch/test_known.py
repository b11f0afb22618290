"""Launches can be listed, read and stopped, while they run and for a while after."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupiterd.processes.scripts.event_log import EventWriter
from jupiterd.processes.scripts.events import NOTICE_RANK, STORE_RANK, Over, Printed
from jupiterd.processes.scripts.machine_share import PARTS, MachineShare, ShareDescription
from jupiterd.processes.scripts.record import LAUNCHES, Launch, LaunchRecord

SLEEPS = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
TIMEOUT_S = 20.0


def recorded(state_dir: Path, launch: str, status: int | None = 0) -> LaunchRecord:
    record = LaunchRecord(state_dir / LAUNCHES / launch)
    os.close(record.hold())
    argv = ("python", "train.py")
    record.write(Launch(launch, argv, "/home/me", ("attic", "cellar"), 2, 1, False, 0.0))
    if status is not None:
        record.end(status, "" if not status else "rank 1 failed", 5.0)
    return record


def test_a_launch_that_has_ended_is_listed_with_how(ctl, state_dir):
    recorded(state_dir, "aa11")
    recorded(state_dir, "bb22", status=7)
    recorded(state_dir, "cc33", status=None)
    listed = json.loads(ctl("launch", "list", "-o", "json").out)["launches"]
    assert {row["id"]: row["state"] for row in listed} == {
        "aa11": "done", "bb22": "failed (7)", "cc33": "killed",
    }  # fmt: skip
    assert listed[0]["nodes"] == ["attic", "cellar"]
    assert "attic, cellar" in ctl("launch", "list").out
    stopped = json.loads(ctl("launch", "stop", "aa11", "-o", "json").out)
    assert stopped["launch"]["state"] == "done"


def test_what_was_printed_is_shown_with_who_printed_it(ctl, state_dir):
    events = EventWriter(recorded(state_dir, "aa11").folder)
    for rank, said in (
        (0, b"one\n"),
        (1, b"two\n"),
        (STORE_RANK, b"three\n"),
        (NOTICE_RANK, b"4\n"),
    ):
        events.append(Printed(rank, is_error=False, data=said))
    events.append(Over())
    ran = ctl("launch", "logs", "aa")
    assert ran.out == "[rank 0] one\n[rank 1] two\n[store] three\njupiterctl: 4\n"
    assert ctl("launch", "logs", "--rank", "1").out == "[rank 1] two\n"


def test_an_id_that_means_none_or_several_is_named(ctl, state_dir):
    assert "no launch is known" in ctl("launch", "logs").err
    recorded(state_dir, "aa11")
    recorded(state_dir, "aa22")
    assert "several launches whose id begins with aa" in ctl("launch", "logs", "aa").err
    assert ctl("launch", "logs", "cc").exit_code == 6


def test_of_one_that_was_started_again_the_part_that_runs_is_meant(ctl, state_dir):
    for number, ended in enumerate((True, False, True)):
        part = MachineShare(state_dir / PARTS / f"ee55.{number}")
        part.make(ShareDescription("a", "attic", ("python",), "/", (0,), 0.0))
        EventWriter(part.folder).append(Printed(0, is_error=False, data=b"%d\n" % number))
        if ended:
            part.write_over(Over())
        else:
            lock = part.lock()
    assert ctl("launch", "logs", "ee55").out == "[rank 0] 1\n"
    assert "would end launch ee55" in ctl("launch", "stop", "ee", "--dry-run").out
    os.close(lock)
    assert ctl("launch", "logs", "ee").out == "[rank 0] 2\n", "the last one, where none runs"


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("JUPITER_STATE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.full
def test_a_detached_launch_goes_on_by_itself_until_it_is_stopped(ctl, state_dir):
    program = Path(sys.executable).parent / "jupiterctl"
    argv = ("launch", "--engine", "mlx", "--detach", "--", sys.executable, "-c", SLEEPS)
    began = subprocess.run(
        [program, *argv], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    launch = began.stdout.split()[1]
    (row,) = json.loads(ctl("launch", "list", "-o", "json").out)["launches"]
    assert (row["id"], row["state"], row["detached"]) == (launch, "running", True)
    until_s = time.monotonic() + TIMEOUT_S
    while not ctl("launch", "logs", launch, "--rank", "0").out:
        assert time.monotonic() < until_s
    assert "without a terminal, say so with --yes" in ctl("launch", "stop", launch).err
    assert ctl("launch", "stop", launch, "--yes").out == f"launch {launch} has ended\n"
    (row,) = json.loads(ctl("launch", "list", "-o", "json").out)["launches"]
    assert (row["state"], row["words"]) == ("stopped (130)", "stopped by SIGINT")
