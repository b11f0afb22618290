"""The sizes of small students follow from the size of the cycle."""

import pytest

from jupiterd.cycle.generation.proxies import proxies_of, seeds_needed
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import parse_model
from jupiterd.locations import config_folder


def shape_of(size, **overrides):
    return parse_model((config_folder() / "models" / f"{size}.yaml").read_text(), overrides)


@pytest.mark.parametrize("size", ["100m", "350m", "500m", "1b"])
def test_large_models_are_judged_by_25m_students_of_50m_tokens(size):
    proxies = proxies_of(shape_of(size))
    assert parameter_count(proxies.shape) == pytest.approx(25.2e6, rel=0.01)
    assert proxies.tokens == pytest.approx(50e6, rel=0.01)
    assert proxies.shape.vocab_size == shape_of(size).vocab_size


def test_the_smallest_ones_learn_in_seconds():
    proxies = proxies_of(shape_of("1m"))
    assert parameter_count(proxies.shape) < 500_000
    assert proxies.tokens == 40_960
    assert len(proxies.seeds) == 2
    tiny = proxies_of(shape_of("1m", vocab_size=512, seq_len=64))
    assert (tiny.shape.vocab_size, tiny.shape.seq_len) == (512, 64)
    assert tiny.tokens == proxies.tokens


def test_between_them_there_is_a_size_between():
    sizes = [parameter_count(proxies_of(shape_of(size)).shape) for size in ("1m", "25m", "100m")]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize(("noticed", "seeds"), [(0.01, 2), (0.005, 8)])
def test_seeds_follow_from_what_is_to_be_noticed(noticed, seeds):
    assert seeds_needed(0.004, noticed) == seeds
    assert len(proxies_of(shape_of("100m"), detectable_bpb=noticed).seeds) == seeds


def test_seeds_are_the_cycles_own_and_each_trains_by_its_own():
    proxies = proxies_of(shape_of("1m"), seed=7, seeds=3)
    assert proxies.seeds == (7001, 7002, 7003)
    plans = [proxies.plan(seed) for seed in proxies.seeds]
    assert [plan.seed for plan in plans] == [7001, 7002, 7003]
    assert len({plan.model_copy(update={"seed": 0}).hash() for plan in plans}) == 1


@pytest.mark.parametrize(("tokens", "steps"), [(0, 40), (40_960, 40), (10_240, 40), (5_120, 20)])
def test_students_take_the_sizes_steps_or_four_passes_over_the_text_that_all_have(tokens, steps):
    proxies = proxies_of(shape_of("1m"))
    plan = proxies.plan(1, tokens)
    assert (plan.steps, plan.extends_by_steps) == (steps, 0)
    assert plan.learning_rate == proxies.plan(1).learning_rate
    assert plan.schedule().learning_rate(steps - 1) < plan.learning_rate / 2, "its rate falls"
    told = proxies.spread_after(plan) / proxies.spread_bpb
    assert told == pytest.approx(40 / steps), "after fewer steps they differ by more"
