"""What a node makes of what its workers say."""

from pathlib import Path

import pytest

from jupiterd.daemon.runtime.work_events import (
    CheckpointStored,
)
from jupiterd.errors import DiskFullError
from jupiterd.ids import ArtifactId
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
