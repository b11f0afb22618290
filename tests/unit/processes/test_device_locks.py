"""One live gang for each GPU, across the daemons of a machine."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jupiterd.errors import DeviceBusyError
from jupiterd.processes import device_locks
from jupiterd.processes.device_locks import device_locked, holder_of

GPU = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"

DAEMON = """
import asyncio, subprocess, sys
from pathlib import Path
from jupiterd.processes.device_locks import device_locked
async def run():
    async with device_locked(sys.argv[1], "a gang of beta (process 7)", Path(sys.argv[2])) as lock:
        worker = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
        print(worker.pid, flush=True)
        sys.stdin.read()
asyncio.run(run())
"""


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_locks, "TAKE_S", 0.05)


def another_daemon(folder: Path) -> subprocess.Popen[str]:
    """Start a process that holds the GPU and has given it to a worker."""
    return subprocess.Popen(
        [sys.executable, "-c", DAEMON, GPU, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


async def test_a_gpu_is_held_once_and_free_again_afterwards(tmp_path: Path) -> None:
    async with device_locked(GPU, "a gang of alpha", tmp_path):
        assert await holder_of(GPU, tmp_path) == "a gang of alpha"
        assert await holder_of("GPU-other", tmp_path) == ""
        with pytest.raises(DeviceBusyError, match="its GPU is held by a gang of alpha"):
            async with device_locked(GPU, "another", tmp_path):
                pass
    assert await holder_of(GPU, tmp_path) == ""
    async with device_locked(GPU, "another", tmp_path):
        pass


async def test_a_gpu_of_another_daemon_is_busy_until_its_worker_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = another_daemon(tmp_path)
    assert daemon.stdout is not None
    worker = int(daemon.stdout.readline())
    try:
        assert await holder_of(GPU, tmp_path) == "a gang of beta (process 7)"
        os.kill(daemon.pid, signal.SIGKILL)
        daemon.wait()
        with pytest.raises(DeviceBusyError):  # the worker has it still
            async with device_locked(GPU, "a gang of alpha", tmp_path):
                pass
    finally:
        daemon.kill()
        os.kill(worker, signal.SIGKILL)
        daemon.communicate()
    monkeypatch.setattr(device_locks, "TAKE_S", 5.0)
    async with device_locked(GPU, "a gang of alpha", tmp_path) as lock:
        assert lock is not None


async def test_a_lock_on_a_file_that_was_swept_away_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, swept = device_locks._take, list[str]()

    async def taken_too_late(uuid: str, descriptor: int) -> bool:
        if not swept:
            lock = tmp_path / f"{GPU}.lock"
            lock.unlink()
            swept.append(lock.name)
        return await take(uuid, descriptor)

    monkeypatch.setattr(device_locks, "_take", taken_too_late)
    async with device_locked(GPU, "a gang of alpha", tmp_path):
        assert swept
        with pytest.raises(DeviceBusyError):
            async with device_locked(GPU, "another", tmp_path):
                pass


async def test_what_is_held_is_touched_so_that_nobody_sweeps_it_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_locks, "TOUCH_S", 0.0)
    async with device_locked(GPU, "a gang of alpha", tmp_path):
        file = tmp_path / f"{GPU}.lock"
        os.utime(file, (1.0, 1.0))
        async with asyncio.timeout(5):
            while file.stat().st_mtime == 1.0:  # noqa: ASYNC110 - files don't tell
                await asyncio.sleep(0)


async def test_whoever_looks_does_not_stand_in_anybodys_way(tmp_path: Path) -> None:
    async with device_locked(GPU, "one", tmp_path):
        pass
    assert await holder_of(GPU, tmp_path) == await holder_of(GPU, tmp_path) == ""


async def test_the_folder_is_everybodys_and_the_files_are_their_makers(tmp_path: Path) -> None:
    folder = tmp_path / "devices"
    async with device_locked(GPU, "one", folder):
        (file,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
    assert stat.S_IMODE(file.stat().st_mode) & 0o022 == 0


async def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "devices"
    async with device_locked("../../etc/x", "one", folder):
        assert [path.parent for path in folder.iterdir()] == [folder]


async def test_without_a_folder_training_goes_on_unlocked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with device_locked(GPU, "one", tmp_path / "file") as lock:
        assert lock is None
    assert await holder_of(GPU, tmp_path / "file") == ""


async def test_other_users_can_read_a_lock_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        async with device_locked(GPU, "one", tmp_path / "locks"):
            (lock,) = (tmp_path / "locks").iterdir()
            assert lock.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
