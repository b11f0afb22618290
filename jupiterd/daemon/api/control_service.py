"""The Control service: jupiterctl and jupiter-tui ask here, over a unix socket in the state folder.

Owns the socket and the calls. Doesn't know what the documents mean.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import grpc.aio

from jupiterd.errors import JupiterError, UsageError
from jupiterd.protocol.call_errors import abort
from jupiterd.protocol.local_query import Document
from jupiterd.rpc import control_pb2, control_pb2_grpc, script_pb2, serving_pb2

log = logging.getLogger(__name__)

DELTA_S = 0.5
BEATS_PER_HEARTBEAT = 2

Message = TypeVar("Message")
Context = grpc.aio.ServicerContext[Any, Any]
Execute = Callable[[str, Mapping[str, object]], Awaitable[Mapping[str, object]]]
"""Carries out a command wherever the leader is; raises JupiterError."""


class ForwardsCommands(Protocol):
    """Passes requests on to the machine that runs ranks."""

    def passed_on(
        self, requests: AsyncIterator[script_pb2.ScriptRequest]
    ) -> AsyncGenerator[script_pb2.ScriptEvent]:
        """Follow ranks on the machine that the first request names; raises JupiterError."""
        ...


class ForwardsBatches(Protocol):
    """Passes on what tasks ask to the machine that answers."""

    def passed_on(
        self, asked: AsyncIterator[serving_pb2.BatchAsked]
    ) -> AsyncGenerator[serving_pb2.BatchPiece]:
        """Yield the answers of the machine that the first message names; raises JupiterError."""
        ...


class ControlService(control_pb2_grpc.ControlServicer):
    """Answers the front ends of this machine."""

    def __init__(
        self,
        document_of: Callable[[str], Awaitable[Document]],
        execute: Execute,
        relay: ForwardsCommands,
        batches: ForwardsBatches,
        is_closing: Callable[[], bool],
    ) -> None:
        """Take what answers, carries out and passes on, and what says that this daemon stops."""
        self._document_of, self._execute = document_of, execute
        self._relay, self._batches, self._is_closing = relay, batches, is_closing

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
        while not self._is_closing():
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
            arguments = _arguments(request.arguments_json)
            result = await self._execute(request.verb, arguments)
        except JupiterError as error:
            await abort(context, error)
            raise
        return control_pb2.Document(json=json.dumps(result))

    async def RunScript(
        self, request_iterator: AsyncIterator[script_pb2.ScriptRequest], context: Context
    ) -> AsyncIterator[script_pb2.ScriptEvent]:
        """Start ranks of a script on another machine and follow them; they outlive the call."""
        async with aclosing(_told(self._relay.passed_on(request_iterator), context)) as events:
            async for event in events:
                yield event

    async def AnswerBatches(
        self, request_iterator: AsyncIterator[serving_pb2.BatchAsked], context: Context
    ) -> AsyncIterator[serving_pb2.BatchPiece]:
        """Have another machine answer what tasks ask, for as long as the call is open."""
        async with aclosing(_told(self._batches.passed_on(request_iterator), context)) as pieces:
            async for piece in pieces:
                yield piece

    async def _document(self, noun: str, context: Context) -> Document:
        try:
            return await self._document_of(noun)
        except JupiterError as error:
            await abort(context, error)
            raise


async def serve_control(service: ControlService, socket: Path) -> grpc.aio.Server:
    """Listen on the control socket, which lies in the working folder."""
    _remove(socket)
    server = grpc.aio.server()
    control_pb2_grpc.add_ControlServicer_to_server(service, server)
    server.add_insecure_port(f"unix:{socket.name}")
    await server.start()
    return server


def _remove(socket: Path) -> None:
    socket.unlink(missing_ok=True)


def _arguments(text: str) -> dict[str, Any]:
    """Read a command's arguments; raises UsageError where they are none."""
    try:
        found: object = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise UsageError("a command's arguments can't be read") from error
    if not isinstance(found, dict):
        raise UsageError("a command's arguments must be an object")
    return cast("dict[str, Any]", found)


async def _told(passed_on: AsyncGenerator[Message], context: Context) -> AsyncGenerator[Message]:
    """Yield what another machine says; an error of ours ends the call with its code and hint."""
    try:
        async with aclosing(passed_on) as messages:
            async for message in messages:
                yield message
    except JupiterError as error:
        await abort(context, error)
        raise
