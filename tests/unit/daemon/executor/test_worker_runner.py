"""What a node makes of what its workers say."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from jupiterd.daemon.executor import worker_runner
from jupiterd.daemon.runtime.work_events import CheckpointStored, WorkOrder
from jupiterd.errors import DiskFullError, WorkFailedError
from jupiterd.ids import ArtifactId
from jupiterd.processes.environment import GRAPH_CACHE
from jupiterd.protocol.frames import CheckpointUnsaved, CheckpointWritten
from jupiterd.protocol.training_values import TrainingProgress
from tests.support.daemon.two_nodes import serving

WRITTEN = CheckpointWritten("checkpoint-3", TrainingProgress(3, 300, 9, 2.5))


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
            patched.setattr(one.artifact_cache.store, "ingest", full)
            assert await one.worker_runner._event(WRITTEN, spool) == CheckpointUnsaved(
                3, "no room left"
            )
        assert not folder.exists()
        written(spool)
        assert isinstance(await one.worker_runner._event(WRITTEN, spool), CheckpointStored)
        said = await one.worker_runner._event(CheckpointUnsaved(3, "full"), spool)
        assert said == CheckpointUnsaved(3, "full")


async def test_a_worker_finds_the_graphs_that_those_before_it_have_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, str] = {}

    def note(_task: object, environment: Mapping[str, str], *_: object, **__: object) -> None:
        given.update(environment)
        raise WorkFailedError("no worker is started in this test")

    monkeypatch.setattr(worker_runner, "start_worker", note)
    async with serving(tmp_path, "one") as one:
        order = WorkOrder("one", 1, "evaluate", {}, {})
        with pytest.raises(WorkFailedError, match="in this test"):
            async for _ in one.worker_runner._run_process(order, {}, {}, tmp_path, None):
                pass
        assert given[GRAPH_CACHE] == str(one.state_dir.graphs)
        assert one.state_dir.graphs.is_dir()
