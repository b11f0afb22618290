"""Errors as they are told over HTTP."""

import json

import pytest

from jupiterd.cluster.serving.request_error import ErrorAnswer, answer_of, of_engine
from jupiterd.errors import (
    BusyError,
    EngineLostError,
    JupiterError,
    ModelNotServedError,
    NotFoundError,
    PeerUnreachableError,
    PromptTooLongError,
    RefusedError,
    TimedOutError,
)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (BusyError("all at work"), 503, "busy"),
        (ModelNotServedError("no x"), 404, "model_not_found"),
        (NotFoundError("no x"), 404, "not_found"),
        (PromptTooLongError("9 of 8"), 400, "context_length_exceeded"),
        (EngineLostError("died"), 502, "engine_lost"),
        (PeerUnreachableError("box"), 503, "peer_unreachable"),
        (RefusedError("no"), 403, "refused"),
        (TimedOutError("late"), 504, "timed_out"),
        (JupiterError("odd"), 500, "failed"),
    ],
)
def test_each_error_has_its_status(error: JupiterError, status: int, code: str):
    told = answer_of(error)
    assert (told.status, told.code) == (status, code)
    assert error.message in told.message
    assert error.hint in told.message
    assert told.kind == ("server_error" if status >= 500 else "invalid_request_error")


def test_who_is_busy_says_when_to_ask_again():
    assert answer_of(BusyError("at work", retry_after_s=1.2)).retry_after_s == 2
    assert answer_of(RefusedError("no")).retry_after_s is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "too long", "param": "prompt", "code": 7}}', "too long"),
        (b'{"error": "too long"}', "too long"),
        (b'{"detail": "too long"}', "too long"),
        (b"too long\n", "too long"),
        (b"", "the engine refused the request"),
        (b"[]", "the engine refused the request"),
        (b"\xff", "\ufffd"),
    ],
)
def test_what_an_engine_refuses_is_told_in_openai_s_form(body: bytes, message: str):
    told = of_engine(400, body)
    assert told.message == message
    assert json.loads(told.body())["error"]["message"] == message


def test_an_error_within_a_stream_is_its_last_event():
    events = ErrorAnswer(502, "died").last_events()
    assert events.startswith(b'data: {"error": {"message": "died"')
    assert events.endswith(b"\n\ndata: [DONE]\n\n")
