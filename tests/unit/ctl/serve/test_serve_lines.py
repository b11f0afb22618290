"""What is said of an endpoint, and of requests to it."""

from datetime import UTC
from typing import Any

import pytest

from jupiterd.ctl.serve.serve_lines import opened_lines, request_line

OPEN = {
    "url": "http://127.0.0.1:47480/v1",
    "models": ["promoted", "python/2"],
    "missing": {"promoted": "no model is promoted yet; name one"},
    "has_token": True,
}
ANSWERED = {
    "model": "promoted",
    "is_chat": True,
    "status": 200,
    "ended_at_s": 45_296.0,
    "duration_s": 2.5,
    "first_s": 0.5,
    "prompt_tokens": 31,
    "completion_tokens": 120,
}


def test_an_open_endpoint_tells_where_it_is_and_how_it_ends():
    assert opened_lines(OPEN, is_dry_run=False) == [
        "promoted: no model is promoted yet; name one",
        "promoted, python/2 at http://127.0.0.1:47480/v1; clients send the token",
        "a page to chat on: http://127.0.0.1:47480/",
        "Ctrl-C closes it",
    ]


def test_a_dry_run_says_what_would_be():
    lines = opened_lines({**OPEN, "missing": {}}, is_dry_run=True)
    assert lines == ["promoted, python/2 would answer at http://127.0.0.1:47480/v1"]


@pytest.mark.parametrize(
    ("changes", "rest"),
    [
        ({}, "promoted  chat  31 + 120 tokens, 2.5 s, the first after 0.5 s, 60 tokens/s"),
        ({"is_chat": False, "first_s": 2.5}, "completion  31 + 120 tokens, 2.5 s, the first"),
        ({"prompt_tokens": None, "completion_tokens": None}, "chat  2.5 s, the first after 0.5 s"),
        ({"status": 499, "first_s": None}, "chat  the client went away, 31 + 120 tokens, 2.5 s"),
        ({"status": 418, "first_s": None}, "chat  HTTP status 418, "),
        ({"left_out": "tools"}, "without its tools: the model has no place for them, 2.5"),
        ({"model": "\x1b[2J"}, "chat"),
        ({"model": ""}, "12:34:56  chat  31"),
        ({"status": 400, "reason": "temperature must be from 0 to 2, not 7", "first_s": None},
         "promoted  chat  refused: temperature must be from 0 to 2, not 7, "),
        ({"status": 404, "model": "nobody", "reason": "no model nobody answers here"},
         "nobody  chat  refused: no model nobody answers here, "),
        ({"status": 503, "reason": "a training has the GPU"}, "refused: a training has the GPU"),
        ({"status": 502, "reason": "the engine was killed"}, "the engine died: the engine was"),
        ({"status": 500, "reason": "tiny can't be loaded"}, "HTTP status 500: tiny can't be"),
        ({"status": 400, "reason": "a" * 900, "first_s": None}, "a..., "),
        ({"status": 401, "model": "", "is_chat": None, "reason": "the token is missing or wrong",
          "first_s": None, "prompt_tokens": None, "completion_tokens": None, "duration_s": 0.0},
         "12:34:56  refused: the token is missing or wrong"),
    ],
)  # fmt: skip
def test_a_request_is_a_line(changes: dict[str, Any], rest: str):
    line = request_line({**ANSWERED, **changes}, UTC)
    assert line.startswith("12:34:56  ")
    assert rest in line
    assert "\x1b" not in line
