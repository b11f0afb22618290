"""The recipe for weights that others trained."""

import pytest

from jupiterd.cycle.runs.fitted_plan import (
    PriorTraining,
    first_plan_of_run,
    plan_of_round,
    plan_of_run,
    planned_rounds,
)
from jupiterd.cycle.runs.recorded_settings import OF_TUNING
from jupiterd.cycle.runs.run_settings import RunSettings
from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive
from jupiterd.cycle.training.step_budget import passes_over
from jupiterd.cycle.training.tuning import (
    HIGH_RATE,
    tuned,
    tuning_lines,
    tuning_rate,
    usual_adapter_lines,
)
from jupiterd.cycle.training.tuning_batch import (
    LEAST_SEQUENCES,
    batch_lines,
    step_lines,
    tuning_batch,
)
from tests.support.cycle.presets import ONE_MILLION

TUNING = RunSettings(steps_from="data", recipe=OF_TUNING, seq_len=256)


@pytest.mark.parametrize(
    ("parameters", "rate"),
    [
        (1_000_000, 8e-5),
        (134_515_008, 2e-5),
        (1_240_000_000, 2e-5),
        (7_000_000_000, 2e-5),
        (13_000_000_000, 1.1e-5),
        (70_000_000_000, 2e-6),
    ],
)
def test_the_rate_follows_from_the_size(parameters: int, rate: float) -> None:
    assert tuning_rate(parameters) == pytest.approx(rate, rel=1e-9)
    assert tuning_rate(parameters) < HIGH_RATE


def test_a_larger_model_never_gets_a_higher_rate() -> None:
    rates = [tuning_rate(10**exponent) for exponent in range(1, 13)]
    assert rates == sorted(rates, reverse=True)


def test_weights_that_are_given_are_tuned_for_one_to_three_passes() -> None:
    for sequences in (40, 160, 5_000):
        plan = plan_of_run(ONE_MILLION, TUNING, sequences)
        batch = plan.batch_sequences
        assert passes_over(plan.steps, batch, sequences) <= 3 + batch / sequences
        assert plan.least_steps * batch >= sequences or plan.steps * batch >= sequences
        assert (plan.weight_decay, plan.learning_rate) == (0.0, 8e-5)


@pytest.mark.parametrize(
    ("sequences", "batch"),
    [(1, 4), (40, 4), (268, 4), (500, 5), (2_500, 25), (25_000, 250), (10**6, 256)],
)
def test_steps_are_small_enough_for_many_of_them(sequences: int, batch: int) -> None:
    assert tuning_batch(sequences, LEAST_SEQUENCES, 256) == batch


def test_whoever_says_what_a_device_holds_is_told_what_a_step_makes_of_it() -> None:
    (line,) = step_lines({"batch_size", "seq_len"}, 4, 32, 128, 1024)
    assert line == (
        "A step trains on 128 sequences (131,072 tokens), though a device holds 4 at a time: 32 "
        "micro-batches each are usual; --gradient-accumulation-steps 1 makes it 4"
    )
    (line,) = step_lines({"batch_size"}, 4, 32, 384, 16)
    assert line.endswith("--gradient-accumulation-steps 1 makes it 12"), "of three ranks"
    said = {"batch_size", "gradient_accumulation_steps"}
    assert step_lines(said, 4, 32, 128, 1024) == []
    assert step_lines({"seq_len"}, 1, 32, 32, 1024) == []


def test_a_round_takes_many_steps_where_a_size_s_own_batch_would_make_four() -> None:
    recipe = ONE_MILLION.recipe.model_copy(update={"batch_sequences": 256})
    brought = ONE_MILLION.model_copy(update={"recipe": recipe})
    asked = TUNING.model_copy(update={"least_batch": LEAST_SEQUENCES})
    first, later = planned_rounds(brought, asked, {}, 1, 1_000)
    for plan in (first, later):
        assert (plan.batch_sequences, plan.least_steps, plan.steps) == (10, 100, 300)
        assert plan.warmup_steps in (0, 3)
    said = TUNING.model_copy(update={"least_batch": 0})
    as_before, _ = planned_rounds(brought, said, {}, 1, 1_000)
    assert (as_before.batch_sequences, as_before.least_steps) == (256, 4)
    unknown, _ = planned_rounds(brought, asked, {}, 1, 0)
    assert unknown.batch_sequences == 256


def test_a_run_s_batch_follows_from_its_data_and_every_rank_has_a_sequence() -> None:
    asked = TUNING.model_copy(update={"least_batch": LEAST_SEQUENCES})
    assert plan_of_run(ONE_MILLION, asked, 1_000).batch_sequences == 10
    assert plan_of_run(ONE_MILLION, asked, 10**6).batch_sequences == 32
    gang = asked.model_copy(update={"ranks": 6})
    assert plan_of_run(ONE_MILLION, gang, 50).batch_sequences == 6
    limited = asked.model_copy(update={"steps_from": "settings", "epochs": 2})
    assert plan_of_run(ONE_MILLION, limited, 1_000).steps == 200


