"""Training on answers alone, beside transformers with its labels of -100, and mlx-lm's own loss."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from jupiterd.cycle.runs.run_settings import DataSettings
from jupiterd.cycle.training.engine_options import EngineOptions
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive
from jupiterd.workers.data.pack.prepare_dataset import prepare
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import BETAS, EPSILON, MicroBatch, TrainingEngine, is_decayed
from tests.support.workers.chat_material import (
    chat_tokenizer,
    ids_of,
    loaded,
    pair,
    rows_of_length,
    write_rows,
)
from tests.support.workers.gangs import Gangs
from tests.support.workers.tiny_run import tiny_shape

pytestmark = [pytest.mark.net, pytest.mark.timeout(150), pytest.mark.xdist_group("gangs")]

ROW, SEQ_LEN, BATCH, STEPS = 32, 64, 4, 20
RATE = 1e-3
IGNORED = -100

Rows = list[dict[str, str]]


def shape() -> ModelShape:
    return tiny_shape(vocab_size=304, seq_len=SEQ_LEN)


def plan(**options: Any) -> TrainPlan:
    changes = {"steps": STEPS, "batch_sequences": BATCH, "learning_rate": RATE}
    return derive(shape(), 1, changes).model_copy(update={"options": EngineOptions(**options)})


def prepared(folder: Path) -> tuple[Any, Rows]:
    """Make shards of rows of which two fill a sequence; return their tokenizer, and them."""
    tokenizer = loaded(chat_tokenizer(folder / "given"))
    rows = rows_of_length(tokenizer, 49, ROW)
    source = write_rows(folder / "train.jsonl", rows)  # one row more, for the last target
    settings = DataSettings.parse({"kind": "folder", "path": str(source), "holdout": 0.0})
    prepare(settings, folder / "given", folder)
    return tokenizer, rows


def batches(folder: Path, micro_batch: int = BATCH) -> RankBatches:
    shards = ShardSet(folder / "shards", SEQ_LEN)
    assert shards.sequences == 24
    return RankBatches(shards, "s", BATCH, micro_batch, documents_apart=True)


def losses(engine: TrainingEngine, data: RankBatches) -> list[float]:
    engine.begin(has_same_weights=True)
    return [engine.step(list(data.at(step * BATCH)), RATE)[0] for step in range(STEPS)]


def given_to(data: RankBatches) -> Iterator[list[int]]:
    """Yield the rows of each step's batch, one after the other."""
    for step in range(STEPS):
        for batch in data.at(step * BATCH):
            yield from batch.inputs.reshape(-1, ROW).tolist()


def labels_of(tokenizer: Any, rows: Rows) -> dict[tuple[int, ...], list[int]]:
    """Return the labels of each row, found as people do: -100 before the answer."""
    found: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        ids = ids_of(tokenizer, pair(row))
        asked = len(ids_of(tokenizer, pair(row)[:1], may_answer=True))
        found[tuple(ids)] = [IGNORED] * asked + ids[asked:]
    return found


