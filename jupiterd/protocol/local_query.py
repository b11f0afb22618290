"""One question to the local daemon and its answer, each a line of JSON on a unix socket.

Owns both lines, their bounds, and how long an answer may take. Doesn't know sockets, or what the
documents say.

    {"document": NOUN}
    {"document": {...}} or {"error": {"code": ..., "message": ..., "hint": ...}} or {"bug": ...}

This is the way for a command that asks one thing and ends: it needs nothing but Python's own, where
importing gRPC takes longer than everything else that the command does.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from jupiterd.errors import Bug, JupiterError, MalformedError, TooLargeError, from_wire

Document = Mapping[str, Any]
"""One document of the schema jupiter/v1, as decoded JSON."""

MAX_QUESTION_BYTES = 64 << 10
MAX_ANSWER_BYTES = 16 << 20

ANSWER_TIMEOUT_S = 10.0
"""A daemon that is alive answers in milliseconds; busy ones get a little longer."""

_VERSIONS = "restart jupiterd, so that it runs what jupiterctl version shows"


def question_line(noun: str) -> bytes:
    """Return the question for a document, such as `status` or `cycle/3f2a91bc`.

    Raises:
        TooLargeError: no daemon would read it.
    """
    line = _line({"document": noun})
    if len(line) > MAX_QUESTION_BYTES:
        raise too_long()
    return line


def too_long() -> TooLargeError:
    """Return the error of a question that is over the bound."""
    return TooLargeError(
        f"a question may have at most {MAX_QUESTION_BYTES:,} bytes",
        "ask for something by its id or name",
    )


def noun_of(line: bytes) -> str:
    """Return what a question asks for.

    Raises:
        MalformedError: it is none.
    """
    match _decoded(line):
        case {"document": str(noun)}:
            return noun
        case _:
            raise MalformedError("that is no question that this jupiterd knows", _VERSIONS)


def answer_line(document: Document) -> bytes:
    """Return the answer that is a document."""
    return _line({"document": document})


def refusal_line(error: JupiterError) -> bytes:
    """Return the answer that says why there is no document."""
    return _line({"error": refusal_fields(error)})


def refusal_fields(error: JupiterError) -> Document:
    """Return what is told of an error, from which `from_wire` makes it again."""
    return {"code": error.code, "message": error.message, "hint": error.hint}


def bug_line(error: Exception) -> bytes:
    """Return the answer of a daemon that has met a mistake of its own."""
    return _line({"bug": f"{type(error).__name__}: {error}"})


def read_answer(line: bytes) -> Document:
    """Return the document that an answer holds.

    Raises:
        MalformedError: the line is no answer.
        JupiterError: the one that the daemon answered with.
        Bug: one that the daemon met.
    """
    match _decoded(line):
        case {"document": dict(document)}:
            return cast("Document", document)
        case {"error": {"code": str(code), "message": str(message), "hint": str(hint)}}:
            raise from_wire(code, message, hint)
        case {"bug": str(bug)}:
            raise Bug(bug)
        case _:
            raise MalformedError("jupiterd's answer can't be read", _VERSIONS)


def _line(content: Document) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _decoded(line: bytes) -> object:
    """Return what a line of JSON says; None where it is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
