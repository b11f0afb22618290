"""`jupiterctl model export --lm-eval`: tasks of the very text that the gate has scored.

The harness itself isn't installed. What is checked is that its rules, as its source has them, give
our figures on these files: a bits-per-byte task sums log-likelihoods over `doc_to_target`, and a
multiple-choice task takes the choice whose log-likelihood behind `doc_to_text` is the greatest.
"""

import json
import math

import pytest
from ruamel.yaml import YAML

torch = pytest.importorskip("torch")

from jupiterd.cycle.gate.case import Findings  # noqa: E402
from jupiterd.cycle.gate.record import Material  # noqa: E402
from jupiterd.workers.evaluate.documents import ScoringLimits  # noqa: E402
from jupiterd.workers.evaluate.gate_verdict import write_verdict  # noqa: E402
from jupiterd.workers.evaluate.language_model import LanguageModel  # noqa: E402
from jupiterd.workers.evaluate.score import ScoreInputs, ScoreParams, score  # noqa: E402
from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer  # noqa: E402
from tests.support.ctl.model_material import model  # noqa: E402
from tests.support.workers.data_material import function, real, write  # noqa: E402
from tests.support.workers.tiny_models import write_model  # noqa: E402
from tests.unit.ctl.cycle.test_gate import GIVEN  # noqa: E402

TRAINING = [function(number) for number in range(30)]
HELD_OUT = [real(function(number, body_lines=6), f"m{number}") for number in range(100, 112)]
LIMITS = ScoringLimits(10, 200, 5)


@pytest.fixture
def judged(tmp_path, daemon):
    """A model that was really scored; the daemon knows where everything lies."""
    stored = write_model(tmp_path / "stored", "qwen3", tie_word_embeddings=True)
    save_tokenizer(train_tokenizer(TRAINING, 320), stored)
    kept = write(tmp_path / "kept", [real(text) for text in TRAINING])
    texts = write(tmp_path / "texts", HELD_OUT)
    inputs = ScoreInputs(stored, None, [kept], [texts])
    scores = score(inputs, ScoreParams(0, 1, LIMITS, language="code:python"))
    material = Material(scores.documents, Findings(None, scores.cloze))
    write_verdict(tmp_path / "verdict", material, GIVEN)
    daemon.documents["model_export"] = {"model": model(files_at=str(stored))}
    daemon.documents["held_out"] = {
        "held_out": {"verdict": str(tmp_path / "verdict"), "texts": [str(texts)]}
    }
    return scores


def exported(ctl, tmp_path):
    ran = ctl("model", "export", "python/2", "--lm-eval", "--to", str(tmp_path / "out"))
    assert (ran.exit_code, ran.err) == (0, "")
    assert "lm-eval/held_out.jsonl" in ran.out
    return tmp_path / "out"


def task(folder, name):
    data = YAML(typ="safe").load((folder / "lm-eval" / f"{name}.yaml").read_text())
    assert data["task"] == name
    file = folder / data["dataset_kwargs"]["data_files"]["test"]
    return data, [json.loads(line) for line in file.read_text().splitlines()]


def test_the_documents_come_to_the_same_bits_per_byte(judged, ctl, tmp_path):
    folder = exported(ctl, tmp_path)
    told, rows = task(folder, "jupiter_python_2_bits_per_byte")
    assert (told["output_type"], told["doc_to_text"]) == ("loglikelihood_rolling", "")
    texts = [row[told["doc_to_target"]] for row in rows]
    assert max(len(text.encode()) for text in texts) <= LIMITS.max_document_bytes
    scorer = LanguageModel(folder)
    nats = scorer.nats(scorer.encode(texts), 4, lambda _: None)
    bits = sum(nats) / math.log(2) / sum(len(text.encode()) for text in texts)
    ours = sum(row.candidate_nats for row in judged.documents)
    assert bits == pytest.approx(ours / math.log(2) / sum(row.bytes for row in judged.documents))
    about = (folder / "lm-eval" / "README.md").read_text()
    assert f"Jupiter's figure is {bits:.4f}" in about
    assert "--include_path lm-eval --tasks jupiter_python_2_bits_per_byte,jupiter_python" in about


def test_the_gaps_are_filled_as_rightly(judged, ctl, tmp_path):
    folder = exported(ctl, tmp_path)
    told, rows = task(folder, "jupiter_python_2_cloze")
    assert (told["output_type"], told["target_delimiter"]) == ("multiple_choice", "")
    assert len(rows) == len(judged.cloze) > 0
    assert {row["answer"] for row in rows} == {0, 1, 2, 3}, (
        "the right answer has no place of its own"
    )
    scorer = LanguageModel(folder)
    right = {each.id: each.candidate_right for each in judged.cloze}
    for row in rows:
        filled = [row[told["doc_to_text"]] + each for each in row[told["doc_to_choice"]]]
        nats = scorer.nats(scorer.encode(filled), 4, lambda _: None)
        assert (min(nats) == nats[row["answer"]]) == right[row["id"]]


def test_text_that_is_not_in_reach_or_damaged_is_told(judged, daemon, ctl, tmp_path):
    daemon.documents["held_out"]["held_out"]["texts"] = []
    asked = ("model", "export", "python/2", "--lm-eval", "--to", str(tmp_path / "out"))
    ran = ctl(*asked)
    assert (ran.exit_code, "isn't in reach" in ran.err) == (6, True)
    assert not (tmp_path / "out").exists()
    (tmp_path / "verdict" / "scores.jsonl").write_text("nonsense\n")
    assert ctl(*asked).exit_code == 1


def test_a_gguf_has_no_tasks(ctl, tmp_path):
    to = ("--format", "gguf", "--to", str(tmp_path / "out"))
    ran = ctl("model", "export", "python/2", "--lm-eval", *to)
    assert (ran.exit_code, "hf or mlx" in ran.err) == (2, True)
