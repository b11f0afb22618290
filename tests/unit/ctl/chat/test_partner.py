"""What one model is sent, and what is kept of its answer."""

from dataclasses import dataclass, field

import pytest

from jupiterd.ctl.chat.answer_progress import STOPPED, AnswerProgress
from jupiterd.ctl.chat.conversation import Conversation
from jupiterd.ctl.chat.endpoint.answer_chunks import Chunk, ModelFacts
from jupiterd.ctl.chat.endpoint.event_stream import Event
from jupiterd.ctl.chat.partner import Partner, Question, Reader, ask
from jupiterd.ctl.chat.sampling import Sampling
from jupiterd.errors import EngineLostError, PromptTooLongError, UsageError

CHARACTERS_PER_TOKEN = 4


@dataclass
class Model:
    """Answers in two words, and counts tokens as four characters each."""

    context_tokens: int = 10**9
    template: bool = True
    breaks: bool = False
    bodies: list[dict] = field(default_factory=list)

    async def facts(self, model):
        return ModelFacts(model)

    async def answer(self, place, body):
        self.bodies.append(body)
        if "messages" in body and not self.template:
            raise UsageError("this tokenizer has no chat template")
        texts = [each["content"] for each in body.get("messages", ())] or [body["prompt"]]
        tokens = sum(map(len, texts)) // CHARACTERS_PER_TOKEN
        if tokens > self.context_tokens:
            raise PromptTooLongError(f"{tokens} tokens, and {self.context_tokens} of context")
        yield Event(comment="keepalive 1/2")
        yield Chunk("one")
        if self.breaks:
            raise EngineLostError("the engine died")
        yield Chunk(" two", finish="stop")
        yield Chunk(prompt_tokens=tokens, completion_tokens=2)


@dataclass
class Asked:
    """A partner, and what its reader was told."""

    partner: Partner
    texts: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)
    clock: float = 0.0

    def now_s(self) -> float:
        self.clock += 1.0
        return self.clock

    async def ask(self, model, text="question", **sampling) -> AnswerProgress:
        reader = Reader(self.texts.append, self.waits.append, self.forgotten.append, self.now_s)
        writing = AnswerProgress(self.partner.facts, 0.0)
        await ask(model, self.partner, Question(text, Sampling(**sampling)), reader, writing)
        return writing


def asked(context_tokens=None, **facts) -> Asked:
    return Asked(Partner(ModelFacts("python/2", context_tokens=context_tokens, **facts)))


async def test_an_answer_is_told_as_it_comes_and_kept():
    model, talk = Model(), asked()
    writing = await talk.ask(model)
    assert (talk.texts, talk.waits) == (["one", " two"], ["keepalive 1/2"])
    assert (writing.text, writing.finish, writing.tokens) == ("one two", "stop", 2)
    assert (writing.first_token_s, writing.tokens_per_s) == (1.0, 1.0)
    assert talk.partner.facts.is_chat
    await talk.ask(model, "next")
    assert [each["content"] for each in model.bodies[1]["messages"]] == [
        "question", "one two", "next"
    ]  # fmt: skip


async def test_a_model_without_template_completes_from_then_on():
    model, talk = Model(template=False), asked()
    writing = await talk.ask(model)
    await talk.ask(model, "more", max_tokens=5)
    assert ["messages" in body for body in model.bodies] == [True, False, False]
    assert writing.facts.is_chat is False
    assert [body.get("max_tokens") for body in model.bodies] == [None, 256, 5]
    assert model.bodies[2]["prompt"] == "more"  # what it completed before isn't part of it


async def test_another_refusal_is_no_reason_to_complete():
    model, talk = Model(template=False), asked(is_chat=True)
    with pytest.raises(UsageError):
        await talk.ask(model)
    assert talk.partner.conversation.turns == ()


async def test_where_the_server_refuses_the_oldest_turns_are_left_out_one_by_one():
    model, talk = Model(context_tokens=12), asked()
    talk.partner.conversation = Conversation().with_turn("a" * 60, "b").with_turn("c" * 60, "d")
    await talk.ask(model)
    assert talk.forgotten == [2]
    assert [each["content"] for each in model.bodies[-1]["messages"]] == ["question"]
    assert len(talk.partner.conversation.turns) == 3
    with pytest.raises(PromptTooLongError, match="100 tokens, and 12 of context"):
        await talk.ask(model, "e" * 400)
    assert talk.partner.conversation.forgotten == 2, "where nothing helps, nothing is forgotten"


async def test_where_the_context_is_known_they_are_left_out_before_it_is_asked():
    model, talk = Model(), asked(context_tokens=40)
    for _ in range(3):
        await talk.ask(model, "x" * 40)
    before = len(model.bodies)
    await talk.ask(model, "x" * 40)
    assert len(model.bodies) == before + 1
    sent = sum(len(each["content"]) for each in model.bodies[-1]["messages"])
    assert sent / CHARACTERS_PER_TOKEN <= 30  # a quarter is kept for the answer
    assert talk.forgotten == sorted(talk.forgotten) != []


async def test_what_was_written_before_the_engine_died_is_kept():
    model, talk = Model(breaks=True), asked()
    with pytest.raises(EngineLostError):
        await talk.ask(model)
    [turn] = talk.partner.conversation.turns
    assert turn.answered == "one"


async def test_what_a_model_turned_out_to_be_stays_until_it_is_another():
    talk = asked(called="python/2")
    await talk.ask(Model(template=False))
    talk.partner.learn(ModelFacts("promoted", called="python/2", node="nuc"))
    assert (talk.partner.completes, talk.partner.facts.node) == (True, "nuc")
    talk.partner.learn(ModelFacts("promoted", called="python/3"))
    assert talk.partner.facts.is_chat is None


def test_an_answer_that_nobody_ended_was_stopped():
    writing = AnswerProgress(ModelFacts("m"), 0.0)
    writing.take(Chunk("half"), 1.0)
    assert (writing.finish, writing.tokens, writing.tokens_per_s) == (STOPPED, 1, None)
    assert AnswerProgress(ModelFacts("m"), 0.0).first_token_s is None
