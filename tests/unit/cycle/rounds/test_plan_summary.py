"""A cycle before it starts, in at most twelve lines, whatever is known of it."""

from dataclasses import replace

import pytest

from jupiterd.cycle.domain.survey import Survey
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from jupiterd.cycle.holdout.verdict_check import BYTES_OF_TOKEN
from jupiterd.cycle.holdout.verdict_forecast import verdict_forecast
from jupiterd.cycle.rounds.plan_summary import MOST_LINES, PlannedCycle, plan_lines
from jupiterd.cycle.rounds.plan_times import (
    GENERAL_TEXT_BYTES,
    Seen,
    Writing,
    disk_bytes,
    phase_times,
)
from jupiterd.formats import counted_tokens
from jupiterd.locations import config_folder
from tests.support.ctl.surveys import ENOUGH, FAR, TWELVE

EXPECTED = {
    "parameters": 1_400_000, "precision": "fp32", "optimizer": "adamw", "batch_sequences": 16,
    "memory_bytes_per_device": 300_000_000, "device_memory_bytes": 8_000_000_000,
    "tokens_per_s": 10_000.0,
}  # fmt: skip
PREDICTED = {
    "expected": EXPECTED,
    "cost": {
        "first": {"steps": 3120, "least_steps": 780, "tokens": 3_200_000, "eta_s": 320.0},
        "later": {"steps": 460, "tokens": 470_000, "eta_s": 47.0},
        "eta_s": 127.0,
    },
    "size": {"size": "10m", "reason": "100m needs 500 million"},
    "layouts": {"unasked": "alpha alone on torch"},
}


USUAL = "as lora in jupiter.yaml of attic says, --lora off: all weights"


def planned(survey: Survey, predicted: dict, *, without_verdict: bool = False) -> list[str]:
    forecast = verdict_forecast(survey.counts, HoldoutRules("salt"))
    times = phase_times(Seen(survey, forecast), predicted, 2)
    return plan_lines(
        PlannedCycle(
            "title", 2, survey, forecast, times, predicted, "nobody", without_verdict, "1m"
        )
    )


@pytest.mark.parametrize("survey", [ENOUGH, TWELVE, FAR, Survey()])
@pytest.mark.parametrize("predicted", [PREDICTED, {}])
def test_there_are_never_more_than_twelve(survey, predicted):
    lines = planned(survey, predicted)
    assert len(lines) < MOST_LINES  # cycle plan adds where the rest is
    labels = {line.split()[0] for line in lines[1:]}
    assert {"reads", "verdict", "training", "machines", "time", "written"} <= labels


def test_who_holds_what_of_a_model_that_is_cut_is_told_with_what_a_death_costs():
    sizes = {"alpha": (0.7, 8_000_000_000), "beta": (0.3, None)}
    members = [
        {"name": name, "part": part, "bytes": 400_000_000, "memory_bytes": memory}
        for name, (part, memory) in sizes.items()
    ]
    cut = {"stage": 2, "slower": None, "lost_s": 30.0, "members": members}
    predicted = {**PREDICTED, "expected": {**EXPECTED, "partition": cut}}
    lines = planned(TWELVE, predicted)
    line = next(line for line in lines if line.startswith("model"))
    assert "cut in stage 2 over alpha 70 % (0.4 of 8.0 GB), beta 30 % (0.4 GB); a machine" in line
    assert line.endswith("costs about 30 s at the most")
    assert "of each device" not in line
    assert len(lines) < MOST_LINES


def test_passes_are_of_the_text_that_is_trained_on():
    line = next(line for line in planned(TWELVE, PREDICTED) if line.startswith("training"))
    passes = 800_000 / TWELVE.counts.tokens
    assert f"0.80 million tokens, {passes:.1f} passes over the text" in line
    large = next(line for line in planned(ENOUGH, PREDICTED) if line.startswith("training"))
    assert "under a tenth of a pass over the text" in large


def test_a_bound_on_steps_is_told():
    forecast = verdict_forecast(TWELVE.counts, HoldoutRules("salt"))
    times = phase_times(Seen(TWELVE, forecast), PREDICTED, 2)
    asked = PlannedCycle("title", 2, TWELVE, forecast, times, PREDICTED, "nobody", max_steps=9000)
    line = next(line for line in plan_lines(asked) if line.startswith("training"))
    assert line.endswith("; no more than 9,000 steps a round, as asked")


def test_more_steps_are_told_that_only_a_falling_loss_brings():
    line = next(line for line in planned(TWELVE, PREDICTED) if line.startswith("training"))
    assert "(up to about 3,120 steps, " in line
    assert "passes, while held-out loss falls)" in line


