"""Worker processes: what they say, how they die, and that nothing of them is left."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupiterd import control_group
from jupiterd.errors import OutOfMemoryError, WorkerCrashedError, WorkerKilledError, WorkFailedError
from jupiterd.processes import oom_killer
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.log_file import LogFile
from jupiterd.processes.process import Worker, start_worker
from jupiterd.processes.routes import bind_listener
from jupiterd.protocol.frames import (
    Frame,
    Progressed,
    RankListening,
    RunTask,
    TaskFailed,
    TaskFinished,
)
from tests.support.processes import waiting_task
from tests.unit.processes.conftest import ROOT, Start, gone_within, is_running, open_descriptors


async def heard(worker: Worker) -> list[Frame]:
    return [frame async for frame in worker.frames()]


async def test_a_worker_says_how_far_it_is_and_how_it_ended(start: Start):
    async with start("echo", variables=["HOME", "PYTHONUNBUFFERED"]) as worker:
        progress, last = await heard(worker)
    assert progress == Progressed(1, 2, "words", {"loss": 0.5})
    assert isinstance(last, TaskFinished)
    assert last.counts == {"pid": worker.pid, "group": worker.pid}, "it leads a group of its own"
    assert last.summary == {"HOME": os.environ["HOME"], "PYTHONUNBUFFERED": "1"}
    assert not is_running(worker.pid)


async def test_nothing_of_the_working_folder_is_importable(start: Start, tmp_path: Path):
    before = Path.cwd()
    (tmp_path / "jupiterd").mkdir()
    (tmp_path / "jupiterd" / "__init__.py").write_text("raise SystemExit(9)")
    os.chdir(tmp_path)
    try:
        async with start("echo", variables=[]) as worker:
            assert isinstance((await heard(worker))[-1], TaskFinished)
    finally:
        os.chdir(before)


async def test_a_worker_that_ends_without_a_word_is_told_of_with_its_last_line(start: Start):
    with pytest.raises(WorkFailedError, match=r"die worker \(pid \d+\) ended with status 3") as e:
        async with start("die", status=3, words="no room for 12 GiB") as worker:
            await heard(worker)
    assert e.value.message.endswith("and no result: no room for 12 GiB")


async def test_a_crash_is_named_and_told_from_being_killed(start: Start):
    with pytest.raises(WorkerCrashedError, match="was killed by SIGSEGV: hm"):
        async with start("die", signal=int(signal.SIGSEGV), words="hm", status=0) as worker:
            await heard(worker)


METALS_LAST_WORDS = (
    "libc++abi: terminating due to uncaught exception of type std::runtime_error: [METAL] Command "
    "buffer execution failed: Insufficient Memory "
    "(00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"
)
"""As MLX prints them: ml-explore/mlx, pull request 479."""


async def test_an_abort_of_metal_s_for_want_of_memory_counts_as_out_of_memory(start: Start):
    aborts = int(signal.SIGABRT)
    with pytest.raises(OutOfMemoryError, match="was aborted: Metal had too little memory") as told:
        async with start("die", signal=aborts, words=METALS_LAST_WORDS, status=0) as worker:
            await heard(worker)
    assert "half as many sequences" in told.value.hint
    other = METALS_LAST_WORDS.replace("OutOfMemory", "InvalidResource")
    with pytest.raises(WorkerCrashedError, match=r"was killed by SIGABRT: .*InvalidResource"):
        async with start("die", signal=aborts, words=other, status=0) as worker:
            await heard(worker)


async def test_whom_the_system_has_killed_for_want_of_memory_counts_too(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    counted = tmp_path / "vmstat"
    monkeypatch.setattr(oom_killer, "_VMSTAT", counted)
    monkeypatch.setattr(control_group, "_OWN_GROUPS", tmp_path / "none")
    monkeypatch.setattr(oom_killer, "_LOG", tmp_path / "none")
    for before, after, kind in ((3, 3, WorkerKilledError), (3, 4, OutOfMemoryError)):
        counted.write_text(f"oom_kill_disable 0\noom_kill {before}\nthp_fault 9\n")
        async with start("obey") as worker:
            frames = worker.frames()
            await anext(frames)
            counted.write_text(f"oom_kill {after}\n")
            os.kill(worker.pid, signal.SIGKILL)
            with pytest.raises(WorkFailedError, match="was killed by ") as told:
                await anext(frames)
            assert type(told.value) is kind


async def test_kill_9_is_noticed_at_once(start: Start):
    async with start("obey") as worker:
        frames = worker.frames()
        await anext(frames)
        os.kill(worker.pid, signal.SIGKILL)
        began_s = time.monotonic()
        with pytest.raises(WorkFailedError, match="was killed by SIGKILL") as told:
            await anext(frames)
        assert type(told.value) is WorkerKilledError, "it was no fault of its own"
        assert "by somebody, or for want of memory" in told.value.message
        assert time.monotonic() - began_s < 1.0


async def test_a_worker_of_a_gang_that_was_stopped_is_ended(start: Start):
    async with start("obey") as worker:
        frames = worker.frames(ends_stopped=True)
        await anext(frames)
        os.kill(worker.pid, signal.SIGSTOP)
        began_s = time.monotonic()
        with pytest.raises(WorkFailedError, match=r"had been stopped \(SIGSTOP\), and was ended"):
            await anext(frames)
        assert time.monotonic() - began_s < 3.0


async def test_a_worker_that_obeys_stops_by_itself(start: Start):
    async with start("obey") as worker:
        frames = worker.frames()
        await anext(frames)
        await worker.stop("the cycle was stopped")
        assert not is_running(worker.pid)
        assert await anext(frames) == TaskFinished({}, {}, {"stopped": True})
        await worker.stop("again")


async def test_a_worker_that_does_not_obey_is_killed_with_its_children(start: Start):
    async with start("linger") as worker:
        frames = worker.frames()
        child = (await anext(frames)).done
        await worker.stop("the cycle was stopped", grace_s=0.1)
        assert gone_within(worker.pid, 2.0)
        assert gone_within(child, 2.0)


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
async def test_leaving_the_context_ends_everything_whatever_the_reason(
    start: Start, error: type[BaseException]
):
    pids: list[int] = []

    async def fail() -> None:
        async with start("linger") as worker:
            pids.extend([worker.pid, (await anext(worker.frames())).done])
            raise error

    with pytest.raises(error):
        await fail()
    assert all(gone_within(pid, 2.0) for pid in pids)


async def test_a_second_cancellation_does_not_save_the_worker(start: Start):
    pids: list[int] = []

    async def hold() -> None:
        async with start("linger") as worker:
            pids.extend([worker.pid, (await anext(worker.frames())).done])
            held.set()
            await asyncio.Event().wait()

    held = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(hold())
        await held.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
    assert all(gone_within(pid, 2.0) for pid in pids)


async def test_the_loop_goes_on_while_a_worker_is_started_and_ended(start: Start):
    async def worst_pause_s() -> float:
        worst = 0.0
        while not over.is_set():
            before = time.monotonic()
            await asyncio.sleep(0.005)
            worst = max(worst, time.monotonic() - before)
        return worst

    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        measured = group.create_task(worst_pause_s())
        async with start("linger") as worker:
            await anext(worker.frames())
        over.set()
    assert measured.result() < 0.25, "ending a deaf worker takes 0.3 s, but not of the loop"


async def test_no_descriptor_is_left_open(start: Start):
    async with start("echo", variables=[]) as worker:
        await heard(worker)
    before = open_descriptors()
    for _ in range(2):
        async with start("echo", variables=[]) as worker:
            await heard(worker)
    assert open_descriptors() == before


async def test_what_a_worker_prints_is_kept_in_its_log(start: Start, tmp_path: Path):
    async with start("shout", lines=50) as worker:
        await heard(worker)
    lines = (tmp_path / "shout.log").read_text().splitlines()
    assert len(lines) == 50
    assert lines[-1].startswith("line 49 ")


def test_a_log_is_bounded_and_keeps_the_newest(tmp_path: Path):
    log = LogFile(tmp_path / "w.log", max_bytes=1000)
    for number in range(100):
        log.append(f"line {number:05} {'x' * 38}\n".encode())
    kept = sorted(tmp_path.iterdir())
    assert [path.name for path in kept] == ["w.log", "w.log.1"]
    assert sum(path.stat().st_size for path in kept) <= 2000
    assert log.last_line.startswith("line 00099")
    assert "line 00099" in (tmp_path / "w.log").read_text()


def test_a_log_that_somebody_deletes_is_written_anew(tmp_path: Path):
    log = LogFile(tmp_path / "w.log", max_bytes=100)
    log.append(b"x" * 90)
    (tmp_path / "w.log").unlink()
    log.append(b"y" * 90)
    log.append(b"z" * 90)
    assert (tmp_path / "w.log.1").read_bytes() == b"y" * 90
    assert (tmp_path / "w.log").read_bytes() == b"z" * 90


def test_a_log_without_words_has_no_last_line(tmp_path: Path):
    log = LogFile(tmp_path / "w.log")
    log.append(b"\n  \n")
    assert log.last_line == ""


@pytest.mark.net
async def test_a_worker_listens_on_the_socket_it_is_given(tmp_path: Path):
    listener = bind_listener("127.0.0.1")
    descriptor = listener.fileno()
    order = RunTask(waiting_task.NAME, {"fd": descriptor}, {}, str(tmp_path))
    environment = worker_environment("", {}) | {"PYTHONPATH": str(ROOT)}
    log, module = tmp_path / "w.log", waiting_task.__name__
    async with start_worker(order, environment, log, (descriptor,), module=module) as worker:
        frames = worker.frames()
        assert await anext(frames) == RankListening(listener.getsockname()[1])
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writer.close()
        await worker.stop("the attempt is over")
        assert await anext(frames) == TaskFinished({})
    listener.close()


async def test_a_task_nobody_knows_fails_with_a_frame(tmp_path: Path):
    order = RunTask("unheard-of", {}, {}, str(tmp_path))
    environment = worker_environment("unheard-of", {})
    async with start_worker(order, environment, tmp_path / "x.log") as worker:
        (last,) = await heard(worker)
    assert isinstance(last, TaskFailed)
    assert last.code == "not-found"  # which counts as no failure: see `module_of`


DAEMON = """
import asyncio, sys
from pathlib import Path
from jupiterd.protocol.frames import RunTask
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.process import start_worker

async def main():
    folder = Path(sys.argv[1])
    order = RunTask("linger", {}, {}, str(folder))
    environment = worker_environment("linger", {}) | {"PYTHONPATH": sys.argv[2]}
    async with start_worker(
        order, environment, folder / "linger.log", module="tests.support.processes.odd_worker"
    ) as worker:
        frame = await anext(worker.frames())
        print(worker.pid, frame.done, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the closed link ends it, in 5 s")
def test_a_worker_ends_when_its_daemon_is_killed(tmp_path: Path):
    command = [sys.executable, "-c", DAEMON, str(tmp_path), str(ROOT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as daemon:
        assert daemon.stdout is not None
        pid, child = map(int, daemon.stdout.readline().split())
        daemon.kill()
    try:
        assert gone_within(pid, 5.0)
        assert (tmp_path / "linger.pid").exists(), "what the next daemon reads"
    finally:
        os.kill(child, signal.SIGKILL)
