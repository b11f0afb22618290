"""A request for text and its answer, as two nodes say them.

Owns both forms and what of a member's request is believed: its size, its depth, its names. Doesn't
know how a call is made or served, or what an engine makes of the fields.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.serving.serving_rows import MAX_NAME_CHARACTERS
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.errors import BusyError, JupiterError, MalformedError, TooLargeError, from_wire
from jupiterd.ids import ArtifactId
from jupiterd.rpc import serving_pb2
from jupiterd.store.manifest import is_artifact_id

MAX_BODY_BYTES: Final = 1 << 20
"""Of a request: a context of 100,000 tokens has half of it."""

MAX_DEPTH: Final = 32
"""Of lists and maps in a request: a tool's schema has a dozen levels."""

MAX_PIECE_BYTES: Final = 64 << 10
"""Of an answer in one message."""

MAX_RETRY_S: Final = 3600.0
MAX_REASON_CHARACTERS: Final = 1000
MAX_TYPE_CHARACTERS: Final = 100


def order_to_proto(model: ServedModel, request: AnswerRequest) -> serving_pb2.AnswerOrder:
    """Return a request as another node is told it.

    Raises:
        TooLargeError: it is longer than another node takes it.
    """
    body = json.dumps(dict(request.body), ensure_ascii=False, separators=(",", ":")).encode()
    if len(body) > MAX_BODY_BYTES:
        raise TooLargeError(
            f"a request of {len(body)} bytes is longer than the {MAX_BODY_BYTES} that travel",
            "shorten the prompt, or ask the machine that serves the model",
        )
    return serving_pb2.AnswerOrder(
        model=model.name,
        artifact=model.artifact or "",
        is_chat=request.is_chat,
        is_streamed=request.is_streamed,
        body=body,
    )


def order_from_proto(order: serving_pb2.AnswerOrder) -> tuple[ServedModel, AnswerRequest]:
    """Read another node's request.

    Raises:
        MalformedError: it can't be one.
        TooLargeError: it is too long.
    """
    if len(order.body) > MAX_BODY_BYTES:
        raise TooLargeError(f"a request of {len(order.body)} bytes is too large")
    name = sanitized_text(order.model, MAX_NAME_CHARACTERS)
    if not name or not is_artifact_id(order.artifact):
        raise MalformedError("a request for text names no model that travels")
    model = ServedModel(name, ArtifactId(order.artifact))
    body = _body(order.body)
    return model, AnswerRequest(is_chat=order.is_chat, body=body, is_streamed=order.is_streamed)


def head_piece(status: int, content_type: str, left_out: str = "") -> serving_pb2.AnswerPiece:
    """Return the piece with which an answer begins."""
    head = serving_pb2.AnswerHead(
        status=status, content_type=content_type[:MAX_TYPE_CHARACTERS], left_out=left_out
    )
    return serving_pb2.AnswerPiece(head=head)


def over_piece(error: JupiterError | None) -> serving_pb2.AnswerPiece:
    """Return the last piece of an answer: it is whole, or ended by an error."""
    if error is None:
        return serving_pb2.AnswerPiece(over=serving_pb2.AnswerOver())
    over = serving_pb2.AnswerOver(
        code=error.code,
        reason=error.message[:MAX_REASON_CHARACTERS],
        hint=error.hint[:MAX_REASON_CHARACTERS],
        retry_after_s=error.retry_after_s if isinstance(error, BusyError) else 0.0,
    )
    return serving_pb2.AnswerPiece(over=over)


def error_of(over: serving_pb2.AnswerOver) -> JupiterError | None:
    """Return the error that ended an answer; None where it is whole."""
    if not over.code:
        return None
    reason, hint = (
        sanitized_text(text, MAX_REASON_CHARACTERS) for text in (over.reason, over.hint)
    )
    error = from_wire(over.code, reason, hint)
    if isinstance(error, BusyError) and 0.0 < over.retry_after_s <= MAX_RETRY_S:
        error.retry_after_s = over.retry_after_s
    return error


def _body(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise MalformedError("a request for text is no JSON") from error
    if not isinstance(body, dict) or not _is_shallow(cast("object", body), MAX_DEPTH):
        raise MalformedError("a request for text has a form that can't be")
    return cast("dict[str, Any]", body)


def _is_shallow(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        parts: Sequence[object] = list(cast("dict[str, object]", value).values())
    elif isinstance(value, list):
        parts = cast("list[object]", value)
    else:
        return True
    return levels > 0 and all(_is_shallow(part, levels - 1) for part in parts)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")
