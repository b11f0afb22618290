"""What went into a phase, came out of it and was left out."""

import pytest

from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.phase_flow import Flow, flow_of

COLLECTED = {"documents": 600.0, "holdout_documents": 130.0, "skipped": 9.0, "skipped.empty": 9.0}
PARTED = {
    "documents": 600.0, "skipped": 9.0, "skipped.empty": 9.0, "dropped": 60.0,
    "dropped.few-letters": 60.0, "train_documents": 440.0, "holdout_documents": 100.0,
}  # fmt: skip
FILTERED = {"kept": 7.0, "dropped": 4.0, "dropped.duplicate": 1.0, "dropped.no-parse": 3.0}


@pytest.mark.parametrize(
    ("phase", "counts", "flow"),
    [
        (Phase.COLLECT, COLLECTED, Flow(739, 730, {"empty": 9})),
        (Phase.COLLECT, {"documents": 200.0, "dropped": 188.0, "dropped.symbols": 188.0},
         Flow(200, 12, {"symbols": 188})),
        (Phase.COLLECT, PARTED, Flow(609, 540, {"few-letters": 60, "empty": 9})),
        (Phase.GENERATE, {"prompts": 20.0, "samples": 12.0, "refused.short": 8.0},
         Flow(20, 12, {"short": 8})),
        (Phase.FILTER, FILTERED, Flow(11, 7, {"no-parse": 3, "duplicate": 1})),
        (Phase.PACK, {"documents": 7.0, "sequences": 90.0}, Flow(7, 90)),
        (Phase.EVALUATE, {"documents": 65.0, "scores": 130.0}, Flow(65, 130)),
        (Phase.GATE, {"documents": 65.0}, Flow(65, None)),
        (Phase.TRAIN, {"documents": 65.0}, Flow()),
        (Phase.FILTER, {}, Flow()),
    ],
)  # fmt: skip
def test_a_phase_says_what_went_in_and_came_out(
    phase: Phase, counts: dict[str, float], flow: Flow
) -> None:
    assert flow_of(phase, counts) == flow


def test_the_commonest_reason_comes_first() -> None:
    assert list(flow_of(Phase.FILTER, FILTERED).to_plain()["dropped"]) == ["no-parse", "duplicate"]
