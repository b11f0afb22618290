"""A checked request for text, as an engine gets it.

Owns the form in which the endpoint, the router and engines hand a request on. Doesn't know how one
is checked, nor which model answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AnswerRequest:
    """A request whose fields were checked."""

    is_chat: bool
    """Of /v1/chat/completions; otherwise of /v1/completions."""

    body: Mapping[str, Any]
    """The fields of OpenAI's request, without `model`."""

    is_streamed: bool
    """The answer comes as events, token by token."""
