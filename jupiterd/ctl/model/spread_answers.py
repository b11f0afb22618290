"""Has the models of several machines answer what the harness asks, batch by batch.

Owns the side that asks: who is at which batch (`cycle.questions.batch_plan`), and what people are
told of a machine that is lost. Doesn't know how a machine is asked.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol

from jupiterd.cycle.questions.batch_plan import BatchPlan
from jupiterd.cycle.questions.task_requests import (
    MAX_TRAVELLING_BYTES,
    TaskRequest,
    batches_of,
    read_answers,
    requests_text,
)
from jupiterd.errors import JupiterError, WorkFailedError

HOME: Final = "this machine"

Told = Callable[[int, int], None]
"""Told how many requests are answered, of how many."""


class AnswersLines(Protocol):
    """A model on one machine."""

    async def answers(self, lines: str) -> str:
        """Return the answers to a batch; raises JupiterError."""
        ...


OpensModel = Callable[[], AbstractAsyncContextManager[AnswersLines]]


class _Asked:
    """What one call of the harness asks, and the answers so far."""

    def __init__(self, requests: Sequence[TaskRequest], machines: int) -> None:
        self.batches = batches_of(requests, machines)
        self.lines = [requests_text(batch) for batch in self.batches]
        staying = [
            number
            for number, batch in enumerate(self.batches)
            if not all(each.travels for each in batch)
            or len(self.lines[number].encode()) > MAX_TRAVELLING_BYTES
        ]
        self.needs_home = bool(staying)
        self.plan = BatchPlan(len(self.batches), staying, HOME)
        self.answers: dict[int, list[Any]] = {}

    def in_order(self) -> list[Any]:
        return [answer for number in range(len(self.batches)) for answer in self.answers[number]]


class SpreadAnswers:
    """The machines that have a model."""

    def __init__(
        self, models: Mapping[str, OpensModel], told: Told, lost: Callable[[str], None]
    ) -> None:
        """`models`: what opens each machine's, by its name, HOME among them; `lost`: for people."""
        self._models, self._told, self._lost = models, told, lost
        self._alive = set(models)
        self._why: dict[str, JupiterError] = {}
        self._changed = asyncio.Condition()
        self._asked: _Asked | None = None
        self._done = self._total = 0
        self.answered_by: set[str] = set()
        """Whose answers counted."""

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Let all machines load the model; they are let go with the context."""
        asking = [
            asyncio.get_running_loop().create_task(self._ask(name, model), name=f"asking {name}")
            for name, model in self._models.items()
        ]
        try:
            yield
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    async def answers(self, requests: Sequence[TaskRequest]) -> list[Any]:
        """Return the answers to what one call of the harness asks, in its order.

        Raises:
            JupiterError: no machine is left that can.
        """
        if not requests:
            return []
        async with self._changed:
            asked = self._asked = _Asked(requests, len(self._models))
            self._total += len(requests)
            self._changed.notify_all()
            await self._changed.wait_for(lambda: asked.plan.is_over or self._is_stuck(asked))
        if not asked.plan.is_over:
            raise self._why.get(HOME) or next(iter(self._why.values()))
        self.answered_by |= set(asked.plan.answered_by)
        return asked.in_order()

    def _is_stuck(self, asked: _Asked) -> bool:
        return not self._alive or (asked.needs_home and HOME not in self._alive)

    async def _ask(self, name: str, model: OpensModel) -> None:
        """Have one machine answer for as long as it can."""
        try:
            async with model() as opened:
                while True:
                    asked, number = await self._next(name)
                    lines = await opened.answers(asked.lines[number])
                    answers = read_answers(lines, asked.batches[number])
                    await self._take(name, asked, number, answers)
        except JupiterError as error:
            await self._lose(name, error)
        except Exception as error:  # noqa: BLE001 - whatever fails, the others go on
            await self._lose(name, WorkFailedError(f"a batch can't be handed over: {error!r}"))

    async def _next(self, name: str) -> tuple[_Asked, int]:
        async with self._changed:
            while True:
                asked = self._asked
                number = None if asked is None else asked.plan.take(name)
                if asked is not None and number is not None:
                    return asked, number
                await self._changed.wait()

    async def _take(self, name: str, asked: _Asked, number: int, answers: list[Any]) -> None:
        async with self._changed:
            if asked.plan.answer(name, number):
                asked.answers[number] = answers
                self._done += len(answers)
                self._told(self._done, self._total)
            self._changed.notify_all()

    async def _lose(self, name: str, error: JupiterError) -> None:
        async with self._changed:
            self._alive.discard(name)
            self._why[name] = error
            orphans = [] if self._asked is None else self._asked.plan.lose(name)
            self._changed.notify_all()
        if self._alive:
            self._lost(_lost_line(name, error, len(orphans)))


def _lost_line(name: str, error: JupiterError, orphans: int) -> str:
    said = f"{name} is asked no more: {error.message}"
    return f"{said}; others answer its batch" if orphans else said
