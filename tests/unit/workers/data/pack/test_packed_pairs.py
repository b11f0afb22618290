"""A round's text and its questions and answers, in one stream of tokens."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.templates.turns import turns_of
from jupiterd.workers.data.pack.pack_shards import PackParams, pack
from jupiterd.workers.tokens.loss_mask import MASK_FILE
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.batches import RankBatches
from tests.support.workers.chat_material import chat_tokenizer, loaded
from tests.support.workers.data_material import files_of, real, synthetic, write

PARAMS = PackParams(vocab_size=0, seq_len=16, synthetic_share=0.5, seed=1, loss_on="answers")
TEXTS = [f"It is {number} plus {number} times 789." for number in range(12)]


def pair(number: int) -> Sample:
    text = f"Question: What is {number}?\nAnswer: It is {number}."
    messages = tuple(turn.to_plain() for turn in turns_of("question_answer", text))
    sample = synthetic(text, parent=real(TEXTS[number]).id)
    return replace(sample, template="question_answer", messages=messages)


def kept(folder: Path, *, has_messages: bool = True) -> Path:
    samples = [*map(real, TEXTS), *map(pair, range(5))]
    plain = [each if has_messages else replace(each, messages=()) for each in samples]
    return write(folder / "kept", plain)


def packed(folder: Path, params: PackParams = PARAMS) -> dict[str, float]:
    return pack([kept(folder)], chat_tokenizer(folder / "given"), folder, params)[0]


def documents(folder: Path) -> list[tuple[str, str]]:
    """Return each document of the stream, and what of it counts; the last may be cut."""
    shards = ShardSet(folder / "shards")
    numbers = np.arange(shards.sequences)
    tokens = shards.sequences_at(numbers)[:, 1:].ravel()
    counted = shards.counted_at(numbers)
    which, tokenizer = shards.documents_at(numbers)[:, 1:].ravel(), loaded(folder / "tokenizer")
    assert counted is not None
    return [
        (
            tokenizer.decode(tokens[which == number]),
            tokenizer.decode(tokens[(which == number) & counted.ravel()]),
        )
        for number in np.unique(which)
    ]


def test_pairs_are_written_by_the_template_and_answers_alone_count(tmp_path: Path):
    counts = packed(tmp_path)
    assert (counts["conversations"], counts["paired_documents"]) == (5, 0)
    assert counts["documents"] == counts["synthetic_documents"] + 12
    assert 0 < counts["counted_tokens"] < counts["tokens"]
    found = documents(tmp_path)[1:-1]
    talked = [each for each in found if "<|im_start|>" in each[0]]
    for whole, counted in talked:
        question, answer = whole.split("<|im_start|>assistant\n")
        assert question.startswith("<|im_start|>user\nWhat is ")
        assert counted == answer
        assert answer.endswith("<|im_end|>\n")
    texts = [each for each in found if each not in talked]
    assert len(talked) >= 4, found
    assert len(texts) >= 10, found
    for whole, counted in texts:
        assert whole == f"<|endoftext|>{counted}"
        assert counted.removesuffix("<|endoftext|>") in TEXTS


def test_an_island_tells_how_many_tokens_its_loss_counts_of_those_that_it_has_trained_on(
    tmp_path: Path,
):
    counts = packed(tmp_path)
    shards = ShardSet(tmp_path / "shards")
    mine = RankBatches(shards, "key", 2, 2).through([(0, 4), (6, 8)], 5, 2)
    in_steps = [next(mine.of_step(5 + step, (2,))).counted_in_step for step in range(3)]
    assert mine.counted_in(0, 6) == sum(in_steps) > 0
    every = RankBatches(shards, "key", 2, 2).counted_in(0, shards.sequences)
    assert sum(in_steps) < every <= counts["counted_tokens"]


def test_all_of_them_may_count(tmp_path: Path):
    counts = packed(tmp_path, replace(PARAMS, loss_on="all"))
    assert counts["counted_tokens"] == counts["tokens"] - counts["documents"]


@pytest.mark.parametrize("reason", ["not asked", "no template", "no pairs"])
def test_otherwise_the_shards_are_those_of_text_alone(tmp_path: Path, reason: str):
    template = "" if reason == "no template" else None
    tokenizer = (
        chat_tokenizer(tmp_path / "given")
        if template is None
        else chat_tokenizer(tmp_path / "given", template)
    )
    asked = replace(PARAMS, loss_on="") if reason == "not asked" else PARAMS
    has_messages = reason != "no pairs"
    with_pairs, text = tmp_path / "a", tmp_path / "b"
    folders = [kept(with_pairs, has_messages=has_messages), kept(text, has_messages=False)]
    counts, _ = pack([folders[0]], tokenizer, with_pairs, asked)
    pack([folders[1]], tokenizer, text, replace(PARAMS, loss_on=""))
    assert files_of(with_pairs / "shards") == files_of(text / "shards")
    assert "conversations" not in counts
    assert not (with_pairs / "shards" / MASK_FILE).exists()


def test_the_template_of_a_file_of_its_own_goes_with_the_tokenizer(tmp_path: Path):
    given = chat_tokenizer(tmp_path / "given", "")
    (given / "chat_template.jinja").write_text("{{ messages[0].content }}")
    pack([kept(tmp_path)], given, tmp_path, PARAMS)
    assert loaded(tmp_path / "tokenizer").chat_template == "{{ messages[0].content }}"
