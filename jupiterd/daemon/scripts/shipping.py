"""Ships a working folder from the machine where a launch is typed to those that run it.

Owns the command, which only this machine's own control socket takes. Doesn't know how a folder
becomes an artifact, or what is made of it (`shipped_folders`).
"""

import asyncio
from pathlib import Path
from typing import Any, Final

import grpc.aio

from jupiterd.daemon.artifacts.shipped_folders import ShippedFolders
from jupiterd.daemon.links.peers import Peers
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.protocol.commands.script_commands import ShipFolder
from jupiterd.rpc.script_pb2 import BringFolderRequest

BRING_TIMEOUT_S: Final = 900.0


async def ship_folder(shipped: ShippedFolders, peers: Peers, command: ShipFolder) -> dict[str, Any]:
    """Take in these files of a folder here, and have each of these members fetch them.

    Raises:
        JupiterError: a file can't be read, or a member can't be reached, refuses, or has no room.
    """
    artifact = await shipped.take_in(Path(command.folder), command.files)
    others = [NodeId(each) for each in command.nodes]
    brought = await asyncio.gather(
        *(_brought(peers, other, artifact, command.run) for other in others)
    )
    return {"artifact": artifact, "places": brought}


async def _brought(peers: Peers, other: NodeId, artifact: ArtifactId, run: str) -> dict[str, Any]:
    peer = peers.require(other)
    request = BringFolderRequest(artifact=artifact, run=run)
    try:
        with peer.channels.in_use() as channels:
            reply = await channels.scripts.Bring(request, timeout=BRING_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        raise from_rpc(error, peer.name) from error
    return {"node": other, "fetched_bytes": reply.fetched_bytes, "folders": reply.folders}
