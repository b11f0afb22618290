"""Training with the vocabulary of a public model, whose ids take 32 bits: Qwen3's, of 151,936."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from jupiterd.cycle.training.memory import logit_chunk_tokens
from jupiterd.cycle.training.plan import ModelShape, derive
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.torch.chunked_loss import cross_entropy, loss_alone
from jupiterd.workers.training_engine import MicroBatch
from tests.support.workers.gangs import Gangs, Told
from tests.support.workers.tiny_engine import tiny_engine, tiny_plan
from tests.support.workers.tiny_run import SEQ_LEN, make_inputs, tiny_shape

pytestmark = [pytest.mark.net, pytest.mark.timeout(150), pytest.mark.xdist_group("gangs")]

VOCAB, BATCH, STEPS = 151_936, 4, 20

ROUNDING = math.sqrt(VOCAB) * float(np.finfo(np.float32).eps)
"""What sums of so many products in fp32 differ by, in whichever order they are added up."""


def shape() -> ModelShape:
    return tiny_shape(vocab_size=VOCAB, hidden=16)


def losses(gangs: Gangs, folder: Path, engine: str, ranks: int = 1) -> list[list[float]]:
    """Train on the whole vocabulary; return the loss of each step, as each rank has it."""
    folder.mkdir()
    changes = {"steps": STEPS, "batch_sequences": BATCH, "learning_rate": 1e-3}
    plan = derive(shape(), 1, changes)
    given: dict[str, Any] = {"shape": shape().to_plain(), "plan": plan.to_plain()}
    inputs = make_inputs(folder / "wide", VOCAB)
    micro = (BATCH // ranks,) * ranks
    ends: list[Told] = gangs.trained(
        folder, engine, STEPS, (0.0,) * ranks, micro, more_inputs=inputs, more_params=given
    )
    assert [told["error"] for told in ends] == [""] * ranks
    return [[step["loss"] for step in told["steps"]] for told in ends]


def test_the_tests_batches_hold_ids_beyond_16_bits(tmp_path: Path):
    shards = ShardSet(Path(make_inputs(tmp_path, VOCAB)["shards"]))
    assert shards.sequences_at(np.arange(BATCH)).max() > 65_535


@pytest.mark.full
def test_the_loss_of_chunks_and_its_gradients_are_those_of_the_whole():
    torch.manual_seed(1)
    tokens = logit_chunk_tokens(VOCAB)
    hidden = torch.randn(tokens + 40, 8, requires_grad=True)
    weight = torch.randn(VOCAB, 8, requires_grad=True)
    targets = torch.randint(0, VOCAB, (len(hidden),))
    whole = functional.cross_entropy(hidden @ weight.t(), targets, reduction="sum")
    wanted = torch.autograd.grad(whole, (hidden, weight))
    chunked = cross_entropy(hidden, weight, targets, torch.float32, tokens)
    found = torch.autograd.grad(chunked, (hidden, weight))
    assert chunked.item() == pytest.approx(whole.item(), rel=1e-6)
    for one, other in zip(found, wanted, strict=True):
        difference = float((one - other).abs().max() / other.abs().max())
        assert difference < ROUNDING, "sums of 151,936 products in fp32"
    alone = loss_alone(hidden, weight, targets, torch.float32, tokens)
    assert alone.item() == pytest.approx(whole.item(), rel=1e-6)


@pytest.mark.mlx
def test_both_engines_learn_the_last_of_262_144_entries():
    """As many as Gemma's vocabulary has."""
    pytest.importorskip("mlx.core")
    from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
    from jupiterd.workers.train.mlx.ring import Ring

    entries = 262_144
    largest = tiny_shape(vocab_size=entries, hidden=8)
    plan = tiny_plan(largest, batch_sequences=1)
    ids = np.arange(entries - SEQ_LEN - 1, entries)[None]
    batch = [MicroBatch(ids[:, :-1], ids[:, 1:])]
    torchs = tiny_engine(plan, largest)
    mlxs = MlxTrainingEngine(largest, plan, 0, Ring(0, 1))
    mlxs.load_weights(torchs.weights())
    found = [[each.step(batch, 1e-2)[0] for _ in range(4)] for each in (torchs, mlxs)]
    assert found[0] == pytest.approx(found[1], abs=1e-4)
    assert found[0][0] == pytest.approx(np.log(entries), abs=0.1)
    assert found[0][-1] < found[0][0] - 0.1


@pytest.mark.full
@pytest.mark.mlx
def test_both_engines_have_the_same_losses(gangs: Gangs, tmp_path: Path):
    pytest.importorskip("mlx.core")
    (ours,) = losses(gangs, tmp_path / "torch", "torch")
    (mlx,) = losses(gangs, tmp_path / "mlx", "mlx")
    assert len(ours) == STEPS
    assert mlx == pytest.approx(ours, abs=1e-4)
    assert ours[-1] < ours[0] - 0.3, "and it learns something"


@pytest.mark.full
def test_two_ranks_have_the_losses_of_one(gangs: Gangs, tmp_path: Path):
    (alone,) = losses(gangs, tmp_path / "one", "torch")
    for each in losses(gangs, tmp_path / "two", "torch", ranks=2):
        assert each == pytest.approx(alone, abs=1e-4)
