"""Ten minutes of a node's telemetry, in bounded memory."""

import json
import tracemalloc

from jupiterd.cluster.health.node_history import (
    GPU_SERIES,
    INTERVAL_S,
    MAX_GPUS,
    PART_POINTS,
    RETAINED_POINTS,
    SERIES,
    NodeHistory,
    slot_of,
)
from jupiterd.cluster.values.gpu_load import GpuLoad

BUSY = GpuLoad(89.0, 13 << 30, 71.0, 312.5)
WHOLE = dict.fromkeys(SERIES, 12345.678)


def cpu(history: NodeHistory) -> list[float | None]:
    told = history.to_plain()
    parts = [told["history"], told["recent"]]
    return [value for part in parts for value in part["cpu_percent"] or [None] * part["points"]]


def filled(count: int, begin: int = 0) -> NodeHistory:
    history = NodeHistory()
    for slot in range(begin, begin + count):
        history.add(slot, {"cpu_percent": float(slot)})
    return history


def test_all_points_are_told_one_after_the_other_and_the_last_is_from_just_now() -> None:
    assert cpu(filled(75)) == [float(slot) for slot in range(75)]


def test_no_more_than_ten_minutes_and_the_minute_that_runs_are_kept() -> None:
    assert RETAINED_POINTS * INTERVAL_S == 600
    found = cpu(filled(1000))
    assert found == [float(slot) for slot in range(1000 - len(found), 1000)]
    assert RETAINED_POINTS <= len(found) <= RETAINED_POINTS + PART_POINTS


def test_slots_in_which_nothing_was_heard_are_gaps() -> None:
    history = filled(3)
    history.add(5, {"cpu_percent": 5.0})
    assert cpu(history) == [0.0, 1.0, 2.0, None, None, 5.0]
    history.add(5 + 10 * RETAINED_POINTS, {"cpu_percent": 7.0})
    assert [value for value in cpu(history) if value is not None] == [7.0]


def test_a_second_point_of_one_slot_takes_the_place_of_the_first() -> None:
    history = filled(3)
    history.add(2, {"cpu_percent": 7.0})
    assert cpu(history) == [0.0, 1.0, 7.0]


def test_a_series_of_which_nothing_is_known_is_none_and_not_a_row_of_zeros() -> None:
    history = filled(3)
    history.add(3, {"cpu_percent": 1.0, "tokens_per_s": 0.0}, (BUSY, GpuLoad()))
    recent = history.to_plain()["recent"]
    assert recent["rtt_s"] is None
    assert recent["tokens_per_s"] == [None, None, None, 0.0]
    busy, silent = recent["gpus"]
    assert busy["utilization_percent"] == [None, None, None, 89]
    assert set(busy) == set(silent) == set(GPU_SERIES)
    assert set(silent.values()) == {None}


def test_nothing_heard_yet_is_no_points() -> None:
    told = NodeHistory().to_plain()
    assert (told["history"]["points"], told["recent"]["points"]) == (0, 0)


def test_what_changes_with_each_point_is_short_and_the_rest_changes_once_a_minute() -> None:
    history, changed = NodeHistory(), []
    for slot in range(RETAINED_POINTS):
        history.add(slot, WHOLE, (BUSY,))
    told = history.to_plain()
    for slot in range(RETAINED_POINTS, RETAINED_POINTS + 2 * PART_POINTS):
        history.add(slot, {name: value + slot for name, value in WHOLE.items()}, (BUSY,))
        before, told = told, history.to_plain()
        changed += [(key, json.dumps(told[key])) for key in told if told[key] != before[key]]
    assert [key for key, _ in changed].count("history") == 2
    told_bytes = sum(len(text) for _, text in changed)
    assert told_bytes / (2 * PART_POINTS * INTERVAL_S) < 2048, "bytes a second"


def test_sixteen_nodes_take_a_megabyte_at_most() -> None:
    tracemalloc.start()
    histories = [NodeHistory() for _ in range(16)]
    for history in histories:
        history.add(0, WHOLE, [BUSY] * 8)
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken_bytes < 1 << 20


def test_gpus_beyond_a_bound_are_left_out() -> None:
    history = NodeHistory()
    history.add(0, WHOLE, [BUSY] * 2 * MAX_GPUS)
    assert len(history.to_plain()["recent"]["gpus"]) == MAX_GPUS


def test_a_moment_belongs_to_one_slot() -> None:
    assert [slot_of(at_s) for at_s in (0.0, 1.9, 2.0, 3.9)] == [0, 0, 1, 1]
