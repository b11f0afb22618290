"""One node of these figures, in a process of its own: a store, the real server, and real links.

Owns carrying out what its standard input says, a line of JSON each, with a line in answer. It has
no heartbeats and no ledger: who is a member, it is told.

python -m tests.bench.artifacts.station FOLDER HOST
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import grpc.aio

from jupiterd.daemon.app.process_resources import use_one_malloc_arena
from jupiterd.daemon.artifacts.artifact_service import ArtifactService
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.net.artifact_source import PeerArtifactSource
from jupiterd.net.artifact_wire import add_artifacts
from jupiterd.net.call_guard import CallGuard
from jupiterd.net.channels import CHANNEL_OPTIONS, PeerChannels
from jupiterd.net.chunk_codec import Piece
from jupiterd.net.credentials import channel_credentials, server_credentials
from jupiterd.net.identity import Identity
from jupiterd.net.refusals import Refusals
from jupiterd.net.server import SERVER_OPTIONS, PeerServer
from jupiterd.ports import Address
from jupiterd.rpc import artifact_pb2
from jupiterd.rpc.artifact_pb2_grpc import (
    ArtifactsServicer,
    ArtifactsStub,
    add_ArtifactsServicer_to_server,
)
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.transfer import fetch

PIECE_BYTES = 256 << 10
Told = dict[str, Any]
MAX_LINE_BYTES = 1 << 20


class CountedSource(PeerArtifactSource):
    """A peer as a source, and how much came from it."""

    def __init__(self, name: str, stub: Any) -> None:
        super().__init__(name, stub)
        self.came_bytes = 0

    async def fetch(
        self, artifact: ArtifactId, ranges: Sequence[tuple[int, int]]
    ) -> AsyncIterator[Piece]:
        async for piece in super().fetch(artifact, ranges):
            self.came_bytes += len(piece.data)
            yield piece


class Bare(ArtifactsServicer):
    """The same messages over the same TLS, from memory and for nothing."""

    async def Fetch(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        data = os.urandom(PIECE_BYTES)
        for offset in range(0, request.ranges[0].length, PIECE_BYTES):
            yield artifact_pb2.FetchPiece(offset=offset, data=data)


class Station:
    """What the lines say is done here."""

    def __init__(self, folder: Path, host: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.host = folder, host
        self.identity = Identity.load_or_create(folder / "key.pem")
        self.store = ArtifactStore(folder / "store")
        self.channels: dict[str, PeerChannels] = {}
        self.bare: dict[str, ArtifactsStub] = {}

    async def serve(self) -> Told:
        border = CallGuard(lambda _: True, frozenset(), Refusals())
        server = PeerServer(self.identity, self.host, 0, border)
        service = ArtifactService(self, lambda _: True)
        server.add(partial(add_artifacts, service))
        port = await server.start()
        bare = grpc.aio.server(options=SERVER_OPTIONS)
        add_ArtifactsServicer_to_server(Bare(), bare)
        bare_port = bare.add_secure_port(f"{self.host}:0", server_credentials(self.identity))
        await bare.start()
        self.servers = server, bare
        return {
            "node": self.identity.node_id,
            "host": self.host,
            "port": port,
            "bare_port": bare_port,
            "certificate": self.identity.certificate_pem.decode(),
        }

    def note_damage(self, artifact: ArtifactId) -> None:
        raise AssertionError(f"{artifact} is damaged")

    def part_bytes(self, most_bytes: int) -> int:
        return most_bytes

    async def throttle(self, size_bytes: int, took_s: float) -> None:
        pass

    async def replicate(self, artifact: ArtifactId, _peer: NodeId) -> None:
        raise AssertionError(f"nobody asks a station to fetch {artifact} for itself")

    async def do(self, told: Told) -> Told:
        return await getattr(self, "do_" + told.pop("do"))(**told)

    async def do_know(self, peers: list[Told]) -> Told:
        """Take up how the others are reached."""
        for peer in peers:
            pem = peer["certificate"].encode()
            address = Address(peer["host"], peer["port"])
            bare_address = Address(peer["host"], peer["bare_port"])
            self.channels[peer["node"]] = PeerChannels(self.identity, address, pem)
            options = (*CHANNEL_OPTIONS, ("grpc.max_receive_message_length", 4 << 20))
            channel = grpc.aio.secure_channel(
                str(bare_address), channel_credentials(self.identity, pem), options=options
            )
            self.bare[peer["node"]] = ArtifactsStub(channel)
        return {}

    async def do_make(self, size_bytes: int) -> Told:
        """Make an artifact of chance bytes, like nothing that was there before."""
        draft = self.folder / "draft"
        with draft.open("wb") as file:
            for start in range(0, size_bytes, 1 << 24):
                file.write(os.urandom(min(1 << 24, size_bytes - start)))
        return {"artifact": await asyncio.to_thread(self.store.ingest, draft)}

    async def do_drop(self, artifact: ArtifactId) -> Told:
        """Give an artifact up."""
        await asyncio.to_thread(self.store.remove, artifact)
        return {}

    async def do_fetch(self, artifact: ArtifactId, source: str) -> Told:
        """Fetch an artifact that one node has; say how long it took, and what came."""
        met: dict[str, CountedSource] = {}

        def meet(node: str) -> CountedSource | None:
            if node in met or node not in self.channels:
                return None
            met[node] = CountedSource(node[:8], self.channels[node].bulk)
            return met[node]

        first = meet(source)
        assert first is not None
        began_s = time.monotonic()
        await fetch(self.store, artifact, [first], meet=meet)
        took_s = time.monotonic() - began_s
        came = {node: each.came_bytes for node, each in met.items()}
        return {"took_s": took_s, "came_bytes": came}

    async def do_bare(self, source: str, size_bytes: int) -> Told:
        """Take as much as an artifact has over the bare stream, and drop it."""
        wanted = artifact_pb2.FetchRequest(ranges=[artifact_pb2.ByteRange(length=size_bytes)])
        began_s, came_bytes = time.monotonic(), 0
        async for piece in self.bare[source].Fetch(wanted):
            came_bytes += len(piece.data)
        assert came_bytes == size_bytes
        return {"took_s": time.monotonic() - began_s}

    async def do_here(self, artifact: ArtifactId) -> Told:
        """Say how much is verified of what is being fetched."""
        growth = self.store.growing(artifact)
        chunks = growth.verified.bit_count() if growth else 0
        return {"share": chunks / len(growth.manifest.chunks) if growth else 0.0}


async def main(folder: str, host: str) -> None:
    """Answer each line, several at once, until the input ends."""
    station = Station(Path(folder), host)
    answer(await station.serve())
    lines = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with asyncio.TaskGroup() as group:
        while line := await lines.readline():
            group.create_task(carry_out(station, json.loads(line)))
    os._exit(0)  # the figures are taken; nothing here is kept


async def carry_out(station: Station, told: Told) -> None:
    number = told.pop("number")
    try:
        answer({"number": number, **await station.do(told)})
    except Exception as error:  # noqa: BLE001 - whoever asked is told
        answer({"number": number, "error": repr(error)})


def answer(told: Told) -> None:
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    use_one_malloc_arena()  # as the daemon does; with an arena each, threads clear every page again
    asyncio.run(main(*sys.argv[1:]))
