"""How a leader takes in what ranks do, and whom its gang goes on without."""

import logging

import pytest

from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cluster.planning.roles import Candidate, Role, assign
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.daemon.gangs import straggler_watch
from jupiterd.daemon.gangs.straggler_watch import WARM_UP_STEPS, StragglerWatch
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.ids import NodeId
from jupiterd.protocol.frames import Progressed
from tests.support.daemon.one_rank import CYCLE, A, B
from tests.support.daemon.shapes import tiny_shape
from tests.support.daemon.term_parts import FakeMachines, FakePlacement, FakeTerm, services_of

DESK = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30, engines=("torch",))
CARD = Gpu("NVIDIA H100", "GPU-1", 80 << 30, "cuda")
SERVER = Hardware(
    "Linux", "x86_64", "a CPU", 16, 16 << 30, (CARD,), ("torch",), devices=("cuda:0",)
)
PLAN = TrainPlan.model_construct(steps=10_000, batch_sequences=16, micro_batch_sequences=4)
GANG = frozenset({A, B})


def gang_plan(*gang: NodeId) -> GangPlan:
    return GangPlan(1, EngineChoice(TORCH, gang, ""), "", 0, 0.0)


class Watched:
    """A leader's watch over machines of which a test says what they are, and what they do."""

    def __init__(self, *machines: Hardware, parent: str = "") -> None:
        hardware, names = dict(zip((A, B), machines, strict=True)), {A: "alpha", B: "beta"}
        self.machines = FakeMachines(hardware, names, GANG)
        self.placement = FakePlacement(self.machines)
        self.services: TermServices = services_of(term := FakeTerm(), placement=self.placement)
        term.know(CYCLE)
        self.services.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
        trained = TrainedRound(CYCLE, 1, tiny_shape(), PLAN, parent)
        self.watch = StragglerWatch(self.services, trained)
        self.step = 0

    def begin(self, *gang: NodeId) -> None:
        self.watch.begin(gang_plan(*gang))

    def train(self, steps: int, *rates: float) -> None:
        """Let each rank do so many sequences per second, for so many steps."""
        for _ in range(steps):
            self.step += 1
            for rank, rate in enumerate(rates):
                values = {"rank_sequences_per_s": rate, "tokens_per_s": 100.0}
                self.watch.stepped(rank, Progressed(self.step, PLAN.steps, "steps", values))

    def detail(self) -> str:
        return str(self.services.board.to_plain(1.0)[0]["detail"])


def test_a_rank_that_makes_each_step_longer_is_let_go_of_and_people_read_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    watched = Watched(DESK, DESK)
    assert not watched.watch.consider(TORCH, GANG), "alike, as far as anybody can guess"
    watched.begin(A, B)
    watched.train(20, 10.0, 0.1)
    why = "it generates: a step takes 84% less time without it than with it"
    assert watched.watch.leaving() == {B: why}
    assert watched.detail() == f"beta: {why}"
    assert [record.message for record in caplog.records] == ["machine_let_go"]

    candidates = [Candidate(node, DESK) for node in (A, B)]
    roles = assign(candidates, let_go=watched.placement.let_go())
    assert roles[B] == (Role.GENERATOR, why)
    assert roles[A][0] is Role.TRAINER
    assert assign([candidates[1]], let_go=watched.placement.let_go())[B][0] is Role.HYBRID, (
        "where nobody else can train, it does"
    )


def test_the_first_steps_of_an_attempt_tell_nothing() -> None:
    watched = Watched(DESK, DESK)
    watched.watch.consider(TORCH, GANG)
    watched.begin(A, B)
    watched.train(WARM_UP_STEPS, 10.0, 0.01)
    watched.train(60, 10.0, 9.0)
    assert watched.watch.leaving() == {}


def test_nobody_begins_with_a_cpu_beside_a_fast_card() -> None:
    watched = Watched(SERVER, DESK)
    assert watched.watch.consider(TORCH, GANG)
    assert watched.watch.let_go == {B}
    assert "guessed to be too slow" in watched.detail()
    watched.begin(A)
    watched.train(60, 1000.0)
    assert not watched.watch.consider(TORCH, GANG), "that is no news"
    assert watched.watch.let_go == {B}


def test_a_newcomer_that_may_be_of_use_is_let_in() -> None:
    watched = Watched(DESK, DESK)
    watched.watch.consider(TORCH, frozenset({A}))
    watched.begin(A)
    watched.train(20, 10.0)
    assert not watched.watch.consider(TORCH, GANG)
    assert watched.watch.let_go == frozenset()


def test_who_was_let_go_of_is_looked_at_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(DESK, DESK)
    watched.watch.consider(TORCH, GANG)
    watched.begin(A, B)
    watched.train(20, 10.0, 0.1)
    watched.begin(A)
    later_s = straggler_watch.now_s() + straggler_watch.AGAIN_S + 1
    monkeypatch.setattr(straggler_watch, "now_s", lambda: later_s)
    watched.watch.consider(TORCH, GANG)
    assert watched.watch.let_go == frozenset()
    assert watched.placement.let_go() == {}


@pytest.mark.parametrize("is_away", [True, False], ids=["it was away", "people want it to"])
def test_who_was_let_go_of_trains_again(is_away: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(DESK, DESK)
    watched.watch.consider(TORCH, GANG)
    watched.begin(A, B)
    watched.train(20, 10.0, 0.1)
    watched.begin(A)
    watched.watch.consider(TORCH, frozenset({A}))
    assert watched.watch.let_go == {B}
    if is_away:
        monkeypatch.setattr(watched.machines, "alive", lambda: frozenset({A}))
    else:
        monkeypatch.setattr(watched.placement, "pinned_trainers", lambda: frozenset({B}))
    watched.watch.consider(TORCH, frozenset({A}))
    assert watched.watch.let_go == frozenset()


def test_where_only_the_slow_one_is_left_it_trains() -> None:
    watched = Watched(DESK, DESK)
    watched.watch.consider(TORCH, GANG)
    watched.begin(A, B)
    watched.train(20, 10.0, 0.1)
    watched.begin(B)
    assert watched.watch.let_go == frozenset()


def test_islands_keep_the_machines_that_were_chosen_for_them() -> None:
    watched = Watched(SERVER, DESK, parent="run")
    assert not watched.watch.consider(TORCH, GANG)
    watched.begin(A, B)
    watched.train(60, 10.0, 0.01)
    assert watched.watch.leaving() == {}


def test_whoever_was_let_go_of_may_train_the_next_round() -> None:
    watched = Watched(SERVER, DESK)
    watched.watch.consider(TORCH, GANG)
    watched.watch.end()
    assert watched.placement.let_go() == {}
