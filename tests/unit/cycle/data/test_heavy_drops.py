"""A phase that let less than half of its text through is told, with why."""

import pytest

from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.heavy_drops import heavy_drop
from jupiterd.cycle.data.phase_flow import Flow

REASONS = {"few-letters": 120, "symbols": 50, "list": 18}


@pytest.mark.parametrize(
    ("phase", "flow", "told"),
    [
        (Phase.FILTER, Flow(200, 12, REASONS),
         "filter dropped 188 of 200 texts (94 %): few-letters 120, symbols 50"),
        (Phase.COLLECT, Flow(1200, 2, {"not_text": 1198}),
         "collect left out 1,198 of 1,200 documents (99 %): not text 1,198"),
        (Phase.GENERATE, Flow(3, 1, {"copy": 1}), "generate refused 2 of 3 answers (66 %): copy 1"),
        (Phase.GENERATE, Flow(1, 0), "generate refused 1 of 1 answers (100 %)"),
    ],
)  # fmt: skip
def test_it_says_how_much_was_dropped_and_the_two_commonest_reasons(
    phase: Phase, flow: Flow, told: str
) -> None:
    found = heavy_drop(1, phase, flow)
    assert found is not None
    assert found.summary == told


@pytest.mark.parametrize(
    ("phase", "flow"),
    [
        (Phase.FILTER, Flow(200, 100, REASONS)),
        (Phase.FILTER, Flow(None, None)),
        (Phase.FILTER, Flow(0, 0)),
        (Phase.FILTER, Flow(50, None, {"symbols": 50})),
        (Phase.PACK, Flow(200, 3)),
        (Phase.EVALUATE, Flow(200, 0)),
    ],
)
def test_half_is_enough_and_what_is_not_known_yet_is_not_dropped(phase: Phase, flow: Flow) -> None:
    assert heavy_drop(1, phase, flow) is None


def test_where_the_cycle_failed_before_anything_came_out_everything_was_dropped() -> None:
    found = heavy_drop(2, Phase.FILTER, Flow(50, None, {"symbols": 50}), has_failed=True)
    assert found is not None
    assert (found.round, found.summary) == (2, "filter dropped 50 of 50 texts (100 %): symbols 50")
