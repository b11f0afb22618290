"""Prompts that are refused for now: when they are asked again, and for how long."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from jupiterd.cluster.serving.request_error import ErrorAnswer, RequestError
from jupiterd.daemon.serving.answering import Answer
from jupiterd.daemon.serving.answers import asking_again
from jupiterd.daemon.serving.answers.asking_again import AskingAgain
from jupiterd.errors import BusyError, EngineLostError

BUSY = BusyError("full", retry_after_s=0.001)
Refusal = BusyError | RequestError | EngineLostError


def of_status(status: int, retry_after_s: int | None = None) -> RequestError:
    return RequestError(ErrorAnswer(status, "no", retry_after_s=retry_after_s))


class Refusing:
    """Answers after it has refused so often."""

    def __init__(self, *refusals: Refusal) -> None:
        self._refusals, self.asked, self.running = [*refusals], 0, 0

    @asynccontextmanager
    async def __call__(self) -> AsyncGenerator[Answer]:
        self.asked += 1
        if self._refusals:
            raise self._refusals.pop(0)
        self.running += 1
        try:
            yield Answer(200, "application/json", nothing())
        finally:
            self.running -= 1


async def nothing() -> AsyncGenerator[bytes]:
    for nothing_at_all in ():
        yield nothing_at_all


async def after_another(refusing: Refusing) -> None:
    again = AskingAgain()
    async with again.answering(Refusing()):
        pass
    async with again.answering(refusing):
        assert refusing.running == 1
    assert refusing.running == 0


@pytest.mark.parametrize("refusal", [BUSY, of_status(429), of_status(503)])
async def test_it_is_asked_again_after_another_prompt_was_taken(
    monkeypatch: pytest.MonkeyPatch, refusal: Refusal
) -> None:
    monkeypatch.setattr(asking_again, "USUAL_WAIT_S", 0.001)
    refusing = Refusing(refusal, refusal)
    await after_another(refusing)
    assert refusing.asked == 3


async def test_a_request_of_which_nothing_was_taken_is_refused_at_once() -> None:
    refusing = Refusing(BUSY)
    with pytest.raises(BusyError):
        async with AskingAgain().answering(refusing):
            pass
    assert refusing.asked == 1


@pytest.mark.parametrize("refusal", [of_status(400), EngineLostError("it died")])
async def test_what_another_try_would_not_change_is_refused_at_once(refusal: Refusal) -> None:
    refusing = Refusing(refusal)
    with pytest.raises(type(refusal)):
        await after_another(refusing)
    assert refusing.asked == 1


async def test_the_wait_of_a_whole_request_is_bounded_however_long_each_refusal_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking_again, "MOST_WAIT_S", 0.01)
    refusing = Refusing(*[BusyError("full", retry_after_s=3600.0)] * 9)
    with pytest.raises(BusyError):
        await after_another(refusing)
    assert refusing.asked == 2


async def test_an_answer_that_has_begun_is_not_asked_for_again() -> None:
    again, taken = AskingAgain(), Refusing()
    with pytest.raises(BusyError):
        async with again.answering(taken):
            raise BUSY
    assert (taken.asked, taken.running) == (1, 0)
