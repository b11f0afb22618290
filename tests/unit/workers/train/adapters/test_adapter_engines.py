"""Adapters on both engines: the same numbers as the formula, and the same as each other."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from jupiterd.cycle.training.adapters.adapter import (
    FACTORS,
    adapter_shapes,
    parse_adapter,
    tensor_name,
)
from jupiterd.cycle.training.model_fingerprint import TOLERANCE
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.errors import UsageError
from jupiterd.workers.train.architectures.skeleton import skeleton
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.model_config import model_config
from jupiterd.workers.train.torch.loss_model import LossModel
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import TrainingEngine
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_run import tiny_shape
from tests.unit.workers.train.architectures import test_mlx_models
from tests.unit.workers.train.architectures.test_mlx_models import batch

Arrays = Mapping[str, NDArray[np.float32]]

KINDS = ("qwen3", "llama", "gpt2", "gpt_neox")
STEPS, RATE = 20, 5e-3


def shape_of(kind: str) -> ModelShape:
    return tiny_shape() if kind == "qwen3" else test_mlx_models.shape_of(kind)


def base_of(shape: ModelShape) -> Arrays:
    return first_weights(skeleton(model_config(shape)).shapes, 7)


def on_torch(shape: ModelShape, lora: str, **options: str) -> TorchEngine:
    plan = tiny_plan(shape, adapter=parse_adapter(lora), **options)
    engine = TorchEngine(shape, plan, 0, ProcessGroup(0, 1), "cpu")
    engine.load_base(base_of(shape))
    engine.begin(has_same_weights=True)
    return engine


def on_mlx(shape: ModelShape, lora: str, **options: str) -> TrainingEngine:
    pytest.importorskip("mlx_lm")
    from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
    from jupiterd.workers.train.mlx.ring import Ring

    plan = tiny_plan(shape, adapter=parse_adapter(lora), **options)
    engine = MlxTrainingEngine(shape, plan, 0, Ring(0, 1))
    engine.load_base(base_of(shape))
    engine.begin(has_same_weights=True)
    return engine


ENGINES = {"torch": on_torch, "mlx": on_mlx}


def losses(engine: TrainingEngine, steps: int = STEPS) -> list[float]:
    return [engine.step(batch(), RATE)[0] for _ in range(steps)]


def merged(shape: ModelShape, adapter: Arrays, scale: float) -> dict[str, torch.Tensor]:
    """Return the base's weights plus the product of the factors, by the formula."""
    found = {name: torch.from_numpy(values).clone() for name, values in base_of(shape).items()}
    lies_turned = shape.architecture == "gpt2"
    for path in skeleton(model_config(shape)).matrices:
        first, second = (tensor_name(path, factor) for factor in FACTORS)
        if first in adapter:
            product = scale * torch.from_numpy(adapter[second] @ adapter[first])
            found[f"{path}.weight"] += product.T if lies_turned else product
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_adapter_counts_what_the_formula_says(kind: str, engine: str) -> None:
    shape = shape_of(kind)
    adapted = ENGINES[engine](shape, "rank=4,alpha=12")
    losses(adapted, 3)
    whole = TorchEngine(shape, tiny_plan(shape), 0, ProcessGroup(0, 1), "cpu")
    whole.load_weights({n: v.numpy() for n, v in merged(shape, adapted.weights(), 3.0).items()})
    assert adapted.nats(batch()) == pytest.approx(whole.nats(batch()), rel=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_train_the_same_adapter(kind: str) -> None:
    shape = shape_of(kind)
    ours, theirs = on_torch(shape, "rank=4"), on_mlx(shape, "rank=4")
    assert losses(ours) == pytest.approx(losses(theirs), abs=1e-4)
    for name, values in ours.weights().items():
        assert np.allclose(values, theirs.weights()[name], atol=1e-4), name


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_but_the_adapter_is_trained_and_the_loss_falls(engine: str) -> None:
    shape = shape_of("llama")
    adapted = ENGINES[engine](shape, "rank=2,layers=1,targets=q_proj+v_proj")
    matrices = skeleton(model_config(shape)).matrices
    wanted = adapter_shapes(matrices, parse_adapter("rank=2,layers=1,targets=q_proj+v_proj"))
    assert {name: values.shape for name, values in adapted.weights().items()} == wanted
    assert len(adapted.moments()) == 2 * len(wanted)
    found = losses(adapted)
    assert found[-1] < found[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_new_adapter_changes_nothing(engine: str) -> None:
    shape = shape_of("qwen3")
    adapted = ENGINES[engine](shape, "rank=4")
    whole = TorchEngine(shape, tiny_plan(shape), 0, ProcessGroup(0, 1), "cpu")
    whole.load_weights(base_of(shape))
    assert adapted.nats(batch()) == pytest.approx(whole.nats(batch()), rel=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_logits_are_those_of_the_weights_that_are_given(engine: str) -> None:
    shape = shape_of("llama")
    adapted = ENGINES[engine](shape, "rank=4")
    before = dict(adapted.weights())
    losses(adapted, 3)
    tokens = np.arange(6)
    as_begun, as_trained = (adapted.logits(tokens, w) for w in (before, adapted.weights()))
    assert not np.allclose(as_begun, as_trained)
    adapted.load_weights(before)
    assert np.allclose(adapted.logits(tokens, before), as_begun)


def test_what_a_model_does_not_have_is_refused_with_what_it_has() -> None:
    with pytest.raises(UsageError, match="no w_proj") as caught:
        on_torch(shape_of("llama"), "targets=w_proj")
    assert "q_proj" in caught.value.hint


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_layers_keep_may_be_computed_twice(kind: str, engine: str) -> None:
    shape = shape_of(kind)
    kept = ENGINES[engine](shape, "rank=4")
    again = ENGINES[engine](shape, "rank=4", gradient_checkpointing="on")
    assert losses(again, 5) == pytest.approx(losses(kept, 5), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_can_be_compared_whatever_a_device_multiplies_in(kind: str) -> None:
    shape, tokens = shape_of(kind), np.arange(12)
    trained = on_torch(shape, "rank=4")
    losses(trained, 3)
    weights = trained.weights()
    wanted = trained.logits(tokens, weights)
    for engine in ENGINES.values():
        for precision in ("fp32", "bf16"):
            other = engine(shape, "rank=4", precision=precision)
            losses(other, 1)
            found = other.logits(tokens, weights)
            assert np.abs(found - wanted).max() < TOLERANCE, (engine, precision)
            assert np.isfinite(other.nats(batch()))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_frozen_weights_in_bf16_leave_the_output_step_apart(kind: str) -> None:
    engine = on_torch(shape_of(kind), "rank=4", precision="bf16")
    compiled = replace(engine.options, compile=True)
    model = vars(engine)["_model"]
    LossModel(model, compiled, "cpu")
    assert model.is_plain
