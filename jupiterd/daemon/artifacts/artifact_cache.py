"""Artifacts as the daemon's work sees them: here already, or fetched from whoever has them.

Owns the question of where to look. Doesn't know hashes and chunks (`store`), or what an artifact
means.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import grpc

from jupiterd.cluster.artifacts.send_pace import SendPace
from jupiterd.daemon.artifacts.artifact_service import MAX_IDS
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.runtime.clock import now_s, wall_s
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.errors import JupiterError, NotFoundError
from jupiterd.ids import ArtifactId, NodeId, short
from jupiterd.net.artifact_source import PeerArtifactSource
from jupiterd.rpc import artifact_pb2
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.disk_room import DiskRoom
from jupiterd.store.single_file import file_of
from jupiterd.store.transfer import fetch

log = logging.getLogger(__name__)

ASK_TIMEOUT_S = 5.0
OTHERS_TIMEOUT_S = 0.1
"""How long others who may hold something, too, are waited for once one is known."""

SOON_S = 0.5

COPY_TIMEOUT_S = 120.0
"""What came of a copy by then isn't lost: whoever asks again has it go on from there."""


class ArtifactCache:
    """This node's artifact store, and fetching artifacts from other nodes."""

    def __init__(
        self,
        store: ArtifactStore,
        peers: Peers,
        alive: Callable[[], frozenset[NodeId]],
        group: asyncio.TaskGroup,
        pace: SendPace,
        trains: Callable[[], bool],
    ) -> None:
        """`trains` says whether ranks of a gang run here: what is sent leaves them room then."""
        self.store = store
        self._pace, self._trains = pace, trains
        self.known_whole: set[ArtifactId] = set()
        """Of artifacts that had to be: those that this process has read again, or written."""
        self.sent_bytes = 0
        """Of artifacts, to others, since this process began."""
        self._in_repair: set[ArtifactId] = set()
        self.peers = peers
        self._alive = alive
        self._group = group

    async def ensure(self, artifact: ArtifactId, like: Iterable[ArtifactId] = ()) -> Path:
        """Return the artifact's folder, fetching it first where needed.

        like: others that may hold parts of it, which aren't fetched again

        Raises:
            NotFoundError: no node that can be reached holds it.
        """
        if not self.store.holds(artifact):
            holders = await self._holders(artifact)
            if not holders:
                raise NotFoundError(
                    f"no node that can be reached holds artifact {short(artifact)}",
                    "start the machine that made it; the work goes on by itself",
                )
            with contextlib.ExitStack() as uses:
                used = _Sources(uses)
                sources = used.all_of(holders)
                await fetch(
                    self.store,
                    artifact,
                    sources,
                    meet=lambda node: used.of(self.peers.get(node)),
                    like=like,
                )
            log.info("artifact_fetched", extra={"artifact": short(artifact)})
        self.store.note_use(artifact, wall_s())
        return self.store.path(artifact)

    async def read(self, artifact: ArtifactId, path: str, most_bytes: int) -> bytes | None:
        """Return a small file of an artifact that may lie elsewhere; None where it can't be had."""
        if self.store.holds(artifact):
            return await asyncio.to_thread(_read, self.store.path(artifact) / path, most_bytes)
        holders = await self._holders(artifact)
        with contextlib.ExitStack() as uses:
            return await file_of(artifact, path, _Sources(uses).all_of(holders), most_bytes)

    def part_bytes(self, most_bytes: int) -> int:
        """Return how many bytes to send before `throttle` is called."""
        return self._pace.part_bytes(most_bytes)

    async def throttle(self, size_bytes: int, took_s: float) -> None:
        """Wait as long as is due after a part of an artifact was sent."""
        self.sent_bytes += size_bytes
        pause_s = self._pace.pause_s(now_s(), size_bytes, took_s, trains=self._trains())
        if pause_s:
            await asyncio.sleep(pause_s)

    async def replicate(self, artifact: ArtifactId, _asker: NodeId) -> None:
        """Bring an artifact here on a member's wish."""
        await self.ensure(artifact)

    def note_damage(self, artifact: ArtifactId) -> None:
        """Have a copy mended that turned out to be damaged."""
        self._group.create_task(self.mend(artifact), name=f"mend {short(artifact)}")

    async def mend(self, artifact: ArtifactId) -> None:
        """Fetch what is damaged of an artifact from somebody who has it.

        Where nobody in reach does, all is as it was: the rest of it is better than nothing, and may
        be just what another one's damaged copy lacks.
        """
        if artifact in self._in_repair or not self.store.holds(artifact):
            return
        self._in_repair.add(artifact)
        try:
            if not any([await self._has(peer, artifact) for peer in self._reachable()]):
                log.warning("artifact_damaged", extra={"artifact": short(artifact), "copies": 0})
                return
            self.known_whole.discard(artifact)
            await asyncio.to_thread(self.store.set_aside, artifact)
            await self._mended(artifact)
            log.warning("artifact_mended", extra={"artifact": short(artifact)})
        except JupiterError as error:
            extra = {"artifact": short(artifact), "reason": error.message}
            log.warning("artifact_not_mended", extra=extra)
        finally:
            self._in_repair.discard(artifact)

    async def _mended(self, artifact: ArtifactId) -> None:
        try:
            await self.ensure(artifact)
        except JupiterError:
            async with self.store.arrival(artifact):
                await asyncio.to_thread(self.store.put_back, artifact)
            raise

    async def is_in_reach(self, artifact: ArtifactId) -> bool:
        """Say whether this node or one that can be reached holds an artifact."""
        if self.store.holds(artifact):
            return True
        return any([await self._has(peer, artifact) for peer in self._reachable()])

    async def is_held_by(self, node: NodeId, artifact: ArtifactId) -> bool | None:
        """Say whether another node has an artifact; None where it doesn't say so soon."""
        if (peer := self.peers.get(node)) is None:
            return None
        request = artifact_pb2.HaveRequest(ids=[artifact])
        with contextlib.suppress(grpc.aio.AioRpcError), peer.channels.in_use() as channels:
            return artifact in (await channels.bulk.Have(request, timeout=SOON_S)).ids
        return None

    async def held_by(
        self, node: NodeId, artifacts: Sequence[ArtifactId], timeout_s: float = ASK_TIMEOUT_S
    ) -> tuple[NodeId, frozenset[ArtifactId], int] | None:
        """Return a node, what it has of these, and its free bytes; None where it doesn't say.

        As many calls are made as it takes to ask for all of them.
        """
        if node == self.peers.own:
            present = await asyncio.to_thread(
                lambda: frozenset(filter(self.store.holds, artifacts))
            )
            return node, present, await asyncio.to_thread(self.store.free_bytes)
        if (peer := self.peers.get(node)) is None:
            return None
        found: set[ArtifactId] = set()
        free_bytes = 0
        with contextlib.suppress(grpc.aio.AioRpcError):
            for start in range(0, len(artifacts), MAX_IDS):
                request = artifact_pb2.HaveRequest(ids=artifacts[start : start + MAX_IDS])
                reply = await peer.channels.bulk.Have(request, timeout=timeout_s)
                found.update(map(ArtifactId, reply.ids))
                free_bytes = reply.free_bytes
            return node, frozenset(found), free_bytes
        return None

    async def ensure_with_base(self, artifact: ArtifactId) -> None:
        """Fetch a model where it isn't here, and an adapter's base, too; raises as `ensure`."""
        await self.ensure(artifact)
        base = await asyncio.to_thread(self.store.base_of, artifact)
        if base is not None:
            await self.ensure(base)

    async def ensure_model(self, artifact: ArtifactId) -> Path:
        """Return the folder of a model's files, an adapter's with its base; raises as `ensure`."""
        await self.ensure_with_base(artifact)
        return await asyncio.to_thread(self.store.model_path, artifact)

    async def ensure_all(
        self, inputs: Mapping[str, ArtifactId], *, with_bases: bool = False
    ) -> dict[str, str]:
        """Return name -> path of every input's folder.

        with_bases: those of adapters have their bases beside them
        """
        ensure = self.ensure_model if with_bases else self.ensure
        return {name: str(await ensure(artifact)) for name, artifact in inputs.items()}

    async def spread(self, artifacts: Iterable[ArtifactId], nodes: Iterable[NodeId]) -> int:
        """See that a copy is on each of `nodes`; return how many there are.

        A node that can't take one now is passed over: copies are a status, not a condition.
        """
        chosen = list(nodes)
        sent = 0
        for artifact in artifacts:
            copies = await asyncio.gather(*(self.copy_to(node, artifact) for node in chosen))
            sent += copies.count(True)
        return sent

    async def copy_to(self, node: NodeId, artifact: ArtifactId) -> bool | None:
        """Have a node fetch an artifact; None where it hasn't refused, but isn't done in time."""
        peer = self.peers.get(node)
        if peer is None:
            return False
        request = artifact_pb2.ReplicateRequest(id=artifact)
        try:
            with peer.channels.in_use() as channels:
                return (await channels.bulk.Replicate(request, timeout=COPY_TIMEOUT_S)).held
        except grpc.aio.AioRpcError as error:
            return None if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED else False

    async def _holders(self, artifact: ArtifactId) -> list[Peer]:
        """Return who has it, or some of it; whoever doesn't answer holds nobody up once one has."""
        peers = self._reachable()
        questions = {
            asyncio.ensure_future(self._has(peer, artifact, any_of_it=True)): peer for peer in peers
        }
        found: list[Peer] = []
        waiting = set(questions)
        try:
            while waiting:
                timeout_s = OTHERS_TIMEOUT_S if found else None
                done, waiting = await asyncio.wait(
                    waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
                )
                found += [questions[question] for question in done if question.result()]
                if not done:
                    break
        finally:
            for question in waiting:
                question.cancel()
        return sorted(found, key=lambda peer: peer.node)

    def _reachable(self) -> list[Peer]:
        alive = self._alive()
        return sorted(
            (peer for peer in self.peers if peer.node in alive), key=lambda peer: peer.node
        )

    @staticmethod
    async def _has(peer: Peer, artifact: ArtifactId, *, any_of_it: bool = False) -> bool:
        request = artifact_pb2.HaveRequest(ids=[artifact])
        with contextlib.suppress(grpc.aio.AioRpcError):
            reply = await peer.channels.bulk.Have(request, timeout=ASK_TIMEOUT_S)
            return artifact in reply.ids or (any_of_it and artifact in reply.growing)
        return False


def store_of(folder: Path, settings: Settings) -> ArtifactStore:
    """Return this node's own artifacts, with as much room as its settings give."""
    room = DiskRoom(settings.store_gib << 30, settings.free_disk_mib << 20)
    return ArtifactStore(folder, room)


def pace_of(settings: Settings) -> SendPace:
    """Return how fast artifacts are sent to others, by the settings."""
    return SendPace(settings.bulk_mbit_per_s * 125_000, settings.bulk_share_percent / 100)


def _read(path: Path, most_bytes: int) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
    except OSError:
        return None
    return data if len(data) <= most_bytes else None


class _Sources:
    """The peers that one fetch uses; each is one source, however often it is met."""

    def __init__(self, uses: contextlib.ExitStack) -> None:
        self._uses = uses
        self._nodes: set[NodeId] = set()

    def all_of(self, peers: Iterable[Peer]) -> list[PeerArtifactSource]:
        return [source for peer in peers if (source := self.of(peer)) is not None]

    def of(self, peer: Peer | None) -> PeerArtifactSource | None:
        if peer is None or peer.node in self._nodes:
            return None
        self._nodes.add(peer.node)
        channels = self._uses.enter_context(peer.channels.in_use())
        return PeerArtifactSource(peer.name, channels.bulk)
