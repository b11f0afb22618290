"""The Scripts service: what other nodes may run here, if this machine's owner allows it.

Owns that question, and what scripts are given of this daemon's environment. Doesn't know how ranks
are kept (`daemon.scripts`), or what runs on other machines.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

import grpc.aio

from jupiterd.daemon.artifacts.shipped_folders import ShippedFolders
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.membership.trust import check_trusted
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.scripts.readiness import Readiness, host_environment
from jupiterd.daemon.scripts.running_scripts import BEAT_S, RunningScripts
from jupiterd.errors import ConflictError, MalformedError, NotAMemberError, RefusedError
from jupiterd.ids import ArtifactId, NodeId, short
from jupiterd.net.credentials import caller
from jupiterd.processes.script_messages import (
    SIGNALS,
    checked_id,
    event_to_proto,
    order_from_proto,
    window_from_proto,
)
from jupiterd.processes.scripts.events import ScriptEvent
from jupiterd.processes.scripts.machine_share import MachineShare
from jupiterd.rpc import script_pb2, script_pb2_grpc
from jupiterd.store.manifest import is_artifact_id

MAX_CALLS: Final = 64
"""Some of them may be dead, and nobody has noticed yet."""

OF_CALL_S: Final = 60
"""How long ranks go on whose call a killed daemon can't end; those of an order without an id."""

Context = grpc.aio.ServicerContext[Any, Any]


class ScriptService(script_pb2_grpc.ScriptsServicer):
    """Answers other nodes that run a script on several machines."""

    def __init__(
        self,
        settings: Settings,
        replica: Replica,
        shipped: ShippedFolders,
        parts: RunningScripts,
        readiness: Readiness,
    ) -> None:
        """Take who may ask, by the ledger and the owner's settings, and what does the work."""
        self._settings, self._replica = settings, replica
        self._shipped, self._parts, self._readiness = shipped, parts, readiness
        self._calls = 0

    async def Prepare(
        self, request: script_pb2.PrepareScriptRequest, context: Context
    ) -> script_pb2.PrepareScriptReply:
        """Say whether it may run here and can, and on which ports."""
        self._allowed(context)
        return await self._readiness.prepared(request)

    async def Bring(
        self, request: script_pb2.BringFolderRequest, context: Context
    ) -> script_pb2.BringFolderReply:
        """Fetch the working folder of a launch, as far as it isn't here, and lay it out."""
        self._allowed(context)
        if not is_artifact_id(request.artifact):
            raise MalformedError("a folder that travels has a name that can't be")
        shipped, artifact = self._shipped, ArtifactId(request.artifact)
        fetched = await shipped.bring(artifact)
        if request.run:  # a launch from before this has it laid out as its ranks start
            await shipped.laid_out(artifact, request.run)
        folders = str(shipped.folders)
        return script_pb2.BringFolderReply(fetched_bytes=fetched, folders=folders)

    async def Run(
        self, request_iterator: AsyncIterator[script_pb2.ScriptRequest], context: Context
    ) -> AsyncIterator[script_pb2.ScriptEvent]:
        """Start ranks and follow them, or follow those that run; they outlive the call."""
        who = self._allowed(context)
        if self._calls >= MAX_CALLS:
            raise ConflictError(f"{self._settings.name} is asked for scripts by too many")
        self._calls += 1
        try:
            async with aclosing(self._followed(who, request_iterator)) as messages:
                async for message in messages:
                    yield message
        finally:
            self._calls -= 1

    async def _followed(
        self, who: NodeId, request_iterator: AsyncIterator[script_pb2.ScriptRequest]
    ) -> AsyncGenerator[script_pb2.ScriptEvent]:
        try:
            first = await anext(request_iterator)
        except StopAsyncIteration as error:
            raise MalformedError("a launch came without its order") from error
        part, offset, is_of_call = await self._part(who, first)
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(_pass(request_iterator, part))]
        if is_of_call:
            tasks.append(loop.create_task(_ask_on(part)))
        try:
            async with aclosing(self._parts.events(part, offset)) as events:
                async for event, after in events:
                    yield _message(event, after)
        finally:
            for task in tasks:
                task.cancel()
            if is_of_call:
                part.send("end", "whoever launched it is gone")

    async def _part(
        self, who: NodeId, first: script_pb2.ScriptRequest
    ) -> tuple[MachineShare, int, bool]:
        """Return what is meant, from where it is followed, and whether it ends with the call."""
        if first.WhichOneof("request") == "follow":
            return self._parts.of(who, checked_id(first.follow.id)), first.follow.offset, False
        order = await self._shipped.placed(order_from_proto(first.order))
        is_of_call = not order.id  # a jupiterctl from before parts outlived their call
        if is_of_call:
            order = replace(order, id=secrets.token_hex(8), cut_timeout_s=OF_CALL_S)
        part = await self._parts.start(who, order, host_environment())
        return part, 0, is_of_call

    def _allowed(self, context: Context) -> NodeId:
        who, name = caller(context), self._settings.name
        if self._replica.clones.is_seen:
            raise ConflictError("another machine uses this node's key")
        if who not in self._replica.state.members:
            raise NotAMemberError(f"node {short(who)} is not a member of this cluster")
        check_trusted(self._replica.state, who, "bring scripts")
        if not self._settings.allow_scripts:
            raise RefusedError(
                f"{name} doesn't run scripts of other machines",
                f"its owner allows them there with: jupiterd --allow-scripts "
                f"(allow_scripts: true in {name}'s jupiter.yaml)",
            )
        return who


def add_scripts(service: ScriptService, server: grpc.aio.Server) -> None:
    """Register the service on a server."""
    script_pb2_grpc.add_ScriptsServicer_to_server(service, server)


async def _ask_on(part: MachineShare) -> None:
    """Ask for a part for as long as its call lasts."""
    while True:
        part.send("asked")
        await asyncio.sleep(BEAT_S)


async def _pass(requests: AsyncIterator[script_pb2.ScriptRequest], part: MachineShare) -> None:
    """Pass a request to the supervisor; signals other than those of an end mean nothing."""
    async for request in requests:
        match request.WhichOneof("request"):
            case "asked":
                part.send("asked")
            case "signal" if request.signal in SIGNALS:
                part.send("signal", request.signal)
            case "window":
                part.send("window", *window_from_proto(request.window))
            case "end":
                part.send("end", "whoever launched it ended it")
            case _:
                pass


def _message(event: ScriptEvent | None, offset: int) -> script_pb2.ScriptEvent:
    return event_to_proto(event, offset) if event else script_pb2.ScriptEvent(offset=offset)
