"""Which ranks get memory for snapshots, and the folder that is made of what they left there."""

import mmap
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.daemon.executor.state_snapshots import (
    PARAM,
    StateSnapshots,
    snapshots_of,
    write_folder,
)
from jupiterd.daemon.runtime.work_events import CheckpointStored, LocalWorkEvent, WorkOrder
from jupiterd.errors import (
    JupiterError,
    LossDivergedError,
    MalformedError,
    OutOfMemoryError,
    WorkerCrashedError,
    WorkFailedError,
)
from jupiterd.protocol.shared_snapshot import Description, data_offset, seal
from jupiterd.protocol.training_values import TrainingProgress
from tests.support.daemon.two_nodes import serving

DATA = b"tensors" * 1000
ALONE = {"world_size": 1, "shape": {"hidden": 32}, "plan": {"steps": 6}, "round": 1}


def order(task: str = "train", attempt: int = 3, **params: Any) -> WorkOrder:
    told = ALONE | params
    return WorkOrder("c/r1/train/3/0", 1, task, told, {}, attempt=attempt)


@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        (True, order()),
        (True, order("train_mlx")),
        (False, order(world_size=2)),
        (False, order(island={"island": "i"})),
        (False, order("evaluate", 0)),
    ],
)
def test_a_rank_that_trains_alone_gets_memory_and_no_other_worker(
    tmp_path: Path, asked: WorkOrder, *, wanted: bool
) -> None:
    with snapshots_of(asked, tmp_path) as snapshots:
        assert bool(snapshots.descriptors) == wanted
        assert (PARAM in snapshots.params) == wanted
        assert snapshots.newest() is None


def left(descriptor: int, description: Description) -> None:
    """Write what a worker would have left."""
    encoded = description.encoded()
    offset = data_offset(len(encoded))
    os.ftruncate(descriptor, offset + len(DATA))
    memory = memoryview(mmap.mmap(descriptor, offset + len(DATA)))
    memory[offset:] = DATA
    seal(memory, 1, encoded, offset, len(DATA))


def description(run: str, **changes: Any) -> Description:
    progress = TrainingProgress(4, 40, 24, 2.0)
    whole = Description(
        run,
        progress,
        {"config.json": "{}\n", "training_state/state.json": "{}\n"},
        {"model.safetensors": (0, len(DATA))},
    )
    return replace(whole, **changes)


def material(spool: Path) -> Path:
    """Write the worker's tokenizer, and the best weights that it had found; return the first."""
    tokenizer, best = spool.parent / "tokenizer", spool / "best"
    tokenizer.mkdir()
    (tokenizer / "tokenizer.json").write_text("words")
    best.mkdir(parents=True)
    (best / "best-00000002.safetensors").write_bytes(b"best")
    return tokenizer


def test_the_folder_holds_what_the_worker_left_and_its_tokenizer(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    tokenizer = material(spool)
    with snapshots_of(order(), spool) as snapshots:
        said = description(snapshots.params[PARAM]["run"], best="best/best-00000002.safetensors")
        left(snapshots.descriptors[1], said)
        found = snapshots.newest()
        assert found is not None
        written = write_folder(found, spool, tokenizer)
    assert (written.path, written.progress) == ("kept-00000004", said.progress)
    folder = spool / written.path
    assert (folder / "model.safetensors").read_bytes() == DATA
    assert (folder / "tokenizer.json").read_text() == "words"
    assert (folder / "training_state" / "best.safetensors").read_bytes() == b"best"
    assert (folder / "training_state" / "state.json").read_text() == "{}\n"


@pytest.mark.parametrize("change", [{"shape": {"hidden": 64}}, {"plan": {"steps": 7}}])
def test_memory_of_another_model_or_plan_holds_nothing(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    with snapshots_of(order(**change), tmp_path) as others:
        foreign = others.params[PARAM]["run"]
    with snapshots_of(order(), tmp_path) as snapshots:
        left(snapshots.descriptors[0], description(foreign))
        assert snapshots.newest() is None


@pytest.mark.parametrize(
    "change",
    [
        {"texts": {"../outside.json": "{}"}},
        {"tensors": {"../../outside.safetensors": (0, 10)}},
        {"best": "../tokenizer/tokenizer.json"},
    ],
)
def test_a_file_outside_its_folder_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    spool = tmp_path / "spool"
    tokenizer = material(spool)
    with snapshots_of(order(), spool) as snapshots:
        left(snapshots.descriptors[0], description(snapshots.params[PARAM]["run"], **change))
        found = snapshots.newest()
        assert found is not None
        with pytest.raises(ValueError, match="outside its folder"):
            write_folder(found, spool, tokenizer)
    assert not list(tmp_path.glob("outside*"))


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [
        (WorkFailedError("killed"), True),
        (WorkerCrashedError("SIGSEGV"), True),
        (OutOfMemoryError("killed"), True),
        (LossDivergedError("no number"), False),
    ],
)
def test_a_loss_that_is_no_number_isn_t_gone_on_from(error: JupiterError, *, goes_on: bool) -> None:
    assert error.is_permanent != goes_on


async def recovered(folder: Path, saved_step: int, snapshot_step: int = 4) -> list[LocalWorkEvent]:
    """Return what a node tells of a rank that has left a snapshot, once it is gone."""
    async with serving(folder, "one") as one:
        spool = one.state_dir.spool / "work"
        inputs = {"tokenizer": str(material(spool))}
        with snapshots_of(order(), spool) as snapshots:
            run = snapshots.params[PARAM]["run"]
            progress = TrainingProgress(snapshot_step, 40, 24, 2.0)
            left(snapshots.descriptors[0], description(run, progress=progress))
            runner = one.worker_runner
            events = runner._recovered(snapshots, saved_step, spool, inputs)  # pyright: ignore[reportPrivateUsage]
            return [event async for event in events]


@pytest.mark.parametrize(("saved_step", "steps"), [(-1, [4]), (3, [4]), (4, []), (5, [])])
async def test_a_snapshot_that_is_later_than_the_last_checkpoint_is_made_one(
    tmp_path: Path, saved_step: int, steps: list[int]
) -> None:
    events = await recovered(tmp_path, saved_step)
    stored = [event for event in events if isinstance(event, CheckpointStored)]
    assert [each.progress.step for each in stored] == steps


async def test_gigabytes_are_read_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[threading.Thread] = []
    newest = StateSnapshots.newest

    def watched(self: StateSnapshots) -> object:
        readers.append(threading.current_thread())
        return newest(self)

    monkeypatch.setattr(StateSnapshots, "newest", watched)
    assert await recovered(tmp_path, -1)
    assert readers
    assert threading.main_thread() not in readers


@pytest.mark.parametrize("error", [OSError("no room to map it"), MalformedError("another form")])
async def test_memory_that_cannot_be_read_does_not_hide_why_the_rank_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(_self: StateSnapshots) -> None:
        raise error

    monkeypatch.setattr(StateSnapshots, "newest", broken)
    assert await recovered(tmp_path, -1) == []
