"""Dropout of an adapter's inputs: one mask, whoever computes it and however often."""

# pyright: reportPrivateUsage=false

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.dropout_mask import mask_columns, threshold_of, token_keys
from jupiterd.workers.train.micro_batch_probe import MicroBatchProbe, ProbeSetup
from jupiterd.workers.train.torch.torch_adapter import AdaptedLinear
from jupiterd.workers.train.torch.torch_dropout import Dropout, TokenKeys, as_int32
from jupiterd.workers.training_engine import MicroBatch, TrainingEngine
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_run import TaskAlone, make_inputs
from tests.unit.workers.train.adapters.test_adapter_engines import (
    ENGINES,
    KINDS,
    RATE,
    STEPS,
    on_mlx,
    on_torch,
    shape_of,
)
from tests.unit.workers.train.architectures.test_mlx_models import batch

LORA = "rank=4,dropout=0.1"
SHARE = 0.1
SEQUENCES = 6


def parts(step: int, size: int = SEQUENCES, shape: ModelShape | None = None) -> list[MicroBatch]:
    """Return the batch of a step in micro batches of so many."""
    (whole,) = batch()
    keys = token_keys("s", np.arange(SEQUENCES) + SEQUENCES * step, whole.inputs.shape[1])
    places = [slice(first, first + size) for first in range(0, SEQUENCES, size)]
    return [MicroBatch(whole.inputs[p], whole.targets[p], token_keys=keys[p]) for p in places]


def losses(engine: TrainingEngine, size: int = SEQUENCES, steps: int = STEPS) -> list[float]:
    engine.batch_sequences = SEQUENCES
    return [engine.step(parts(step, size), RATE)[0] for step in range(steps)]


