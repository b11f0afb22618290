"""The engines that write: checkpoints of every architecture, on transformers and on MLX."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cycle.templates.prompt import Prompt
from jupiterd.errors import CorruptArtifactError, UnknownModelError
from jupiterd.workers.generate.engine import Request, Sampling
from jupiterd.workers.generate.model_text import ModelText
from jupiterd.workers.generate.transformers_engine import TransformersEngine
from tests.support.workers.tiny_models import KINDS, write_model

GREEDY = Sampling(max_tokens=12, temperature=0.0, top_p=1.0)
WARM = Sampling(max_tokens=12, temperature=1.0, top_p=0.95)
PROMPTS = [Prompt("Tell of bread.", f"the {what} ") for what in ("bread", "yeast that rests", "b")]


def requests(seed: int = 0) -> list[Request]:
    return [Request(prompt, seed + number) for number, prompt in enumerate(PROMPTS)]


def texts(engine: Any, sampling: Sampling, seed: int = 0) -> list[str]:
    found = dict(engine.write(requests(seed), sampling))
    return [found[number].text for number in range(len(PROMPTS))]


@pytest.mark.mlx
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_checkpoint_says_the_same_on_both_engines(kind: str, tmp_path: Path):
    """transformers 5 writes the rotary base where mlx-lm doesn't look for it."""
    pytest.importorskip("mlx_lm")
    from jupiterd.workers.generate.mlx_engine import MlxWritingEngine

    folder = write_model(tmp_path / kind, kind)
    assert "rope_theta" not in json.loads((folder / "config.json").read_text())
    on_torch = texts(TransformersEngine(folder), GREEDY)
    assert texts(MlxWritingEngine(folder), GREEDY) == on_torch
    assert len(set(on_torch)) > 1


@pytest.mark.mlx
def test_mlx_draws_by_the_seeds(tmp_path: Path):
    pytest.importorskip("mlx_lm")
    from jupiterd.workers.generate.mlx_engine import MlxWritingEngine

    engine = MlxWritingEngine(write_model(tmp_path / "m", "qwen3"))
    assert texts(engine, WARM, 1) == texts(engine, WARM, 1)
    assert texts(engine, WARM, 1) != texts(engine, WARM, 2)


@pytest.mark.mlx
def test_a_tiny_nucleus_leaves_the_likeliest_alone_on_mlx_too(tmp_path: Path):
    pytest.importorskip("mlx_lm")
    from jupiterd.workers.generate.mlx_engine import MlxWritingEngine

    engine = MlxWritingEngine(write_model(tmp_path / "m", "qwen3"))
    assert texts(engine, Sampling(12, 1.0, 1e-6)) == texts(engine, GREEDY)


@pytest.mark.mlx
def test_what_mlx_does_not_know_is_told(tmp_path: Path):
    pytest.importorskip("mlx_lm")
    from jupiterd.workers.generate.mlx_engine import MlxWritingEngine

    folder = write_model(tmp_path / "m", "llama")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "unheard_of"}))
    with pytest.raises(UnknownModelError, match="not supported"):
        MlxWritingEngine(folder)


def test_a_model_with_a_chat_template_is_talked_to(tmp_path: Path):
    folder = write_model(tmp_path / "chat", "qwen3", is_chat=True)
    text = ModelText(folder)
    assert text.is_chat
    said = text.tokenizer.decode(text.ids(PROMPTS[0]), skip_special_tokens=False)
    assert said == "<|user|>Tell of bread.<|over|><|model|>"
    going_on = Prompt("Tell of bread.", "the bread ", goes_on=True)
    assert text.decode(text.ids(going_on)) == "the bread "


def test_a_base_model_writes_on_from_its_opening(tmp_path: Path):
    text = ModelText(write_model(tmp_path / "base", "llama"))
    assert not text.is_chat
    assert text.ids(PROMPTS[0])[0] == 0, "our own tokenizers begin a text with the end mark"
    assert text.decode(text.ids(PROMPTS[0])) == "the bread "


