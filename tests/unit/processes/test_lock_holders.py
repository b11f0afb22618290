"""A GPU's lock counts while its holder uses the GPU, or may be about to; anybody may take one."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

import pynvml
import pytest

from jupiterd.errors import DeviceBusyError
from jupiterd.hardware.nvidia import computing_pids
from jupiterd.processes import device_locks, lock_holders
from jupiterd.processes.device_loans import DeviceLoans
from jupiterd.processes.device_locks import device_locked, holder_of
from jupiterd.processes.lock_holders import LockHolders
from tests.unit.processes.test_device_locks import GPU, another_daemon

pytestmark = pytest.mark.skipif(
    not Path("/proc/locks").exists(), reason="the kernel tells no locks"
)


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[int]:
    """Yield a process of another user, who holds the GPU's lock; we are another user than it."""
    monkeypatch.setattr(device_locks, "TAKE_S", 0.05)
    other = another_daemon(tmp_path)
    assert other.stdout is not None
    worker = int(other.stdout.readline())
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 4711)
    yield other.pid
    other.kill()
    os.kill(worker, 9)
    other.communicate()


def seen_computing(monkeypatch: pytest.MonkeyPatch, *pids: int, is_known: bool = True) -> None:
    found = frozenset(pids) if is_known else None
    monkeypatch.setattr(device_locks, "_holders", LockHolders(lambda _uuid: found))


async def test_a_lock_of_somebody_who_computes_nothing_is_in_nobodys_way(
    tmp_path: Path, stranger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen_computing(monkeypatch)
    monkeypatch.setattr(lock_holders, "BEGIN_S", 0.0)
    assert await holder_of(GPU, tmp_path) == ""
    async with device_locked(GPU, "a gang of alpha", tmp_path) as descriptor:
        assert descriptor is not None  # a new file has taken the other one's place
        monkeypatch.undo()
        assert await holder_of(GPU, tmp_path) == "a gang of alpha"


async def test_nor_does_it_keep_a_gpu_from_being_lent(
    tmp_path: Path, stranger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen_computing(monkeypatch)
    monkeypatch.setattr(lock_holders, "BEGIN_S", 0.0)
    async with DeviceLoans(tmp_path).borrowed(GPU, "evaluate of alpha") as loan:
        assert loan is not None


async def test_who_may_be_about_to_compute_holds_it_and_is_named_as_the_kernel_says(
    tmp_path: Path, stranger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen_computing(monkeypatch)
    with pytest.raises(DeviceBusyError, match=r"held by a gang of beta .*, of user \w+"):
        async with device_locked(GPU, "a gang of alpha", tmp_path):
            pass
    monkeypatch.setattr(lock_holders, "_shown_holder", lambda lockers, *_: str(*lockers))
    assert await holder_of(GPU, tmp_path) == str(stranger)


@pytest.mark.parametrize("is_known", [True, False])
async def test_who_computes_holds_it_for_as_long_as_that_takes(
    tmp_path: Path, stranger: int, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    seen_computing(monkeypatch, stranger, is_known=is_known)
    monkeypatch.setattr(lock_holders, "BEGIN_S", 0.0)
    assert "a gang of beta" in await holder_of(GPU, tmp_path)


@pytest.fixture
def shared() -> Generator[Path]:
    """A folder that every user may go into."""
    folder = Path(tempfile.mkdtemp(prefix="jupiter-locks-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


NOBODY = 65534


@pytest.fixture
def rank(shared: Path) -> Generator[int]:
    """Yield a process of another user that has inherited the lock of one that was killed."""
    if os.geteuid() != 0 or shutil.which("flock") is None:
        pytest.skip("only root can be two users")
    file = shared / f"{GPU}.lock"
    line = ["flock", str(file), "sh", "-c", "echo $$; exec sleep 60"]
    taker = subprocess.Popen(
        line, stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY, extra_groups=[]
    )
    assert taker.stdout is not None
    worker = int(taker.stdout.readline())
    taker.kill()
    taker.wait()
    yield worker
    os.kill(worker, 9)
    taker.stdout.close()


async def test_a_rank_whose_daemon_was_killed_keeps_its_gpu_from_another_user(
    shared: Path, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_locks, "TAKE_S", 0.05)
    monkeypatch.setattr(lock_holders, "BEGIN_S", 0.0)
    seen_computing(monkeypatch, rank)
    assert "of user nobody" in await holder_of(GPU, shared)
    with pytest.raises(DeviceBusyError, match=r"held by .* of user nobody"):
        async with device_locked(GPU, "a gang of alpha", shared):
            pass
    seen_computing(monkeypatch, os.getpid())
    assert await holder_of(GPU, shared) == "", "we alone compute there"
    seen_computing(monkeypatch)
    assert await holder_of(GPU, shared) == "", "it computes nothing"


def test_what_somebody_else_has_written_into_a_file_names_nobody() -> None:
    told = lock_holders._shown_holder({4711: os.getuid()}, os.getuid() + 1, "a gang of the victim")
    assert told.startswith("process 4711 of user ")


class ComputingDriver:
    """The part of NVML that says which processes compute."""

    def __init__(self, *pids: int) -> None:
        self._processes = [pynvml.c_nvmlProcessInfo_t(pid=pid) for pid in pids]

    def nvmlInit(self) -> None:  # noqa: N802
        pass

    def nvmlShutdown(self) -> None:  # noqa: N802
        pass

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return uuid

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[object]:  # noqa: N802
        return [*self._processes] if handle == GPU else []


def test_the_driver_tells_who_computes_and_where_it_cannot_nobody_is_doubted() -> None:
    if str(Path("/proc/self/ns/pid").readlink()) == "pid:[4026531836]":
        assert computing_pids(GPU, ComputingDriver(7)) == {7}
    assert computing_pids(GPU, object()) is None