def of_transformers(engine: TorchEngine, data: RankBatches, labels: Any) -> list[float]:
    """Train transformers' own model from the same weights; return the loss of each step."""
    model: Any = AutoModelForCausalLM.from_config(engine.config)
    weights = {name: torch.from_numpy(values) for name, values in engine.weights().items()}
    model.load_state_dict(weights, strict=False)
    named = list(model.named_parameters())
    decay = [p for name, p in named if is_decayed(name, p.dim())]
    rest = [p for name, p in named if not is_decayed(name, p.dim())]
    groups = [{"params": decay, "weight_decay": plan().weight_decay}, {"params": rest}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0)
    each, found = given_to(data), list[float]()
    for _ in range(STEPS):
        ids = [next(each) for _ in range(BATCH * SEQ_LEN // ROW)]
        wanted = torch.tensor([labels[tuple(row)] for row in ids])
        loss = model(input_ids=torch.tensor(ids), labels=wanted).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), plan().clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        found.append(float(loss.detach()))
    return found


def torch_engine() -> TorchEngine:
    return TorchEngine(shape(), plan(document_masks="on"), 0, ProcessGroup(0, 1), "cpu")


def test_losses_are_those_of_transformers_with_labels(tmp_path: Path):
    tokenizer, rows = prepared(tmp_path)
    engine = torch_engine()
    theirs = of_transformers(engine, batches(tmp_path), labels_of(tokenizer, rows))
    ours = losses(engine, batches(tmp_path))
    assert ours == pytest.approx(theirs, abs=1e-4)
    assert ours[-1] < ours[0] - 0.3, "and it learns something"
    assert losses(torch_engine(), batches(tmp_path, 1)) == pytest.approx(ours, abs=1e-5)


def test_a_batch_of_which_nothing_counts_changes_no_gradient():
    ids = np.arange(2 * SEQ_LEN).reshape(2, SEQ_LEN)
    some, none = np.zeros((2, SEQ_LEN), dtype=np.bool_), np.zeros((2, SEQ_LEN), dtype=np.bool_)
    some[0, 5:9] = True
    parts = [MicroBatch(ids, ids, None, some, 4), MicroBatch(ids, ids, None, none, 4)]
    alone, both = torch_engine(), torch_engine()
    assert alone.sum_gradients(parts[:1]) == pytest.approx(both.sum_gradients(parts), abs=1e-9)
    found = both.take_gradients()
    for name, gradient in alone.take_gradients().items():
        torch.testing.assert_close(found[name], gradient)


def test_two_ranks_divide_by_what_both_count(gangs: Gangs, tmp_path: Path):
    prepared(tmp_path)
    inputs = {"shards": str(tmp_path / "shards"), "tokenizer": str(tmp_path / "tokenizer")}
    given = {"shape": shape().to_plain(), "plan": plan().to_plain()}
    found: list[list[float]] = []
    for ranks in (1, 2):
        (tmp_path / str(ranks)).mkdir()
        ends = gangs.trained(
            tmp_path / str(ranks), "torch", STEPS, (0.0,) * ranks, (BATCH // ranks,) * ranks,
            more_inputs=inputs, more_params=given,
        )  # fmt: skip
        assert [told["error"] for told in ends] == [""] * ranks
        found += [[step["loss"] for step in told["steps"]] for told in ends]
        assert "Documents apart" in (tmp_path / str(ranks) / "0" / "log").read_text()
    alone, first, second = found
    assert first == pytest.approx(alone, abs=1e-4)
    assert second == pytest.approx(alone, abs=1e-4)


@pytest.mark.mlx
def test_losses_on_mlx_are_those_of_torch_and_of_mlx_lm_with_masked_prompts(tmp_path: Path):
    mx = pytest.importorskip("mlx.core")
    from mlx_lm.tuner.datasets import CompletionsDataset
    from mlx_lm.tuner.trainer import default_loss

    from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
    from jupiterd.workers.train.mlx.ring import Ring

    tokenizer, rows = prepared(tmp_path)
    engine = MlxTrainingEngine(shape(), plan(document_masks="on"), 0, Ring(0, 1))
    reference = torch_engine()
    reference.load_weights(engine.weights())
    wanted = losses(reference, batches(tmp_path))
    masked = CompletionsDataset(rows, tokenizer, "prompt", "completion", mask_prompt=True)
    offsets = {tuple(ids): offset for ids, offset in map(masked.process, rows)}
    each, ours, theirs = given_to(batches(tmp_path)), list[float](), list[float]()
    for step in range(STEPS):
        ids = [next(each) for _ in range(BATCH * SEQ_LEN // ROW)]
        lengths = mx.array([(offsets[tuple(row)], ROW) for row in ids])
        engine._model._module.update(engine._parameters)
        inner = engine._model._module.inner
        theirs.append(float(default_loss(inner, mx.array(ids), lengths)[0]))
        ours.append(engine.step(list(batches(tmp_path).at(step * BATCH)), RATE)[0])
    assert ours == pytest.approx(theirs, abs=1e-4)
    assert ours == pytest.approx(wanted, abs=1e-4)
