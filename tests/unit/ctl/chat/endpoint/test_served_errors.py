"""Errors of the endpoint, read as ours."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.request_error import answer_of
from jupiterd.ctl.chat.endpoint.served_errors import error_of
from jupiterd.errors import (
    BusyError,
    EngineLostError,
    JupiterError,
    ModelNotServedError,
    NotFoundError,
    PromptTooLongError,
    UsageError,
)


@pytest.mark.parametrize(
    "error",
    [
        BusyError("all are at work"),
        EngineLostError("nuc went away", "ask again"),
        ModelNotServedError("there is no model yet", "train one; or name a folder"),
        PromptTooLongError("the prompt has 90 tokens, and the context 64"),
        UsageError("tiny has no chat template"),
    ],
)
def test_what_the_daemon_tells_is_the_same_error_here(error: JupiterError):
    told = answer_of(error)
    found = error_of(told.status, told.body())
    assert (type(found), found.message, found.hint) == (type(error), error.message, error.hint)


def test_a_hint_of_its_own_is_told_once():
    error = {"message": "odd; very odd; do this; or that", "hint": "do this; or that"}
    found = error_of(400, json.dumps({"error": error}).encode())
    assert (found.message, found.hint) == ("odd; very odd", "do this; or that")


def test_what_an_engine_tells_is_kept_whole():
    found = error_of(400, json.dumps({"error": {"message": "odd; very odd", "code": 7}}).encode())
    assert (type(found), found.message) == (UsageError, "odd; very odd")
    assert error_of(404, b"Not Found").message == "Not Found"
    assert type(error_of(404, b"")) is NotFoundError
    assert error_of(500, b'{"error": "boom\\u001b[2J\\n"}').message == "boom?[2J"


@given(st.integers(400, 599), st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_any_content_is_an_error_of_one_line(status, content):
    found = error_of(status, content)
    assert found.message.isprintable()
    assert found.hint


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "message", "code", "hint"]), inner, max_size=4
            )
        ),
        max_leaves=8,
    )
)
def test_any_json_is_one_too(told):
    assert error_of(400, json.dumps(told).encode()).message.isprintable()
