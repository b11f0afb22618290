"""Workers that are forked from a warm process: like any other in all but how they start."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jupiterd.errors import WorkFailedError
from jupiterd.processes import forkserver, interpreter, orphans
from jupiterd.processes import warm_pool as spares_module
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.interpreter import Process, start_module
from jupiterd.processes.process import Worker, start_worker
from jupiterd.processes.routes import bind_listener
from jupiterd.processes.warm_pool import WarmPool
from jupiterd.protocol.frames import RankListening, RunTask, TaskFailed
from tests.support.processes.waiting_task import NAME
from tests.unit.processes.conftest import ROOT, gone_within, is_running

pytestmark = pytest.mark.skipif(not forkserver.CAN_FORK, reason="workers are forked on Linux alone")

TIMEOUT_S = 60.0
PLACE = {"PYTHONPATH": str(ROOT)}
ENVIRONMENT = worker_environment("train", {"threads": 1}) | PLACE
OTHER = ENVIRONMENT | {"CUDA_VISIBLE_DEVICES": "1"}
"""What libraries would read otherwise as they are loaded."""


class _Over(Exception):  # noqa: N818 - the end of a test
    """Ends the nurseries."""


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the nursery import no engine: it costs seconds."""
    monkeypatch.setattr(forkserver, "MODULE", "tests.support.processes.light_nursery")


@asynccontextmanager
async def nobody(folder: Path) -> AsyncGenerator[WarmPool]:
    """Give a place for nurseries that has none yet."""
    try:
        async with asyncio.TaskGroup() as group, asyncio.timeout(TIMEOUT_S):
            yield WarmPool(folder, group)
            raise _Over  # noqa: TRY301 - as a daemon's end does
    except* _Over:
        pass


@asynccontextmanager
async def warm(folder: Path) -> AsyncGenerator[WarmPool]:
    """Run a nursery of torch workers that training wants."""
    async with nobody(folder) as spares:
        spares.want({"torch": ENVIRONMENT})
        await until(lambda: "torch" in spares._open)
        yield spares


@asynccontextmanager
async def forked(
    spares: WarmPool, folder: Path, task: str, **params: object
) -> AsyncGenerator[Worker]:
    """Start a worker that lives on until it is ended."""
    async with begun(spares, folder, task, **params) as worker:
        assert await asyncio.to_thread(parent, worker.pid) != os.getpid(), "it was started cold"
        yield worker


@asynccontextmanager
async def begun(
    spares: WarmPool, folder: Path, task: str, **params: object
) -> AsyncGenerator[Worker]:
    """Start a worker that may have ended by now."""
    fds = [int(str(number)) for number in params.values()]
    order = RunTask(task, params, {}, str(folder))
    birth = partial(spares.spawn, "torch", begins=True)
    log_path = folder / "worker.log"
    async with start_worker(order, ENVIRONMENT, log_path, fds, warm=birth) as worker:
        yield worker


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something real, as long as the test may take."""
    while True:
        if is_so():
            return
        await asyncio.sleep(0.01)


async def looked_at(spares: WarmPool) -> None:
    """Wait until it has been decided once more whether a nursery is to end."""
    end = spares._ends["torch"]
    await until(lambda: spares._ends.get("torch") is not end)


def remembered(folder: Path) -> list[Path]:
    return list(folder.glob(f"nursery-*{orphans.SUFFIX}"))


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(status[1])


def nursery_pid(folder: Path) -> int:
    (path,) = remembered(folder)
    process = orphans._worker(path)
    assert process is not None
    return process.pid


def has_read(spares: WarmPool, **variables: str) -> bool:
    nursery = spares._open.get("torch")
    return nursery is not None and variables.items() <= dict(nursery.environment).items()


@contextmanager
def open_files() -> Generator[tuple[int, int]]:
    """Two descriptors: a worker's link and its output."""
    with Path(os.devnull).open("rb") as link, Path(os.devnull).open("wb") as output:
        yield link.fileno(), output.fileno()


