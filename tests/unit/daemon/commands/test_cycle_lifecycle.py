"""Going on with a cycle that was stopped, and stopping the one that is meant."""

from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.cluster.facts.facts import CycleFailed, CycleStarted, CycleStateSet, Fact
from jupiterd.cluster.ledger.island_runs import failed_with
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.commands.cycle_lifecycle import (
    extend_cycle,
    pause_cycle,
    predicted_extension,
    resume_cycle,
    stop_cycle,
)
from jupiterd.errors import ConflictError, JupiterError, NotFoundError, UsageError
from jupiterd.ids import CycleId
from jupiterd.protocol.commands.cycle_commands import (
    ExtendCycle,
    PauseCycle,
    ResumeCycle,
    StopCycle,
)
from tests.support.cluster.building import (
    CYCLE,
    NODES,
    checkpoint,
    commanded,
    opened,
    paused,
    round_over,
    started,
    training,
    work_done,
)
from tests.support.daemon.two_nodes import found, serving

OLDER, LATER = CycleId("d1" * 8), CycleId("e" * 16)
STOPPED = commanded("stopped", 1)
FAILED = CycleFailed(CYCLE, "failed", "out of ideas", "")
ONE_ROUND = (checkpoint("k1", is_final=True), round_over("k1"))


def begun(cycle: CycleId, day: int) -> CycleStarted:
    return replace(started(), cycle=cycle, started_at=f"2026-01-{day:02}T00:00:00Z")


def stopped(cycle: CycleId) -> CycleStateSet:
    return replace(STOPPED, cycle=cycle)


async def resume(node: Node, wanted: str = "") -> str:
    done = await resume_cycle(
        node._begin_term(1).term, ResumeCycle.read({"cycle": wanted} if wanted else {})
    )
    return str(done["cycle"])


async def test_a_stopped_cycle_goes_on(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), STOPPED))
        cycle = one.replica.state.cycles[CYCLE]
        assert cycle.has_nothing_to_do
        assert await resume(one) == CYCLE
        assert not cycle.has_nothing_to_do


async def test_without_a_name_the_stopped_cycle_that_was_started_last_goes_on(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        both = (begun(OLDER, 1), stopped(OLDER), begun(CYCLE, 2), STOPPED)
        done = replace(begun(LATER, 3), rounds=0)
        await found(one, facts=(*both, done))
        assert await resume(one) == CYCLE


async def test_a_cycle_is_named_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(OLDER, 1), stopped(OLDER), begun(CYCLE, 2), STOPPED))
        with pytest.raises(UsageError, match="d could be any of"):
            await resume(one, "d")
        assert await resume(one, "d1") == OLDER


@pytest.mark.parametrize(
    ("facts", "wanted", "kind", "why"),
    [
        ((), "", NotFoundError, "no cycle was stopped or failed"),
        ((started(), STOPPED), "f", NotFoundError, "no cycle is called f"),
        ((started(1), *ONE_ROUND), "", NotFoundError, "no cycle was stopped or failed"),
        ((started(1), *ONE_ROUND), "d", ConflictError, "all of its rounds are done"),
        ((started(),), "d", ConflictError, "is running already"),
        ((begun(LATER, 3), started(), STOPPED), "d", ConflictError, "eeeeeeee on python is run"),
    ],
)
async def test_what_cannot_go_on_is_refused_with_a_reason(
    tmp_path: Path, facts: tuple[Fact, ...], wanted: str, kind: type[JupiterError], why: str
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=facts)
        with pytest.raises(kind, match=why) as refused:
            await resume(one, wanted)
        assert "jupiterctl" in refused.value.hint


async def pause(node: Node, wanted: str = "") -> str:
    done = await pause_cycle(
        node._begin_term(1).term, PauseCycle.read({"cycle": wanted, "node": NODES[2]})
    )
    return str(done["cycle"])