def test_what_says_that_it_is_done_is_written_no_further(tmp_path: Path):
    engine = TransformersEngine(write_model(tmp_path / "m", "llama"))
    request = Request(PROMPTS[0], 1, lambda _: True)
    ((_, written),) = engine.write([request], Sampling(64, 1.0, 1.0))
    assert (written.tokens, written.is_whole, written.is_opened) == (8, True, True)
    ((_, written),) = engine.write([Request(PROMPTS[0], 1)], Sampling(16, 1.0, 1.0))
    assert (written.tokens, written.is_whole) == (16, False)


def test_an_answer_is_handed_on_as_soon_as_it_is_whole_and_tokens_are_told_before(tmp_path: Path):
    engine = TransformersEngine(write_model(tmp_path / "m", "llama"))
    engine._text.ends = frozenset()  # none ends by itself
    asked = requests()
    asked[1] = replace(asked[1], is_done=lambda _: True)
    counts: list[int] = []
    writing = engine.write(asked, Sampling(64, 1.0, 1.0), counts.append)
    number, written = next(writing)
    assert (number, written.tokens) == (1, 8)
    assert counts == [3] * 8, "three rows were written for eight steps"
    rest = dict(writing)
    assert set(rest) == {0, 2}
    assert set(counts[8:]) == {2}, "a row that is whole costs no more"


@pytest.mark.parametrize("kind", ["torch", pytest.param("mlx", marks=pytest.mark.mlx)])
def test_half_as_many_prompts_are_written_at_once_where_memory_runs_out(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    engine = engine_of(kind, write_model(tmp_path / "m", "llama"))
    whole = texts(engine, GREEDY)
    sizes: list[int] = []
    written = engine._written

    def short_of_memory(chosen: Any, *others: Any) -> Any:
        sizes.append(len(chosen))
        if len(chosen) > 1:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")
        yield from written(chosen, *others)

    monkeypatch.setattr(engine, "_written", short_of_memory)
    assert texts(engine, GREEDY) == whole
    assert sizes == [3, 1, 1, 1]
    assert engine.batch == 1, "nor is more tried with the next ones"


def engine_of(kind: str, folder: Path) -> Any:
    if kind == "torch":
        return TransformersEngine(folder)
    pytest.importorskip("mlx_lm")
    from jupiterd.workers.generate.mlx_engine import MlxWritingEngine

    return MlxWritingEngine(folder)


def test_a_prompt_leaves_room_for_its_answer(tmp_path: Path):
    engine = TransformersEngine(write_model(tmp_path / "m", "llama"))
    short = Prompt("", "bread " * 10)
    assert engine.fits(short, 10_000), "a short prompt leaves half of what the model holds"
    long = Prompt("", "bread " * 300)
    assert engine.size(long) > 256
    assert engine.fits(long, 20)
    assert not engine.fits(long, 400)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_folder_that_lacks_a_file_is_told_in_one_line(name: str, tmp_path: Path):
    folder = write_model(tmp_path / "m", "mistral")
    (folder / name).unlink()
    with pytest.raises(CorruptArtifactError) as refusal:
        TransformersEngine(folder)
    assert "\n" not in refusal.value.message
    assert "m" in refusal.value.message


def test_weights_that_are_cut_off_are_told(tmp_path: Path):
    folder = write_model(tmp_path / "m", "mistral")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5000])
    with pytest.raises(CorruptArtifactError, match="no model can be read from m"):
        TransformersEngine(folder)


def test_tensors_that_are_missing_are_not_drawn_at_random(tmp_path: Path):
    folder = write_model(tmp_path / "m", "llama", num_hidden_layers=1)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    with pytest.raises(CorruptArtifactError, match=r"lack 9 tensors, such as model\.layers\.1"):
        TransformersEngine(folder)