@pytest.mark.usefixtures("light")
async def test_a_worker_has_the_socket_that_the_daemon_has_bound(tmp_path: Path) -> None:
    async with warm(tmp_path) as spares:
        with bind_listener("127.0.0.1") as listener:
            began_s = time.monotonic()
            async with forked(spares, tmp_path, NAME, fd=listener.fileno()) as worker:
                port = listener.getsockname()[1]
                assert await anext(worker.frames()) == RankListening(port)
                pid = worker.pid
                assert os.getpgid(pid) == pid, "it leads a group of its own"
                assert is_running(pid)
        print(f"after {time.monotonic() - began_s:.2f} s, the first import included")
        assert gone_within(pid, 2.0)
        assert is_running(nursery_pid(tmp_path))


class Late:
    """A process of whose end nobody hears before somebody lets them."""

    def __init__(self, process: Process) -> None:
        self.pid = process.pid
        self.is_waited_for, self.may_be_heard = asyncio.Event(), asyncio.Event()
        self._process = process

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        self.is_waited_for.set()
        await self.may_be_heard.wait()
        return await self._process.wait()


@pytest.mark.usefixtures("light")
async def test_one_that_dies_as_the_daemon_ends_is_waited_for_and_forgotten_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Late] = []

    async def start(*told: Any) -> Late:
        started.append(Late(await start_module(*told)))
        return started[-1]

    monkeypatch.setattr(interpreter, "start_module", start)
    async with warm(tmp_path) as spares:
        (died,) = started
        spares._open["torch"].kill()
        await died.is_waited_for.wait()
        asyncio.get_running_loop().call_soon(died.may_be_heard.set)
    assert died.returncode == -signal.SIGKILL
    assert remembered(tmp_path) == []


@pytest.mark.full
async def test_what_it_prints_is_in_its_own_log_and_its_failure_is_told(tmp_path: Path) -> None:
    async with warm(tmp_path) as spares:
        async with begun(spares, tmp_path, "nothing") as worker:
            last = [frame async for frame in worker.frames()][-1]
        assert isinstance(last, TaskFailed)
        assert "knows no task nothing" in (tmp_path / "worker.log").read_text()


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize("victim", ["worker", "nursery"])
async def test_kill_9_is_noticed_at_once(tmp_path: Path, victim: str) -> None:
    async with warm(tmp_path) as spares:
        with bind_listener("127.0.0.1") as listener:
            async with forked(spares, tmp_path, NAME, fd=listener.fileno()) as worker:
                frames = worker.frames()
                await anext(frames)
                killed = worker.pid if victim == "worker" else nursery_pid(tmp_path)
                os.kill(killed, signal.SIGKILL)
                began_s = time.monotonic()
                with pytest.raises(WorkFailedError, match="was killed by SIGKILL"):
                    await anext(frames)
                assert time.monotonic() - began_s < 1.0
        assert gone_within(worker.pid, 2.0)


@pytest.mark.usefixtures("light")
async def test_a_nursery_that_is_not_wanted_any_more_ends_when_it_is_told_to(
    tmp_path: Path,
) -> None:
    async with warm(tmp_path) as spares:
        pid = nursery_pid(tmp_path)
        spares.want({"torch": ENVIRONMENT})
        spares.want({})
        assert is_running(pid), "the next epoch may want it"
        spares.want({}, ends_others_now=True)
        await until(lambda: not spares._tasks)
        assert gone_within(pid, 2.0)
        assert remembered(tmp_path) == []


@pytest.mark.usefixtures("light")
async def test_a_worker_that_needs_another_environment_is_started_cold(tmp_path: Path) -> None:
    async with warm(tmp_path) as spares:
        assert await spares.spawn("torch", OTHER, (1, 2)) is None


@pytest.mark.usefixtures("light")
async def test_variables_that_people_give_ranks_are_read_after_the_fork(tmp_path: Path) -> None:
    async with warm(tmp_path) as spares:
        given = ENVIRONMENT | {"NCCL_P2P_DISABLE": "1", "CUDA_LAUNCH_BLOCKING": "1"}
        with open_files() as fds:
            assert await spares.spawn("torch", given, fds) is not None


async def test_a_worker_that_begins_no_nursery_is_started_cold_without_one(tmp_path: Path) -> None:
    async with nobody(tmp_path) as spares:
        assert await spares.spawn("torch", ENVIRONMENT, (1, 2)) is None
        assert remembered(tmp_path) == []


