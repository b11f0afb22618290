"""How long compiling took before, and what a rank's word of it becomes."""

from pathlib import Path

import pytest

from jupiterd.daemon.executor import compile_times
from jupiterd.daemon.executor.compile_times import KEPT, CompileTimes
from jupiterd.protocol.frames import Preparing, Progressed, RankBusy

SHAPE = {"hidden": 256, "layers": 4}
PARAMS = {"shape": SHAPE, "plan": {"micro_batch_sequences": 8, "seed": 7}, "device": "cuda:0"}
STEP = Progressed(1, 100, "steps", {"loss": 9.0})


class Clock:
    now_s = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(compile_times, "now_s", lambda: clock.now_s)
    return clock


def times(folder: Path, torch: str = "2.13.0") -> CompileTimes:
    return CompileTimes(folder / "times.json", [("torch", torch)])


async def compiled(times: CompileTimes, clock: Clock, seconds: float, **changed: object) -> float:
    """Compile for so long; return how long it was expected to take."""
    watch = times.watch("train", PARAMS | changed)
    told = await watch.take(Preparing("compiling"))
    clock.now_s += seconds
    await watch.take(RankBusy(0))
    await watch.take(STEP)
    clock.now_s += 1000.0
    await watch.take(STEP)
    assert isinstance(told, Preparing)
    return told.expected_s


async def test_the_last_time_of_the_same_shape_is_told_also_by_the_next_daemon(
    tmp_path: Path, clock: Clock
) -> None:
    assert await compiled(times(tmp_path), clock, 41.0) == 0.0
    assert await compiled(times(tmp_path), clock, 8.0) == 41.0
    assert await compiled(times(tmp_path), clock, 8.0) == 8.0
    other_seed = {"micro_batch_sequences": 8, "seed": 8}
    assert await compiled(times(tmp_path), clock, 8.0, plan=other_seed) == 8.0


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": {**SHAPE, "layers": 5}},
        {"plan": {"micro_batch_sequences": 16}},
        {"micro_batch_sequences": 4},
        {"device": "cuda:1"},
    ],
)
async def test_nothing_is_told_of_what_compiles_otherwise(
    tmp_path: Path, clock: Clock, changed: dict[str, object]
) -> None:
    await compiled(times(tmp_path), clock, 41.0)
    assert await compiled(times(tmp_path), clock, 41.0, **changed) == 0.0


async def test_another_torch_compiles_otherwise(tmp_path: Path, clock: Clock) -> None:
    await compiled(times(tmp_path, "2.11.0"), clock, 41.0)
    assert await compiled(times(tmp_path, "2.13.0"), clock, 8.0) == 0.0
    assert await compiled(times(tmp_path, "2.11.0"), clock, 8.0) == 41.0


async def test_a_rank_that_never_gets_to_its_first_step_leaves_no_time(
    tmp_path: Path, clock: Clock
) -> None:
    watch = times(tmp_path).watch("train", PARAMS)
    await watch.take(Preparing("compiling"))
    await watch.take(Preparing("loading"))
    clock.now_s += 10.0
    await watch.take(STEP)
    assert not (tmp_path / "times.json").exists()


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", '{"a": "b"}'])
async def test_a_damaged_file_is_as_none(tmp_path: Path, clock: Clock, text: str) -> None:
    (tmp_path / "times.json").write_text(text)
    assert await compiled(times(tmp_path), clock, 41.0) == 0.0
    assert await compiled(times(tmp_path), clock, 41.0) == 41.0


async def test_the_file_stays_small_and_a_full_disk_stops_no_training(
    tmp_path: Path, clock: Clock
) -> None:
    kept = times(tmp_path)
    for number in range(KEPT + 2):
        await kept.keep(str(number), 1.0)
    assert await kept.last_s("1") == 0.0
    assert await kept.last_s("2") == 1.0
    gone = CompileTimes(tmp_path / "no folder" / "times.json", [])
    await gone.keep("a", 1.0)
    assert await gone.last_s("a") == 0.0
