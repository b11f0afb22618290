"""The lines on which a document is asked for."""

import pytest

from jupiterd.errors import (
    Bug,
    ConflictError,
    JupiterError,
    MalformedError,
    NotFoundError,
    TooLargeError,
)
from jupiterd.protocol.local_query import (
    MAX_QUESTION_BYTES,
    answer_line,
    bug_line,
    noun_of,
    question_line,
    read_answer,
    refusal_line,
)

NO_JSON = (b"", b"\n", b"status\n", b'{"document": \n', b"\xff\xfe\n", b"[" * 60_000 + b"\n")


@pytest.mark.parametrize("noun", ["status", "why/python:120000", "why/a\nb", "why/ü\udc80", ""])
def test_a_question_is_one_line_and_says_what_was_asked(noun: str):
    line = question_line(noun)
    assert line.index(b"\n") == len(line) - 1
    assert noun_of(line) == noun


def test_a_question_that_no_daemon_would_read_is_not_sent():
    with pytest.raises(TooLargeError, match="65,536 bytes"):
        question_line("why/" + "3" * MAX_QUESTION_BYTES)


@pytest.mark.parametrize(
    "line", [*NO_JSON, b"7\n", b"{}\n", b'{"document": 7}\n', b'["document"]\n']
)
def test_what_is_no_question_is_refused(line: bytes):
    with pytest.raises(MalformedError, match="no question"):
        noun_of(line)


def test_a_document_arrives_as_it_was_told():
    document = {"schema": "jupiter/v1", "node": {"name": "Jüpiter\n", "load": 0.5, "gpus": []}}
    line = answer_line(document)
    assert line.index(b"\n") == len(line) - 1
    assert read_answer(line) == document


def test_an_error_arrives_with_its_hint_and_stays_the_same_error():
    line = refusal_line(ConflictError("a cycle is running", "jupiterctl cycle stop"))
    with pytest.raises(ConflictError) as caught:
        read_answer(line)
    assert (caught.value.message, caught.value.hint) == (
        "a cycle is running",
        "jupiterctl cycle stop",
    )


def test_an_error_without_a_hint_of_its_own_arrives_with_that_of_its_kind():
    with pytest.raises(NotFoundError) as caught:
        read_answer(refusal_line(NotFoundError("no such cycle")))
    assert caught.value.hint == NotFoundError.default_hint


def test_an_error_of_a_newer_daemon_becomes_a_plain_one():
    line = refusal_line(NotFoundError("new")).replace(b"not-found", b"of-tomorrow")
    with pytest.raises(JupiterError) as caught:
        read_answer(line)
    assert type(caught.value) is JupiterError


def test_a_mistake_inside_the_daemon_is_told_from_an_error():
    with pytest.raises(Bug, match="KeyError: 'leader'"):
        read_answer(bug_line(KeyError("leader")))


@pytest.mark.parametrize(
    "line", [*NO_JSON, b"{}\n", b'{"document": []}\n', b'{"error": {"code": "x"}}\n']
)
def test_what_is_no_answer_is_refused(line: bytes):
    with pytest.raises(MalformedError, match="can't be read"):
        read_answer(line)
