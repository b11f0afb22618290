"""Workers that say what a test lets them say, in place of processes.

Owns their events and who of them runs. Knows nothing of leaders.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator

from jupiterd.daemon.runtime.work_events import (
    Finished,
    LocalWorkEvent,
    Started,
    WorkOrder,
)
from jupiterd.rpc import peer_pb2

PID = 7


class Workers:
    """Runs orders: each starts, and then says what the test hands it."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.at_end: tuple[asyncio.Event, asyncio.Event] | None = None
        """The first is set when a worker is being ended, which takes until the second is set."""
        self.wanted: list[tuple[str, int]] = []
        """Who was asked for its last finished step, and after which."""
        self.stopped: list[str] = []
        """Who was asked to stop after its running step."""
        self.at_keep: dict[str, tuple[LocalWorkEvent | Exception, ...]] = {}
        """What an order's worker says to that."""
        self._has_ended = asyncio.Event()
        self._words: defaultdict[str, asyncio.Queue[LocalWorkEvent | Exception]] = defaultdict(
            asyncio.Queue
        )

    def say(self, order: str, *words: LocalWorkEvent | Exception) -> None:
        for word in words:
            self._words[order].put_nowait(word)

    async def prepare(self, request: peer_pb2.PrepareRanksRequest) -> peer_pb2.PrepareRanksReply:
        """Have room for everything."""
        return peer_pb2.PrepareRanksReply(micro_batch=request.needs[0].micro_batch)

    async def all_ended(self) -> None:
        while self.running:
            self._has_ended.clear()
            await self._has_ended.wait()

    def save_state(self, order: str, after_step: int) -> bool:
        self.wanted.append((order, after_step))
        for word in self.at_keep.get(order, ()):
            self.say(order, word)
        return order in self.running

    def ask_to_stop(self, order: str, _reason: str) -> bool:
        self.stopped.append(order)
        return order in self.running

    async def run(self, order: WorkOrder) -> AsyncGenerator[LocalWorkEvent]:
        self.running.add(order.id)
        try:
            yield Started(PID, "cpu")
            while True:
                word = await self._words[order.id].get()
                if isinstance(word, Exception):
                    raise word
                yield word
                if isinstance(word, Finished):
                    return
        finally:
            if self.at_end is not None:
                self.at_end[0].set()
                await self.at_end[1].wait()
            self.running.discard(order.id)
            self._has_ended.set()
