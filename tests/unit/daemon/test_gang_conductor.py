"""How the leader follows the ranks of a gang."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from jupiterd.cluster.cycle_state import CycleFact, CycleState
from jupiterd.cluster.engines import MLX, EngineChoice
from jupiterd.cluster.facts import CheckpointCommitted, LinePinned, RoundCommitted
from jupiterd.cluster.gang_watch import GangWatch
from jupiterd.cycle.phases import TrainRound
from jupiterd.cycle.plan import ModelShape, TrainPlan
from jupiterd.cycle.work import Phase, WorkResult
from jupiterd.daemon import gang_conductor
from jupiterd.daemon.gang_conductor import GangConductor
from jupiterd.daemon.launch import Launch
from jupiterd.daemon.leading import Leading
from jupiterd.daemon.progress import ProgressBoard
from jupiterd.daemon.work_events import (
    CheckpointMade,
    Finished,
    Joined,
    Started,
    Unsaved,
    WorkEvent,
)
from jupiterd.errors import DiskFullError, LineChangedError, NoLeaderError, TimedOutError
from jupiterd.ids import ArtifactId, CycleId, NodeId

CYCLE = CycleId("c" * 16)
A, B = NodeId("a"), NodeId("b")
LAUNCH = Launch(3, EngineChoice(MLX, (A, B), "as asked"), "", 0, 0.0)
TIMEOUT_S = 0.05
PLAN = TrainPlan.model_construct(steps=100, micro_batch_sequences=8)


class OneRank:
    """As much of a term of leading as following a rank needs: its events come from a list."""

    def __init__(self, *events: WorkEvent, is_slow: bool = False) -> None:
        self.board = ProgressBoard()
        self.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
        self._events = events
        self._is_slow = is_slow

    async def run(self) -> AsyncGenerator[WorkEvent]:
        for event in self._events:
            yield event
        if self._is_slow:
            await asyncio.Event().wait()


async def follow(rank: OneRank) -> None:
    conductor = GangConductor(cast("Leading", rank), CYCLE, 1, cast("ModelShape", None), PLAN)
    conductor._show(LAUNCH, {})
    conductor._watch = GangWatch(len(LAUNCH.gang), 0.0, lambda _: 0.0)
    await conductor._follow(0, A, rank.run(), LAUNCH)


@pytest.fixture(autouse=True)
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_conductor, "RING_TIMEOUT_S", TIMEOUT_S)


async def test_a_ring_that_is_not_formed_in_time_is_given_up() -> None:
    with pytest.raises(TimedOutError, match="the MLX ring wasn't formed"):
        await follow(OneRank(Started(7, "cpu"), is_slow=True))


async def test_a_rank_that_has_joined_is_waited_for_as_long_as_it_takes() -> None:
    following = asyncio.ensure_future(
        follow(OneRank(Started(7, "cpu"), Joined("cpu", ""), is_slow=True))
    )
    done, _ = await asyncio.wait([following], timeout=3 * TIMEOUT_S)
    assert not done
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


async def test_the_gang_and_its_note_are_shown() -> None:
    rank = OneRank(Started(7, "cpu"), Joined("gpu", "a note"), Finished(WorkResult({})))
    await follow(rank)
    (plain,) = rank.board.to_plain(1.0)
    seat: dict[str, Any] = plain["gang"][0]
    assert (seat["engine"], seat["device"], seat["pid"]) == ("mlx", "gpu", 7)
    assert plain["detail"] == "a note"


class LostTerm:
    """A term that ends while an epoch runs; whatever is asked of it afterwards is refused."""

    def __init__(self) -> None:
        self.is_over = False
        self.asked = 0

    def cycle(self, _cycle: CycleId) -> CycleState:
        self.asked += 1
        if self.asked > 2:  # the epoch has begun
            self.is_over = True
            raise NoLeaderError("this node no longer leads")
        return CycleState()


async def test_training_ends_with_the_term_even_where_the_cancel_was_lost() -> None:
    term = LostTerm()
    conductor = GangConductor(cast("Leading", term), CYCLE, 1, cast("ModelShape", None), PLAN)
    step = TrainRound(ArtifactId("s"), ArtifactId("t"))
    with pytest.raises(ExceptionGroup) as ended:
        await conductor.train(step)
    assert ended.group_contains(NoLeaderError)


class Recording:
    """As much of a term of leading as recording a checkpoint needs: facts go into one cycle."""

    self_id = A

    def __init__(self, *facts: CycleFact) -> None:
        self.state = CycleState()
        self.recorded: list[CycleFact] = []
        for index, fact in enumerate(facts, 1):
            self.state.apply(fact, (1, A, "u", index))
        self.library = self

    async def spread(self, _artifacts: object) -> int:
        return 0

    async def keep_two_copies(self, _artifact: ArtifactId, _holder: NodeId) -> None:
        pass

    def cycle(self, _cycle: CycleId) -> CycleState:
        return self.state

    async def record(self, *facts: CycleFact) -> None:
        for fact in facts:
            self.recorded.append(fact)
            self.state.apply(fact, (2, A, "u", len(self.recorded)))


def epoch_on(term: Recording, tip: str) -> GangConductor:
    """The conductor of an epoch that started from a checkpoint."""
    plan = PLAN
    conductor = GangConductor(cast("Leading", term), CYCLE, 1, cast("ModelShape", None), plan)
    conductor._line.tip = tip
    return conductor


def checkpoint(name: str, step: int) -> CheckpointCommitted:
    return CheckpointCommitted(
        CYCLE, 1, "", ArtifactId(name), 1, step, 100 * step, step, 3.5, False
    )


def made(artifact: str, step: int) -> CheckpointMade:
    return CheckpointMade(ArtifactId(artifact), step, 100 * step, step, 3.5)


async def test_an_epoch_extends_the_line_that_it_started_from() -> None:
    term = Recording(checkpoint("k1", step=10))
    conductor = epoch_on(term, "k1")
    await conductor._line.commit(A, made("k2", 20), LAUNCH, 100)
    await conductor._line.commit(A, made("k3", 30), LAUNCH, 100)
    await conductor._line.commit(A, made("k3", 30), LAUNCH, 100)
    line = [cast("CheckpointCommitted", fact).artifact for fact in term.state.line()]
    assert line == ["k1", "k2", "k3"]
    assert len(term.recorded) == 2


@pytest.mark.parametrize(
    "news",
    [
        (checkpoint("x1", step=90),),
        (checkpoint("x1", step=5), LinePinned(CYCLE, "x1", 1)),
        (checkpoint("x1", step=5), RoundCommitted(CYCLE, 1, "x1", "HOLD", "")),
    ],
    ids=["a heavier line", "a pin", "a round more"],
)
async def test_an_epoch_whose_line_counts_no_more_keeps_its_leaf_and_ends(
    news: tuple[CycleFact, ...],
) -> None:
    term = Recording(checkpoint("k1", step=10))
    conductor = epoch_on(term, "k1")
    await term.record(*news)
    with pytest.raises(LineChangedError, match="epoch 3 trained a line"):
        await conductor._line.commit(A, made("k2", 20), LAUNCH, 100)
    last = cast("CheckpointCommitted", term.recorded[-1])
    assert (last.artifact, last.parent) == ("k2", "k1")
    assert "k2" in [leaf.key for leaf in term.state.leaves()]


class FullTerm(Recording):
    """A term of a leader whose disk is full, until it is told otherwise."""

    is_full = True

    def __init__(self) -> None:
        super().__init__()
        self.board = ProgressBoard()
        self.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)

    def names(self) -> dict[NodeId, str]:
        return {A: "alpha", B: "beta"}

    def detail(self) -> str:
        return self.board.to_plain(1.0)[0]["detail"]

    async def record(self, *facts: CycleFact) -> None:
        if self.is_full:
            raise DiskFullError("alpha: no room")
        await super().record(*facts)


async def test_training_goes_on_while_no_disk_has_room_for_a_checkpoint() -> None:
    term = FullTerm()
    conductor = epoch_on(cast("Recording", term), "")
    await conductor._note(0, B, Unsaved(10, "no room left"), LAUNCH)
    assert term.detail() == (
        "beta: no room left; training goes on without the checkpoint of step 10"
    )
    await conductor._note(0, B, made("k2", 20), LAUNCH)
    assert term.detail().startswith("alpha: no room; training goes on")
    with pytest.raises(DiskFullError, match="alpha: no room"):
        conductor._alarm.check()
    await conductor._note(0, B, made("k2", 20), LAUNCH)
    term.is_full = False
    await conductor._note(0, B, made("k3", 30), LAUNCH)
    conductor._alarm.check()
    assert (term.detail(), len(term.recorded)) == ("", 1)


async def test_a_round_that_is_not_the_next_one_any_more_is_trained_no_further() -> None:
    over = RoundCommitted(CYCLE, 1, "x1", "HOLD", "")
    conductor = epoch_on(Recording(checkpoint("x1", step=5), over), "k1")
    await conductor.train(TrainRound(ArtifactId("s"), ArtifactId("t")))
