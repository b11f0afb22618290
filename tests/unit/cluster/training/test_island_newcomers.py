"""Which machines become islands of a run that is being trained, and which are let go."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import TrainingStarted
from jupiterd.cluster.planning.engines import MLX, TORCH
from jupiterd.cluster.training.island_newcomers import is_open, newcomers, too_slow
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.ids import CycleId, NodeId
from jupiterd.protocol.frames import Scalar
from tests.support.cluster.building import training

MAC, BOX, NEW = NodeId("mac"), NodeId("box"), NodeId("new")
A_MAC = Hardware("Darwin", "arm64", "M4", 8, 16 << 30, engines=(TORCH, MLX))
A_BOX = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30, engines=(TORCH,))
MACHINES = {MAC: A_MAC, BOX: A_BOX, NEW: A_BOX}
BOTH = {TORCH, MLX}


def asked(**settings: Scalar) -> TrainingStarted:
    run = training()
    return replace(run, settings={**run.settings, **settings})


def island(number: int, node: NodeId, engine: str) -> TrainingStarted:
    return replace(
        training(), cycle=CycleId(f"{number}"), name=f"letters/{number}", nodes=(node,),
        engine=engine,
    )  # fmt: skip


ISLANDS = [island(1, MAC, MLX), island(2, BOX, TORCH)]


def test_a_machine_of_no_island_becomes_one_on_its_own_engine() -> None:
    assert newcomers(asked(), ISLANDS, MACHINES, BOTH, 8) == {NEW: TORCH}
    macs = MACHINES | {NEW: A_MAC}
    assert newcomers(asked(), ISLANDS, macs, BOTH, 8) == {NEW: MLX}
    assert newcomers(asked(), ISLANDS, macs, {TORCH}, 8) == {}, "MLX can't train such a model"


def test_on_a_run_of_one_engine_nobody_trains_on_another() -> None:
    on_mlx = replace(asked(), engine=MLX)
    assert newcomers(on_mlx, ISLANDS, MACHINES, BOTH, 8) == {}
    assert newcomers(on_mlx, ISLANDS, MACHINES | {NEW: A_MAC}, BOTH, 8) == {NEW: MLX}


def test_nobody_comes_for_whom_a_step_has_no_sequence() -> None:
    assert newcomers(asked(), ISLANDS, MACHINES, BOTH, 2) == {}
    gpus = replace(A_BOX, devices=("cuda:0", "cuda:1"))
    assert newcomers(asked(), ISLANDS, MACHINES | {NEW: gpus}, BOTH, 3) == {}
    assert newcomers(asked(), ISLANDS, MACHINES | {NEW: gpus}, BOTH, 4) == {NEW: TORCH}


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (asked(), True),
        (asked(islands="on"), True),
        (asked(islands="auto", max_ranks=0), True),
        (asked(islands="mlx:mac torch:box"), False),
        (asked(max_ranks=2), False),
        (replace(asked(), nodes=(MAC, BOX)), False),
    ],
)
def test_where_people_have_said_who_trains_nobody_else_does(
    run: TrainingStarted, *, expected: bool
) -> None:
    assert is_open(run) is expected
    assert bool(newcomers(run, ISLANDS, MACHINES, BOTH, 8)) is expected


def test_who_came_later_and_is_under_a_quarter_of_the_fastest_is_let_go_once_it_is_warm() -> None:
    islands = [*ISLANDS, island(3, NEW, TORCH)]
    slow = {"1": 100.0, "2": 20.0, "3": 24.0}
    everybody, before = ["1", "2", "3"], ["1", "2"]
    assert too_slow(islands, 2, [everybody, everybody], slow) == ["3"], "2 was planned so"
    assert too_slow(islands, 2, [everybody, before], slow) == []
    assert too_slow(islands, 2, [everybody], slow) == []
    assert too_slow(islands, 2, [everybody, everybody], slow | {"3": 25.0}) == []
    assert too_slow(islands, 2, [everybody, everybody], {"1": 100.0}) == [], "nobody knows"
