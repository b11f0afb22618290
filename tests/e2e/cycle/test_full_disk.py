"""A disk that fills up while a cycle runs: it waits, says why, and goes on when there is room."""

import asyncio
import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.daemons.cluster import (
    LOOK_S,
    Daemon,
    Document,
    all_gone,
    is_running,
    three_daemons,
)
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

DISK_BYTES = 256 << 20
STEPS = 200
ENDS = ("finished", "failed", "stopped")


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    """Return a folder on a small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}"]
    if os.getuid() or subprocess.run(["mount", *options, "tmpfs", folder], check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> Path:
    """Write until there is no room for another byte; return the file to delete."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError:
                continue
    return ballast


def trains(cycle: Document) -> bool:
    return bool(cycle["gang"]) and cycle["step"] >= 20


def is_told(cycle: Document) -> bool:
    running = [phase for phase in cycle["phases"] if phase["state"] == "running"]
    return any("no room" in phase["detail"] or "disk" in phase["detail"] for phase in running)


async def test_a_cycle_waits_for_room_and_goes_on(disk: Path, tmp_path: Path) -> None:
    domain = write_domain(tmp_path, steps=STEPS)
    async with three_daemons(disk, log_folder=tmp_path) as cluster:
        await cluster.meet()
        started = cluster.ctl("cycle", "start", "--domain", str(domain))
        assert started.returncode == 0, started.stderr
        await cluster.until(trains, "training", 60)
        ballast = fill(disk)
        told = await cluster.until(is_told, "why nothing goes on", 90)
        assert told["state"] == "running"
        ballast.unlink()
        ended = await cluster.until(lambda cycle: cycle["state"] in ENDS, "the end", 120)
        assert ended["state"] == "finished", cluster.failure_text(str(ended["failure"]))
        assert ended["step"] == STEPS
        for daemon in cluster.daemons:
            assert "Traceback" not in daemon.log.read_text()
    assert await all_gone([daemon.pid for daemon in cluster.daemons], 10)


async def test_daemons_outlive_a_leader_that_dies_while_no_disk_has_room(
    disk: Path, tmp_path: Path
) -> None:
    async with three_daemons(disk, log_folder=tmp_path) as cluster:
        view = (await cluster.meet())[0]
        leader = cluster.by_id(view["cluster"]["leader"], view)
        survivors = [daemon for daemon in cluster.daemons if daemon is not leader]
        ballast = fill(disk)
        leader.kill()
        for daemon in survivors:
            await told_of_the_disk(daemon)
        ballast.unlink()
        await cluster.meet(among=survivors)
        for daemon in survivors:
            assert "Traceback" not in daemon.log.read_text()


async def told_of_the_disk(daemon: Daemon) -> None:
    """Wait until a daemon's status says that it can't write."""
    async with asyncio.timeout(30):
        while True:
            view = await daemon.ask()
            assert is_running(daemon.pid)
            if view is not None and any(found["code"] == "disk" for found in view["health"]):
                return
            await asyncio.sleep(LOOK_S)
