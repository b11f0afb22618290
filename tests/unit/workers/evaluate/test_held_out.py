"""How well a model predicts text that was held out."""

import math

import pytest

pytest.importorskip("torch")

from jupiterd.errors import EmptySourceError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.held_out import evaluate
from jupiterd.workers.evaluate.language_model import LanguageModel
from jupiterd.workers.evaluate.score_table import Means
from tests.support.workers.data_material import real, run_worker, write
from tests.unit.workers.evaluate.test_language_model import model_dir  # noqa: F401

TEXTS = ("def first(value):\n    return value\n", "second = caf\u00e9\n")


def test_bits_are_counted_over_the_bytes_of_all_text_together(model_dir, tmp_path):  # noqa: F811
    holdout = write(tmp_path / "holdout", map(real, TEXTS))
    bits_per_byte, counts = evaluate(model_dir, holdout, Means(2))
    model = LanguageModel(model_dir)
    nats = sum(model.nats(model.encode(TEXTS), 1, lambda _: None))
    size = sum(len(text.encode()) for text in TEXTS)
    assert bits_per_byte == pytest.approx(nats / math.log(2) / size, rel=1e-5)
    assert counts == {"documents": 2, "bytes": size}


def test_a_worker_says_it_in_its_summary(model_dir, tmp_path):  # noqa: F811
    holdout = write(tmp_path / "holdout", map(real, TEXTS))
    inputs = {"model": model_dir, "holdout": holdout}
    last = run_worker("evaluate_held_out", {}, inputs, tmp_path / "out")
    assert isinstance(last, TaskFinished), last
    assert last.outputs == {}
    assert 0 < float(last.summary["val_bpb"] or 0) < 20


def test_without_any_text_there_is_no_number(model_dir, tmp_path):  # noqa: F811
    with pytest.raises(EmptySourceError):
        evaluate(model_dir, write(tmp_path / "holdout", []), Means(2))
