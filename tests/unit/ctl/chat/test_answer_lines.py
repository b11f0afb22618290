"""Sentences about models and answers."""

import pytest

from jupiterd.ctl.chat.answer_lines import (
    changed_lines,
    figures_line,
    forgotten_line,
    greeting,
    model_line,
    waiting_line,
)
from jupiterd.ctl.chat.answer_progress import AnswerProgress
from jupiterd.ctl.chat.conversation import Conversation
from jupiterd.ctl.chat.endpoint.answer_chunks import Chunk, ModelFacts
from jupiterd.ctl.chat.partner import Partner
from jupiterd.ctl.chat.talk import Talk

FACTS = ModelFacts("python/2", False, 2048, "nuc", "mlx")


def written(facts=FACTS, finish="stop") -> AnswerProgress:
    writing = AnswerProgress(facts, 10.0)
    writing.take(Chunk("a"), 10.25)
    writing.take(Chunk("b", finish=finish), 12.25)
    writing.take(Chunk(prompt_tokens=7, completion_tokens=41), 12.3)
    return writing


def test_a_model_is_told_with_its_place():
    assert model_line(FACTS) == (
        "python/2 completes what you type on nuc (mlx), 2,048 tokens of context"
    )
    assert model_line(ModelFacts("x\x1b")) == "x? answers"
    assert model_line(ModelFacts("promoted", called="python/2")) == "promoted (python/2) answers"
    assert model_line(ModelFacts("python/2", called="python/2")) == "python/2 answers"
    talk = Talk([Partner(FACTS, Conversation("be brief"))])
    assert "isn't sent" in greeting(talk)[1]


@pytest.mark.parametrize(
    ("facts", "waited_s", "comment", "line"),
    [
        (FACTS, 1.0, "", "waiting for python/2 on nuc... (1.0 s)"),
        (FACTS, 12.0, "", "loading python/2 on nuc... (12 s)"),
        (ModelFacts("m", is_loaded=False), 0.5, "", "loading m... (0.5 s)"),
        (ModelFacts("m", is_loaded=True), 12.0, "", "waiting for m... (12 s)"),
        (FACTS, 1.0, "keepalive 512/2048", "python/2 reads the prompt: 512 of 2,048 tokens"),
        (FACTS, 1.0, "\x1b[2J", "waiting for python/2 on nuc... (1.0 s)"),
    ],
)
def test_what_is_waited_for_is_told(facts, waited_s, comment, line):
    assert waiting_line(AnswerProgress(facts, 100.0), 100.0 + waited_s, comment) == line


def test_a_model_that_reasons_is_said_to_think():
    writing = AnswerProgress(FACTS, 0.0)
    writing.take(Chunk(thought="hm"), 1.0)
    assert waiting_line(writing, 2.0) == "python/2 thinks... (2.0 s)"
    writing.take(Chunk("so"), 3.0)
    assert (writing.text, writing.first_token_s, writing.tokens) == ("so", 1.0, 2)
    assert writing.to_plain()["reasoning"] == "hm"


def talk_with(*facts: ModelFacts, is_verbose=False, is_conversation=True) -> Talk:
    partners = [Partner(each) for each in facts or (FACTS,)]
    return Talk(partners, is_verbose=is_verbose, is_conversation=is_conversation)


def test_figures_are_short_unless_somebody_wants_all():
    short = figures_line(written(), talk_with())
    assert short == "41 tokens, 20.0/s, first after 0.25 s"
    long = figures_line(written(), talk_with(FACTS, FACTS, is_verbose=True))
    assert long == f"python/2: {short}, prompt 7 tokens, context 2,048, on nuc (mlx)"


@pytest.mark.parametrize(
    ("talk", "goes_on"),
    [
        (talk_with(), "/more goes on"),
        (talk_with(ModelFacts("m", is_chat=True)), "/set max_tokens NUMBER lets it write more"),
        (talk_with(FACTS, FACTS), "/set max_tokens NUMBER lets it write more"),
        (talk_with(is_conversation=False), "--max-tokens NUMBER lets it write more"),
    ],
)
def test_an_answer_that_was_cut_is_told_with_what_helps(talk, goes_on):
    line = figures_line(written(finish="length"), talk)
    assert line.endswith(f"first after 0.25 s, cut there: {goes_on}")


def test_an_answer_that_was_stopped_says_so():
    stopped = AnswerProgress(FACTS, 0.0)
    stopped.take(Chunk("a"), 1.0)
    assert figures_line(stopped, talk_with()) == "1 token, first after 1.00 s, stopped"


def test_a_folder_is_called_by_its_last_part():
    assert ModelFacts("/home/me/my model/").title == "my model"
    assert ModelFacts("python/2").title == "python/2"
    assert ModelFacts("a\x1b[2J").title == "a?[2J"


def test_another_promoted_model_is_told():
    first, second = (ModelFacts("promoted", called=f"python/{number}") for number in (2, 3))
    assert changed_lines(first, second) == ["promoted is python/3 by now, and was python/2"]
    assert changed_lines(first, first) == changed_lines(first, ModelFacts("promoted")) == []


def test_what_is_left_out_is_told_with_the_size_of_the_context():
    assert forgotten_line(FACTS, 1) == (
        "the context of 2,048 tokens of python/2 has no room for the whole conversation: its 1 "
        "oldest question and what was answered is left out"
    )
    assert "its 3 oldest questions and what was answered are left out" in forgotten_line(FACTS, 3)
