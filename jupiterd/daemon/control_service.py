"""The Control service: jupiterctl and jupiter-tui ask here, over a unix socket in the state folder.

Owns the socket and the three calls. Doesn't know what the documents mean.
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import grpc.aio

from jupiterd.daemon.branches_document import branches_document
from jupiterd.daemon.run_documents import audit_document, data_document, train_document
from jupiterd.daemon.script_launch import passed_on
from jupiterd.daemon.status_document import cycle_status_document, status_document
from jupiterd.errors import JupiterError, NotFoundError, UsageError
from jupiterd.failures import abort
from jupiterd.rpc import control_pb2, control_pb2_grpc, script_pb2

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node

log = logging.getLogger(__name__)

DELTA_S = 0.5
BEATS_PER_HEARTBEAT = 2


Document = dict[str, Any]
Context = grpc.aio.ServicerContext[Any, Any]


class ControlService(control_pb2_grpc.ControlServicer):
    """Answers the front ends of this machine."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._nouns: dict[str, Callable[[Node, str], Document]] = {
            "status": lambda node, _: status_document(node),
            "cycle": cycle_status_document,
            "train": train_document,
            "data": data_document,
            "branches": lambda node, _: branches_document(node),
        }
        """Noun -> its document; `cycle/ID` asks for a certain one."""
        self._slow_nouns: dict[str, Callable[[Node, str], Awaitable[Document]]] = {
            "audit": audit_document,
            "why": _why_document,
            "export": _export_document,
        }
        """The same of documents that are read from the disk."""

    async def Status(
        self, request: control_pb2.StatusRequest, context: Context
    ) -> control_pb2.Document:
        """Return a document as it is now."""
        document = await self._document(request.noun, context)
        return control_pb2.Document(json=json.dumps(document))

    async def Watch(
        self, request: control_pb2.WatchRequest, context: Context
    ) -> AsyncIterator[control_pb2.WatchEvent]:
        """Yield a snapshot, then the top-level keys that changed, and a heartbeat each second."""
        shown = await self._document(request.noun, context)
        yield control_pb2.WatchEvent(snapshot=control_pb2.Document(json=json.dumps(shown)))
        beat = 0
        while not self._node.is_closing:
            await asyncio.sleep(DELTA_S)
            beat += 1
            now = await self._document(request.noun, context)
            changed = {key: value for key, value in now.items() if shown.get(key) != value}
            shown = now
            if changed:
                delta = control_pb2.Document(json=json.dumps(changed))
                yield control_pb2.WatchEvent(delta=delta)
            if beat % BEATS_PER_HEARTBEAT == 0:
                yield control_pb2.WatchEvent(heartbeat=beat // BEATS_PER_HEARTBEAT)

    async def Execute(
        self, request: control_pb2.ExecuteRequest, context: Context
    ) -> control_pb2.Document:
        """Carry out a command; every error reaches the caller with its hint."""
        try:
            arguments = json.loads(request.arguments_json or "{}")
            if not isinstance(arguments, dict):
                raise UsageError("a command's arguments must be an object")
            result = await self._node.commands.execute(request.verb, arguments)
        except JupiterError as error:
            await abort(context, error)
            raise
        return control_pb2.Document(json=json.dumps(result))

    async def RunScript(
        self, request_iterator: AsyncIterator[script_pb2.ScriptRequest], context: Context
    ) -> AsyncIterator[script_pb2.ScriptEvent]:
        """Run ranks of a script on another machine; they end with the call."""
        try:
            async with aclosing(passed_on(self._node, request_iterator)) as events:
                async for event in events:
                    yield event
        except JupiterError as error:
            await abort(context, error)
            raise

    async def _document(self, noun: str, context: Context) -> Document:
        kind, _, subject = noun.partition("/")
        if kind not in self._nouns and kind not in self._slow_nouns:
            await abort(context, NotFoundError(f"there is no document called {noun}"))
        try:
            if kind in self._slow_nouns:
                return await self._slow_nouns[kind](self._node, subject)
            return self._nouns[kind](self._node, subject)
        except JupiterError as error:
            await abort(context, error)
            raise


async def _why_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.why_document import why_document  # its libraries take memory, idle or not

    return await why_document(node, wanted)


async def _export_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.export_document import export_document

    return await export_document(node, wanted)


async def serve_control(node: "Node") -> grpc.aio.Server:
    """Listen on the control socket of the node's state folder.

    The socket is bound by a relative path, because unix sockets refuse long ones: the daemon's
    working folder is its state folder.
    """
    socket = node.state_dir.control_socket
    socket.unlink(missing_ok=True)
    os.chdir(socket.parent)
    server = grpc.aio.server()
    control_pb2_grpc.add_ControlServicer_to_server(ControlService(node), server)
    server.add_insecure_port(f"unix:{socket.name}")
    await server.start()
    return server