@pytest.mark.usefixtures("light")
async def test_the_first_worker_begins_a_nursery_which_ends_some_time_after_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spares_module, "IDLE_S", 0.05)
    async with nobody(tmp_path) as spares:
        with bind_listener("127.0.0.1") as listener:
            async with forked(spares, tmp_path, NAME, fd=listener.fileno()) as worker:
                await anext(worker.frames())
                pid = nursery_pid(tmp_path)
                spares.want({})
                for _ in range(3):
                    await looked_at(spares)
                assert is_running(worker.pid), "it has a child"
        await until(lambda: not spares._tasks)
        assert gone_within(pid, 2.0)


@pytest.mark.usefixtures("light")
async def test_a_nursery_that_ends_before_it_has_begun_holds_nobody_up(tmp_path: Path) -> None:
    async with nobody(tmp_path) as spares:
        spares.want({"torch": ENVIRONMENT})
        spares.want({}, ends_others_now=True)
        async with begun(spares, tmp_path, "nothing") as worker:
            assert [frame async for frame in worker.frames()]


@pytest.mark.usefixtures("light")
async def test_a_nursery_that_nobody_wants_makes_room_for_one_that_does_for_what_comes(
    tmp_path: Path,
) -> None:
    async with nobody(tmp_path) as spares:
        spares.want({"torch": OTHER})
        await until(lambda: "torch" in spares._open)
        first = nursery_pid(tmp_path)
        spares.want({})
        async with begun(spares, tmp_path, "nothing") as worker:
            assert [frame async for frame in worker.frames()]
        assert gone_within(first, 2.0)
        assert nursery_pid(tmp_path) != first


@pytest.mark.usefixtures("light")
async def test_a_nursery_that_training_wants_is_kept_whatever_else_is_forked_there(
    tmp_path: Path,
) -> None:
    async with warm(tmp_path) as spares:
        async with begun(spares, tmp_path, "nothing") as worker:
            assert [frame async for frame in worker.frames()]
        assert not spares._ends


@pytest.mark.usefixtures("light")
async def test_a_nursery_that_was_stopped_is_killed_and_its_workers_end(tmp_path: Path) -> None:
    async with warm(tmp_path) as spares:
        with bind_listener("127.0.0.1") as listener:
            async with forked(spares, tmp_path, NAME, fd=listener.fileno()) as worker:
                frames = worker.frames()
                await anext(frames)
                os.kill(nursery_pid(tmp_path), signal.SIGSTOP)
                with pytest.raises(WorkFailedError, match="was killed by SIGKILL"):
                    await anext(frames)
        await until(lambda: not spares._tasks)
        assert gone_within(worker.pid, 2.0)


@pytest.mark.usefixtures("light")
async def test_a_nursery_that_hangs_is_killed_and_the_worker_started_cold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spares_module, "BIRTH_S", 0.3)  # before it is seen that it was stopped
    async with warm(tmp_path) as spares:
        await until(lambda: spares._open["torch"].is_ready)
        pid = nursery_pid(tmp_path)
        os.kill(pid, signal.SIGSTOP)
        with open_files() as fds:
            assert await spares.spawn("torch", ENVIRONMENT, fds) is None
        await until(lambda: not spares._tasks)
        assert gone_within(pid, 2.0)


@pytest.mark.usefixtures("light")
async def test_a_nursery_that_has_read_something_else_is_replaced_once_it_has_no_children(
    tmp_path: Path,
) -> None:
    async with warm(tmp_path) as spares:
        first = nursery_pid(tmp_path)
        with bind_listener("127.0.0.1") as listener:
            async with forked(spares, tmp_path, NAME, fd=listener.fileno()) as worker:
                await anext(worker.frames())
                spares.want({"torch": OTHER})
                assert is_running(first), "it has a child"
        spares.want({"torch": OTHER})
        await until(lambda: has_read(spares, CUDA_VISIBLE_DEVICES="1"))
        assert gone_within(first, 2.0)
        second = nursery_pid(tmp_path)
        spares.want({"torch": OTHER})
        assert is_running(second), "it has read what is needed"
