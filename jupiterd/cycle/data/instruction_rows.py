"""Rows of instruction data, in the forms that mlx-lm and TRL read.

Owns which form a row has, and what of it is an answer. Doesn't know files, templates or tokens.

    prompt + completion    a question and its answer: two texts, or two lists of messages
    messages               a conversation: a list of {role, content}
    text                   text, of which nothing is an answer
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, cast

from jupiterd.cycle.data.lineage import Sample
from jupiterd.errors import UsageError

USER: Final = "user"
ASSISTANT: Final = "assistant"

FORM_COUNT: Final = "form."
"""Of a data set's counts: how many documents it has of the form that follows."""


class RowForm(StrEnum):
    """What a row of JSON holds."""

    COMPLETION = "prompt+completion"
    MESSAGES = "messages"
    TEXT = "text"


@dataclass(frozen=True)
class ChatMessage:
    """What one side says."""

    role: str
    content: str

    def to_plain(self) -> dict[str, str]:
        """Return it as rows have it."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True)
class Conversation:
    """What is said, in order."""

    messages: tuple[ChatMessage, ...]
    first_answer: int = 0
    """What the assistant says before this message is no answer, but part of the question."""

    @property
    def text(self) -> str:
        """Return it without any template."""
        return "\n\n".join(message.content for message in self.messages)

    @property
    def answers(self) -> tuple[int, ...]:
        """Return the numbers of the messages that are answers."""
        spoken = enumerate(self.messages)
        return tuple(n for n, m in spoken if n >= self.first_answer and m.role == ASSISTANT)

    def with_contents(self, contents: tuple[str, ...]) -> "Conversation":
        """Return it with other words."""
        pairs = zip(self.messages, contents, strict=True)
        return replace(self, messages=tuple(replace(m, content=text) for m, text in pairs))


CONVERSATIONS: Final = frozenset({RowForm.COMPLETION, RowForm.MESSAGES})


def conversation_in(sample: Sample) -> Conversation | None:
    """Return what is said in a sample; None where it is text."""
    said = tuple(ChatMessage(each["role"], each["content"]) for each in sample.messages)
    return Conversation(said, sample.first_answer) if said else None


class MalformedRowError(Exception):
    """A row of the right form can't be used; its text says why."""


class UnansweredRowError(MalformedRowError):
    """Nobody answers in it."""


def row_form(fields: Mapping[str, Any]) -> RowForm | None:
    """Return the form of a row, in the order that mlx-lm looks for them; None: none of them."""
    if "prompt" in fields and "completion" in fields:
        return RowForm.COMPLETION
    if "messages" in fields:
        return RowForm.MESSAGES
    return RowForm.TEXT if "text" in fields else None


def refuse_mixture(name: str, fields: Mapping[str, Any], line: int, expected: RowForm) -> None:
    """Refuse a row of another form than those before it; one of no form is left to the reader.

    Raises:
        UsageError: it has one.
    """
    form = row_form(fields)
    if form is not None and form is not expected:
        raise UsageError(
            f"line {line} of {name} has {form}, and the rows before it have {expected}",
            "make a data set of each form: jupiterctl data prepare for each",
        )


def conversation_of(fields: Mapping[str, Any], form: RowForm) -> Conversation:
    """Return what a row says.

    Raises:
        MalformedRowError: it isn't what its form should be, or nobody answers.
    """
    if form is RowForm.MESSAGES:
        found = Conversation(_messages(fields["messages"], "messages", USER))
    else:
        prompt = _messages(fields["prompt"], "prompt", USER)
        answered = _messages(fields["completion"], "completion", ASSISTANT)
        found = Conversation((*prompt, *answered), len(prompt))
    if not found.answers:
        raise UnansweredRowError("nobody answers: it has no message of the role assistant")
    return found


def _messages(given: object, field: str, role: str) -> tuple[ChatMessage, ...]:
    """Return messages; a text alone is one of that role, but where there must be a list."""
    if isinstance(given, str) and field != "messages":
        return (ChatMessage(role, given),)
    if not isinstance(given, list) or not given:
        raise MalformedRowError(f"{field} is no list of messages")
    return tuple(_message(each, field) for each in cast("list[Any]", given))


def _message(given: object, field: str) -> ChatMessage:
    said = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    role, content = said.get("role"), said.get("content")
    if not isinstance(role, str) or not isinstance(content, str):
        raise MalformedRowError(f"a message of {field} lacks role or content, or isn't text")
    return ChatMessage(role, content)
