"""Questions and answers in what generators write, as rows of messages."""

from dataclasses import replace

import pytest

from jupiterd.cycle.data.instruction_rows import Conversation, conversation_in
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.templates.turns import turns_of
from tests.support.workers.data_material import real, synthetic
from tests.unit.cycle.templates.test_answers import RIGHT


def said(kind: str, text: str) -> list[tuple[str, str]]:
    turns = turns_of(kind, text)
    assert [turn.role for turn in turns] == ["user", "assistant"] * (len(turns) // 2)
    words = [turn.content for turn in turns]
    return list(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Question: What?\nAnswer: Bread.\nIt rises.", [("What?", "Bread.\nIt rises.")]),
        ("**Question:** What is it? **Answer:** Bread.", [("What is it?", "Bread.")]),
        ("Pregunta: \u00bfQu\u00e9 es?\nRespuesta: Es pan.", [("\u00bfQu\u00e9 es?", "Es pan.")]),
        ("## Question\nWhat is it?\n## Answer\nBread.", [("What is it?", "Bread.")]),
        ("What is `f`?\n\nIt is `_f_`. See?\nOh.", [("What is `f`?", "It is `_f_`. See?\nOh.")]),
        ("1. What?\nBread.\n2. Why?\nYeast.", [("What?", "Bread."), ("Why?", "Yeast.")]),
        ("Question: What?\nAnswer: Bread.\n\nQuestion: Why?", [("What?", "Bread.")]),
        ("It is bread.", []),
    ],
)  # fmt: skip
def test_a_question_and_its_answer_are_told_apart(text: str, pairs: list[tuple[str, str]]):
    assert said("question_answer", text) == pairs


@pytest.mark.parametrize(
    ("kind", "pairs"), [("question_answer", 2), ("faq", 4), ("exercise", 1), ("worked_problem", 1)]
)
def test_every_template_of_pairs_gives_whole_ones(kind: str, pairs: int):
    found = said(kind, RIGHT[kind])
    assert len(found) == pairs
    for asked, answer in found:
        assert "?" in asked
        assert ":" not in asked[:12], "no label is left"
        assert len(answer.split()) >= 12
        assert not answer.startswith(("Answer", "Solution"))


@pytest.mark.parametrize("kind", ["summary", "explanation", "tutorial", "rewrite", "table"])
def test_other_texts_are_no_conversations(kind: str):
    assert turns_of(kind, RIGHT[kind]) == ()


def test_a_sample_keeps_its_messages_and_one_without_says_nothing_of_them():
    messages = ({"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Yeast."})
    sample = replace(synthetic("Question: Why?\nAnswer: Yeast."), messages=messages)
    again = Sample.from_json(sample.to_json())
    assert again == sample
    found = conversation_in(again)
    assert isinstance(found, Conversation)
    assert (found.text, found.answers) == ("Why?\n\nYeast.", (1,))
    assert "messages" not in real("Bread").to_json()
    assert conversation_in(Sample.from_json(real("Bread").to_json())) is None
