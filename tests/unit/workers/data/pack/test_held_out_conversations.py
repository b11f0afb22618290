"""Held-out conversations are scored as they are trained on: by the template, what counts alone."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from jupiterd.cycle.data.instruction_rows import conversation_in
from jupiterd.cycle.runs.run_settings import DataSettings
from jupiterd.errors import InvalidSettingError
from jupiterd.workers.data.pack.prepare_dataset import prepare
from jupiterd.workers.evaluate.held_out import evaluate
from jupiterd.workers.evaluate.score_table import Means
from jupiterd.workers.samples.sample_file import read_samples
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.held_out.validation import Validation
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.chat_material import (
    TEMPLATE,
    chat_tokenizer,
    ids_of,
    loaded,
    pair,
    rows_of_length,
    write_rows,
)
from tests.unit.workers.train.test_losses_of_answers import ROW, SEQ_LEN, plan, shape

LOSS_ON = ("answers", "all")
IGNORED = -100


def prepared(folder: Path, loss_on: str) -> Any:
    """Prepare rows of which two fill a sequence, some of them held out; return the tokenizer."""
    tokenizer = loaded(chat_tokenizer(folder / "given"))
    source = write_rows(folder / "rows.jsonl", rows_of_length(tokenizer, 60, ROW))
    given = {"kind": "folder", "path": str(source), "holdout": 0.4, "loss_on": loss_on}
    counts = prepare(DataSettings.parse(given), folder / "given", folder)
    assert counts["holdout_documents"] > 10
    assert ShardSet(folder / "shards", SEQ_LEN).index.loss_on == loss_on
    return tokenizer


def held_out(folder: Path, tokenizer: Any, loss_on: str) -> list[tuple[list[int], list[int]]]:
    """Return ids and labels of what was held out, found as people do."""
    found: list[tuple[list[int], list[int]]] = []
    for sample in read_samples(folder / "holdout"):
        said = conversation_in(sample)
        assert said is not None
        assert said.answers == (1,)
        question, answer = (message.content for message in said.messages)
        messages = pair({"prompt": question, "completion": answer})
        ids = ids_of(tokenizer, messages)
        asked = len(ids_of(tokenizer, messages[:1], may_answer=True)) if loss_on != "all" else 1
        found.append((ids, [IGNORED] * asked + ids[asked:]))
    return found


def test_a_row_held_out_that_the_template_refuses_is_refused_before_training(tmp_path: Path):
    prepared(tmp_path / "fine", "answers")
    held = next(iter(read_samples(tmp_path / "fine" / "holdout")))
    question = json.dumps(held.messages[0]["content"])
    strict = (
        f"{{% if messages[0].content == {question} %}}{{{{ raise_exception('no') }}}}{{% endif %}}"
    )
    given = chat_tokenizer(tmp_path / "strict", strict + TEMPLATE)
    source = tmp_path / "fine" / "rows.jsonl"
    asked = {"kind": "folder", "path": str(source), "holdout": 0.4, "loss_on": "answers"}
    with pytest.raises(InvalidSettingError, match="template refuses"):
        prepare(DataSettings.parse(asked), given, tmp_path / "out")


def nats_of(model: Any, rows: list[tuple[list[int], list[int]]]) -> tuple[float, int]:
    """Return transformers' own loss of all of them, and of how many tokens."""
    model.eval()
    total, tokens = 0.0, 0
    with torch.no_grad():
        for ids, labels in rows:
            count = sum(label != IGNORED for label in labels)
            given = {"input_ids": torch.tensor([ids]), "labels": torch.tensor([labels])}
            total += float(model(**given).loss) * count
            tokens += count
    return total, tokens


def size_of(tokenizer: Any, rows: list[tuple[list[int], list[int]]]) -> int:
    words = [[label for label in labels if label != IGNORED] for _, labels in rows]
    return sum(len(tokenizer.decode(w, skip_special_tokens=True).encode()) for w in words)


@pytest.mark.parametrize("loss_on", LOSS_ON)
def test_while_training_it_is_the_loss_that_transformers_has_with_labels(
    tmp_path: Path, loss_on: str
):
    tokenizer = prepared(tmp_path, loss_on)
    engine = TorchEngine(shape(), plan(document_masks="on"), 0, ProcessGroup(0, 1), "cpu")
    model: Any = AutoModelForCausalLM.from_config(engine.config)
    weights = {name: torch.from_numpy(values) for name, values in engine.weights().items()}
    model.load_state_dict(weights, strict=False)
    validation = Validation(
        [tmp_path / "holdout"], tmp_path / "tokenizer", SEQ_LEN, 4, 2, documents_apart=True
    )
    validation.loss_on = loss_on
    found = validation.loss(engine, (1,))
    rows = held_out(tmp_path, tokenizer, loss_on)[:8]
    total, tokens = nats_of(model, rows)
    assert found == pytest.approx(total / tokens, rel=1e-4)
    every = held_out(tmp_path, tokenizer, loss_on)[:16]
    of_all = size_of(tokenizer, every) / nats_of(model, every)[1]
    assert validation.bytes_per_token == pytest.approx(of_all)
    assert validation.may_decide


@pytest.mark.parametrize("engine", ["torch", pytest.param("mlx", marks=pytest.mark.mlx)])
@pytest.mark.parametrize("loss_on", LOSS_ON)
def test_afterwards_it_is_in_bits_per_byte_of_what_counts(
    tmp_path: Path, loss_on: str, engine: str
):
    if engine == "mlx":
        pytest.importorskip("mlx.core")
    tokenizer = prepared(tmp_path, loss_on)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=304, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=ROW + 8,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    folder = tmp_path / "tokenizer"
    model = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    rows = held_out(tmp_path, tokenizer, loss_on)
    total, _ = nats_of(model, rows)
    found, counts = evaluate(folder, tmp_path / "holdout", Means(2, engine), loss_on=loss_on)
    assert counts == {"documents": len(rows), "bytes": size_of(tokenizer, rows)}
    assert found == pytest.approx(total / math.log(2) / counts["bytes"], rel=1e-4)
