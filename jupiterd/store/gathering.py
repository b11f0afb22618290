"""Fetches the chunks of one artifact from several sources at once.

Owns the lanes on which sources are used, and the treatment of slow, broken and lying ones. Doesn't
know which chunk comes from which source (`chunk_scheduler`), or the transport of a source.

A lane requests a batch from its source, fetches it, writes it, and requests the next. Two lanes of
a source keep its link busy while one writes its last chunk or requests its next batch.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from jupiterd.errors import (
    DiskFullError,
    JupiterError,
    NotFoundError,
    PeerUnreachableError,
    StateDirError,
)
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.ports import ArtifactSource
from jupiterd.store.assembly import Assembly, ReceivedBytes, Whole
from jupiterd.store.backlog import Backlog
from jupiterd.store.bitmap import of, packed
from jupiterd.store.chunk_scheduler import ChunkScheduler
from jupiterd.store.partial import PartialArtifact
from jupiterd.store.partial_availability import PartialAvailability

LANES: Final = 2
MAX_SOURCES: Final = 16
WAIT_S: Final = 1.0
"""Seconds that a source which is still fetching may wait before it answers with no chunk."""

PAUSE_S: Final = 0.05
"""Seconds after an answer without chunks, so that a source that never waits isn't polled."""

_log = logging.getLogger(__name__)


