"""Parts of checkpoints don't pile up where they are written."""

from pathlib import Path

from jupiterd.daemon.executor.old_parts import NEWEST, OldParts
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.ids import ArtifactId
from jupiterd.store.artifacts import ArtifactStore


def stored(store: ArtifactStore, folder: Path, number: int) -> ArtifactId:
    place = folder / f"part-{number}"
    place.mkdir()
    (place / "part.bin").write_text(str(number))
    return store.ingest(place)


def order(**params: object) -> WorkOrder:
    return WorkOrder("run/r1/train/1/0", 1, "train", params, {}, attempt=1)


async def held_after(tmp_path: Path, count: int, made: WorkOrder) -> list[bool]:
    store = ArtifactStore(tmp_path / "store")
    parts, artifacts = OldParts(store, made), list[ArtifactId]()
    for number in range(count):
        artifacts.append(stored(store, tmp_path, number))
        await parts.stored(artifacts[-1])
    return [store.holds(artifact) for artifact in artifacts]


async def test_none_stays_once_two_later_ones_exist(tmp_path: Path) -> None:
    held = await held_after(tmp_path, 5, order(partition={"stage": 1, "parts": [1, 1]}))
    assert held == [False] * (5 - NEWEST) + [True] * NEWEST


async def test_checkpoints_of_a_rank_that_holds_everything_all_stay(tmp_path: Path) -> None:
    assert await held_after(tmp_path, 5, order()) == [True] * 5
