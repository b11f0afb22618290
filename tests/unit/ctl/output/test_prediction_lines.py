"""What `cycle status` and `train status` say of a training's speed and what was predicted of it."""

import pytest

from jupiterd.ctl.output.prediction_lines import LEARNS, prediction_lines
from tests.support.ctl.documents import TRAINED, VERDICT, cycle, phase, train


def told(predicted: float | None, measured: float | None) -> dict[str, float | None]:
    return {"predicted_tokens_per_s": predicted, "measured_tokens_per_s": measured}


RUNNING = {"phases": [phase(1, "train", "running")]}
DONE = {"phases": [phase(1, "train", "done"), phase(1, "evaluate", "running")]}


@pytest.mark.parametrize(
    ("predicted", "measured", "says"),
    [
        (6_527.4, 6_565.2, "predicted 6,527 tokens/s, measured 6,565: 1 % too low"),
        (7_000.0, 5_900.0, "predicted 7,000 tokens/s, measured 5,900: 19 % too high"),
        (6_565.0, 6_566.0, "predicted 6,565 tokens/s, measured 6,566"),
        (6_527.4, None, "predicted 6,527 tokens/s"),
    ],
)
def test_a_prediction_is_said_beside_what_was_measured_as_far_as_either_is_known(
    predicted: float | None, measured: float | None, says: str
) -> None:
    assert prediction_lines(told(predicted, measured) | RUNNING) == [says]
    assert prediction_lines(told(predicted, measured) | DONE) == [says]


def test_where_nothing_was_predicted_the_end_tells_what_was_measured() -> None:
    assert prediction_lines(told(None, 900.0) | DONE) == ["measured 900 tokens/s"]
    assert prediction_lines(told(None, 900.0) | RUNNING) == [], "the figures below tell it"
    assert prediction_lines(told(None, None) | DONE) == []
    assert prediction_lines({}) == [], "an older daemon tells neither"


@pytest.mark.parametrize(
    ("predicted", "says"), [(2_000.0, "100 % too high"), (700.0, "30 % too low")]
)
def test_a_prediction_that_was_more_than_a_fifth_off_mends_the_next_one_once_the_round_is_over(
    predicted: float, says: str
) -> None:
    (ended,) = prediction_lines(told(predicted, 1_000.0) | DONE)
    assert ended.endswith(f"measured 1,000: {says}, {LEARNS}")
    (running,) = prediction_lines(told(predicted, 1_000.0) | RUNNING)
    assert running.endswith(says)


def test_status_shows_it_of_a_run_while_it_trains_and_after_its_end(daemon, ctl) -> None:
    for run in (train(), TRAINED):
        daemon.documents["train"] = {"schema": "jupiter/v1", "train": run | told(990.0, 1_000.0)}
        head, line, *_ = ctl("train", "status").out.splitlines()
        assert head.startswith("training letters")
        assert line == "predicted 990 tokens/s, measured 1,000: 1 % too low"


def test_status_shows_it_of_a_cycle_while_it_trains_and_while_it_judges(daemon, ctl) -> None:
    for shown in (cycle(), cycle(verdicts=[VERDICT], **DONE)):
        daemon.documents["cycle"] = {"schema": "jupiter/v1", "cycle": shown | told(990.0, 1_000.0)}
        lines = ctl("cycle", "status").out.splitlines()
        assert "predicted 990 tokens/s, measured 1,000: 1 % too low" in lines
