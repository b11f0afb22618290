"""Memory that outlives the process that writes it, however that process ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupiterd.processes.snapshot_memory import SnapshotMemory

RUN = "run"
STRIKES = 6

WRITER = """
import mmap, os, sys
from jupiterd.protocol.shared_snapshot import Description, data_offset, seal, wipe
from jupiterd.protocol.training_values import TrainingProgress

SIZE = 4 << 20
offset = data_offset(1 << 16)
memories = []
for descriptor in map(int, sys.argv[1:]):
    os.ftruncate(descriptor, offset + SIZE)
    memories.append(memoryview(mmap.mmap(descriptor, offset + SIZE)))
for step in range(1, 1_000_000):
    memory = memories[step % 2]
    wipe(memory)
    memory[offset:] = bytes([step % 251]) * SIZE
    described = Description("run", TrainingProgress(step, 0, 0, 0.0), {}, {"file": (0, SIZE)})
    seal(memory, step, described.encoded(), offset, SIZE)
    print(step, flush=True)
"""


@pytest.fixture(params=["linux", "darwin"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return memory as that system has it: without a name, or a file that has lost its own."""
    if request.param != "linux" or sys.platform == "linux":
        monkeypatch.setattr("jupiterd.processes.snapshot_memory.sys.platform", request.param)
    with SnapshotMemory(tmp_path) as opened:
        monkeypatch.undo()
        assert list(tmp_path.iterdir()) == []
        yield opened


def writer(memory: SnapshotMemory) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, *map(str, memory.descriptors)],
        pass_fds=memory.descriptors,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_writer_killed_at_any_moment_leaves_a_whole_snapshot(memory: SnapshotMemory) -> None:
    assert memory.newest(RUN) is None
    for strike in range(STRIKES):
        with writer(memory) as process:
            assert process.stdout is not None
            for _ in range(3):
                process.stdout.readline()
            time.sleep(0.0017 * strike)  # noqa: TID251 - somewhere in the midst of a copy
            os.kill(process.pid, signal.SIGKILL)
            told = [*map(int, process.stdout.read().split()), 3]
        found = memory.newest(RUN)
        assert found is not None
        step = found.description.progress.step
        assert step >= max(told), "what was told of is there"
        assert found.sequence == step
        data = found.file("file")
        assert data[0] == step % 251
        assert data == bytes([step % 251]) * len(data), "of one step, all of it"


def test_the_other_memory_counts_where_the_newest_is_torn(memory: SnapshotMemory) -> None:
    with writer(memory) as process:
        assert process.stdout is not None
        for _ in range(4):
            process.stdout.readline()
        process.kill()
    newest = memory.newest(RUN)
    assert newest is not None
    torn = memory.descriptors[newest.sequence % 2]
    os.pwrite(torn, b"x", 1 << 20)
    before = memory.newest(RUN)
    assert before is None or before.sequence == newest.sequence - 1


def test_memory_that_was_let_go_of_is_closed(tmp_path: Path) -> None:
    with SnapshotMemory(tmp_path) as opened:
        descriptors = list(opened.descriptors)
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is a file")
def test_a_python_without_the_function_asks_the_c_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with SnapshotMemory(tmp_path) as opened:
        assert not any(map(os.get_inheritable, opened.descriptors))
        places = [Path(f"/proc/self/fd/{each}").readlink() for each in opened.descriptors]
        assert {str(place) for place in places} == {"/memfd:jupiter-snapshot (deleted)"}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is a file")
def test_a_system_without_such_memory_is_an_error_that_is_seen_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")

    def without(_name: None, *, use_errno: bool) -> object:
        return object() if use_errno else None

    monkeypatch.setattr("jupiterd.processes.snapshot_memory.ctypes.CDLL", without)
    with pytest.raises(OSError, match="not implemented"):
        SnapshotMemory(tmp_path)
