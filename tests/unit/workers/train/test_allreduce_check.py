from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from jupiterd.workers.train.allreduce_check import _measured, known

WORLD = 3


def everybody(length: int) -> np.ndarray:
    return np.sum([known(rank, length) for rank in range(WORLD)], axis=0)


@dataclass(frozen=True)
class CheckTask:
    """The part of a worker's task that says what is to be added."""

    params: dict[str, int]


def measured(add: Any, size_bytes: int = 1 << 16) -> dict[str, float]:
    task: Any = CheckTask({"size_bytes": size_bytes})
    return dict(_measured(task, 1, WORLD, "cpu", add).counts)


def test_a_right_sum_is_right_and_measured():
    found = measured(lambda vector: everybody(len(vector)))
    assert found["is_right"] == 1.0
    assert found["mbit_per_s"] > 0


@pytest.mark.parametrize(
    "add",
    [
        lambda vector: vector,
        lambda vector: everybody(len(vector)) - known(2, len(vector)),
        lambda vector: everybody(len(vector)) + (np.arange(len(vector)) == 5),
        lambda vector: everybody(len(vector)) * (1.0 if len(vector) < 2048 else 2.0),
        lambda vector: everybody(len(vector)) * np.nan,
    ],
    ids=["its own alone", "one rank missing", "one number wrong", "large ones wrong", "no number"],
)
def test_a_wrong_sum_is_noticed(add: Any):
    assert measured(add)["is_right"] == 0.0
