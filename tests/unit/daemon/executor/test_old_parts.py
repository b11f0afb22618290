"""Parts of checkpoints stay where they were written until they are recorded as a whole."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.executor.old_parts import OldParts
from jupiterd.daemon.runtime.work_events import CheckpointStored, WorkOrder
from jupiterd.protocol.training_values import TrainingProgress
from jupiterd.store.artifacts import ArtifactStore

CYCLE = "a1b2c3d4e5f60718"


class Recorded:
    """A ledger with one cycle, and the last step of its first round that it knows."""

    def __init__(self) -> None:
        self.step = 0
        self.closed: set[int] = set()

    def state(self) -> State:
        last = SimpleNamespace(step=self.step) if self.step else None
        cycle = SimpleNamespace(
            last_checkpoint=lambda number: last if number == 1 else None,
            attempts_closed=self.closed,
        )
        return cast("State", SimpleNamespace(cycles={CYCLE: cycle, "0" * 16: cycle}))


def stored(store: ArtifactStore, folder: Path, step: int) -> CheckpointStored:
    place = folder / f"part-{step}"
    place.mkdir()
    (place / "part.bin").write_text(str(step))
    return CheckpointStored(store.ingest(place), TrainingProgress(step, 0, 0, 1.0, {}))


def order(**params: Any) -> WorkOrder:
    return WorkOrder(f"{CYCLE[:8]}/r1/train/1/0", 1, "train", {"round": 1} | params, {}, attempt=1)


async def held_after(tmp_path: Path, recorded: dict[int, int], made: WorkOrder) -> list[int]:
    """Return the steps whose parts are held; recorded: step of a part -> recorded by then."""
    store, ledger = ArtifactStore(tmp_path / "store"), Recorded()
    parts, written = OldParts(store, ledger.state), list[CheckpointStored]()
    for step, ledger.step in recorded.items():
        written.append(stored(store, tmp_path, step))
        await parts.stored(made, written[-1])
    return [each.progress.step for each in written if store.holds(each.artifact)]


CUT = {"partition": {"stage": 1, "parts": [1, 1]}}


async def test_a_part_stays_until_its_step_is_recorded(tmp_path: Path) -> None:
    assert await held_after(tmp_path, {5: 0, 6: 0, 7: 5, 8: 5}, order(**CUT)) == [6, 7, 8]


async def test_a_later_record_lets_all_before_it_go(tmp_path: Path) -> None:
    assert await held_after(tmp_path, {5: 0, 6: 0, 7: 0, 8: 7}, order(**CUT)) == [8]


async def test_records_of_another_round_say_nothing(tmp_path: Path) -> None:
    assert await held_after(tmp_path, {5: 0, 6: 9}, order(**CUT, round=2)) == [5, 6]


async def test_an_islands_run_has_one_round_whatever_its_data_is_of(tmp_path: Path) -> None:
    of_island = order(**CUT, round=3, island={"island": CYCLE})
    assert await held_after(tmp_path, {5: 0, 6: 5, 7: 6}, of_island) == [7]


async def test_checkpoints_of_a_rank_that_holds_everything_all_stay(tmp_path: Path) -> None:
    assert await held_after(tmp_path, {5: 0, 6: 5, 7: 6}, order()) == [5, 6, 7]


async def test_what_an_attempt_has_left_goes_as_it_is_closed(tmp_path: Path) -> None:
    store, ledger = ArtifactStore(tmp_path / "store"), Recorded()
    parts, made = OldParts(store, ledger.state), stored(store, tmp_path, 5)
    await parts.stored(order(**CUT), made)
    ledger.closed = {2}
    await parts.look()
    assert (store.holds(made.artifact), parts.kept) == (True, {made.artifact})
    ledger.closed = {1, 2}
    await parts.look()
    assert (store.holds(made.artifact), parts.kept) == (False, frozenset())
