"""Where a cycle may wait between its phases."""

import pytest

from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.phases.boundary import boundary, place_before, with_those_behind
from jupiterd.cycle.phases.steps import CloseRound, RunItems, Step, TrainRound
from jupiterd.cycle.phases.view import RoundView
from jupiterd.ids import ArtifactId, CycleId

TRAIN = TrainRound(ArtifactId("1" * 64), ArtifactId("2" * 64))


def view(*done: str, round_number: int = 1, trained: str | None = None) -> RoundView:
    return RoundView(
        cycle=CycleId("d" * 16),
        round=round_number,
        seed=1,
        started_at="",
        completed={item: WorkResult({}) for item in done},
        candidate=None if trained is None else ArtifactId(trained),
        looks=0,
    )


def items(phase: Phase) -> RunItems:
    return RunItems(phase, (), 1)


@pytest.mark.parametrize(
    ("seen", "step", "place"),
    [
        (view(), items(Phase.COLLECT), None),
        (view("r1/collect/0"), items(Phase.COLLECT), None),
        (view("r1/collect/0"), items(Phase.FILTER), (1, Phase.COLLECT)),
        (view("r1/collect/0", "r1/filter/1"), items(Phase.FILTER), (1, Phase.COLLECT)),
        (view("r1/collect/0", "r1/filter/0/ab12"), items(Phase.PACK), (1, Phase.FILTER)),
        (view("r1/pack/0"), TRAIN, (1, Phase.PACK)),
        (view("r1/pack/0", trained="k1"), items(Phase.EVALUATE), (1, Phase.TRAIN)),
        (view("r1/evaluate/0/k1", trained="k1"), items(Phase.GATE), (1, Phase.EVALUATE)),
        (view("r1/gate/0/k1", trained="k1"), CloseRound(WorkResult({})), (1, Phase.GATE)),
        (view("r1/pack/0", round_number=2), items(Phase.COLLECT), (1, Phase.GATE)),
        (view("r2/collect/0", round_number=2), items(Phase.GENERATE), (2, Phase.COLLECT)),
    ],
)
def test_what_ended_before_a_step(
    seen: RoundView, step: Step, place: tuple[int, Phase] | None
) -> None:
    assert boundary(seen, step) == place


def test_the_last_phase_with_results_is_where_a_round_stands() -> None:
    assert place_before(3, {Phase.COLLECT, Phase.FILTER}) == (3, Phase.FILTER)
    assert place_before(3, ()) == (2, Phase.GATE)
    assert place_before(1, ()) is None


def test_what_is_redone_takes_along_what_was_made_of_it() -> None:
    assert with_those_behind(Phase.EVALUATE) == (Phase.EVALUATE, Phase.GATE)
    assert with_those_behind(Phase.COLLECT) == tuple(Phase)