async def test_a_paused_cycle_says_where_it_was_paused_and_goes_on(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        cycle = one.replica.state.cycles[CYCLE]
        assert await pause(one) == CYCLE
        assert cycle.has_nothing_to_do
        assert cycle.paused is not None
        assert cycle.paused.node == NODES[2]
        assert cycle.paused.at
        with pytest.raises(ConflictError, match="is paused already") as refused:
            await pause(one, CYCLE[:4])
        assert refused.value.hint == f"jupiterctl cycle resume {CYCLE[:8]}"
        assert await resume(one) == CYCLE
        assert not cycle.has_nothing_to_do


async def test_a_pause_is_signed_where_it_was_asked_for(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        one.leadership.leading = one._begin_term(1)
        await one.commands.execute("cycle.pause", {})
        command = one.replica.state.cycles[CYCLE].paused
        assert command is not None
        assert command.node == one.identity.node_id


async def test_a_paused_cycle_goes_on_before_one_that_was_stopped_later(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(CYCLE, 1), begun(LATER, 2), stopped(LATER), paused(1)))
        assert await resume(one) == CYCLE


async def test_a_paused_cycle_can_be_stopped_and_the_islands_of_one_end_with_it(
    tmp_path: Path,
) -> None:
    island = replace(training("letters/island/1"), cycle=OLDER, parent=CYCLE)
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), island))
        await pause(one)
        assert one.replica.state.cycles[OLDER].wanted == "stopped"
        await stop_cycle(one._begin_term(1).term, StopCycle())
        cycle = one.replica.state.cycles[CYCLE]
        assert (cycle.wanted, cycle.paused) == ("stopped", None)


async def test_a_pause_without_a_running_cycle_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), STOPPED))
        with pytest.raises(NotFoundError, match="no cycle is running"):
            await pause(one)


async def test_of_two_running_cycles_the_one_that_is_named_is_stopped(tmp_path: Path) -> None:
    """Two that ran in groups apart may go on side by side once those are one."""
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(CYCLE, 1), begun(LATER, 2)))
        one.leadership.leading = one._begin_term(1)
        for cycle in (LATER, CYCLE):
            done = await one.commands.execute("cycle.stop", {"cycle": cycle[:8]})
            assert done["cycle"] == cycle


async def test_a_failed_cycle_goes_on_and_may_fail_again_and_go_on_again(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), *ONE_ROUND, FAILED))
        cycle = one.replica.state.cycles[CYCLE]
        for _ in range(2):
            assert cycle.failed == FAILED
            assert await resume(one) == CYCLE
            assert (cycle.failed, cycle.has_nothing_to_do, cycle.rounds_committed) == (
                None,
                False,
                1,
            )
            await one.replica.append(1, [FAILED])
        assert cycle.failed == FAILED


async def test_islands_that_failed_with_their_cycle_go_on_with_it_and_others_do_not(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        with_it, by_itself = (
            replace(training(f"python/1/{number}"), cycle=name, parent=CYCLE)
            for number, name in enumerate((OLDER, LATER), 1)
        )
        alone = CycleFailed(by_itself.cycle, "failed", "its GPU is gone", "")
        await found(one, facts=(started(), with_it, by_itself, alone))
        cycles = one.replica.state.cycles
        await one.replica.append(1, failed_with(cycles, FAILED))
        assert cycles[OLDER].failed is not None
        await resume(one)
        assert cycles[OLDER].failed is None
        assert cycles[LATER].failed == alone


async def extend(node: Node, wanted: str = "", rounds: int = 1) -> dict[str, object]:
    return await extend_cycle(
        node._begin_term(1).term, ExtendCycle.read({"cycle": wanted, "rounds": rounds})
    )


async def test_a_cycle_that_has_ended_goes_on_for_so_many_rounds_more(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(1), *ONE_ROUND))
        cycle = one.replica.state.cycles[CYCLE]
        assert cycle.has_nothing_to_do
        done = await extend(one, "python", 2)
        assert (done["rounds"], done["from_round"], done["was"]) == (3, 2, "finished")
        assert (cycle.has_nothing_to_do, cycle.rounds_wanted, cycle.wanted) == (False, 3, "running")
        again = await extend(one)
        assert (again["rounds"], again["was"]) == (4, "running")
        assert cycle.rounds_wanted == 4


