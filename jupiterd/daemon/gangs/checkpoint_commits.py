"""Recording an attempt's checkpoints while it is followed: copying a large one takes minutes.

Owns their order, and which aren't recorded yet. Doesn't know how one is recorded
(`checkpoint_lineage`).
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from jupiterd.daemon.runtime.work_events import CheckpointStored
from jupiterd.ids import NodeId

MAX_WAITING = 16
"""How many may wait to be copied; the oldest is left out, for a later one contains it."""

Commit = Callable[[NodeId, CheckpointStored], Awaitable[None]]


class CheckpointCommits:
    """The checkpoints of one attempt that are yet to be recorded."""

    def __init__(self) -> None:
        self._waiting = deque[tuple[NodeId, CheckpointStored]](maxlen=MAX_WAITING)
        self._now: tuple[NodeId, CheckpointStored] | None = None
        self._news = asyncio.Event()
        self._is_complete = False
        self._held: list[tuple[NodeId, CheckpointStored]] | None = None

    @property
    def unrecorded(self) -> Sequence[tuple[NodeId, CheckpointStored]]:
        """Return checkpoints that weren't recorded before the attempt ended, and who has them."""
        return [*([] if self._now is None else [self._now]), *self._waiting, *(self._held or ())]

    def hold(self) -> None:
        """Have nothing recorded from now on: the ranks stop, and each machine writes its own.

        One of them is recorded then, and where several have the same, nothing is copied.
        """
        self._held = [] if self._held is None else self._held

    def add(self, holder: NodeId, made: CheckpointStored) -> None:
        """Have a checkpoint recorded after those before it."""
        if self._held is not None:
            self._held.append((holder, made))
            return
        self._waiting.append((holder, made))
        self._news.set()

    @asynccontextmanager
    async def committing(self, commit: Commit) -> AsyncGenerator[None]:
        """Record meanwhile; leaving the context waits for the rest, an error leaves it undone."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._commit_all(commit))
            yield
            self._is_complete = True
            self._news.set()

    async def _commit_all(self, commit: Commit) -> None:
        while self._waiting or not self._is_complete:
            if not self._waiting:
                self._news.clear()
                await self._news.wait()
                continue
            self._now = self._waiting.popleft()
            await commit(*self._now)
            self._now = None
