"""GPUs that are lent to work which gives way to gangs, across the daemons of a machine."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from jupiterd.errors import DeviceBusyError
from jupiterd.processes import device_loans, device_locks
from jupiterd.processes.device_loans import DeviceLoans
from jupiterd.processes.device_locks import call_in, device_locked

GPU = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"

BORROWER = """
import asyncio, subprocess, sys
from pathlib import Path
from jupiterd.processes.device_loans import DeviceLoans
async def run():
    async with DeviceLoans(Path(sys.argv[2])).borrowed(sys.argv[1], "generate of beta") as loan:
        worker = subprocess.Popen(["sleep", "60"], pass_fds=(loan.descriptor,))
        print(worker.pid, flush=True)
        await loan.recalled()
        worker.kill()
        worker.wait()
asyncio.run(run())
"""


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (device_loans, device_locks):
        monkeypatch.setattr(module, "TAKE_S", 0.05)
    monkeypatch.setattr(device_loans, "LOOK_S", 0.01)


def another_daemon(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """Start a daemon that generates on the GPU; return it and its worker's process id."""
    daemon = subprocess.Popen(
        [sys.executable, "-c", BORROWER, GPU, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert daemon.stdout is not None
    return daemon, int(daemon.stdout.readline())


def is_running(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


async def test_the_workers_of_one_daemon_share_a_loan_and_others_wait(tmp_path: Path) -> None:
    here, there = DeviceLoans(tmp_path), DeviceLoans(tmp_path)
    async with here.borrowed(GPU, "generate of alpha") as first:
        async with here.borrowed(GPU, "evaluate of alpha") as second:
            assert first is not None
            assert second is not None
            assert first.descriptor == second.descriptor
        with pytest.raises(DeviceBusyError, match="its GPU is held by generate of alpha"):
            async with there.borrowed(GPU, "generate of beta"):
                pass
        async with there.borrowed("GPU-other", "generate of beta"):
            pass
    async with there.borrowed(GPU, "generate of beta"):
        pass


async def test_nothing_is_lent_of_a_gpu_that_a_gang_has(tmp_path: Path) -> None:
    async with device_locked(GPU, "a gang of alpha", tmp_path):
        with pytest.raises(DeviceBusyError, match="its GPU is held by a gang of alpha"):
            async with DeviceLoans(tmp_path).borrowed(GPU, "generate of beta"):
                pass


async def test_a_gang_gets_a_lent_gpu_as_soon_as_the_worker_is_gone(tmp_path: Path) -> None:
    daemon, worker = another_daemon(tmp_path)
    try:
        async with device_locked(GPU, "a gang of alpha", tmp_path):
            assert not is_running(worker)
    finally:
        daemon.communicate()


async def test_a_lent_gpu_is_given_back_before_it_is_looked_how_much_memory_is_free(
    tmp_path: Path,
) -> None:
    await call_in(GPU, "a gang that is being formed", tmp_path)
    daemon, worker = another_daemon(tmp_path)
    try:
        await call_in(GPU, "a gang that is being formed", tmp_path)
        assert not is_running(worker)
        assert not device_locks.holder_now(GPU, tmp_path)
    finally:
        daemon.communicate()


async def test_a_worker_that_outlives_its_daemon_keeps_the_loan_and_the_gang_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_locks, "RETURN_S", 0.05)
    daemon, worker = another_daemon(tmp_path)
    try:
        daemon.kill()
        daemon.wait()
        with pytest.raises(DeviceBusyError, match="isn't given back by generate of beta"):
            async with device_locked(GPU, "a gang of alpha", tmp_path):
                pass
    finally:
        os.kill(worker, signal.SIGKILL)
        daemon.communicate()
    monkeypatch.setattr(device_locks, "RETURN_S", 5.0)
    async with device_locked(GPU, "a gang of alpha", tmp_path):
        pass


async def test_the_last_worker_of_a_loan_gives_it_back(tmp_path: Path) -> None:
    here = DeviceLoans(tmp_path)

    async def use(name: str, until: asyncio.Event) -> None:
        async with here.borrowed(GPU, name):
            await until.wait()

    first, second = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        one = group.create_task(use("one", first))
        group.create_task(use("two", second))
        await asyncio.sleep(0)
        first.set()
        await one
        with pytest.raises(DeviceBusyError):
            async with DeviceLoans(tmp_path).borrowed(GPU, "another"):
                pass
        second.set()
    async with DeviceLoans(tmp_path).borrowed(GPU, "another"):
        pass


async def test_without_a_folder_work_goes_on_without_a_loan(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with DeviceLoans(tmp_path / "file").borrowed(GPU, "generate of alpha") as loan:
        assert loan is None
