"""Ranks that were told different things don't train, on either engine."""

from pathlib import Path
from typing import Any

import pytest

from jupiterd.cycle.training.plan import TrainPlan
from tests.support.workers.gangs import ENGINES, Gangs, plan_of
from tests.support.workers.tiny_run import tiny_shape

pytestmark = [pytest.mark.net, pytest.mark.timeout(150), pytest.mark.xdist_group("gangs")]

MEMBERS = {"members": ["alpha", "beta", "gamma"]}


def other_plan() -> dict[str, Any]:
    plain = plan_of(5).to_plain() | {"learning_rate": 3e-3}
    return {"plan": TrainPlan.from_plain(plain).to_plain()}


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (other_plan(), "plan.learning_rate is 0.003 there and 0.002 elsewhere"),
        (
            {"shape": tiny_shape(rope_theta=4e4).to_plain()},
            "model.rope_theta is 40000.0 there and 50000.0 elsewhere",
        ),
    ],
    ids=["plan", "model"],
)
def test_a_rank_that_was_told_something_else_stops_all_and_is_named(
    gangs: Gangs, engine: str, odd: dict[str, Any], told: str, tmp_path: Path
) -> None:
    ranks = gangs.trained(tmp_path, engine, 5, (0.0, 0.0, 0.0), (2, 2, 2), odd=MEMBERS | odd)
    assert [rank["steps"] for rank in ranks] == [[], [], []], "nobody has trained"
    assert ranks[0]["error"] == f"the ranks don't mean the same: rank 2: {told}"
    assert ranks[2]["error"] == f"the ranks don't mean the same: gamma (rank 2): {told}"


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
def test_what_only_decides_memory_and_speed_may_differ(
    gangs: Gangs, engine: str, tmp_path: Path
) -> None:
    plain = plan_of(3).to_plain()
    odd = {"plan": plain | {"options": plain["options"] | {"gradient_checkpointing": "on"}}}
    ranks = gangs.trained(tmp_path, engine, 3, (0.0, 0.0), odd=odd)
    assert [rank["error"] for rank in ranks] == ["", ""]