def is_left_out(tokens: int, inputs: int, module: str = "a.b") -> NDArray[np.bool_]:
    keys = token_keys("7/round 1", np.arange(tokens // 32), 32).reshape(-1, 1)
    columns = mask_columns(module, inputs)
    return keys * columns.factors + columns.addends < threshold_of(SHARE)


def test_the_share_that_is_left_out_is_what_was_asked_for_of_tokens_and_of_inputs() -> None:
    found = is_left_out(1_024, 512)
    for spread, of in ((found.mean(0), 1_024), (found.mean(1), 512)):
        assert spread.mean() == pytest.approx(SHARE, abs=1e-3)
        assert spread.std() == pytest.approx((SHARE * (1 - SHARE) / of) ** 0.5, rel=0.1)


def test_no_two_inputs_tokens_or_modules_are_left_out_together() -> None:
    found, other = (
        (is_left_out(1_024, 512, module) - SHARE) / (SHARE * (1 - SHARE)) ** 0.5
        for module in ("a.b", "a.c")
    )
    of_inputs, of_tokens = found.T @ found / 1_024**0.5, found @ found.T / 512**0.5
    np.fill_diagonal(of_inputs, 0.0)
    np.fill_diagonal(of_tokens, 0.0)
    for together in (of_inputs, of_tokens, found.T @ other / 1_024**0.5):
        assert np.abs(together).max() < 8.0, "in standard deviations, of 100,000 pairs and more"


def test_both_frameworks_leave_out_the_same_inputs() -> None:
    mx = pytest.importorskip("mlx.core")
    from jupiterd.workers.train.mlx import mlx_adapted_layer

    keys, tokens = token_keys("s", np.arange(4), 8), np.ones((4, 8, 16), np.float32)
    wanted = ~(keys[..., None] * mask_columns("m", 16).factors + mask_columns("m", 16).addends
               < threshold_of(SHARE))  # fmt: skip
    held = TokenKeys()
    ours = Dropout("m", 16, SHARE, held)
    with held.of(as_int32(keys.reshape(-1))):
        found = ours.product(torch.from_numpy(tokens.reshape(-1, 16)), torch.eye(16))
    theirs = mlx_adapted_layer.TokenKeys()
    layer = mlx_adapted_layer.Dropout("m", 16, SHARE, theirs)
    with theirs.of(mx.array(keys)):
        other = np.array(layer.product(mx.array(tokens), mx.eye(16)))
    assert np.array_equal(found.numpy().reshape(4, 8, 16) > 0, wanted)
    assert np.array_equal(other > 0, wanted)
    assert np.allclose(other[wanted], 1 / (1 - SHARE))


@pytest.mark.parametrize("lora", [LORA, "rank=4,dropout=0.3,dora"])
@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_have_the_same_losses(kind: str, lora: str) -> None:
    ours, theirs = (losses(engine(shape_of(kind), lora)) for engine in (on_torch, on_mlx))
    assert ours == pytest.approx(theirs, abs=1e-4)
    assert ours != pytest.approx(losses(on_torch(shape_of(kind), "rank=4")), abs=1e-3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_layers_that_are_computed_again_leave_out_the_same(kind: str, engine: str) -> None:
    kept = ENGINES[engine](shape_of(kind), LORA)
    again = ENGINES[engine](shape_of(kind), LORA, gradient_checkpointing="on")
    assert losses(again) == pytest.approx(losses(kept), abs=1e-6)


@pytest.mark.parametrize("size", [3, 2])
@pytest.mark.parametrize("engine", ENGINES)
def test_micro_batches_of_any_size_leave_out_the_same(engine: str, size: int) -> None:
    whole, pieces = (ENGINES[engine](shape_of("llama"), LORA) for _ in range(2))
    assert losses(pieces, size) == pytest.approx(losses(whole), abs=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_and_logits_leave_out_nothing(engine: str) -> None:
    shape = shape_of("llama")
    dropped, whole = (ENGINES[engine](shape, lora) for lora in (LORA, "rank=4"))
    losses(dropped, steps=3)
    whole.load_weights(dropped.weights())
    assert dropped.nats(parts(0)) == pytest.approx(whole.nats(batch()), rel=1e-6)
    tokens = np.arange(6)
    found = dropped.logits(tokens, dropped.weights())
    assert np.allclose(found, whole.logits(tokens, dropped.weights()), atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_that_is_taken_again_is_the_same_bit_for_bit(engine: str) -> None:
    adapted = ENGINES[engine](shape_of("llama"), LORA)
    losses(adapted, steps=2)
    weights, moments = adapted.weights(), adapted.moments()
    first = adapted.step(parts(2), RATE)
    adapted.load_weights(weights)
    adapted.load_moments(moments, 2)
    assert adapted.step(parts(2), RATE) == first
    adapted.load_weights(weights)
    adapted.load_moments(moments, 2)
    assert adapted.step(parts(3), RATE) != first


def layer(keys: TokenKeys, share: float = SHARE) -> AdaptedLinear:
    torch.manual_seed(3)
    base = torch.nn.Linear(24, 5).double().requires_grad_(False)
    options = AdapterOptions(rank=3, alpha=6.0, dropout=share)
    found = AdaptedLinear(base, options, Dropout("m", 24, share, keys)).double()
    for factor in (found.lora_A, found.lora_B):
        torch.nn.init.normal_(factor)
    return found


def given(seed: str, tokens: int = 4) -> torch.Tensor:
    return as_int32(token_keys(seed, np.arange(1), tokens).reshape(-1))


def test_gradients_are_those_of_small_differences() -> None:
    keys = TokenKeys()
    module = layer(keys, 0.5)

    def computed(x: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> Any:
        factors = {"lora_A": first, "lora_B": second}
        return torch.func.functional_call(module, factors, (x,)).sigmoid()

    x = torch.randn(1, 4, 24, dtype=torch.float64, requires_grad=True)
    factors = [p.detach().clone().requires_grad_() for p in (module.lora_A, module.lora_B)]
    with keys.of(given("s")):
        assert torch.autograd.gradcheck(computed, (x, *factors))


def test_on_average_it_changes_neither_what_comes_out_nor_the_gradient() -> None:
    keys = TokenKeys()
    module = layer(keys)
    x = torch.randn(1, 4, 24, dtype=torch.float64, requires_grad=True)

    def both() -> tuple[torch.Tensor, ...]:
        found = module(x)
        return found.detach(), *torch.autograd.grad(found.sum(), [x, module.lora_A, module.lora_B])

    wanted = both()
    draws = 3_000
    sums = [torch.zeros_like(each) for each in wanted]
    for draw in range(draws):
        with keys.of(given(f"draw {draw}")):
            sums = [total + each / draws for total, each in zip(sums, both(), strict=True)]
    for found, each in zip(sums, wanted, strict=True):
        apart = torch.linalg.norm(found - each) / torch.linalg.norm(each)
        assert 0 < float(apart) < 0.03


def test_keys_follow_from_the_place_in_the_data_alone(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path)
    shards = ShardSet(Path(inputs["shards"]))
    whole = RankBatches(shards, "s", 6, 6, has_dropout=True)
    wanted = keys_of(whole.at(12))
    ranks = [RankBatches(shards, "s", 6, 2, n, 2, has_dropout=True) for n in range(2)]
    assert np.array_equal(keys_of(p for rank in ranks for p in rank.at(12, (2, 4))), wanted)
    island = whole.through([(100, 102), (12, 18)], 5, 4)
    assert np.array_equal(keys_of(island.of_step(6, (4,))), wanted[2:6])
    assert not np.isin(keys_of(whole.at(18)), wanted).any(), "another step"
    assert not np.isin(keys_of(replace(whole, seed="t").at(12)), wanted).any()
    assert next(replace(whole, has_dropout=False).at(12)).token_keys is None


def keys_of(batches: Iterable[MicroBatch]) -> NDArray[np.uint32]:
    return np.concatenate([part.token_keys for part in batches if part.token_keys is not None])


def test_the_search_for_a_micro_batch_tries_passes_with_it(tmp_path: Path) -> None:
    shape = shape_of("llama")
    engine = on_torch(shape, LORA)
    plan = tiny_plan(shape, adapter=engine.adapter)
    task = TaskAlone("train", {}, {}, tmp_path)
    probe = MicroBatchProbe(task, engine, ProbeSetup(shape, plan, 1, may_search=True))
    tried = probe._random_batch(2)
    assert tried.token_keys is not None
    assert tried.token_keys.shape == tried.inputs.shape
