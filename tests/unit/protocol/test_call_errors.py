"""Errors over real gRPC calls on the loopback interface."""

import asyncio
from collections.abc import AsyncIterator

import grpc.aio
import pytest

from jupiterd.errors import (
    BY_CODE,
    JupiterError,
    PeerUnreachableError,
    TimedOutError,
)
from jupiterd.protocol.call_errors import abort, from_rpc
from jupiterd.rpc import control_pb2, control_pb2_grpc


class Failing(control_pb2_grpc.ControlServicer):
    error: JupiterError | None = None

    async def Status(self, request, context):  # noqa: N802 - gRPC's name
        if self.error is None:
            await asyncio.Event().wait()
        await abort(context, self.error)


@pytest.fixture
async def service() -> AsyncIterator[tuple[Failing, control_pb2_grpc.ControlStub]]:
    server, failing = grpc.aio.server(), Failing()
    control_pb2_grpc.add_ControlServicer_to_server(failing, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield failing, control_pb2_grpc.ControlStub(channel)
    await server.stop(None)


async def _error(stub: control_pb2_grpc.ControlStub, **options: float) -> JupiterError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Status(control_pb2.StatusRequest(), **options)
    return from_rpc(caught.value, "alpha")


@pytest.mark.parametrize("kind", BY_CODE.values(), ids=lambda kind: kind.code)
async def test_every_error_comes_back_as_itself(service, kind):
    failing, stub = service
    failing.error = kind("what went wrong, in Zürich", "what to do: 東京")
    error = await _error(stub)
    assert type(error) is kind
    assert (error.message, error.hint) == ("what went wrong, in Zürich", "what to do: 東京")


async def test_an_empty_hint_becomes_the_usual_one(service):
    failing, stub = service
    failing.error = TimedOutError("too slow")
    failing.error.hint = ""
    assert (await _error(stub)).hint == TimedOutError.default_hint


async def test_no_answer_in_time_is_told_from_no_answer_at_all(service):
    _, stub = service
    error = await _error(stub, timeout=0.05)
    assert type(error) is TimedOutError
    assert error.message == "alpha didn't answer in time"


async def test_a_closed_port_is_unreachable():
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        error = await _error(control_pb2_grpc.ControlStub(channel), timeout=10)
    assert type(error) is PeerUnreachableError
    assert error.message.startswith("alpha can't be reached: ")
