"""Events of engines, as they come on the wire."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.engine_errors import told_error
from jupiterd.cluster.serving.gathered_answer import GatheredAnswer
from jupiterd.errors import (
    BusyError,
    JupiterError,
    PromptTooLongError,
    UsageError,
    WorkFailedError,
)

END = b"\n\n"


def event(**fields: object) -> bytes:
    return b"data: " + json.dumps(fields).encode() + END


def choice(text: str, finish: str | None = None) -> list[dict[str, Any]]:
    return [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]


CHAT = (
    b": keepalive 3/9" + END
    + event(id="chatcmpl-1", created=5, model="/home/ann/m", choices=choice("To"))
    + event(id="chatcmpl-1", created=5, model="/home/ann/m", choices=choice(" be", "length"))
    + event(id="chatcmpl-1", choices=[], usage={"completion_tokens": 2})
    + b"data: [DONE]" + END
)  # fmt: skip


def test_a_stream_is_put_together_to_one_answer():
    gathered = GatheredAnswer(is_chat=True)
    gathered.add(CHAT)
    assert gathered.whole() == {
        "id": "chatcmpl-1", "created": 5, "model": "/home/ann/m", "object": "chat.completion",
        "choices": [
            {
                "index": 0, "finish_reason": "length",
                "message": {"role": "assistant", "content": "To be"},
            }
        ],
        "usage": {"completion_tokens": 2},
    }  # fmt: skip


def test_completions_have_their_text_beside_the_index():
    gathered = GatheredAnswer(is_chat=False)
    gathered.add(event(choices=[{"text": "x", "finish_reason": None}]))
    gathered.add(event(choices=[{"text": "y", "finish_reason": "stop"}]))
    assert gathered.whole()["choices"] == [{"index": 0, "finish_reason": "stop", "text": "xy"}]


def test_an_error_in_a_stream_is_kept():
    gathered = GatheredAnswer(is_chat=True)
    gathered.add(event(error="no room"))
    assert gathered.error == "no room"


@given(st.lists(st.integers(1, 40), max_size=40))
def test_pieces_of_any_size_become_the_same_answer(sizes: list[int]):
    whole, cut, at = GatheredAnswer(is_chat=True), GatheredAnswer(is_chat=True), 0
    whole.add(CHAT)
    for size in [*sizes, len(CHAT)]:
        cut.add(CHAT[at : at + size])
        at += size
    assert cut.whole() == whole.whole()


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (400, {"error": {"message": "x", "n_prompt_tokens": 3001, "n_ctx": 1024}},
         PromptTooLongError, "3,001 tokens"),
        (503, {"error": {"message": "Loading model"}}, BusyError, "Loading model"),
        (404, {"error": "Model type xyz not supported."}, UsageError, "xyz not supported"),
        (422, {"detail": "Missing field"}, UsageError, "Missing field"),
        (500, {"detail": [{"loc": 1}]}, WorkFailedError, '"loc": 1'),
        (500, [], WorkFailedError, "no reason"),
    ],
)  # fmt: skip
def test_what_engines_say_of_failures_is_put_in_one_line(
    status: int, body: object, kind: type[JupiterError], words: str
):
    error = told_error("mlx", status, json.dumps(body).encode())
    assert type(error) is kind
    assert words in error.message


def test_an_error_that_is_no_json_is_told_as_it_is():
    assert "Not Found" in told_error("mlx", 404, b"Not Found\n").message
