"""Plans whose steps follow the data: of rounds, and of runs."""

from jupiterd.cycle.runs.fitted_plan import PriorTraining, bounded, plan_of_round, plan_of_run
from jupiterd.cycle.runs.run_settings import RunSettings
from jupiterd.cycle.training.held_out_measures import measure_interval
from jupiterd.cycle.training.plan import derive
from tests.support.cycle.presets import ONE_MILLION, plan_of_one_million


def test_a_first_round_takes_its_sizes_steps_where_there_is_text_enough() -> None:
    plan = plan_of_one_million()
    assert plan_of_round(plan, ONE_MILLION, 3000, PriorTraining()) == plan


def test_a_first_round_on_little_text_may_grow() -> None:
    plan = plan_of_round(plan_of_one_million(), ONE_MILLION, 80, PriorTraining())
    assert (plan.least_steps, plan.steps, plan.warmup_steps) == (80, 320, 2)
    assert plan.extends_by_steps == 40, "two passes: measuring after each of 20 steps is dear"


def test_a_later_round_counts_the_passes_before_it() -> None:
    later = derive(ONE_MILLION, 2, goes_on=True)
    passes_before = 12 * 80 * ONE_MILLION.seq_len
    plan = plan_of_round(later, ONE_MILLION, 80, PriorTraining(passes_before))
    assert (plan.least_steps, plan.steps, plan.warmup_steps) == (40, 80, 0)


def test_weights_of_others_are_tuned_for_a_pass_and_four_at_the_most() -> None:
    plan = plan_of_round(plan_of_one_million(), ONE_MILLION, 160, PriorTraining(is_of_others=True))
    assert (plan.least_steps, plan.steps) == (40, 160)


def test_a_bound_below_the_least_steps_ends_the_training_there_with_the_rate_at_nothing() -> None:
    growing = plan_of_round(plan_of_one_million(), ONE_MILLION, 80, PriorTraining())
    plan = bounded(growing, ONE_MILLION.recipe, 50)
    assert (plan.steps, plan.least_steps, plan.extends_by_steps) == (50, 0, 0)
    assert plan.decay_steps == round(50 * ONE_MILLION.recipe.decay_fraction)
    schedule = plan.schedule()
    assert schedule.learning_rate(49) < plan.learning_rate / 5 < schedule.learning_rate(25)


def test_a_bound_above_the_least_steps_lets_the_training_grow_so_far() -> None:
    growing = plan_of_round(plan_of_one_million(), ONE_MILLION, 80, PriorTraining())
    plan = bounded(growing, ONE_MILLION.recipe, 200)
    assert (plan.steps, plan.least_steps, plan.extends_by_steps) == (200, 80, 40)
    assert plan.trunk_steps + plan.decay_steps == 200


def test_a_bound_that_is_never_reached_changes_nothing() -> None:
    plan = plan_of_round(plan_of_one_million(), ONE_MILLION, 80, PriorTraining())
    assert bounded(plan, ONE_MILLION.recipe, 320) == plan
    assert bounded(plan, ONE_MILLION.recipe, None) == plan


def test_a_run_takes_what_was_asked_for() -> None:
    asked = RunSettings(max_steps=30, steps_from="settings", seq_len=256)
    assert plan_of_run(ONE_MILLION, asked, 500).steps == 30
    assert plan_of_run(ONE_MILLION, asked.model_copy(update={"max_steps": None}), 64).steps == 2


def test_a_run_that_nothing_was_said_of_follows_its_data() -> None:
    fits = RunSettings(steps_from="data", seq_len=256, gradient_accumulation_steps=4)
    plan = plan_of_run(ONE_MILLION, fits, 100)
    assert (plan.least_steps, plan.steps) == (100, 400)
    assert plan_of_run(ONE_MILLION, fits, 10_000).steps == 780
    wide = RunSettings(steps_from="data", seq_len=256, gradient_accumulation_steps=8)
    assert plan_of_run(ONE_MILLION, wide, 10_000).steps == 390, "as many tokens in larger steps"


def test_measuring_costs_about_a_fiftieth() -> None:
    assert measure_interval(780, 4, 16) == 67
    assert measure_interval(7630, 256, 64) == 382
    assert measure_interval(6, 4, 16) == 6, "once at the end"
