"""How a run's steps and batch follow from what was asked."""

import pytest

from jupiterd.cycle.runs.run_plan import derive_run, fitted, sequences_in, total_steps
from jupiterd.cycle.runs.run_settings import DataSettings, RunSettings
from jupiterd.cycle.training.plan import ModelShape, parse_model
from jupiterd.errors import EmptySourceError, UsageError
from jupiterd.locations import config_folder


def preset(size: str = "1m") -> ModelShape:
    return parse_model((config_folder() / "models" / f"{size}.yaml").read_text())


def test_the_effective_batch_is_micro_batch_times_accumulation_times_ranks() -> None:
    settings = RunSettings(batch_size=2, gradient_accumulation_steps=32, ranks=3)
    plan = derive_run(preset().recipe, 256, settings, 10)
    assert (plan.batch_sequences, plan.micro_batch_sequences) == (192, 2)


def test_a_micro_batch_that_people_fix_leaves_the_effective_batch() -> None:
    settings = RunSettings(batch_size=2, gradient_accumulation_steps=32, fixed_micro_batch=16)
    plan = derive_run(preset().recipe, 256, settings, 10)
    assert (plan.batch_sequences, plan.micro_batch_sequences) == (64, 16)
    assert plan.options.micro_batch == "fixed"
    free = derive_run(preset().recipe, 256, RunSettings(batch_size=2), 10)
    assert free.options.micro_batch == "auto"
    assert "micro_batch" not in free.to_plain()["options"], "older builds wouldn't know it"
    assert "fixed_micro_batch" not in RunSettings().to_scalars()
    assert RunSettings.parse(settings.to_scalars()) == settings


@pytest.mark.parametrize(
    ("asked", "steps"),
    [
        ({}, 13),  # one pass over 100 sequences, 8 at a time, the last step reaching into the next
        ({"epochs": 2}, 25),
        ({"max_steps": 7}, 7),
        ({"max_steps": 1000}, 1000),
        ({"max_steps": 7, "epochs": 2}, 7),
        ({"max_steps": 1000, "epochs": 2}, 25),
    ],
)
def test_steps_and_passes_end_a_run_whichever_comes_first(asked: dict, steps: int) -> None:
    settings = RunSettings(gradient_accumulation_steps=8, **asked)
    assert total_steps(settings, 100) == steps


@pytest.mark.parametrize("asked", ["on", "off"])
def test_a_run_keeps_documents_apart_where_it_was_asked_to_whatever_its_size_has(asked: str):
    recipe = preset().recipe
    options = recipe.options.model_copy(update={"document_masks": "on"})
    recipe = recipe.model_copy(update={"options": options})
    settings = RunSettings.parse({"document_masks": asked})
    assert derive_run(recipe, 256, settings, 10).options.document_masks == asked
    assert RunSettings().document_masks == "off"


def test_every_run_has_a_step() -> None:
    assert total_steps(RunSettings(), 1) == 1


def test_what_was_said_beats_the_recipe() -> None:
    recipe = preset().recipe
    plan = derive_run(recipe, 256, RunSettings(), 100)
    assert (plan.learning_rate, plan.weight_decay) == (recipe.learning_rate, recipe.weight_decay)
    asked = RunSettings(learning_rate=1e-4, weight_decay=0.0, precision="bf16", optimizer="muon")
    plan = derive_run(recipe, 256, asked, 100)
    assert (plan.learning_rate, plan.weight_decay) == (1e-4, 0.0)
    options = plan.options
    assert (options.precision, options.optimizer, options.attention) == ("bf16", "muon", "auto")


def test_a_larger_batch_is_saved_after_fewer_steps() -> None:
    recipe = preset().recipe  # every 100 steps of 4 sequences of 256
    small = RunSettings(batch_size=1, gradient_accumulation_steps=2, seq_len=64)
    assert derive_run(recipe, 256, small, 1000).checkpoint_every_steps == 100
    large = RunSettings(batch_size=1, gradient_accumulation_steps=16, seq_len=256)
    assert derive_run(recipe, 256, large, 1000).checkpoint_every_steps == 25
    assert derive_run(recipe, 256, RunSettings(), 1000).checkpoint_every_steps == 10


def test_a_stream_is_cut_into_whole_sequences_and_one_token_more() -> None:
    assert [sequences_in(tokens, 16) for tokens in (17, 32, 33)] == [1, 1, 2]
    with pytest.raises(EmptySourceError, match="16 tokens, and one sequence takes 17"):
        sequences_in(16, 16)


def test_a_model_takes_the_data_s_vocabulary_where_its_own_is_too_small() -> None:
    assert fitted(preset(), 64, 300).vocab_size == 4096
    assert (fitted(preset(), 64, 50257).vocab_size, fitted(preset(), 64, 300).seq_len) == (
        50257, 64,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"seq_len": 3}, "seq-len"),
        ({"precision": "fp8"}, "precision"),
        ({"learning_rate": float("nan")}, "learning-rate"),
        ({"max_steps": 0}, "max-steps"),
        ({"colour": "red"}, "colour"),
        ({"start_from": "there"}, "start-from: string should match"),
    ],
)
def test_settings_that_can_t_be_are_refused_by_name(given: dict, names: str) -> None:
    with pytest.raises(UsageError, match=names):
        RunSettings.parse(given)


def test_whoever_names_no_islands_is_told_how_they_are_named() -> None:
    with pytest.raises(UsageError, match="islands can't be 'maybe'") as raised:
        RunSettings.parse({"islands": "maybe"})
    assert "auto, on, off" in raised.value.hint


def test_settings_survive_as_a_fact_s_scalars() -> None:
    settings = RunSettings(max_steps=5, learning_rate=0.1)
    assert RunSettings.parse(settings.to_scalars()) == settings
    data = DataSettings(kind="folder", path="/letters")
    assert DataSettings.parse(data.to_scalars()) == data
