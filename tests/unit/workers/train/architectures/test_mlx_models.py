"""Models of mlx-lm: documents kept apart, layers computed twice, losses by parts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from transformers import AutoConfig

from jupiterd.cycle.training.plan import ModelShape, shape_of_config
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import MicroBatch
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_run import SEQ_LEN, VOCAB, tiny_shape

mx = pytest.importorskip("mlx.core")
pytestmark = pytest.mark.mlx

SIZES: Mapping[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
}  # fmt: skip
KINDS: Mapping[str, Mapping[str, Any]] = {
    "llama": {},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "gpt_neox": {"intermediate_size": 128},
    "granite": {"logits_scaling": 4.0},
    "gemma3_text": {"head_dim": 8, "layer_types": ["sliding_attention", "full_attention"]},
}


def shape_of(kind: str, **changes: Any) -> ModelShape:
    config = AutoConfig.for_model(kind, **{**SIZES, **KINDS[kind], **changes}).to_dict()
    shape = shape_of_config(kind, config, tiny_shape().recipe)
    return shape.model_copy(update={"seq_len": SEQ_LEN})


def on_mlx(shape: ModelShape, **options: Any) -> Any:
    from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
    from jupiterd.workers.train.mlx.ring import Ring

    return MlxTrainingEngine(shape, tiny_plan(shape, **options), 0, Ring(0, 1))


def on_torch(shape: ModelShape, **options: Any) -> TorchEngine:
    engine = TorchEngine(shape, tiny_plan(shape, **options), 0, ProcessGroup(0, 1), "cpu")
    engine.begin(has_same_weights=True)
    return engine


def few(_vocab_size: int) -> int:
    return 10


def batch(*, apart: bool = False) -> list[MicroBatch]:
    rng = np.random.default_rng(5)
    rows = rng.integers(1, VOCAB, (6, SEQ_LEN + 1))
    documents = np.sort(rng.integers(0, 4, (6, SEQ_LEN)), axis=1) if apart else None
    return [MicroBatch(rows[:, :-1], rows[:, 1:], documents)]


def losses(engine: Any, *, apart: bool = False) -> list[float]:
    return [engine.step(batch(apart=apart), 1e-2)[0] for _ in range(4)]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3_text"])
def test_documents_are_kept_apart_as_on_torch(kind: str):
    shape = shape_of(kind)
    apart, whole = on_mlx(shape, document_masks="on"), on_mlx(shape)
    expected = losses(on_torch(shape, document_masks="on"), apart=True)
    assert losses(apart, apart=True) == pytest.approx(expected, abs=1e-4)
    assert losses(whole) != pytest.approx(expected, abs=1e-4)


def test_a_window_holds_within_documents_that_are_kept_apart():
    """A layer that is given a window sees neither another document, nor further back than that."""
    from mlx import nn

    from jupiterd.workers.train.architectures.mlx_layers import LayerCalls, own_documents_mask

    class Layer(nn.Module):
        def __call__(self, x: Any, mask: Any = None, cache: Any = None) -> Any:
            return mask

    layer = Layer()
    calls = LayerCalls([layer], computes_twice=False)
    calls.own_documents = own_documents_mask(mx.array([[0, 0, 0, 1, 1, 1, 1, 1]]))
    positions = np.arange(8)
    back = positions[:, None] - positions
    window = (back >= 0) & (back < 3)
    same = (positions[:, None] < 3) == (positions < 3)
    x = mx.zeros((1, 8, 4))
    seen = np.array(layer(x, mx.array(window), None))[0, 0]
    np.testing.assert_array_equal(seen, window & same)
    np.testing.assert_array_equal(np.array(layer(x, mask="causal"))[0, 0], (back >= 0) & same)
    added = mx.array(np.where(window, 0.0, -np.inf).astype(np.float32))
    np.testing.assert_array_equal(np.array(layer(x, added))[0, 0] == 0, window & same)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_layers_that_are_computed_twice_give_the_same(kind: str):
    shape = shape_of(kind)
    twice = losses(on_mlx(shape, gradient_checkpointing="on"))
    assert twice == pytest.approx(losses(on_mlx(shape)), abs=1e-5)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_loss_by_parts_is_the_whole(kind: str, monkeypatch: pytest.MonkeyPatch):
    from jupiterd.workers.train.mlx import mlx_model

    shape = shape_of(kind)
    expected = losses(on_mlx(shape))
    monkeypatch.setattr(mlx_model, "logit_chunk_tokens", few)
    assert losses(on_mlx(shape)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gpt_neox", "gemma3_text"])
def test_mlx_lm_loads_a_folder_of_ours_and_says_the_same(kind: str, tmp_path: Any):
    from mlx_lm.utils import load_model

    from jupiterd.workers.train.checkpoints.checkpoint import write_model

    shape = shape_of(kind, hidden_act="gelu_new")
    engine = on_mlx(shape)
    (tmp_path / "tokenizer").mkdir()
    write_model(tmp_path / "ours", engine.config, engine.weights(), tmp_path / "tokenizer")
    theirs, _ = load_model(tmp_path / "ours")
    ids = np.random.default_rng(2).integers(1, VOCAB, SEQ_LEN)
    expected = np.array(theirs(mx.array(ids[None].astype(np.int32)))[0, -1])
    rounded = 1e-3 if kind == "gemma3_text" else 1e-5  # mlx-lm rounds its embeddings' factor
    np.testing.assert_allclose(engine.logits(ids, engine.weights()), expected, atol=rounded)
