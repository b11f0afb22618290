"""How the leader sees the attempts of a gang through."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import cast

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.cluster.facts.facts import BranchPinned, CheckpointCommitted, Fact, RoundCommitted
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cluster.ledger.trunk import trunk_of
from jupiterd.cluster.training.gang_watchdog import (
    BEAT_S,
    SILENT_S,
    GangWatchdog,
)
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.gangs.rank_follower import follow
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    Alive,
    Started,
    WorkEvent,
)
from jupiterd.errors import BranchChangedError, DiskFullError, NoLeaderError, PeerUnreachableError
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.protocol.frames import CheckpointUnsaved
from tests.support.cluster.building import outer_step, training
from tests.support.daemon.one_rank import CYCLE, LAUNCH, PLAN, A, B, OneRank, events_of
from tests.support.daemon.recording_term import (
    Recording,
    attempt_on,
    checkpoint,
    ending_at,
    made,
    report,
    steps,
)
from tests.support.daemon.shapes import tiny_shape
from tests.support.daemon.term_parts import FakeMachines, FakeTerm, services_of
from tests.unit.daemon.gangs.test_gang_restarts import TIMEOUT_S


class LostTerm(FakeTerm):
    """A term that ends while an attempt runs; whatever is asked of it afterwards is refused."""

    asked = 0

    def cycle(self, cycle: CycleId) -> CycleState:
        self.asked += 1
        if self.asked > 3:  # the attempt has begun
            self.is_over = True
            raise NoLeaderError("this node no longer leads")
        return CycleState()


async def test_training_ends_with_the_term_even_where_the_cancel_was_lost() -> None:
    term = LostTerm()
    supervisor = GangSupervisor(services_of(term), TrainedRound(CYCLE, 1, tiny_shape(), PLAN))
    step = TrainRound(ArtifactId("s"), ArtifactId("t"))
    with pytest.raises(ExceptionGroup) as ended:
        await supervisor.train(step)
    assert ended.group_contains(NoLeaderError)


async def test_an_attempt_extends_the_line_that_it_started_from() -> None:
    term = Recording(checkpoint("k1", step=10))
    supervisor = attempt_on(term, "k1")
    await supervisor._lineage.commit(A, made("k2", 20), LAUNCH, ending_at(100))
    await supervisor._lineage.commit(A, made("k3", 30), LAUNCH, ending_at(100))
    await supervisor._lineage.commit(A, made("k3", 30), LAUNCH, ending_at(100))
    line = [cast("CheckpointCommitted", fact).artifact for fact in term.state.canonical_branch()]
    assert line == ["k1", "k2", "k3"]
    assert len(term.recorded) == 2


async def test_what_is_made_before_the_rate_falls_is_on_the_trunk() -> None:
    candidate = replace(checkpoint("d1", step=100), is_final=True)
    term = Recording(candidate, RoundCommitted(CYCLE, 1, "d1", "HOLD", ""))
    plan = ending_at(100).model_copy(
        update={"warmup_steps": 0, "decay_steps": 20, "keeps_trunk": True}
    )
    supervisor = GangSupervisor(term.services, TrainedRound(CYCLE, 2, tiny_shape(), plan))
    gang_plan = replace(LAUNCH, from_checkpoint="t1", from_step=0, follows="d1")
    assert GangPlan.of(supervisor._lineage.opened(gang_plan)).follows == "d1", (
        "another leader knows it"
    )
    supervisor._lineage.follow(gang_plan)
    for name, step in (("k1", 50), ("t2", 80), ("d2", 100)):
        await supervisor._lineage.commit(A, made(name, step), gang_plan, plan)
    line = [
        f
        for f in term.state.canonical_branch()
        if isinstance(f, CheckpointCommitted) and f.round == 2
    ]
    assert [(f.artifact, f.parent, f.on_trunk, f.is_final) for f in line] == [
        ("k1", "d1", True, False), ("t2", "k1", True, False), ("d2", "t2", False, True),
    ]  # fmt: skip
    assert [f.tokens for f in line] == [5_000, 8_000, 10_000], "what they say themselves"
    await term.record(RoundCommitted(CYCLE, 2, "d2", "HOLD", ""))
    assert trunk_of(term.state, 3) == "t2"


async def test_what_an_island_saves_on_the_way_is_copied_where_no_other_has_its_weights() -> None:
    run, other = CycleId("run"), CycleId("other")
    term = Recording(replace(training(), cycle=CYCLE, parent=run))
    line = attempt_on(term, "")._lineage
    for artifact, step, islands in (("k1", 10, (CYCLE,)), ("k2", 20, (CYCLE, other))):
        taken = replace(outer_step(0), cycle=run, islands=islands)
        term.term.state.cycles[run] = CycleState()
        term.term.state.cycles[run].apply(taken, (1, A, "u", 1))
        await line.commit(A, made(artifact, step), LAUNCH, ending_at(30))
    assert term.reach.copied == ["k1"]
    await line.commit(A, made("k3", 30), LAUNCH, ending_at(30))
    assert term.reach.copied == ["k1", "k3"]


@pytest.mark.parametrize(
    "news",
    [
        (checkpoint("x1", step=90),),
        (checkpoint("x1", step=5), BranchPinned(CYCLE, "x1", 1)),
        (checkpoint("x1", step=5), RoundCommitted(CYCLE, 1, "x1", "HOLD", "")),
    ],
    ids=["a heavier line", "a pin", "a round more"],
)
async def test_an_attempt_whose_line_counts_no_more_keeps_its_leaf_and_ends(
    news: tuple[CycleFact, ...],
) -> None:
    term = Recording(checkpoint("k1", step=10))
    supervisor = attempt_on(term, "k1")
    await term.record(*news)
    with pytest.raises(BranchChangedError, match="attempt 3 trained a line"):
        await supervisor._lineage.commit(A, made("k2", 20), LAUNCH, ending_at(100))
    last = cast("CheckpointCommitted", term.recorded[-1])
    assert (last.artifact, last.parent) == ("k2", "k1")
    assert "k2" in [leaf.key for leaf in term.state.leaves()]


class FullDisk(FakeTerm):
    """A term whose leader has no room for facts, until a test clears its disk."""

    is_full = True

    async def record(self, *facts: Fact) -> None:
        if self.is_full:
            raise DiskFullError("alpha: no room")
        await super().record(*facts)


async def test_training_goes_on_while_no_disk_has_room_for_a_checkpoint() -> None:
    term = FullDisk(A)
    term.know(CYCLE)
    names = {A: "alpha", B: "beta"}
    parts = services_of(term, machines=FakeMachines(names=names))
    parts.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
    supervisor = GangSupervisor(parts, TrainedRound(CYCLE, 1, tiny_shape(), PLAN))
    supervisor._watch.watchdog = GangWatchdog(2, 0.0)

    def detail() -> str:
        return parts.board.to_plain(1.0)[0]["detail"]

    events_of(supervisor).take_in(0, B, CheckpointUnsaved(10, "no room left"))
    assert detail() == ("beta: no room left; training goes on without the checkpoint of step 10")
    await report(supervisor, made("k2", 20))
    assert detail().startswith("alpha: no room; training goes on")
    with pytest.raises(DiskFullError, match="alpha: no room"):
        supervisor._alarm.check()
    await report(supervisor, made("k2", 20))
    term.is_full = False
    await report(supervisor, made("k3", 30))
    supervisor._alarm.check()
    assert (detail(), len(term.recorded)) == ("", 1)


async def test_where_a_node_joins_one_of_the_states_that_all_have_written_is_recorded() -> None:
    term = Recording()
    supervisor = attempt_on(term, "")
    async with supervisor._committing(LAUNCH):
        supervisor._commits.hold()
        events = events_of(supervisor)
        events.take_in(0, A, made("k7", 7))
        events.take_in(1, B, made("k7", 7))
    assert not term.recorded
    await supervisor._end(LAUNCH, "gamma joins")
    assert [type(fact) for fact in term.recorded] == [CheckpointCommitted, AttemptClosed]
    assert steps(term) == [7]


async def test_a_round_that_is_not_the_next_one_any_more_is_trained_no_further() -> None:
    over = RoundCommitted(CYCLE, 1, "x1", "HOLD", "")
    supervisor = attempt_on(Recording(checkpoint("x1", step=5), over), "k1")
    await supervisor.train(TrainRound(ArtifactId("s"), ArtifactId("t")))


async def test_a_rank_is_followed_while_its_checkpoint_is_copied() -> None:
    term = Recording()
    term.reach.may_copy.clear()
    supervisor = attempt_on(term, "")

    async def events() -> AsyncGenerator[WorkEvent]:
        yield Started(7, "cpu")
        yield made("k1", 10)
        yield made("k2", 20)
        yield Alive()
        assert steps(term) == [], "they are still being copied"
        term.reach.may_copy.set()

    async with asyncio.timeout(TIMEOUT_S), supervisor._committing(LAUNCH):
        await follow(0, A, events(), events_of(supervisor))
    assert steps(term) == [10, 20]


@pytest.mark.parametrize(("kept", "line"), [(None, [10]), (13, [13]), (7, [10])])
async def test_what_could_not_be_copied_before_its_rank_was_lost_is_not_lost(
    kept: int | None, line: list[int]
) -> None:
    term = Recording()
    term.reach.may_copy.clear()
    term.calls.kept = [] if kept is None else [(A, made("kept", kept))]
    supervisor = attempt_on(term, "")

    async def lose_it() -> None:
        async with supervisor._committing(LAUNCH):
            events_of(supervisor).take_in(0, A, made("k1", 10))
            await asyncio.sleep(0)
            raise PeerUnreachableError("rank 0 was lost")

    with pytest.raises(ExceptionGroup):
        await lose_it()
    term.reach.may_copy.set()
    await supervisor._end(LAUNCH, "rank 0 was lost", saves_last_step=True)
    assert steps(term) == line
    term.recorded.clear()
    await supervisor._end(replace(LAUNCH, attempt=4), "it is another one", saves_last_step=True)
    assert 10 not in steps(term)


@pytest.mark.parametrize("is_recorded", [True, False])
async def test_a_rank_lost_after_the_last_step_is_no_trouble_of_its_attempt(
    is_recorded: bool,
) -> None:
    final = replace(checkpoint("k1", step=100), attempt=LAUNCH.attempt, is_final=True)
    term = Recording(*([final] if is_recorded else []))
    term.calls.kept = [] if is_recorded else [(A, made("k1", 100))]
    lost = "beta ended the work x/r1/train/3/1 without a result"
    await attempt_on(term, "")._end(LAUNCH, lost, "unreachable", saves_last_step=True)
    closed = cast("AttemptClosed", term.recorded[-1])
    assert (closed.reason, closed.code) == ("finished", "")
    assert term.state.last_checkpoint(1) is not None
    term.calls.kept = []
    await attempt_on(term, "")._end(replace(LAUNCH, attempt=4), lost, "unreachable")
    assert cast("AttemptClosed", term.recorded[-1]).reason == lost, "another attempt's own trouble"


async def test_a_rank_that_has_come_to_its_end_is_not_silent() -> None:
    supervisor = attempt_on(Recording(), "")
    began_s = now_s()
    watchdog = supervisor._watch.watchdog = GangWatchdog(2, began_s)
    await follow(1, B, OneRank(Started(7, "cpu")).run(), events_of(supervisor))
    looks = range(int(10 * SILENT_S / BEAT_S))
    assert not any(watchdog.look(began_s + number * BEAT_S) for number in looks)
