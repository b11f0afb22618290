"""Asks one model a question of a conversation.

Owns what is sent: messages for a model that chats, plain text for one that completes, without the
oldest turns where the context is too short for them. Doesn't know sockets, or what is shown.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from jupiterd.ctl.chat.answer_progress import AnswerProgress
from jupiterd.ctl.chat.conversation import Conversation, Measure, answer_room, fitted, length
from jupiterd.ctl.chat.endpoint.answer_chunks import Chunk, ModelFacts
from jupiterd.ctl.chat.endpoint.event_stream import Event
from jupiterd.ctl.chat.endpoint.served_errors import lacks_template
from jupiterd.ctl.chat.sampling import Sampling
from jupiterd.errors import JupiterError, PromptTooLongError

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"

COMPLETION_TOKENS = 256
"""A model that completes text seldom comes to an end by itself."""


class Answers(Protocol):
    """Whoever answers requests of OpenAI's form."""

    async def facts(self, model: str) -> ModelFacts:
        """Return what is known of a model."""
        ...

    def answer(self, place: str, body: Mapping[str, Any]) -> AsyncGenerator[Chunk | Event]:
        """Yield an answer as it is written."""
        ...


@dataclass
class Partner:
    """A model that the user talks to, and what was said with it."""

    facts: ModelFacts
    conversation: Conversation = field(default_factory=Conversation)
    measure: Measure = field(default_factory=Measure)

    @property
    def completes(self) -> bool:
        """Say whether it is known to complete text rather than to chat."""
        return self.facts.is_chat is False

    def learn(self, facts: ModelFacts) -> None:
        """Take what is known of it by now; what it turned out to be stays unless that was said."""
        is_same = facts.called == self.facts.called
        if facts.is_chat is None and is_same:
            facts = replace(facts, is_chat=self.facts.is_chat)
        if not is_same:
            self.measure = Measure()
        self.facts = facts


@dataclass(frozen=True)
class Question:
    """What is asked, and how the answer is drawn."""

    text: str
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True)
class Reader:
    """Whoever reads an answer while it is written."""

    text: Callable[[str], None]
    """Gets each piece."""
    waits: Callable[[str], None]
    """Gets what the daemon says that an answer waits for."""
    forgets: Callable[[int], None]
    """Gets how many of the oldest turns are no longer sent, when that has become more."""
    now_s: Callable[[], float]
    """A clock that only goes forward."""


async def ask(
    answers: Answers, partner: Partner, question: Question, reader: Reader, writing: AnswerProgress
) -> None:
    """Have a question answered into `writing`; keep the turn with the partner if there is text.

    A cancelled answer counts as far as it came. What the model turns out to be, and what it
    forgets, is kept with the partner.

    Raises:
        JupiterError: the answer didn't come, or not to its end.
    """
    try:
        if not partner.completes:
            await _chat(answers, partner, question, reader, writing)
        if partner.completes:
            await _complete(answers, partner, question, reader, writing)
    finally:
        writing.facts = partner.facts
        if writing.text:
            partner.conversation = partner.conversation.with_turn(question.text, writing.text)


async def _chat(
    answers: Answers, partner: Partner, question: Question, reader: Reader, writing: AnswerProgress
) -> None:
    """Have it answered by the model's template; without one, note that the model completes.

    Where the server refuses its length, less is sent each time; if nothing helps, all stays.
    """
    _forget(partner, _that_fits(partner, question), reader)
    kept = partner.conversation
    while True:
        messages = partner.conversation.messages(question.text)
        body = {"model": partner.facts.name, "messages": messages, **question.sampling.fields()}
        try:
            await _read(answers.answer(CHAT, body), reader, writing)
        except PromptTooLongError:
            if writing.text or not partner.conversation.can_forget:
                partner.conversation = kept
                raise
            partner.conversation = partner.conversation.forgetting()
        except JupiterError as error:
            if writing.text or partner.facts.is_chat or not lacks_template(error):
                raise
            partner.facts = replace(partner.facts, is_chat=False)
            return
        else:
            if partner.conversation.forgotten > kept.forgotten:
                reader.forgets(partner.conversation.forgotten)
            _learn(partner, writing, length(messages))
            return


def _learn(partner: Partner, writing: AnswerProgress, sent_characters: int) -> None:
    """Keep what an answer shows of its model."""
    partner.facts = replace(partner.facts, is_chat=True)
    if writing.prompt_tokens:
        partner.measure = Measure(sent_characters, writing.prompt_tokens)


def _that_fits(partner: Partner, question: Question) -> Conversation:
    context = partner.facts.context_tokens
    if not context:
        return partner.conversation
    room = context - answer_room(context, question.sampling.max_tokens)
    return fitted(partner.conversation, question.text, partner.measure, room)


def _forget(partner: Partner, conversation: Conversation, reader: Reader) -> None:
    if conversation.forgotten > partner.conversation.forgotten:
        reader.forgets(conversation.forgotten)
    partner.conversation = conversation


async def _complete(
    answers: Answers, partner: Partner, question: Question, reader: Reader, writing: AnswerProgress
) -> None:
    body = {
        "model": partner.facts.name,
        "prompt": question.text,
        "max_tokens": COMPLETION_TOKENS,
        **question.sampling.fields(),
    }
    await _read(answers.answer(COMPLETION, body), reader, writing)


async def _read(
    answer: AsyncGenerator[Chunk | Event], reader: Reader, writing: AnswerProgress
) -> None:
    async with aclosing(answer):
        async for told in answer:
            if isinstance(told, Event):
                reader.waits(told.comment)
                continue
            writing.take(told, reader.now_s())
            if told.text:
                reader.text(told.text)
