"""Size presets, the count of parameters, and what a round is derived from."""

from pathlib import Path

import pytest

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.errors import InvalidSettingError

MODELS = Path(__file__).parents[4] / "config" / "models"
TEXT = (MODELS / "1m.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("size", "millions"),
    [
        ("1m", 1.115392),
        ("25m", 25.173376),
        ("100m", 114.38912),
        ("350m", 345.034752),
        ("500m", 502.071552),
        ("1b", 1010.916352),
        ("gpt2-medium", 354.823168),
        ("100m-8gpu", 114.38912),
        ("1b-8gpu", 1010.916352),
    ],
)
def test_the_presets_have_the_sizes_they_are_called_after(size: str, millions: float):
    shape = parse_model((MODELS / f"{size}.yaml").read_text(encoding="utf-8"))
    assert shape.size == size
    assert parameter_count(shape) / 1e6 == pytest.approx(millions)


def test_untied_weights_count_twice():
    tied = parse_model(TEXT)
    untied = tied.model_copy(update={"tied": False})
    assert parameter_count(untied) - parameter_count(tied) == 4096 * 128


def test_a_mistake_is_told_with_its_line():
    with pytest.raises(InvalidSettingError, match=r"model\.yaml:5: seq_len: expected a whole"):
        parse_model(TEXT.replace("seq_len: 256", "seq_len: 3"))


def test_heads_that_cannot_share_keys_are_refused():
    with pytest.raises(InvalidSettingError, match="multiple of kv_heads"):
        parse_model(TEXT.replace("heads: 2", "heads: 3").replace("kv_heads: 1", "kv_heads: 2"))


def test_a_domain_may_change_the_shape():
    shape = parse_model(TEXT, {"vocab_size": 512, "seq_len": 32, "steps": 3})
    assert (shape.vocab_size, shape.seq_len) == (512, 32)


def test_shape_and_plan_travel_as_plain_values():
    shape = parse_model(TEXT)
    plan = derive(shape, 1, seed=4)
    assert ModelShape.from_plain(shape.to_plain()) == shape
    assert TrainPlan.from_plain(plan.to_plain()) == plan


def test_later_rounds_follow_their_own_numbers():
    shape = parse_model(TEXT)
    first, second, third = (derive(shape, number) for number in (1, 2, 3))
    assert first.steps == shape.recipe.first_steps
    assert second.steps == shape.recipe.later_steps
    assert second.learning_rate == shape.recipe.later_learning_rate
    assert second == third


def test_a_round_that_goes_on_with_the_trunk_keeps_its_rate_and_warms_up_nothing():
    shape = parse_model(TEXT.replace("later_learning_rate: 3.0e-3", "later_learning_rate: 1.0e-3"))
    first, second = derive(shape, 1), derive(shape, 2, goes_on=True)
    assert (second.learning_rate, second.warmup_steps) == (first.learning_rate, 0)
    assert derive(shape, 2).warmup_steps > 0
    assert derive(shape, 2).learning_rate == shape.recipe.later_learning_rate


def test_overrides_win_and_the_curve_fits_the_steps():
    plan = derive(
        parse_model(TEXT), 1, {"steps": 10, "batch_sequences": 3, "learning_rate": 0.5}, seed=9
    )
    assert (plan.steps, plan.batch_sequences, plan.learning_rate, plan.seed) == (10, 3, 0.5, 9)
    assert plan.warmup_steps + plan.decay_steps <= plan.steps


def test_an_unknown_override_is_named():
    with pytest.raises(InvalidSettingError, match=r"training\.speed"):
        derive(parse_model(TEXT), 1, {"speed": 2})


def test_the_plans_hash_tells_plans_apart():
    shape = parse_model(TEXT)
    assert derive(shape, 1, seed=1).hash() == derive(shape, 1, seed=1).hash()
    assert derive(shape, 1, seed=1).hash() != derive(shape, 1, seed=2).hash()


def test_the_hash_ignores_what_only_decides_memory_and_time():
    plan = derive(parse_model(TEXT), 1)
    halved = plan.model_copy(update={"micro_batch_sequences": 1})
    saving = plan.options.model_copy(update={"gradient_checkpointing": "on", "compile": "off"})
    by_muon = plan.options.model_copy(update={"optimizer": "muon"})
    assert halved.hash() == plan.hash()
    assert plan.model_copy(update={"options": saving}).hash() == plan.hash()
    assert plan.model_copy(update={"options": by_muon}).hash() != plan.hash()


def test_plans_that_keep_documents_apart_are_others_and_those_that_don_t_have_their_old_hash():
    plan = derive(parse_model(TEXT), 1)
    apart = plan.options.model_copy(update={"document_masks": "on"})
    assert plan.model_copy(update={"options": apart}).hash() != plan.hash()
    assert "document_masks" not in plan.what_counts()["options"]


def test_a_size_may_keep_documents_apart():
    shape = parse_model(TEXT.rstrip() + "\n  options:\n    document_masks: on\n")
    assert derive(shape, 2).options.document_masks == "on"


def test_the_architectures_hash_ignores_how_it_is_trained():
    shape = parse_model(TEXT)
    longer = parse_model(TEXT, {"seq_len": 512})
    wider = parse_model(TEXT, {"vocab_size": 512})
    assert shape.architecture_hash() == longer.architecture_hash()
    assert shape.architecture_hash() != wider.architecture_hash()