class Gathering:
    """One fetch of an artifact; `run` returns when it is complete."""

    def __init__(
        self,
        artifact: ArtifactId,
        partial: PartialArtifact,
        growth: PartialAvailability,
        stall_s: float,
        meet: Callable[[NodeId], ArtifactSource | None],
    ) -> None:
        """`meet` turns a node that fetches the same into a source."""
        self._artifact = artifact
        self._partial = partial
        self._growth = growth
        self._stall_s = stall_s
        self._meet = meet
        chunks = partial.manifest.chunks
        usual_bytes = partial.manifest.size_bytes // max(1, len(chunks))
        self._claims = ChunkScheduler(partial.lacking, max(1, usual_bytes))
        self._met: set[NodeId] = set()
        self._lanes: dict[int, list[asyncio.Task[None]]] = {}
        """Source number -> the lanes of a source in use."""
        self._count = 0
        self._turn = asyncio.Lock()
        """Locked by the lane that writes."""
        self._clock = asyncio.get_running_loop().time
        self._moved_s = self._clock()
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self._failure: JupiterError | None = None

    async def run(self, sources: Sequence[ArtifactSource]) -> None:
        """Fetch the missing chunks.

        Raises:
            JupiterError: every source failed; this is the last one's failure.
            DiskFullError, StateDirError: it can't be written here.
        """
        if not self._claims.missing:
            return
        async with asyncio.TaskGroup() as group:
            for source in sources:
                self._use(source, group)
            await self._ended.wait()
            for lanes in self._lanes.values():
                for lane in lanes:
                    lane.cancel()
        if self._claims.missing:
            raise self._failure or NotFoundError(
                f"artifact {self._artifact[:8]} is on no node that can be reached"
            )

    def _use(self, source: ArtifactSource, group: asyncio.TaskGroup) -> None:
        if len(self._lanes) < MAX_SOURCES:
            number, self._count = self._count, self._count + 1
            self._lanes[number] = [
                group.create_task(self._lane(number, source, group), name=f"fetch {source.name}")
                for _ in range(LANES)
            ]

    async def _lane(self, number: int, source: ArtifactSource, group: asyncio.TaskGroup) -> None:
        try:
            while self._claims.missing:
                await self._batch(number, source, group)
            self._ended.set()
        except (DiskFullError, StateDirError) as error:  # ours: no other source would help
            self._failure = error
            self._ended.set()
        except JupiterError as error:
            self._give_up(number, source, error)

    def _give_up(self, number: int, source: ArtifactSource, error: JupiterError) -> None:
        lanes = self._lanes.pop(number, None)
        if lanes is None:
            return  # its other lane has met the same
        _log.warning(
            "artifact source failed source=%s id=%s error=%s", source.name, self._artifact, error
        )
        for lane in lanes:
            if lane is not asyncio.current_task():
                lane.cancel()
        self._claims.release(number)
        self._failure = error
        self._wake()
        if not self._lanes:
            self._ended.set()

    async def _batch(self, number: int, source: ArtifactSource, group: asyncio.TaskGroup) -> None:
        wanted = self._claims.wanted(number, self._clock())
        if not wanted:
            await self._something_to_want(number)
            return
        drawn, others = await self._draw(source, wanted)
        self._meet_all(others, group)
        mine = self._claims.claim(number, drawn, self._clock())
        if mine:
            await self._bring(number, source, mine)
        elif not drawn:
            self._check_moving(source)
            await asyncio.sleep(PAUSE_S)

    async def _something_to_want(self, number: int) -> None:
        """Wait until a source lets go of something, or somebody's chunks are overdue."""
        at_s, changed = self._claims.overdue_at_s(number), self._changed
        if at_s is not None:
            at_s = max(at_s, self._clock() + PAUSE_S)
        try:
            async with asyncio.timeout_at(at_s):
                await changed.wait()
        except TimeoutError:
            return

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _draw(self, source: ArtifactSource, wanted: int) -> tuple[list[int], list[NodeId]]:
        max_bytes = self._claims.batch_bytes(wanted, len(self._lanes))
        try:
            async with asyncio.timeout(WAIT_S + self._stall_s):
                drawn, others = await source.draw(self._artifact, packed(wanted), max_bytes, WAIT_S)
        except TimeoutError as error:
            raise self._silent(source) from error
        count = len(self._partial.manifest.chunks)
        return [chunk for chunk in drawn if 0 <= chunk < count], others

    def _meet_all(self, others: list[NodeId], group: asyncio.TaskGroup) -> None:
        for node in others:
            if node not in self._met and len(self._met) < 4 * MAX_SOURCES:
                self._met.add(node)
                if (source := self._meet(node)) is not None:
                    self._use(source, group)

    def _check_moving(self, source: ArtifactSource) -> None:
        """Abandon a source without chunks for us where no other source has delivered for long."""
        if self._clock() - self._moved_s > self._stall_s:
            raise PeerUnreachableError(f"{source.name} has no more of it than we")

    def _silent(self, source: ArtifactSource) -> PeerUnreachableError:
        return PeerUnreachableError(f"{source.name} sent nothing for {self._stall_s:g} s")

    async def _bring(self, number: int, source: ArtifactSource, chunks: list[int]) -> None:
        """Fetch a batch from a source and write it."""
        assembly = Assembly(self._partial.manifest, chunks)
        async with (
            Backlog(self._write, self._turn) as backlog,
            _closing(source.fetch(self._artifact, assembly.ranges)) as pieces,
        ):
            while piece := await self._next_piece(source, pieces):
                if piece[1] and (complete := assembly.feed(*piece)):  # nothing: wait for our turn
                    await backlog.add(complete)
            if assembly.is_waiting:
                raise PeerUnreachableError(f"{source.name} ended before all of it came")
        self._claims.release(number, of(chunks))

    async def _write(self, chunks: list[Whole]) -> None:
        news = [each for each in chunks if self._claims.missing >> each[0] & 1]
        await asyncio.to_thread(self._partial.write_all, news)
        self._moved_s = self._clock()
        self._claims.arrived(of(index for index, _ in news), self._moved_s)
        self._growth.keep(news)
        self._growth.note()
        if not self._claims.missing:
            self._ended.set()

    async def _next_piece(
        self, source: ArtifactSource, pieces: AsyncIterator[ReceivedBytes]
    ) -> ReceivedBytes | None:
        try:
            async with asyncio.timeout(self._stall_s):
                return await anext(pieces, None)
        except TimeoutError as error:
            raise self._silent(source) from error


@asynccontextmanager
async def _closing(
    pieces: AsyncIterator[ReceivedBytes],
) -> AsyncGenerator[AsyncIterator[ReceivedBytes], None]:
    """Let a source know at once that no more is wanted."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
