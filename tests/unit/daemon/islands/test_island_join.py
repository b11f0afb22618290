"""Machines that are known to be slow don't become islands of a run, unless people want them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    CycleStateSet,
    RoleAssigned,
    RolePinned,
)
from jupiterd.cluster.ledger.cycle_state import RUNNING, STOPPED
from jupiterd.cluster.ledger.island_runs import TOO_SLOW
from jupiterd.daemon.islands.island_join import IslandJoin
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.training_spec import training_of
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import CYCLE, admitted, training
from tests.unit.daemon.islands.test_island_coordinator import (
    ELSEWHERE,
    coordinating,
    islands,
    trains,
)
from tests.unit.daemon.leader.test_going_on import MACHINE
from tests.unit.daemon.planning.test_layout_inputs import EARLIER, attempt

WITH_TORCH = replace(MACHINE, engines=("torch",))


async def with_a_seed(leading: TermServices) -> IslandJoin:
    """Who looks for newcomers, once an island has saved what they could begin with."""
    _, on_torch = (each.cycle for each in islands(leading))
    saved = CheckpointCommitted(
        on_torch, 1, "", ArtifactId("a" * 64), 1, 12, 9, 9, 2.5, is_final=False
    )
    await leading.term.record(saved)
    return IslandJoin(
        leading.term,
        leading.board,
        leading.reach,
        leading.fleet_view,
        training_of(leading.term.state, CYCLE),
    )


@pytest.mark.parametrize(("is_wanted", "joins"), [(False, False), (True, True)])
async def test_a_machine_that_was_slow_before_joins_only_where_people_want_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_wanted: bool, joins: bool
) -> None:
    monkeypatch.setattr("jupiterd.daemon.islands.island_join.SETTLE_S", 0.0)
    async with trains(tmp_path, monkeypatch) as (leading, _):
        both = frozenset((leading.term.self_id, ELSEWHERE))
        trainer = RoleAssigned(ELSEWHERE, "trainer", "it is estimated to be fast", 1)
        wanted = [RolePinned(ELSEWHERE, "trainer", 1)] if is_wanted else []
        before: list[Any] = [replace(training(), cycle=EARLIER)]
        before += [*attempt(1, (leading.term.self_id,), 400_000), *attempt(2, (ELSEWHERE,), 4_000)]
        stopped = CycleStateSet(EARLIER, STOPPED, "stopped by a person", 1)
        await leading.term.record(admitted(ELSEWHERE), trainer, *wanted, *before, stopped)
        monkeypatch.setattr(Machines, "fit_nodes", lambda _: sorted(both))
        leading.machines.hardware_of = lambda _: WITH_TORCH
        leading.machines.alive = lambda: both
        async with coordinating(leading):
            newcomers = await with_a_seed(leading)
            await newcomers.look(1.0)
            assert (ELSEWHERE in [each.nodes[0] for each in islands(leading)]) is joins


async def test_a_machine_that_was_let_go_goes_on_once_people_want_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.islands.island_join.SETTLE_S", 0.0)
    async with trains(tmp_path, monkeypatch) as (leading, _):
        both = frozenset((leading.term.self_id, ELSEWHERE))
        await leading.term.record(
            admitted(ELSEWHERE), RoleAssigned(ELSEWHERE, "trainer", "fast", 1)
        )
        monkeypatch.setattr(Machines, "fit_nodes", lambda _: sorted(both))
        leading.machines.hardware_of = lambda _: WITH_TORCH
        leading.machines.alive = lambda: both
        async with coordinating(leading):
            newcomers = await with_a_seed(leading)
            await newcomers.look(1.0)
            (let_go,) = (each.cycle for each in islands(leading) if each.nodes[0] == ELSEWHERE)
            await leading.term.record(CycleStateSet(let_go, STOPPED, TOO_SLOW, 1))
            await newcomers.look(2.0)
            assert leading.term.cycle(let_go).wanted == STOPPED
            await leading.term.record(RolePinned(ELSEWHERE, "trainer", 1))
            await newcomers.look(3.0)
            assert leading.term.cycle(let_go).wanted == RUNNING
            assert leading.term.cycle(let_go).wanted_reason != TOO_SLOW