def test_steps_that_follow_from_text_are_about_right_and_others_exact():
    def told(survey, **more):
        forecast = verdict_forecast(survey.counts, HoldoutRules("salt"))
        times = phase_times(Seen(survey, forecast), PREDICTED, 2)
        asked = PlannedCycle("title", 2, survey, forecast, times, PREDICTED, "nobody", **more)
        return next(line for line in plan_lines(asked) if line.startswith("training"))

    assert "round 1: about 780 steps, " in told(TWELVE)
    assert "each later round: about 460 steps, " in told(TWELVE)
    assert "about" not in told(ENOUGH)
    assert "about" not in told(TWELVE, has_fixed_steps=True)
    assert "round 1: 780 steps, " in told(TWELVE, max_steps=780)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "an adapter of 14,000 (1.00%; rank=4)"),
        (
            {"is_given": True, "usual_of": None},
            "an adapter that was given of 14,000 (1.00%; rank=4)",
        ),
        (
            {"usual_of": "attic"},
            f"an adapter of 14,000 (1.00%; rank=4; {USUAL})",
        ),
    ],
)
def test_an_adapter_is_told_with_where_it_comes_from(more, told):
    adapter = {"options": "rank=4", "parameters": 14_000, **more}
    lines = planned(ENOUGH, PREDICTED | {"expected": EXPECTED | {"adapter": adapter}})
    assert any(f"stay as they are beside {told}, fp32" in line for line in lines), lines


def test_a_size_that_suits_better_is_advised():
    (line,) = [line for line in planned(ENOUGH, PREDICTED) if line.startswith("advice")]
    assert "--size 10m suits text and machines: 100m needs 500 million" in line
    fitting = {**PREDICTED, "size": {"size": "1m", "reason": "it is"}}
    assert not any("suits" in line for line in planned(ENOUGH, fitting))


def test_where_nothing_was_measured_times_are_of_a_guess_and_told_as_such():
    guessed = EXPECTED | {"tokens_per_s": None, "guessed_tokens_per_s": 2_500.0}
    lines = planned(ENOUGH, {**PREDICTED, "expected": guessed})
    assert any(
        "times are a guess of 2,500 tokens/s, good to a factor of three" in line for line in lines
    )
    (time,) = [line for line in lines if line.startswith("time")]
    assert "train ~5 min 23 s" in time  # 800,000 tokens, and three seconds for the start


def test_a_speed_that_was_never_measured_is_not_made_up():
    unmeasured = {
        **PREDICTED,
        "expected": EXPECTED | {"tokens_per_s": None},
        "cost": {"first": {"steps": 780, "tokens": 800_000, "eta_s": None}, "eta_s": None},
    }
    lines = planned(ENOUGH, unmeasured)
    (time,) = [line for line in lines if line.startswith("time")]
    assert "train not known yet" in time
    assert "2 rounds: not known yet" in time
    assert any("not measured yet with this model" in line for line in lines)


def test_a_verdict_that_nobody_waits_for_is_told_as_such():
    lines = planned(TWELVE, PREDICTED, without_verdict=True)
    assert "verdict   none, as asked: too little text" in lines
    assert any(line.startswith("verdict   no: 12 documents") for line in planned(TWELVE, PREDICTED))


def test_more_rounds_than_are_kept_take_no_more_room():
    assert disk_bytes(ENOUGH, 1_000_000, 2) == disk_bytes(ENOUGH, 1_000_000, 9)
    smaller = replace(ENOUGH, sources=())
    assert disk_bytes(smaller, 1_000_000, 1) == 24_000_000


def test_ids_of_a_large_vocabulary_take_twice_the_room():
    small, large = (disk_bytes(ENOUGH, 1, 1, vocab) for vocab in (65_536, 65_537))
    assert large - small == 2 * ENOUGH.bytes / BYTES_OF_TOKEN


def test_generating_takes_as_long_as_its_writer_took_before_or_nobody_knows():
    forecast = verdict_forecast(ENOUGH.counts, HoldoutRules("salt"))
    asked, before = Writing(100, 50_000), {"tokens_per_s": 2.5, "tokens_each": 60}

    def told(predicted, writing):
        times = phase_times(Seen(ENOUGH, forecast), predicted, 1, writing)
        cycle = PlannedCycle("title", 1, ENOUGH, forecast, times, predicted, "oak")
        return next(line for line in plan_lines(cycle) if line.startswith("time"))

    assert "generate ~40 min 03 s, " in told({**PREDICTED, "writing": before}, asked)
    assert "generate not known yet, " in told(PREDICTED, asked)
    assert told(PREDICTED, asked).endswith(" without generating, on idle machines")
    assert "generat" not in told(PREDICTED, None)


def test_judging_counts_the_general_text_of_a_cycle_that_begins_with_a_model():
    forecast = verdict_forecast(ENOUGH.counts, HoldoutRules("salt"))
    seen = Seen(ENOUGH, forecast)
    brought = {**PREDICTED, "expected": EXPECTED | {"is_tuning": True}}
    more = phase_times(seen, brought, 1).judge_s - phase_times(seen, PREDICTED, 1).judge_s
    assert more == pytest.approx(2 * GENERAL_TEXT_BYTES / 4 / 3 / EXPECTED["tokens_per_s"])
    folder = config_folder() / "general_text"
    there = sum(path.stat().st_size for path in folder.glob("*.txt"))
    assert there == pytest.approx(GENERAL_TEXT_BYTES, rel=0.05)


def test_few_tokens_are_counted_without_a_fraction():
    assert counted_tokens(30_720.0) == "30,720 tokens"
