"""Answers of engines as clients see them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.answer_events import DONE, EventStream, whole_answer

NAME = "python/2"
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def event(**said: Any) -> bytes:
    return b"data: " + json.dumps({"id": "7", "model": "/a/folder", **said}).encode() + b"\n\n"


def word(text: str, **said: Any) -> bytes:
    return event(choices=[{"index": 0, "text": text}], **said)


def said_by(stream: EventStream, *pieces: bytes) -> list[Any]:
    found = [line for piece in pieces for line in stream.feed(piece)] + [*stream.end()]
    assert found[-1] == DONE
    return [json.loads(line.removeprefix(b"data: ")) for line in found[:-1]]


def test_the_name_is_the_one_that_was_asked_for():
    stream = EventStream(NAME, wants_usage=False, is_chat=False)
    (found,) = said_by(stream, word("hi"), DONE)
    assert found == {
        "id": "7",
        "object": "text_completion",
        "model": "python/2",
        "choices": [{"index": 0, "text": "hi"}],
    }


def test_usage_that_came_with_a_word_comes_in_an_event_of_its_own():
    found = said_by(EventStream(NAME, wants_usage=True), word("a"), word("b", usage=USAGE), DONE)
    assert [each["usage"] for each in found] == [None, None, USAGE]
    assert [len(each["choices"]) for each in found] == [1, 1, 0]
    assert found[-1]["id"] == "7"


def test_usage_in_an_event_of_its_own_stays_one():
    found = said_by(
        EventStream(NAME, wants_usage=True), word("a"), event(choices=[], usage=USAGE), DONE
    )
    assert [each["usage"] for each in found] == [None, USAGE]


def test_usage_that_nobody_asked_for_is_kept_for_ourselves():
    stream = EventStream(NAME, wants_usage=False)
    found = said_by(stream, word("a"), event(choices=[], usage=USAGE), DONE)
    assert len(found) == 1
    assert "usage" not in found[0]
    assert stream.usage == USAGE


def test_an_engine_that_counts_nothing_is_given_no_figures():
    found = said_by(EventStream(NAME, wants_usage=True), word("a"), DONE)
    assert found[-1]["choices"] == []
    assert found[-1]["usage"] is None


def test_a_stream_without_its_end_gets_one_and_nothing_comes_after_it():
    stream = EventStream(NAME, wants_usage=False)
    assert len(said_by(stream, word("a").rstrip())) == 1
    assert [*stream.feed(word("b"))] == []


def test_comments_and_what_is_no_json_pass():
    stream = EventStream(NAME, wants_usage=False)
    pieces = b": keepalive\n\n", b"data: what\n\n"
    assert [line for piece in pieces for line in stream.feed(piece)] == [*pieces]


@given(st.lists(st.integers(1, 40)))
def test_wherever_it_is_cut_the_events_are_the_same(cuts: list[int]):
    whole = word("a") + b": here\r\n\r\n" + word("b").replace(b"\n", b"\r\n") + DONE
    pieces, rest = [], whole
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    expected = [*EventStream(NAME, wants_usage=False).feed(whole)]
    stream = EventStream(NAME, wants_usage=False)
    found = [line for piece in (*pieces, rest) for line in stream.feed(piece)]
    assert b"".join(found) == b"".join(expected)
    assert len(found) == len(expected) == 4


def test_an_answer_in_one_piece_gets_its_name():
    body, usage = whole_answer(json.dumps({"model": "/f", "usage": USAGE}).encode(), NAME)
    assert json.loads(body) == {"model": NAME, "usage": USAGE}
    assert usage == USAGE


@pytest.mark.parametrize("body", [b"", b"[]", b"no json"])
def test_an_answer_that_is_no_object_passes(body: bytes):
    assert whole_answer(body, NAME) == (body, {})


CONTENT = [
    {"token": "a ", "logprob": -0.5, "top_logprobs": [{"token": "a ", "logprob": -0.5}]},
    {"id": 7, "logprob": -1.5},
]


def test_a_completion_tells_how_likely_tokens_were_in_its_own_form():
    choice = {"index": 0, "text": "a b", "logprobs": {"content": CONTENT}}
    body, _ = whole_answer(json.dumps({"choices": [choice]}).encode(), NAME)
    assert json.loads(body)["choices"][0]["logprobs"] == {
        "tokens": ["a ", "token_id:7"],
        "token_logprobs": [-0.5, -1.5],
        "top_logprobs": [{"a ": -0.5}, {}],
        "text_offset": [0, 2],
    }
    streamed = word("xyz"), event(choices=[choice]), DONE
    *_, last = said_by(EventStream(NAME, wants_usage=False), *streamed)
    assert last["choices"][0]["logprobs"]["text_offset"] == [3, 5]


def test_how_likely_tokens_of_a_conversation_were_stays_as_it_is():
    choice = {"index": 0, "delta": {"content": "a b"}, "logprobs": {"content": CONTENT}}
    (found,) = said_by(EventStream(NAME, wants_usage=False), event(choices=[choice]), DONE)
    assert found["choices"] == [choice]


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda each: (
            st.lists(each)
            | st.dictionaries(
                st.sampled_from(
                    ["choices", "text", "logprobs", "content", "token", "top_logprobs", "usage"]
                ),
                each,
            )
        ),
    )
)
def test_whatever_an_engine_says_is_passed_on(said: Any):
    stream = EventStream(NAME, wants_usage=True)
    assert [
        *stream.feed(b"data: " + json.dumps({"choices": said}).encode() + b"\n\n"),
        *stream.end(),
    ]
    whole_answer(json.dumps({"choices": said}).encode(), NAME)


@pytest.mark.parametrize(
    ("is_chat", "begin", "kind"),
    [(False, "cmpl-", "text_completion"), (True, "chatcmpl-", "chat.completion")],
)
def test_the_id_and_the_kind_are_those_of_what_was_asked_for(is_chat: bool, begin: str, kind: str):
    """llama.cpp gives completions the ids of conversations, and mlx-lm usage their kind."""
    odd = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"index": 0}]}
    whole, _ = whole_answer(json.dumps(odd).encode(), NAME, is_chat=is_chat)
    assert json.loads(whole)["id"] == f"{begin}1"
    assert json.loads(whole)["object"] == kind
    stream = EventStream(NAME, wants_usage=True, is_chat=is_chat)
    for found in said_by(stream, event(**odd), event(**odd | {"choices": [], "usage": USAGE})):
        assert found["id"] == f"{begin}1"
        assert found["object"] == kind + (".chunk" if is_chat else "")
