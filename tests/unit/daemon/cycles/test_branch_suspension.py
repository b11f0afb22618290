"""Lines whose checkpoint nobody in reach has, at a real leader."""

from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.artifacts.branch_suspension import Absences
from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.facts import BranchSuspended, Fact
from jupiterd.cluster.ledger.trunk import start_of
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.cycles import branch_suspension
from jupiterd.daemon.cycles.branch_suspension import resume_found, suspend_missing
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.queries.cluster.branches_document import branches_document
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import CYCLE, checkpoint, commanded, round_over, started
from tests.support.daemon.two_nodes import found, lead, serving, unite, until
from tests.unit.daemon.commands.test_branch_commands import LOST, cycle_of, stored

ALSO_LOST = "e" * 64


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first look count."""
    monkeypatch.setattr("jupiterd.cluster.artifacts.branch_suspension.PARK_AFTER_S", 0.0)


async def parted(node: Node, folder: Path, *more: Fact) -> str:
    """Found a cluster whose cycle goes on from a checkpoint that is here to some that aren't."""
    here = stored(node, folder, "here")
    lost = (checkpoint(ALSO_LOST, here, tokens=200), checkpoint(LOST, ALSO_LOST, tokens=300))
    await found(node, facts=(started(), checkpoint(here), *lost, *more))
    return here


async def look(node: Node, absences: Absences | None = None) -> TermServices:
    leading = node._begin_term(1)
    await resume_found(leading.term, leading.board, leading.reach, CYCLE, cycle_of(node))
    await suspend_missing(
        leading.term, leading.board, leading.reach, CYCLE, cycle_of(node), absences or Absences()
    )
    return leading


def end_of_line(node: Node) -> str:
    return str(getattr(cycle_of(node).canonical_branch()[-1], "artifact", ""))


@pytest.mark.usefixtures("at_once")
async def test_the_work_goes_on_from_the_last_checkpoint_that_is_here(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        here = await parted(one, tmp_path / "work")
        assert end_of_line(one) == LOST
        await look(one)
        assert end_of_line(one) == here
        assert cycle_of(one).suspended == {LOST, ALSO_LOST}
        rows = branches_document(one.replica.state, one.artifact_cache.store)["branches"]
        assert [(row["leaf"], row["canonical"], row["parked"]) for row in rows] == [
            (here, True, False),
            (LOST, False, True),
        ]


async def test_nothing_is_parked_before_a_minute_is_over(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await parted(one, tmp_path / "work")
        absences = Absences()
        await look(one, absences)
        await look(one, absences)
        assert not cycle_of(one).suspended


@pytest.mark.usefixtures("at_once")
async def test_a_line_competes_again_when_its_checkpoint_turns_up(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        kept = stored(other, tmp_path / "kept", "kept")
        here = stored(one, tmp_path / "here", "here")
        line = (started(), checkpoint(here), checkpoint(kept, here, tokens=200))
        await one.replica.append(1, line)
        await look(one)  # nobody beats here, so nobody is in reach
        assert end_of_line(one) == here
        one.artifact_cache._alive = lambda: frozenset({other.identity.node_id})
        await look(one)
        assert end_of_line(one) == kept
        assert not cycle_of(one).suspended


@pytest.mark.usefixtures("at_once")
async def test_with_nothing_else_to_go_on_from_the_line_waits(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), checkpoint(LOST)))
        await look(one)
        assert end_of_line(one) == LOST
        assert not cycle_of(one).suspended


@pytest.mark.usefixtures("at_once")
async def test_a_round_begins_without_a_trunk_that_nobody_has(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        here = stored(one, tmp_path / "work", "here")
        ended = replace(checkpoint(LOST), on_trunk=True)
        final = checkpoint(here, LOST, tokens=200, is_final=True)
        await found(one, facts=(started(), ended, final, round_over(here)))
        assert start_of(cycle_of(one), 2) == LOST
        await look(one)
        assert (start_of(cycle_of(one), 2), end_of_line(one)) == (here, "")
        assert cycle_of(one).suspended == {LOST}


OPENED = AttemptOpened(CYCLE, 1, 1, (), "torch/gloo", ArtifactId(LOST), 10)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("rests", [commanded("stopped", 1), OPENED], ids=["stopped", "trains"])
async def test_a_cycle_at_rest_or_in_training_is_left_alone(tmp_path: Path, rests: Fact) -> None:
    async with serving(tmp_path, "one") as one:
        await parted(one, tmp_path / "work", rests)
        await look(one)
        assert not cycle_of(one).suspended


@pytest.mark.usefixtures("at_once")
async def test_a_cycle_that_is_over_is_left_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await parted(one, tmp_path / "work", round_over(LOST), round_over(LOST, 2))
        one.replica.ledger.state.apply(started(rounds=1), (0, "0", "0", 1))
        assert cycle_of(one).has_nothing_to_do
        await look(one)
        assert not cycle_of(one).suspended


@pytest.mark.usefixtures("at_once")
async def test_a_leader_sees_to_it_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_suspension, "LOOK_S", 0.01)
    async with serving(tmp_path, "one") as one:
        here = await parted(one, tmp_path / "work")
        await lead(one)
        await until(lambda: end_of_line(one) == here)
        await one.replica.append(1, [BranchSuspended(CYCLE, here, True, 1)])
        await until(lambda: here not in cycle_of(one).suspended)