async def test_a_dry_run_of_more_rounds_says_what_the_last_one_took(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        trained = AttemptClosed(CYCLE, 1, "finished", 100.0)
        await found(one, facts=(started(2), opened(1), *ONE_ROUND, trained))
        machines, before = one._begin_term(1).machines, one.replica.ledger.head()
        told = await predicted_extension(
            one.replica.state, machines, ExtendCycle.read({"rounds": 2})
        )
        assert (told["rounds"], told["was"]) == (4, "running")
        first, training_line, last = told["lines"]
        assert first == "round 1 took 1 min 40 s: train 1 min 40 s"
        assert training_line.startswith("it trained ")
        assert last == "2 rounds more like it: ~3 min 20 s"
        assert one.replica.ledger.head() == before
        await found(one, facts=(begun(LATER, 3),))
        later = ExtendCycle.read({"cycle": LATER})
        none = await predicted_extension(one.replica.state, machines, later)
        assert none["lines"] == [
            "none of its rounds has ended yet: nobody knows how long one takes"
        ]


async def test_a_cycle_that_was_stopped_after_its_end_runs_where_it_is_extended(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(1), *ONE_ROUND, STOPPED))
        await extend(one)
        assert not one.replica.state.cycles[CYCLE].has_nothing_to_do


async def test_a_cycle_that_was_stopped_on_its_way_goes_on_where_it_is_extended_and_says_so(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(2), *ONE_ROUND, STOPPED))
        done = await extend(one)
        assert (done["was"], done["rounds"], done["from_round"]) == ("stopped", 3, 2)
        assert not one.replica.state.cycles[CYCLE].has_nothing_to_do


async def test_a_paused_cycle_stays_paused_where_it_is_extended(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(2), *ONE_ROUND, paused(1)))
        assert (await extend(one))["was"] == "paused"
        cycle = one.replica.state.cycles[CYCLE]
        assert (cycle.paused is not None, cycle.rounds_wanted) == (True, 3)


@pytest.mark.parametrize(
    ("facts", "wanted", "rounds", "kind", "why"),
    [
        ((), "", 1, NotFoundError, "no cycle has been started"),
        ((started(1), *ONE_ROUND), "cooking", 1, NotFoundError, "there is no cycle cooking"),
        ((started(), FAILED), "", 1, ConflictError, "failed: out of ideas"),
        ((started(1), *ONE_ROUND), "", 1000, UsageError, "at most 1000 rounds"),
        ((started(1), *ONE_ROUND), "", 0, UsageError, "at most 1000 rounds"),
        ((begun(LATER, 3), started(1), *ONE_ROUND), "d", 1, ConflictError, "eeeeeeee on python is"),
    ],
)
async def test_what_cannot_be_extended_is_refused_with_a_reason(
    tmp_path: Path,
    facts: tuple[Fact, ...],
    wanted: str,
    rounds: int,
    kind: type[JupiterError],
    why: str,
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=facts)
        with pytest.raises(kind, match=why):
            await extend(one, wanted, rounds)


async def test_what_a_failed_cycle_has_collected_can_be_collected_again(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        collected = replace(work_done("r1/collect/0"), phase="collect")
        await found(one, facts=(started(), collected, FAILED))
        cycle = one.replica.state.cycles[CYCLE]
        await resume_cycle(one._begin_term(1).term, ResumeCycle.read({"redo": "collect"}))
        assert (cycle.failed, cycle.has_nothing_to_do) == (None, False)
        assert cycle.completed_in(1, "collect") == {}
