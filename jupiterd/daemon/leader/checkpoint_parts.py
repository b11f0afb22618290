"""The parts of checkpoints that ranks write side by side, put together at the leader.

Owns which parts belong together, and that each whole set becomes a checkpoint while training goes
on. Doesn't know how bytes are placed (`checkpoint_assembly`), or how a checkpoint is recorded.

A part lies with its writer and, once it is put together, with the leader; the checkpoint gets a
second place as any other does.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from jupiterd.daemon.artifacts.checkpoint_assembly import assemble
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.runtime.work_events import CheckpointStored
from jupiterd.errors import DiskFullError, JupiterError, WorkFailedError
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.disk import NO_ROOM, is_no_room

log = logging.getLogger(__name__)

Add = Callable[[NodeId, CheckpointStored], None]
"""Takes a checkpoint that is whole, and who holds it."""


Failed = Callable[[int, str], None]
"""Told of the step whose parts couldn't be put together, and why."""


def _nobody(_step: int, _reason: str) -> None:
    """Tell nobody."""


def _none() -> int:
    return 0


class CheckpointParts:
    """Those of one attempt."""

    def __init__(
        self,
        reach: ArtifactReach,
        self_id: NodeId,
        ranks: int,
        failed: Failed = _nobody,
        recorded_step: Callable[[], int] = _none,
    ) -> None:
        """Take who is told of a set that can't be made, and the last step recorded by now."""
        self._reach, self._self_id, self._ranks = reach, self_id, ranks
        self._failed, self._recorded_step = failed, recorded_step
        self._sets: dict[int, dict[int, tuple[NodeId, CheckpointStored]]] = {}
        """Step -> rank -> who holds its part, and the part."""
        self._rest: list[tuple[NodeId, CheckpointStored]] = []
        self._news = asyncio.Event()
        self._is_complete = False

    def add(self, rank: int, holder: NodeId, part: CheckpointStored) -> None:
        """Take in a rank's part; of a step that is recorded only a new leader is told again."""
        if part.progress.step <= self._recorded_step():
            return
        self._sets.setdefault(part.progress.step, {})[rank] = (holder, part)
        self._news.set()

    @asynccontextmanager
    async def assembling(self, add: Add) -> AsyncGenerator[None]:
        """Put together meanwhile; leaving the context waits for the rest, an error leaves it.

        Raises:
            JupiterError: the last set couldn't be put together, and nothing follows it.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._assemble_all(add))
            yield
            self._is_complete = True
            self._news.set()

    async def rest(self) -> list[tuple[NodeId, CheckpointStored]]:
        """Return the last set that is whole and wasn't put together, as a checkpoint by now.

        Also the one that was about to be when its attempt ended. Asked again, it is the same.
        """
        while self._whole and not self._rest:  # one that can't be made is logged, and is no more
            with suppress(JupiterError):
                await self._assemble_newest(lambda node, made: self._rest.append((node, made)))
        return self._rest

    @property
    def _whole(self) -> list[int]:
        """Return the steps of which all parts are there."""
        return [step for step, found in self._sets.items() if len(found) == self._ranks]

    async def _assemble_all(self, add: Add) -> None:
        while True:
            try:
                if await self._assemble_newest(add):
                    continue
            except JupiterError:  # it was told, and the next one contains all of it
                if self._is_complete and not self._whole:
                    raise
                continue
            if self._is_complete:
                return
            self._news.clear()
            await self._news.wait()

    async def _assemble_newest(self, add: Add) -> bool:
        """Make a checkpoint of the last whole set, and forget those before; say if there was one.

        Raises:
            JupiterError: a part can't be had, or there is no room.
        """
        if not self._whole:
            return False
        newest = max(self._whole)
        parts = [self._sets[newest][rank] for rank in range(self._ranks)]
        others = [part.artifact for node, part in parts if node != self._self_id]
        try:
            artifact = await self._made([part.artifact for _, part in parts])
        except JupiterError as error:
            del self._sets[newest]
            extra = {"step": newest, "reason": error.message}
            log.warning("checkpoint_not_assembled", extra=extra)
            self._failed(newest, error.message)
            await self._drop(others)  # a full disk is full of them
            raise
        self._sets = {step: each for step, each in self._sets.items() if step > newest}
        log.info("checkpoint_assembled", extra={"step": newest, "artifact": artifact})
        add(self._self_id, CheckpointStored(artifact, parts[0][1].progress))
        await self._drop(others)
        return True

    async def _made(self, parts: list[ArtifactId]) -> ArtifactId:
        store = self._reach.artifact_cache.store
        for part in parts:
            await self._reach.fetch(part)
        folders = [store.path(part) for part in parts]
        return await asyncio.to_thread(partial(_assembled, store, folders))

    async def _drop(self, fetched: list[ArtifactId]) -> None:
        """Give up other nodes' parts here: the checkpoint has all of them, or there is none."""
        store = self._reach.artifact_cache.store
        for part in fetched:
            with suppress(JupiterError):  # then it goes with what nobody needs
                await asyncio.to_thread(store.remove, part)


def _assembled(store: ArtifactStore, parts: list[Path]) -> ArtifactId:
    """Return a checkpoint of these parts, in the store.

    Raises:
        CorruptArtifactError: they don't make up a whole one.
        DiskFullError: there is no room.
        WorkFailedError: a part was removed meanwhile, or the disk fails.
    """
    try:
        with store.draft() as draft:
            assemble(parts, draft)
            return store.ingest(draft)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and is_no_room(error):
            raise DiskFullError(NO_ROOM) from error
        raise WorkFailedError(f"parts couldn't be put together: {error}") from error
