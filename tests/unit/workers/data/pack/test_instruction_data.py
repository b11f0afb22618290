"""Instruction data becomes shards whose mask says what the loss counts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jupiterd.cycle.runs.run_settings import DataSettings
from jupiterd.errors import EmptySourceError, InvalidSettingError, UsageError
from jupiterd.workers.data.pack.prepare_dataset import prepare
from jupiterd.workers.tokens.shards import ShardSet
from tests.support.workers.chat_material import (
    TEMPLATE,
    answered,
    asked,
    chat_tokenizer,
    ids_of,
    loaded,
    pair,
    write_rows,
)


def prepared(folder: Path, rows: list[dict[str, Any]], **settings: Any) -> dict[str, float]:
    """Prepare these rows without holding any out, by a chat tokenizer; return the counts."""
    tokenizer = chat_tokenizer(folder / "given", settings.pop("template", TEMPLATE))
    source = write_rows(folder / "in" / "train.jsonl", rows)
    asked_for = {"kind": "folder", "path": str(source.parent), "holdout": 0.0, **settings}
    return prepare(DataSettings.parse(asked_for), tokenizer, folder / "out")


def stream(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return all tokens but the first, and which of them count."""
    shards = ShardSet(folder / "out" / "shards")
    shards = ShardSet(folder / "out" / "shards", shards.index.tokens - 1)
    counted = shards.counted_at(np.array([0]))
    assert counted is not None
    return shards.sequences_at(np.array([0]))[0, 1:], counted[0]


CONVERSATION = [
    {"role": "system", "content": "Be short."},
    asked("What is 1 plus 1?"),
    answered("It is 2."),
    asked("What is 2 plus 3?"),
    answered("5."),
]


def test_every_answer_of_a_conversation_counts_with_its_end_mark(tmp_path: Path):
    counts = prepared(tmp_path, [{"messages": CONVERSATION}, {"messages": CONVERSATION[1:3]}])
    tokens, counted = stream(tmp_path)
    text = loaded(tmp_path / "given").decode(tokens[counted])
    assert text == "It is 2.<|im_end|>\n5.<|im_end|>\nIt is 2.<|im_end|>\n"
    assert counts["form.messages"] == counts["documents"] == 2
    assert counts["counted_tokens"] == counted.sum()


def test_all_tokens_count_where_that_is_asked_for_but_the_first_of_each(tmp_path: Path):
    rows = [{"messages": CONVERSATION}, {"messages": CONVERSATION[1:3]}]
    counts = prepared(tmp_path, rows, loss_on="all")
    _, counted = stream(tmp_path)
    first_of_second = len(ids_of(loaded(tmp_path / "given"), CONVERSATION)) - 1
    assert np.flatnonzero(~counted).tolist() == [first_of_second]
    assert counts["counted_tokens"] == counts["tokens"] - 2


def test_the_same_stands_behind_a_question_and_its_answer_as_in_messages(tmp_path: Path):
    row = {"prompt": "What is 1 plus 1?", "completion": "It is 2."}
    prepared(tmp_path / "a", [row])
    prepared(tmp_path / "b", [{"messages": pair(row)}])
    lists = {"prompt": [asked(row["prompt"])], "completion": [answered(row["completion"])]}
    prepared(tmp_path / "c", [lists])
    one = stream(tmp_path / "a")
    for other in (stream(tmp_path / "b"), stream(tmp_path / "c")):
        assert [part.tolist() for part in one] == [part.tolist() for part in other]


def test_what_the_assistant_said_in_a_question_is_no_answer(tmp_path: Path):
    prepared(tmp_path, [{"prompt": CONVERSATION[1:4], "completion": CONVERSATION[4:]}])
    tokens, counted = stream(tmp_path)
    assert loaded(tmp_path / "given").decode(tokens[counted]) == "5.<|im_end|>\n"


def test_an_answer_that_the_template_writes_otherwise_later_on_does_not_count(tmp_path: Path):
    forgets = TEMPLATE.replace(
        "{{ message.content }}",
        "{{ message.content if loop.last or message.role != 'assistant' else '...' }}",
    )
    prepared(tmp_path, [{"messages": CONVERSATION}], template=forgets)
    tokens, counted = stream(tmp_path)
    assert loaded(tmp_path / "given").decode(tokens[counted]) == "5.<|im_end|>\n"


def test_without_a_template_the_answer_ends_with_the_end_mark(tmp_path: Path):
    prepared(tmp_path, [{"prompt": "What is 1?", "completion": " It is 1."}], template="")
    tokens, counted = stream(tmp_path)
    assert loaded(tmp_path / "given").decode(tokens).endswith(" is 1? It is 1.<|endoftext|>")
    assert loaded(tmp_path / "given").decode(tokens[counted]) == " It is 1.<|endoftext|>"


def test_messages_without_a_template_are_refused(tmp_path: Path):
    with pytest.raises(InvalidSettingError, match="no chat template") as caught:
        prepared(tmp_path, [{"messages": CONVERSATION}], template="")
    assert "--tokenizer FOLDER" in caught.value.hint


TEXT = {"text": "It is a text of its own."}
PROMPT = {"prompt": "What is 1?", "completion": "1."}


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"messages": CONVERSATION}, TEXT], r"line 2 .* has text, .* have messages"),
        ([PROMPT, PROMPT, {"messages": CONVERSATION}], r"line 3 .* have prompt\+completion"),
        ([TEXT, TEXT, PROMPT], r"line 3 .* has prompt\+completion, .* have text"),
    ],
)
def test_forms_are_not_mixed(tmp_path: Path, rows: list[dict[str, Any]], says: str):
    with pytest.raises(UsageError, match=says) as caught:
        prepared(tmp_path, rows)
    assert "\n" not in caught.value.message


def test_rows_that_are_not_what_they_should_be_are_left_out_and_counted(tmp_path: Path):
    wrong = [
        {"messages": "What is 1?"}, {"messages": [asked("What is 1?")]},
        {"messages": [{"role": 1}]}, {"id": 7},
    ]  # fmt: skip
    counts = prepared(tmp_path, [{"messages": CONVERSATION}, *wrong])
    assert (counts["documents"], counts["skipped_rows"]) == (1, 4)
    assert (counts["skipped.no_field"], counts["skipped.no_answer"]) == (3, 1)
    with pytest.raises(EmptySourceError, match="line 1: messages is no list"):
        prepared(tmp_path / "none", wrong)


def test_text_is_packed_as_ever_and_every_token_counts(tmp_path: Path):
    counts = prepared(tmp_path, [TEXT, {"text": "Another one."}])
    shards = ShardSet(tmp_path / "out" / "shards", 4)
    assert shards.counted_at(np.array([0])) is None
    assert counts["form.text"] == 2
    assert "counted_tokens" not in counts


def test_secrets_are_taken_out_of_what_is_said(tmp_path: Path):
    said = "It is ghp_0123456789abcdefghijABCDEFGHIJ012345."
    counts = prepared(tmp_path, [{"messages": [asked("What is my token?"), answered(said)]}])
    tokens, _ = stream(tmp_path)
    assert "ghp_0123" not in loaded(tmp_path / "given").decode(tokens)
    assert any(name.startswith("removed.") for name in counts)


def test_whole_conversations_are_held_out_as_they_read(tmp_path: Path):
    rows = [{"messages": [asked(f"What is {n}?"), answered(f"It is {n}.")]} for n in range(40)]
    counts = prepared(tmp_path, rows, holdout=0.2)
    assert counts["holdout_documents"] >= 1
    assert counts["documents"] + counts["holdout_documents"] == 40
    assert counts["form.messages"] == 40
