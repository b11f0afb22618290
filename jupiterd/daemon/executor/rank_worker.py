"""One rank of a gang on this node: its events, and the leader that follows it.

Owns its events and its time without a leader. Doesn't know how a worker is run, or what its events
mean. Leaders may change: each follows it from its first event on.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from jupiterd.cluster.training.gang_watchdog import ALIVE_S, BEAT_S
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    BUSY,
    Alive,
    CheckpointStored,
    LocalWorkEvent,
    PseudoGradientStored,
    SaveRequest,
    Started,
    StateStored,
    WorkEvent,
    WorkOrder,
)
from jupiterd.errors import JupiterError, RefusedError, from_wire
from jupiterd.protocol.frames import CheckpointUnsaved, Preparing, Progressed, RankStuck

log = logging.getLogger(__name__)

REPORTED_CHECKPOINTS = 16
"""How many a new leader gets. The ones before were recorded, or these contain them."""


SaveState = Callable[[str, int], bool]
"""Asks the worker of an order for its last finished step, if later than that; is there one?"""


class WorkerReport:
    """The events that a new follower gets: the latest of each kind that still count."""

    def __init__(self) -> None:
        self._events: list[tuple[int, WorkEvent]] = []
        self._count = 0

    def keep(self, event: WorkEvent) -> None:
        """Add an event, and drop those that it makes superfluous."""
        self._count += 1
        self._events.append((self._count, event))
        if isinstance(event, Progressed):
            # A step's readings count though the rank says right after it that it writes.
            self._keep_newest(Progressed, 1, is_busy=_is_busy(event))
            self._keep_newest(Preparing, 0)
        elif isinstance(event, Preparing):
            self._keep_newest(Preparing, 1)
        elif isinstance(event, CheckpointStored):
            self._keep_newest(CheckpointStored, REPORTED_CHECKPOINTS)
        elif isinstance(event, PseudoGradientStored):
            self._keep_newest(PseudoGradientStored, 1)
        elif isinstance(event, CheckpointUnsaved):
            self._keep_newest(CheckpointUnsaved, 1)

    def after(self, number: int) -> list[tuple[int, WorkEvent]]:
        """Return the stored (number, event) pairs after that number."""
        return [numbered for numbered in self._events if numbered[0] > number]

    def has(self, kind: type[WorkEvent]) -> bool:
        """Say whether an event of that kind is stored."""
        return any(isinstance(event, kind) for _, event in self._events)

    def newest_checkpoint(self) -> CheckpointStored | None:
        """Return the last stored checkpoint, or None."""
        checkpoints = [event for _, event in self._events if isinstance(event, CheckpointStored)]
        return checkpoints[-1] if checkpoints else None

    def _keep_newest(self, kind: type[WorkEvent], most: int, *, is_busy: bool = False) -> None:
        found = [
            (number, event)
            for number, event in self._events
            if isinstance(event, kind) and _is_busy(event) == is_busy
        ]
        old = found[: max(len(found) - most, 0)]
        self._events = [numbered for numbered in self._events if numbered not in old]


def _is_busy(event: WorkEvent) -> bool:
    return isinstance(event, Progressed) and bool(event.values.get(BUSY))


async def _within(news: asyncio.Event, timeout_s: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await news.wait()
    return news.is_set()


class RankWorker:
    """A worker that doesn't end with the leader that ordered it."""

    def __init__(self, order: WorkOrder, grace_s: float, save_state: SaveState) -> None:
        self.order = order
        self._save_state = save_state
        self._answer: asyncio.Future[CheckpointStored | None] | None = None
        self.term = order.term
        """The term of the leader that follows it, or did so last."""
        self.task: asyncio.Task[None] | None = None
        """Runs `work`; cancelling it ends the worker."""
        self._grace_s = grace_s
        self._report = WorkerReport()
        self._began_s = 0.0
        self._error: Exception | None = None
        self._is_over = False
        self._news = asyncio.Event()
        self._turn = 0
        self._waiting: asyncio.TimerHandle | None = None
        self._soon: asyncio.TimerHandle | None = None
        self._step_reported_s = -math.inf

    @property
    def is_followed(self) -> bool:
        """Say whether a leader follows it just now, as far as this node knows."""
        return self._waiting is None

    @property
    def has_stepped(self) -> bool:
        """Say whether it is a rank that has done a step, so that there is something to save."""
        return self._report.has(Progressed)

    def is_outdated_by(self, order: WorkOrder) -> bool:
        """Say whether an accepted order outranks this rank; one leader may train two cycles."""
        if order.attempt == self.order.attempt:
            return False
        is_served = self.is_followed and self.term == order.term
        return order.cycle == self.order.cycle or not is_served

    async def work(self, events: AsyncGenerator[LocalWorkEvent]) -> None:
        """Run it, and stay when it is done: a later leader must get its result too."""
        try:
            async with aclosing(events):
                async for event in events:
                    self._take_event(event)
        except JupiterError as error:
            self._error = self._error or error
        except Exception as error:  # ours: its follower gets it, and the daemon goes on
            log.exception("held_work_failed", extra={"order": self.order.id})
            self._error = self._error or error
        self._is_over = True
        self._notify()
        self._take(None)
        if self.task is None or not self.task.cancelling():  # or ending it has only failed
            await asyncio.Event().wait()

    async def follow(self) -> AsyncGenerator[WorkEvent]:
        """Yield what it said so far and says from now on; whoever followed it before is sent off.

        Raises:
            JupiterError: it failed, it was ended, or another leader follows it.
        """
        self._turn += 1
        turn, seen = self._turn, 0
        self._stop_waiting()
        self._notify()
        try:
            while True:
                news, is_over = self._news, self._is_over  # as of before we look
                for numbered in self._report.after(seen):
                    seen, event = numbered
                    yield self._dated(event)
                if turn != self._turn:
                    raise RefusedError("another leader follows this work", "nothing needs doing")
                if is_over:
                    break
                if not await _within(news, ALIVE_S):
                    yield Alive()
            if self._error is not None:
                raise self._error
        finally:
            if turn == self._turn:
                self._wait_for_another()

    async def last_step(self, save: SaveRequest) -> CheckpointStored | None:
        """Return the last finished step that is in the store, if it is later than wished.

        The worker is asked for its own; one that is done has left a checkpoint.
        """
        found = [await self._ask_worker(save), self._report.newest_checkpoint()]
        later = [
            each for each in found if each is not None and each.progress.step > save.after_step
        ]
        return max(later, key=lambda each: each.progress.step, default=None)

    async def _ask_worker(self, save: SaveRequest) -> CheckpointStored | None:
        if not self._save_state(self.order.id, save.after_step):
            return None
        answer = self._answer = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait({answer}, timeout=save.within_s)
        finally:
            self._answer = None
        return answer.result() if answer.done() else None

    def fail(self, why: JupiterError) -> None:
        """Let whoever follows it see it fail; its worker stays, with what it has finished."""
        self._error = self._error or why
        self._is_over = True
        self._notify()

    async def end(self, why: JupiterError) -> None:
        """End its worker, and return when it is gone; its follower gets the reason."""
        if self.task is not None:
            self._cancel(self.task, why)
            await asyncio.wait({self.task})

    def _take_event(self, event: LocalWorkEvent) -> None:
        match event:
            case StateStored(checkpoint):
                self._take(checkpoint)
            case RankStuck(code, message, hint):
                self.fail(from_wire(code, message, hint))
            case _:
                self._began_s = now_s() if isinstance(event, Started) else self._began_s
                self._report.keep(event)
        if isinstance(event, Progressed):
            self._notify_soon()
        else:
            self._notify()

    def _take(self, checkpoint: CheckpointStored | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(checkpoint)

    def close(self) -> None:
        """Notify its follower that the worker is gone."""
        self._stop_waiting()
        self._is_over = True
        self._take(None)
        self._notify()

    def _dated(self, event: WorkEvent) -> WorkEvent:
        is_start = isinstance(event, Started)
        return replace(event, running_s=now_s() - self._began_s) if is_start else event

    def _wait_for_another(self) -> None:
        if self.task is not None and not self.task.done():
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(self._grace_s, self._give_up, self.task)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self, task: asyncio.Task[None]) -> None:
        if self._answer is not None:  # a leader waits for what it keeps, which has its own limit
            self._wait_for_another()
            return
        if not self._is_over:
            log.warning("nobody_follows", extra={"order": self.order.id})
        self._cancel(task, RefusedError("it was ended here, since nobody followed it"))

    def _cancel(self, task: asyncio.Task[None], why: JupiterError) -> None:
        """Cancel, but once: a second one would disturb the ending of the worker."""
        if not self._is_over and self._error is None:
            self._error = why
        if not task.cancelling():
            task.cancel()

    def _notify_soon(self) -> None:
        """Notify of steps at most every BEAT_S: only the latest one counts."""
        if self._soon is not None:
            return
        wait_s = max(0.0, self._step_reported_s + BEAT_S - now_s())
        self._step_reported_s = now_s() + wait_s
        if wait_s > 0.0:
            self._soon = asyncio.get_running_loop().call_later(wait_s, self._notify)
        else:
            self._notify()

    def _notify(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        self._news.set()
        self._news = asyncio.Event()
