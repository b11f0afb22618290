"""The loss on held-out text after each pass: right, the same for any gang, and without effect."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.split import DEV
from jupiterd.cycle.training.held_out_measures import sequences_to_score
from jupiterd.cycle.training.plan import derive
from jupiterd.workers.tokens.tokenizer import encode_batch, load_tokenizer
from jupiterd.workers.train.held_out.validation import Validation
from jupiterd.workers.train.report.metrics import JSONL_FILE
from jupiterd.workers.train.torch.torch_model import CausalModel, make_model
from jupiterd.workers.training_engine import MicroBatch
from tests.support.workers.data_material import real, write
from tests.support.workers.gangs import ENGINES, Gangs
from tests.support.workers.tiny_engine import tiny_engine, tiny_plan
from tests.support.workers.tiny_run import SEQ_LEN, make_inputs, tiny_shape
from tests.unit.workers.test_train import tensors, train

TEXTS = [f"def value_{n}(a, b):\n    return a * {n} + b\n" for n in range(40)]
STEP_LINE = re.compile(r"Step (\d+) \| Held-out loss ([\d.]+) \|")
LINE = re.compile(r"Epoch (\d+)/\d+ \| Train loss [\d.]+ \| Val loss (\S+) \|")


def development(text: str) -> Sample:
    return replace(real(text), split=DEV)


@pytest.fixture
def held_out(tmp_path: Path) -> dict[str, str]:
    parts = [write(tmp_path / f"held{n}", map(development, TEXTS[n::2])) for n in range(2)]
    return {f"holdout.{n}": str(folder) for n, folder in enumerate(parts)}


def told(log: str) -> list[str]:
    return [found[1] for found in re.findall(LINE, log)]


@pytest.mark.parametrize(
    ("trained_on", "most"), [(20, 5), (100, 16), (3_200, 32), (10_000, 64), (2, 1)]
)
def test_a_pass_is_never_much_longer_for_it(trained_on: int, most: int):
    assert sequences_to_score(trained_on) == most


def test_it_is_measured_at_intervals_and_told_in_the_log_and_the_curves(
    held_out: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    inputs, plan = make_inputs(tmp_path) | held_out, derive(tiny_shape(), 1, {"steps": 50})
    train(inputs, tmp_path / "out", plan=plan, log_dir=str(tmp_path / "curves"))
    log = capfd.readouterr().out
    lines = (tmp_path / "curves" / JSONL_FILE).read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row.get("val_loss") is not None]
    assert [row["step"] for row in rows] == [14, 28, 42, 50], "every 14 steps, and at the end"
    assert re.findall(STEP_LINE, log) == [(str(r["step"]), f"{r['val_loss']:.4f}") for r in rows]
    assert told(log)[:3] == ["N/A", "N/A", "N/A"], "a pass tells the last one, if any"
    assert told(log)[-1] == f"{rows[-1]['val_loss']:.4f}"


def test_it_is_the_mean_over_the_first_tokens_of_held_out_documents(
    held_out: dict[str, str], tmp_path: Path
):
    tokenizer = Path(make_inputs(tmp_path)["tokenizer"])
    folders = [Path(held_out["holdout.0"])]
    found = Validation(folders, tokenizer, SEQ_LEN, 5, 2).loss(tiny_engine(), (6,))

    ids = encode_batch(load_tokenizer(tokenizer), TEXTS[0::2])
    stream = torch.tensor([token for document in ids for token in [*document, 0][:SEQ_LEN]])
    model = make_model(tiny_shape(), tiny_plan().seed)
    assert isinstance(model, torch.nn.Module)
    called: CausalModel = model  # pyright: ignore[reportAssignmentType]
    rows = torch.stack([stream[n * SEQ_LEN : (n + 1) * SEQ_LEN + 1] for n in range(5)])
    logits = called.hidden(rows[:, :-1]) @ called.output_weight.t()
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
    assert found == pytest.approx(expected.item(), abs=1e-5)


def test_documents_are_apart_in_it_where_they_are_in_training(
    held_out: dict[str, str], tmp_path: Path
):
    tokenizer = Path(make_inputs(tmp_path)["tokenizer"])
    folders, engine = [Path(held_out["holdout.0"])], tiny_engine()
    seen: list[MicroBatch] = []
    engine.nats = lambda batches: float(seen.extend(batches) or 0)
    Validation(folders, tokenizer, SEQ_LEN, 5, 2, documents_apart=True).loss(engine, (6,))
    assert [len(batch.inputs) for batch in seen] == [2, 2, 1]
    for batch in seen:
        assert batch.documents is not None
        begins = np.diff(batch.documents, axis=1).astype(bool)
        assert np.array_equal(begins, batch.inputs[:, 1:] == 0), "a mark begins the next document"


def test_training_is_the_same_to_the_last_bit_with_it_and_without(
    held_out: dict[str, str], tmp_path: Path
):
    inputs = make_inputs(tmp_path)
    train(inputs, tmp_path / "without")
    train(inputs | held_out, tmp_path / "with")
    states = [tmp_path / name / "checkpoint-00000006" for name in ("without", "with")]
    first, second = map(tensors, states)
    assert all(torch.equal(first[name], second[name]) for name in first)
    rng = [json.loads((s / "training_state" / "state.json").read_text())["rng"] for s in states]
    assert rng[0] == rng[1]


def test_a_model_with_dropout_is_scored_without_and_trained_with_it(tmp_path: Path):
    engine = tiny_engine()
    engine._model.add_module("dropout", torch.nn.Dropout())
    seen: list[bool] = []
    engine._scored.nats = lambda *_: float(seen.append(engine._model.training) or 0)
    batch = np.zeros((1, 4), dtype=np.int64)
    engine.nats([MicroBatch(batch, batch)])
    assert (seen, engine._model.training) == ([False], True)


def test_text_shorter_than_a_sequence_is_scored_all_the_same(tmp_path: Path):
    tokenizer = Path(make_inputs(tmp_path)["tokenizer"])
    folder = write(tmp_path / "short", [development("ab")])
    loss = Validation([folder], tokenizer, SEQ_LEN, 5, 2).loss(tiny_engine(), (6,))
    assert loss is not None
    assert math.isfinite(loss)


def test_what_cannot_be_read_costs_the_number_and_not_the_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "samples.jsonl.zst").write_bytes(b"not zstd")
    empty = write(tmp_path / "empty", [])
    for folder in (tmp_path / "broken", empty):
        inputs = make_inputs(tmp_path) | {"holdout.0": str(folder)}
        train(inputs, tmp_path / "out" / folder.name)
        assert told(capfd.readouterr().out) == ["N/A", "N/A"]


@pytest.mark.full
@pytest.mark.net
@pytest.mark.timeout(150)
@pytest.mark.xdist_group("gangs")
@pytest.mark.parametrize("engine", ENGINES)
def test_ranks_of_unlike_speed_say_what_one_machine_says(
    gangs: Gangs, engine: str, held_out: dict[str, str], tmp_path: Path
):
    for name, speeds in (("one", (0.0,)), ("two", (0.0, 0.02))):
        (tmp_path / name).mkdir()
        ranks = gangs.trained(tmp_path / name, engine, 8, speeds, (2, 3), more_inputs=held_out)
        assert [rank["error"] for rank in ranks] == [""] * len(speeds)
    logs = [(tmp_path / name / "0" / "log").read_text() for name in ("one", "two")]
    one, two = ([loss for _, loss in re.findall(STEP_LINE, log)] for log in logs)
    assert one
    assert list(map(float, one)) == pytest.approx(list(map(float, two)), abs=2e-4)


def test_it_is_taken_of_the_part_that_is_for_it_and_else_shown_of_the_gate_s(tmp_path: Path):
    tokenizer = Path(make_inputs(tmp_path)["tokenizer"])
    held = {part: [replace(real(text), split=part) for text in TEXTS[n::3]]
            for n, part in enumerate(("dev", "gate", "vault"))}  # fmt: skip

    def loss(name: str, *parts: str) -> tuple[float | None, bool]:
        folder = write(tmp_path / name, [sample for part in parts for sample in held[part]])
        validation = Validation([folder], tokenizer, SEQ_LEN, 5, 2)
        return validation.loss(tiny_engine(), (6,)), validation.may_decide

    dev, gate = loss("a", "dev"), loss("b", "gate")
    assert dev[0] != gate[0]
    assert loss("c", "vault", "gate", "dev") == dev
    assert loss("d", "vault", "gate") == gate
    assert (dev[1], gate[1]) == (True, False), "nothing is decided by what the gate judges"


def test_a_long_document_leaves_room_for_the_others(tmp_path: Path):
    tokenizer = Path(make_inputs(tmp_path)["tokenizer"])
    texts = ["a" * 5000, *(f"def f{n}():\n    return {n}\n" * 5 for n in range(4))]
    engine, seen = tiny_engine(), list[MicroBatch]()
    engine.nats = lambda batches: float(seen.extend(batches) or 0)
    folder = write(tmp_path / "held", map(development, texts))
    Validation([folder], tokenizer, SEQ_LEN, 5, 8).loss(engine, (6,))
    (batch,) = seen
    assert len(batch.inputs) == 5
    assert len({tuple(row) for row in batch.inputs.tolist()}) == 5, "one of each document"