def test_a_small_step_is_held_at_once_and_saved_as_rarely_by_its_tokens() -> None:
    large = {"batch_sequences": 256, "micro_batch_sequences": 8, "checkpoint_every_steps": 100}
    recipe = ONE_MILLION.recipe.model_copy(update=large)
    brought = ONE_MILLION.model_copy(update={"recipe": recipe})
    asked = TUNING.model_copy(update={"least_batch": LEAST_SEQUENCES})
    said = TUNING.model_copy(update={"least_batch": 0, "gradient_accumulation_steps": 4})
    cases = ((asked, 4, 4, 6_400, 6_400), (said, 256, 8, 100, 100))
    for settings, batch, at_a_time, of_a_round, of_a_run in cases:
        plan, _ = planned_rounds(brought, settings, {}, 1, 100)
        assert (plan.batch_sequences, plan.micro_batch_sequences) == (batch, at_a_time)
        assert plan.checkpoint_every_steps == of_a_round
        run = plan_of_run(brought, settings, 100)
        assert (run.batch_sequences, run.checkpoint_every_steps) == (4, of_a_run)


def test_a_batch_that_follows_from_the_text_says_so() -> None:
    assert batch_lines(10, 4, is_known=True)[0].startswith("Batch of 10 sequences: follows from")
    assert batch_lines(32, 4, is_known=False)[0].startswith("Batch of 4 to 32 sequences: ")
    assert batch_lines(32, 0, is_known=True) == []


def test_the_warm_up_is_short_however_long_the_training() -> None:
    long = TUNING.model_copy(update={"steps_from": "settings", "max_steps": 50_000})
    assert plan_of_run(ONE_MILLION, long, 100).warmup_steps == 100
    short = long.model_copy(update={"max_steps": 200})
    assert plan_of_run(ONE_MILLION, short, 100).warmup_steps == 6


def test_what_people_say_of_rate_and_decay_counts_more() -> None:
    asked = {"max_steps": 10, "steps_from": "settings", "learning_rate": 3e-3, "weight_decay": 0.1}
    settings = TUNING.model_copy(update=asked)
    for plan in (first_plan_of_run(ONE_MILLION, settings), plan_of_run(ONE_MILLION, settings, 40)):
        assert (plan.learning_rate, plan.weight_decay) == (3e-3, 0.1)


def test_later_rounds_of_a_cycle_that_began_with_weights_tune_them_too() -> None:
    trained = PriorTraining(9_000_000, is_tuning=True)
    for goes_on in (True, False):
        plan = derive(tuned(ONE_MILLION), 2, goes_on=goes_on)
        fitted = plan_of_round(plan, ONE_MILLION, 160, trained)
        assert (fitted.least_steps, fitted.steps) == (40, 120)
        assert (fitted.learning_rate, fitted.weight_decay) == (8e-5, 0.0)


def test_a_cycle_is_foretold_as_it_is_trained() -> None:
    first, later = planned_rounds(ONE_MILLION, TUNING, {}, 1, 160)
    assert (first.least_steps, first.steps, first.learning_rate) == (40, 120, 8e-5)
    assert (later.least_steps, later.steps, later.learning_rate) == (40, 120, 8e-5)
    first, _ = planned_rounds(ONE_MILLION, TUNING, {"learning_rate": 3e-3}, 1, 160)
    assert first.learning_rate == 3e-3


def test_training_from_random_weights_is_what_it_was() -> None:
    settings = TUNING.model_copy(update={"recipe": "size"})
    first, later = planned_rounds(ONE_MILLION, settings, {}, 1, 0)
    assert (first, later) == (
        derive(ONE_MILLION, 1, seed=1),
        derive(ONE_MILLION, 2, None, 1, goes_on=True),
    )
    assert plan_of_run(ONE_MILLION, settings, 40).learning_rate == 3e-3


def lines(shape: ModelShape, plan: TrainPlan) -> str:
    return "\n".join(tuning_lines(shape, plan))


def test_the_rate_is_told_and_one_that_is_high_is_called_so() -> None:
    usual = plan_of_run(ONE_MILLION, TUNING, 160)
    told = lines(ONE_MILLION, usual)
    assert "Learning rate 8e-05: tunes weights of 1.12 million parameters" in told
    assert "is high" not in told
    high = usual.model_copy(update={"learning_rate": 3e-3})
    told = lines(ONE_MILLION, high)
    assert "Learning rate 0.003: as asked; 8e-05 is usual" in told
    assert "0.003 is high for weights that are given" in told
    unknown = first_plan_of_run(ONE_MILLION, TUNING)
    assert "warm-up 3% of the steps" in lines(ONE_MILLION, unknown)


def test_a_rate_is_high_for_an_adapter_from_ten_times_as_much_on() -> None:
    usual = plan_of_run(ONE_MILLION, TUNING, 160)
    options = usual.options.model_copy(update={"adapter": AdapterOptions()})
    of_adapter = usual.model_copy(update={"options": options, "learning_rate": 9e-4})
    assert "is high" not in lines(ONE_MILLION, of_adapter)
    told = lines(ONE_MILLION, of_adapter.model_copy(update={"learning_rate": 3e-3}))
    assert "0.003 is high for an adapter: from 0.001 on the model soon forgets" in told


def test_an_adapter_that_nobody_asked_for_is_told_with_whose_setting_it_is() -> None:
    (line,) = usual_adapter_lines("attic")
    assert (
        line == "lora in jupiter.yaml of attic asks for the adapter; --lora off trains all weights"
    )
    assert usual_adapter_lines(None) == usual_adapter_lines("") == []
