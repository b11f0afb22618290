"""A network falls in two between islands: each goes on alone, and one line counts in the end."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import islands_of
from jupiterd.cluster.ledger.progress_tree import Progress
from jupiterd.cluster.training.island_seeds import BY_NO_GANG
from jupiterd.ids import CycleId, NodeId, short
from tests.support.daemons.training_runs import write_letters
from tests.support.network import links
from tests.support.network.asked_run import AskedRun
from tests.support.network.machines import Machine, Machines, machines_on
from tests.support.network.outer_line_checks import (
    Line,
    assert_audited,
    assert_equal_weights,
    assert_one_line,
    assert_taken_once,
)
from tests.support.strikes.outer_digests import digests
from tests.support.strikes.wholeness import left_over

pytest.importorskip("mlx.core")

pytestmark = pytest.mark.timeout(600)

JOIN_S = 30.0
PREPARED_S = 120.0
TAKEN_S = 90.0
END_S = 400.0
LOOK_S = 0.3

EVERY, ROUNDS = 20, 40
SEQ_LEN = 64
TOGETHER, APART = 2, 6
"""Outer steps that both take: with each other, and each by itself, so that each has saved some."""


class ApartRun(AskedRun):
    """A run by two islands, one on each machine."""

    def begin(self) -> None:
        self._start(
            *("--data", "letters", "--model", "1m", "--seq-len", SEQ_LEN, "--seed", 7),
            *("--batch-size", 2, "--gradient-accumulation-steps", 1),
            *("--max-steps", ROUNDS * EVERY, "--sync-every", EVERY),
            *("--islands", "mlx:m1 torch:m2"),
        )

    @property
    def id(self) -> CycleId:
        return CycleId(self._id)

    def lines(self) -> list[Line]:
        """Return the outer steps that count for each machine."""
        return [each.outer_branch() for each in self.recorded()]

    def recorded(self) -> list[CycleState]:
        return [self._recorded(each) for each in (0, 1)]

    async def until(self, are_so: Callable[[list[Line]], bool], what: str) -> list[Line]:
        deadline_s = time.monotonic() + TAKEN_S
        while True:
            lines = self.lines()
            if are_so(lines):
                return lines
            if time.monotonic() > deadline_s:
                raise AssertionError(await self._failure(f"{what}: not within {TAKEN_S:g} s"))
            await asyncio.sleep(LOOK_S)

    async def until_over(self) -> None:
        await self._ended(END_S)


async def test_islands_that_were_apart_end_with_one_line_and_equal_weights(tmp_path: Path) -> None:
    letters = write_letters(tmp_path)
    async with machines_on(2, tmp_path) as machines:
        await machines.one_cluster(JOIN_S)
        command = ("data", "prepare", str(letters), "--wait", "--timeout", str(PREPARED_S))
        assert machines.ctl(*command).returncode == 0
        run = ApartRun(machines)
        run.begin()
        await run.until(lambda lines: all(len(line) > TOGETHER for line in lines), "both begin")
        links.separate([machines[1].host])
        mine, theirs = await run.until(both_go_on, "both go on apart")
        links.heal([machines[1].host])
        await run.until_over()
        await machines.one_cluster(JOIN_S)
        line = assert_one_line(run.recorded(), ROUNDS * EVERY)
        winners, losers = (mine, theirs) if [*mine][-1] in line else (theirs, mine)
        assert {*winners} <= {*line}, "the line that counts is that of one of them"
        assert [*losers][-1] not in line
        assert_loser_begins_anew(machines, run.id, line, winners)
        assert_equal_weights(machines.machines, run.recorded()[0])
        assert_taken_once(machines.machines)
        assert_audited(machines, run.id, line, SEQ_LEN)
    assert left_over(tmp_path, []) == []


def both_go_on(lines: list[Line]) -> bool:
    """Say whether each has taken outer steps that the other one hasn't."""
    one, other = ({*line} for line in lines)
    return min(len(one - other), len(other - one)) >= APART


def assert_loser_begins_anew(machines: Machines, run: CycleId, line: Line, winners: Line) -> None:
    """One island goes on from what the other has saved, and its ways count again."""
    islands = islands_of(machines[0].state().cycles, run)
    anew = {
        started.cycle: machine_of(machines, started.nodes[0])
        for island, started in islands
        if any(is_anew(fact) for fact in island.canonical_branch())
    }
    ((loser, machine),) = anew.items()
    alone = [step for step in line.values() if [*step.islands] != [] and loser not in step.islands]
    assert alone, "the other one has gone on by itself"
    last = [*line.values()][-1]
    assert loser in last.islands, "it is part of the last outer step"
    assert short([*line][-1]) in digests(machine), "and has the weights of all"


def is_anew(fact: Progress) -> bool:
    return isinstance(fact, CheckpointCommitted) and fact.attempt == BY_NO_GANG


def machine_of(machines: Machines, node: NodeId) -> Machine:
    names = {key: fact.name for key, fact in machines[0].state().members.items()}
    return next(machine for machine in machines.machines if machine.name == names[node])
