"""Scores of MLX beside those of torch: the same tokens, windows and sums in both."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mlx_lm")

torch.set_num_threads(1)

from jupiterd.errors import CorruptArtifactError, UnknownModelError  # noqa: E402
from jupiterd.workers.evaluate import mlx_language_model  # noqa: E402
from jupiterd.workers.evaluate.documents import ScoringLimits  # noqa: E402
from jupiterd.workers.evaluate.language_model import LanguageModel  # noqa: E402
from jupiterd.workers.evaluate.mlx_language_model import MlxLanguageModel  # noqa: E402
from jupiterd.workers.evaluate.score import ScoreInputs, ScoreParams, score  # noqa: E402
from jupiterd.workers.evaluate.scorers import MLX, TORCH, open_scorer  # noqa: E402
from jupiterd.workers.evaluate.text_scorer import PLAIN_HEADS, TextScorer  # noqa: E402
from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer  # noqa: E402
from tests.support.workers.data_material import function, real, write  # noqa: E402
from tests.support.workers.tiny_models import write_model  # noqa: E402

pytestmark = pytest.mark.mlx

CONTEXT = 48
TRAINING = [function(number) for number in range(40)]
TEXTS = [function(number, body_lines=number % 9) for number in range(100, 116)]
MOST_BPB = 1e-5
"""The greatest difference between the engines that is allowed."""


def model_folder(folder: Path, kind: str = "qwen3", **changes: object) -> Path:
    """A model whose chances are far from even, so that a wrong place or scale is seen."""
    changes = {"max_position_embeddings": CONTEXT, "initializer_range": 0.3} | changes
    write_model(folder, kind, **changes)
    save_tokenizer(train_tokenizer(TRAINING, 320), folder)
    return folder


def bits_per_byte(model: TextScorer, batch_windows: int = 4) -> list[float]:
    nats = model.nats(model.encode(TEXTS), batch_windows, lambda _: None)
    sizes = (len(text.encode()) for text in TEXTS)
    return [each / math.log(2) / size for each, size in zip(nats, sizes, strict=True)]


def difference(folder: Path) -> float:
    ours, theirs = bits_per_byte(MlxLanguageModel(folder)), bits_per_byte(LanguageModel(folder))
    assert 1 < np.mean(theirs) < 20, "these are real scores"
    return float(np.abs(np.array(ours) - np.array(theirs)).max())


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("qwen3", {"tie_word_embeddings": True}),
        ("qwen3", {}),
        ("llama", {}),
        ("mistral", {"tie_word_embeddings": True}),
        ("qwen2", {}),
    ],
)
def test_each_document_scores_the_same_on_both_engines(
    tmp_path: Path, kind: str, changes: dict[str, object]
) -> None:
    found = difference(model_folder(tmp_path / "m", kind, **changes))
    print(f"{kind} {changes}: the engines differ by {found:.2e} bits per byte at most")
    assert found <= MOST_BPB


def test_a_model_kept_in_halves_is_scored_in_whole_floats_on_both(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m", tie_word_embeddings=True)
    from transformers import AutoModelForCausalLM

    halved = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    halved.save_pretrained(folder)
    assert difference(folder) <= MOST_BPB


def test_how_windows_and_logits_are_batched_plays_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MlxLanguageModel(model_folder(tmp_path / "m"))
    expected = bits_per_byte(model, 16)
    monkeypatch.setattr(mlx_language_model, "_LOGIT_ROWS", 7)
    assert bits_per_byte(model, 1) == pytest.approx(expected, abs=1e-6)
    monkeypatch.setattr(mlx_language_model, "PLAIN_HEADS", PLAIN_HEADS - {"qwen3"})
    assert bits_per_byte(model, 3) == pytest.approx(expected, abs=1e-6)


def test_what_is_written_is_decided_by_the_seed(tmp_path: Path) -> None:
    model = MlxLanguageModel(model_folder(tmp_path / "m"))
    prompts = ["def count(", "x = " * 60]
    first, again, other = (model.write_on(prompts, 12, 0.8, seed) for seed in (3, 3, 4))
    assert first == again != other


def test_a_draw_follows_the_model_s_chances(tmp_path: Path) -> None:
    """Cold, both engines write the likeliest token each time."""
    folder = model_folder(tmp_path / "m")
    written = [
        open_scorer(folder, engine).write_on(["def count(", "import "], 12, 1e-3, 5)
        for engine in (TORCH, MLX)
    ]
    assert written[0] == written[1]


def test_a_token_that_the_model_does_not_know_is_told(tmp_path: Path) -> None:
    model = MlxLanguageModel(model_folder(tmp_path / "m"))
    with pytest.raises(CorruptArtifactError, match="tokens that the model doesn't know"):
        model.nats([[319, 320]], 1, lambda _: None)


def test_torch_scores_what_mlx_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = model_folder(tmp_path / "m")

    def refuse(_: Path) -> None:
        raise UnknownModelError("mlx-lm doesn't know it")

    monkeypatch.setattr(mlx_language_model, "loaded_model", refuse)
    assert isinstance(open_scorer(folder, MLX), LanguageModel)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UnknownModelError):
        open_scorer(folder, MLX)


def test_a_piece_is_scored_by_the_engine_that_the_node_has(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    kept = write(tmp_path / "k", [real(text) for text in TRAINING])
    holdout = write(tmp_path / "h", [real(text, f"m{n}") for n, text in enumerate(TEXTS)])
    inputs = ScoreInputs(folder, None, [kept], [holdout])
    limits = ScoringLimits(10, 4096, 5)
    on_torch, on_mlx = (
        score(inputs, ScoreParams(0, 1, limits, completions=2, seed=3, engine=engine))
        for engine in (TORCH, MLX)
    )
    for ours, theirs in zip(on_mlx.documents, on_torch.documents, strict=True):
        assert (ours.id, ours.tokens, ours.byte_nats) == (
            theirs.id, theirs.tokens, theirs.byte_nats,
        )  # fmt: skip
        assert abs(ours.bpb(ours.candidate_nats) - theirs.bpb(theirs.candidate_nats)) <= MOST_BPB
        assert ours.candidate_nats != theirs.candidate_nats, "they were computed apart"
    assert on_mlx.sanity is not None
    assert len(on_mlx.completions) == on_mlx.sanity.completions == 2


def test_a_folder_without_a_whole_configuration_says_so(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    del config["vocab_size"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CorruptArtifactError):
        MlxLanguageModel(folder)
