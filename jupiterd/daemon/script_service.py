"""The Scripts service: what other nodes may run here, if this machine's owner allows it.

Owns that question, how many may run at once, and what they are given of this daemon's environment.
Doesn't know how processes are held (`gang.script`), or what runs on other machines.
"""

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import grpc.aio

from jupiterd.daemon.scripts.readiness import host_environment, prepared_here
from jupiterd.errors import ConflictError, MalformedError, NotAMemberError, RefusedError
from jupiterd.gang.script import STOP_GRACE_S, ScriptEvent, ScriptGroup, start_script
from jupiterd.gang.script_messages import SIGNALS, event_to_proto, order_from_proto
from jupiterd.ids import ArtifactId, NodeId, short
from jupiterd.net.credentials import caller
from jupiterd.rpc import script_pb2, script_pb2_grpc
from jupiterd.store.manifest import is_artifact_id

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node

log = logging.getLogger(__name__)

MAX_RUNNING: Final = 8

Context = grpc.aio.ServicerContext[Any, Any]


class ScriptService(script_pb2_grpc.ScriptsServicer):
    """Answers other nodes that run a script on several machines."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._running = 0

    async def Prepare(
        self, request: script_pb2.PrepareScriptRequest, context: Context
    ) -> script_pb2.PrepareScriptReply:
        """Say whether it may run here and can, and on which ports."""
        self._allowed(context)
        return await prepared_here(self._node, request)

    async def Bring(
        self, request: script_pb2.BringFolderRequest, context: Context
    ) -> script_pb2.BringFolderReply:
        """Fetch the working folder of a launch, as far as it isn't here."""
        self._allowed(context)
        if not is_artifact_id(request.artifact):
            raise MalformedError("a folder that travels has a name that can't be")
        fetched = await self._node.commands.shipped.bring(ArtifactId(request.artifact))
        folders = str(self._node.commands.shipped.folders)
        return script_pb2.BringFolderReply(fetched_bytes=fetched, folders=folders)

    async def Run(
        self, request_iterator: AsyncIterator[script_pb2.ScriptRequest], context: Context
    ) -> AsyncIterator[script_pb2.ScriptEvent]:
        """Run ranks; they end with the call."""
        who = self._allowed(context)
        if self._running >= MAX_RUNNING:
            raise ConflictError(f"{self._node.settings.name} runs {MAX_RUNNING} scripts already")
        self._running += 1
        try:
            try:
                first = await anext(request_iterator)
            except StopAsyncIteration as error:
                raise MalformedError("a launch came without its order") from error
            async with aclosing(self._events(who, first, request_iterator)) as events:
                async for event in events:
                    yield event_to_proto(event)
        finally:
            self._running -= 1

    async def _events(
        self,
        who: NodeId,
        first: script_pb2.ScriptRequest,
        requests: AsyncIterator[script_pb2.ScriptRequest],
    ) -> AsyncGenerator[ScriptEvent]:
        order = await self._node.commands.shipped.placed(order_from_proto(first.order))
        ranks = [rank.rank for rank in order.ranks]
        extra = {"node": short(who), "argv": list(order.argv), "folder": order.folder}
        log.info("script_started", extra={**extra, "ranks": ranks})
        loop = asyncio.get_running_loop()
        try:
            async with start_script(order, host_environment()) as group:
                tasks = [
                    loop.create_task(_pass(requests, group)),
                    loop.create_task(self._end_with_membership(who, group)),
                ]
                try:
                    async with aclosing(group.events()) as events:
                        async for event in events:
                            yield event
                finally:
                    for task in tasks:
                        task.cancel()
        finally:
            log.info("script_ended", extra=extra)

    async def _end_with_membership(self, who: NodeId, group: ScriptGroup) -> None:
        """End the ranks as soon as whoever started them, or this node, is a member no more."""
        journal = self._node.journal
        version = journal.version
        while {who, self._node.identity.node_id} <= journal.state.members.keys():
            version = await journal.changed_since(version)
        log.warning("script_of_no_member_ended", extra={"node": short(who)})
        group.signal(signal.SIGTERM)
        await asyncio.sleep(STOP_GRACE_S)
        group.signal(signal.SIGKILL)

    def _allowed(self, context: Context) -> NodeId:
        who, name = caller(context), self._node.settings.name
        if self._node.journal.clones.is_seen:
            raise ConflictError("another machine uses this node's key")
        if who not in self._node.journal.state.members:
            raise NotAMemberError(f"node {short(who)} is not a member of this cluster")
        if not self._node.settings.allow_scripts:
            raise RefusedError(
                f"{name} doesn't run scripts of other machines",
                f"its owner allows them there with: jupiterd --allow-scripts "
                f"(allow_scripts: true in {name}'s jupiter.yaml)",
            )
        return who


def add_scripts(node: "Node", server: grpc.aio.Server) -> None:
    """Register the service on a server."""
    script_pb2_grpc.add_ScriptsServicer_to_server(ScriptService(node), server)


async def _pass(requests: AsyncIterator[script_pb2.ScriptRequest], group: ScriptGroup) -> None:
    """Pass signals on for as long as the ranks run; others than those of an end mean nothing."""
    async for request in requests:
        if request.signal in SIGNALS:
            group.signal(request.signal)
