"""The channel to the local daemon.

Owns the connection to the control socket, the time-outs of its calls, and the translation of gRPC
errors into JupiterErrors. Doesn't know the content of documents, or who shows them.
"""

import contextlib
import json
import os
from collections.abc import AsyncIterable, Generator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

# Without this, gRPC's core writes its own log lines to the terminal.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
import grpc.aio

from jupiterd.client.socket_path import SocketPath
from jupiterd.errors import JupiterError
from jupiterd.protocol.call_errors import CODE_KEY, from_rpc
from jupiterd.protocol.local_query import ANSWER_TIMEOUT_S, MAX_ANSWER_BYTES, Document
from jupiterd.rpc import control_pb2, control_pb2_grpc, script_pb2, serving_pb2

EXECUTE_TIMEOUT_S = 30.0
"""Seconds. A command may have to wait for an election and for a second copy of its entry."""

_OPTIONS = (
    # The default back-off grows to two minutes: far too long for a daemon on this machine.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 400),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
)

WatchCall = grpc.aio.UnaryStreamCall[control_pb2.WatchRequest, control_pb2.WatchEvent]

ScriptCall = grpc.aio.StreamStreamCall[script_pb2.ScriptRequest, script_pb2.ScriptEvent]

BatchCall = grpc.aio.StreamStreamCall[serving_pb2.BatchAsked, serving_pb2.BatchPiece]


class ControlChannel:
    """A connection to the daemon of one state folder; a context for `async with`."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self._path = SocketPath(state_dir)

    async def __aenter__(self) -> Self:
        """Open the channel; connecting waits for the first call."""
        self._path.__enter__()
        self._channel = grpc.aio.insecure_channel(self._path.target, options=_OPTIONS)
        self._stub = control_pb2_grpc.ControlStub(self._channel)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the channel and cancel its open calls."""
        await self._channel.close()
        self._path.__exit__(kind, error, trace)

    async def status(self, noun: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Document:
        """Return the daemon's document about `noun`, such as `status` or `cycle`.

        For programs that have an open channel; for a single request, `answer_to` is cheaper.

        Raises:
            DaemonUnreachableError: no daemon answers.
            JupiterError: the error that the daemon answered with.
        """
        with self.translated():
            reply = await self._stub.Status(control_pb2.StatusRequest(noun=noun), timeout=timeout_s)
        return decoded(reply)

    async def execute(
        self, verb: str, arguments: Mapping[str, Any], timeout_s: float = EXECUTE_TIMEOUT_S
    ) -> Document:
        """Execute a command such as `cycle.start`; return its result.

        Raises:
            DaemonUnreachableError: no daemon answers.
            JupiterError: the error that the daemon answered with.
        """
        request = control_pb2.ExecuteRequest(verb=verb, arguments_json=json.dumps(arguments))
        with self.translated():
            reply = await self._stub.Execute(request, timeout=timeout_s)
        return decoded(reply)

    def open_watch(self, noun: str) -> WatchCall:
        """Start one watch call; `watch` combines several of them into a stream that reconnects."""
        return cast("WatchCall", self._stub.Watch(control_pb2.WatchRequest(noun=noun)))

    def open_script(self, requests: AsyncIterable[script_pb2.ScriptRequest]) -> ScriptCall:
        """Start ranks of a script on another machine, or follow them; they outlive the call."""
        return cast("ScriptCall", self._stub.RunScript(requests))

    def open_batches(self, asked: AsyncIterable[serving_pb2.BatchAsked]) -> BatchCall:
        """Have another machine answer what tasks ask, for as long as the call is open."""
        return cast("BatchCall", self._stub.AnswerBatches(asked))

    @contextlib.contextmanager
    def translated(self) -> Generator[None]:
        """Translate gRPC errors in the block into JupiterErrors."""
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raise self._translate(error) from error

    def _translate(self, error: grpc.aio.AioRpcError) -> JupiterError:
        has_code = any(key == CODE_KEY for key, _ in error.trailing_metadata() or ())
        if not has_code and error.code() is grpc.StatusCode.UNAVAILABLE:
            from jupiterd.client.reachability import unreachable

            return unreachable(self.state_dir)
        if not has_code and error.code() in {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}:
            from jupiterd.client.reachability import failed

            return failed(self.state_dir, error.details() or "")
        return from_rpc(error, "jupiterd")


def decoded(document: control_pb2.Document) -> Document:
    """Return the document's decoded JSON; an empty text is an empty document."""
    return cast("Document", json.loads(document.json or "{}"))
