"""A Control service on a unix socket that says what a test tells it to say.

Real gRPC on both ends; only the daemon behind it is missing.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from jupiterd.errors import JupiterError
from jupiterd.protocol.call_errors import abort
from jupiterd.rpc import control_pb2, control_pb2_grpc


class ScriptedControl(control_pb2_grpc.ControlServicer):
    def __init__(self) -> None:
        self.documents: dict[str, dict] = {}
        self.watched = "status"
        """What the events are of; of everything else nothing is told."""
        self.failure: JupiterError | None = None
        self.executed: list[tuple[str, dict]] = []
        self.events: asyncio.Queue[control_pb2.WatchEvent | None] = asyncio.Queue()

    async def Status(self, request, context):  # noqa: N802 - gRPC's name
        if self.failure is not None:
            await abort(context, self.failure)
        return control_pb2.Document(json=json.dumps(self.documents[request.noun]))

    async def Execute(self, request, context):  # noqa: N802 - gRPC's name
        arguments = json.loads(request.arguments_json)
        self.executed.append((request.verb, arguments))
        return control_pb2.Document(json=json.dumps({"schema": "jupiter/v1", **arguments}))

    async def Watch(self, request, context):  # noqa: N802 - gRPC's name
        if request.noun != self.watched:
            await asyncio.Event().wait()
        while (event := await self.events.get()) is not None:
            yield event


def snapshot(**keys: object) -> control_pb2.WatchEvent:
    return control_pb2.WatchEvent(snapshot=control_pb2.Document(json=json.dumps(keys)))


def delta(**keys: object) -> control_pb2.WatchEvent:
    return control_pb2.WatchEvent(delta=control_pb2.Document(json=json.dumps(keys)))


@asynccontextmanager
async def serving(control: ScriptedControl, socket: Path) -> AsyncIterator[None]:
    server = grpc.aio.server()
    control_pb2_grpc.add_ControlServicer_to_server(control, server)
    assert server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)
