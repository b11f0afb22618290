"""How the leader watches a gang: silence, steps that never end, and bad links."""

import asyncio
from dataclasses import replace

import pytest

from jupiterd.cluster.training.gang_watchdog import (
    BEAT_S,
    FIRST_STEP_S,
    GangWatchdog,
    Silent,
    Stuck,
)
from jupiterd.daemon.gangs.rank_follower import reset_clocks
from jupiterd.daemon.gangs.watchdog_timer import watching
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import BEGINS, BUSY
from jupiterd.errors import PeerUnreachableError, TimedOutError
from jupiterd.ids import NodeId
from jupiterd.protocol.frames import Progressed
from tests.support.daemon.one_rank import LAUNCH, PLAN, A, B
from tests.support.daemon.recording_term import Recording, attempt_on
from tests.support.daemon.shapes import tiny_shape

FIRST_STEP = Progressed(0, 0, "steps", {BUSY: 1.0, BEGINS: 1.0})


async def test_all_that_are_silent_are_left_out_even_a_member_that_was_just_removed() -> None:
    term = Recording()
    supervisor = attempt_on(term, "")
    error = supervisor._watch.error_of(Silent(1, 2.1, (0,)), LAUNCH)
    assert error.message == f"{B} has said nothing for 2.1 s"
    assert supervisor._watch.silent == {A, B}
    assert set(term.machines.passed_over) == {A, B}


async def test_a_first_step_that_never_ends_is_told_and_the_next_gang_gets_its_time() -> None:
    supervisor = attempt_on(Recording(), "")
    plan = PLAN.model_copy(update={"batch_sequences": 4})
    supervisor._watch._trained_round = replace(supervisor._trained_round, plan=plan)
    tokens = 4 * tiny_shape().seq_len
    gang_plan = replace(LAUNCH, predicted_tokens_per_s=tokens / 1.0)  # a second a step

    async def judged() -> Silent | Stuck | None:
        async with supervisor._watch.over(gang_plan):
            began_s, watchdog = now_s(), supervisor._watch.watchdog
            for rank in range(2):
                reset_clocks(watchdog, rank, FIRST_STEP, began_s)
            for number in range(int(60.0 / BEAT_S)):  # in a time of its own
                for rank in range(2):
                    watchdog.heard(rank, began_s + number * BEAT_S)
                if verdict := watchdog.look(began_s + number * BEAT_S):
                    return verdict
        return None

    verdict = await judged()
    assert isinstance(verdict, Stuck)
    assert FIRST_STEP_S <= verdict.for_s <= FIRST_STEP_S + 2 * BEAT_S
    error = supervisor._watch.error_of(verdict, gang_plan)
    assert "every rank is alive, and each waits for the others" in error.message
    assert await judged() is None


@pytest.mark.parametrize(("gone", "silent"), [([], set[NodeId]()), ([B], {B}), ([A], set())])
async def test_an_attempt_ends_where_a_link_is_why_nothing_comes_of_it(
    gone: list[NodeId], silent: set[NodeId], monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = attempt_on(Recording(), "")

    async def hindering(_launch: GangPlan) -> list[NodeId]:
        return gone

    monkeypatch.setattr(supervisor._reachability, "hindering", hindering)
    if gone:
        with pytest.raises(PeerUnreachableError, match="is bad"):
            await supervisor._watch.look_into(LAUNCH)
    else:
        await supervisor._watch.look_into(LAUNCH)
    assert supervisor._watch.silent == silent, "what runs on the leader itself is always ended"


async def test_a_gang_in_doubt_is_looked_into_while_it_is_followed() -> None:
    looked = asyncio.Event()

    async def look_into() -> None:
        looked.set()
        raise PeerUnreachableError("the link of beta is bad")

    watch = GangWatchdog(2, now_s())
    with pytest.raises(ExceptionGroup) as ended:
        async with (
            asyncio.timeout(60.0),
            watching(watch, lambda _: TimedOutError("stuck"), look_into),
        ):
            await asyncio.Event().wait()
    assert looked.is_set()
    assert ended.group_contains(PeerUnreachableError)
