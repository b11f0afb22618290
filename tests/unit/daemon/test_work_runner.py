"""What a node makes of what its workers say."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from jupiterd.cluster.hardware import Gpu
from jupiterd.daemon import work_runner
from jupiterd.daemon.work_events import CheckpointMade, Unsaved, WorkOrder
from jupiterd.errors import DeviceBusyError, DiskFullError
from jupiterd.frames import CheckpointUnsaved, CheckpointWritten
from jupiterd.gang import device_locks
from jupiterd.ids import ArtifactId
from tests.unit.daemon.two_nodes import serving

WRITTEN = CheckpointWritten("checkpoint-3", 3, 300, 9, 2.5)


def written(spool: Path) -> Path:
    folder = spool / WRITTEN.path
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


async def test_a_checkpoint_that_finds_no_room_in_the_store_is_told_and_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_source: Path) -> ArtifactId:
        raise DiskFullError("no room left")

    async with serving(tmp_path, "one") as one:
        spool = one.state_dir.spool / "work"
        folder = written(spool)
        with monkeypatch.context() as patched:
            patched.setattr(one.library.store, "ingest", full)
            assert await one.runner._event(WRITTEN, spool, "") == Unsaved(3, "no room left")
        assert not folder.exists()
        written(spool)
        assert isinstance(await one.runner._event(WRITTEN, spool, ""), CheckpointMade)
        said = await one.runner._event(CheckpointUnsaved(3, "full"), spool, "")
        assert said == Unsaved(3, "full")


async def test_a_gpu_is_held_for_one_rank_at_a_time_and_the_cpu_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(device_locks, "TAKE_S", 0.05)
    monkeypatch.setattr(work_runner, "held", partial(device_locks.held, folder=tmp_path / "locks"))
    gpu = Gpu("RTX 4090", "GPU-a", 24 << 30, "cuda")
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        machine = replace(one.hardware, gpus=(gpu,), devices=("cuda:0", "cpu"))
        for node in (one, two):
            node.runner._machine = machine
        order = WorkOrder("c/r1/train/3/0", 1, "train", {"local_rank": 0}, {}, 3)
        async with one.runner._device_lock(order) as lock:
            assert lock is not None
            with pytest.raises(DeviceBusyError, match="held by a gang of one"):
                async with two.runner._device_lock(order):
                    pass
            for free in (replace(order, params={"local_rank": 1}), replace(order, task="evaluate")):
                async with two.runner._device_lock(free) as none:
                    assert none is None


@pytest.mark.parametrize(
    ("system", "engines", "engine"),
    [
        ("Darwin", ("torch", "mlx"), "mlx"),
        ("Darwin", ("torch",), "torch"),
        ("Linux", ("torch", "mlx"), "torch"),
        ("Linux", ("mlx",), "mlx"),
    ],
)
async def test_text_is_scored_on_what_the_machine_computes_on_by_itself(
    tmp_path: Path, system: str, engines: tuple[str, ...], engine: str
) -> None:
    async with serving(tmp_path, "one") as one:
        machine = replace(one.hardware, system=system, engines=engines)
    for task in ("evaluate", "evaluate_held_out"):
        assert work_runner.chosen_engine(task, {}, machine) == {"engine": engine}
    trains = work_runner.chosen_engine("train_proxy", {}, machine)
    assert (trains["engine"], bool(trains["device"])) == (engine, True)
    assert work_runner.chosen_engine("gate", {}, machine) == {}
    told = work_runner.chosen_engine("generate", {"engine": "transformers"}, machine)
    assert told == {"engine": "torch", "wanted_engine": "transformers"}
