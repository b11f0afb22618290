"""No token sees another document than its own, in any model that is trained like that."""

from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig

from jupiterd.cycle.training.architectures import GPT2, QWEN3
from jupiterd.cycle.training.document_masking import MASKED
from jupiterd.cycle.training.plan import ModelShape, shape_of_config
from jupiterd.errors import UsageError
from jupiterd.workers.tokens.shards import ShardSet, ShardWriter
from jupiterd.workers.tokens.tokenizer import tokenizer_hash
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.job import read_job
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.train.torch.torch_model import CausalModel, make_model
from jupiterd.workers.training_engine import MicroBatch
from tests.support.workers.tiny_engine import BATCH, tiny_engine, tiny_plan, train
from tests.support.workers.tiny_run import (
    SEQ_LEN,
    VOCAB,
    TaskAlone,
    make_inputs,
    tiny_shape,
    train_params,
)

APART = tiny_plan(document_masks="on")


@pytest.fixture(scope="module")
def models() -> dict[str, CausalModel]:
    return {name: cast("CausalModel", make_model(shape_of(name), 1).eval()) for name in MASKED}


def shape_of(name: str) -> ModelShape:
    if name in (QWEN3, GPT2):
        return tiny_shape(architecture=name, kv_heads=2)
    sizes = {"vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48}
    sizes |= {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = AutoConfig.for_model(name, **sizes).to_dict()
    return shape_of_config(name, config, tiny_shape().recipe)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(MASKED))
@settings(max_examples=25)
@given(lengths=st.lists(st.integers(1, 6), min_size=2, max_size=6), seed=st.integers(0, 99))
def test_other_words_in_one_document_change_nothing_in_the_others(
    models: dict[str, CausalModel], name: str, lengths: list[int], seed: int
):
    model, rng = models[name], np.random.default_rng(seed)
    documents = np.repeat(np.arange(len(lengths)), lengths)[:SEQ_LEN]
    changed = documents == rng.choice(documents)
    ids = rng.integers(0, VOCAB, len(documents))
    other = np.where(changed, (ids + rng.integers(1, VOCAB, len(ids))) % VOCAB, ids)
    bounds = model.bounds(torch.from_numpy(documents[None]))
    with torch.no_grad():
        first, second = (model.hidden(torch.from_numpy(i[None]), bounds)[0] for i in (ids, other))
        alone = model.hidden(torch.from_numpy(ids[None]), None)[0]
    kept = torch.from_numpy(~changed)
    assert torch.equal(first[kept], second[kept])
    assert not torch.equal(first[~kept], second[~kept])
    torch.testing.assert_close(first[: lengths[0]], alone[: lengths[0]], atol=1e-6, rtol=1e-5)


def losses_of(engine: TorchEngine, row: np.ndarray, documents: np.ndarray) -> list[float]:
    """Return the loss of each input alone, counted by cutting the others' targets off."""
    nats = [
        engine.nats([MicroBatch(row[None, :n], row[None, 1 : n + 1], documents[None, 1 : n + 1])])
        for n in range(1, len(row))
    ]
    return np.diff([0.0, *nats]).tolist()


def test_the_losses_of_a_document_are_those_it_has_alone_after_an_end_mark():
    engine, rng = tiny_engine(APART), np.random.default_rng(3)
    first, second = (np.append(rng.integers(1, VOCAB, n), 0) for n in (5, 6))
    row, documents = np.concatenate((first, second)), np.repeat([0, 1], [6, 7])
    alone = np.append(0, second)
    expected = losses_of(engine, alone, np.zeros(len(alone), dtype=np.int64))
    assert losses_of(engine, row, documents)[-7:] == pytest.approx(expected, abs=1e-4)


def test_a_batch_says_which_document_each_input_is_of(tmp_path: Path):
    shards = ShardSet(Path(make_inputs(tmp_path)["shards"]))
    (batch,) = RankBatches(shards, "s", 4, 4, documents_apart=True).at(0)
    plain = next(RankBatches(shards, "s", 4, 4).at(0))
    assert np.array_equal(batch.inputs, plain.inputs)
    assert batch.documents is not None
    assert batch.documents.shape == batch.inputs.shape
    places = np.arange(shards.index.tokens)
    stream = shards.sequences_at(np.arange(shards.sequences))[:, :-1].ravel()
    for row, documents in zip(batch.inputs, batch.documents, strict=True):
        place = next(p for p in places if np.array_equal(stream[p : p + SEQ_LEN], row))
        assert documents.tolist() == ((place + 1 + np.arange(SEQ_LEN)) // 7).tolist()


def apart_losses(shards: Path, micro_batch: int) -> list[float]:
    engine, rate = tiny_engine(APART), 1e-2
    batches = RankBatches(ShardSet(shards), "s", BATCH, micro_batch, documents_apart=True)
    return [engine.step(list(batches.at(n * BATCH)), rate)[0] for n in range(6)]


def test_micro_batches_change_nothing_and_the_masks_do(tmp_path: Path):
    shards = Path(make_inputs(tmp_path)["shards"])
    whole = apart_losses(shards, BATCH)
    assert apart_losses(shards, 1) == pytest.approx(whole, abs=1e-5)
    assert train(tiny_engine(), shards) != pytest.approx(whole, abs=1e-4)


def test_layers_that_are_computed_twice_see_the_same(tmp_path: Path):
    shards = Path(make_inputs(tmp_path)["shards"])
    saving = tiny_engine(tiny_plan(document_masks="on", gradient_checkpointing="on"))
    batches = RankBatches(ShardSet(shards), "s", BATCH, 2, documents_apart=True)
    found = [saving.step(list(batches.at(n * BATCH)), 1e-2)[0] for n in range(6)]
    assert found == pytest.approx(apart_losses(shards, 2), abs=1e-6)


def test_data_that_does_not_say_where_documents_begin_is_refused(tmp_path: Path):
    inputs = make_inputs(tmp_path)
    writer = ShardWriter(tmp_path / "unmarked", VOCAB)
    writer.append(range(100))
    writer.finish(
        seq_len=SEQ_LEN,
        tokenizer_hash=tokenizer_hash(Path(inputs["tokenizer"])),
        documents=1,
        size_bytes=1,
    )
    unmarked = inputs | {"shards": str(tmp_path / "unmarked")}
    task = TaskAlone("train", train_params(tiny_shape(), APART), unmarked, tmp_path / "out")
    with pytest.raises(UsageError, match="where its documents begin"):
        read_job(task, 1)
