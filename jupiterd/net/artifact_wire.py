"""The Artifacts service with a message codec of our own, see `chunk_codec`.

Owns the stub and the registration with that codec. Doesn't know what the calls ask or answer.
"""

from typing import Any, cast

import grpc
import grpc.aio

from jupiterd.net.chunk_codec import decode_piece, encode_piece
from jupiterd.rpc.artifact_pb2 import FetchRequest
from jupiterd.rpc.artifact_pb2_grpc import (
    ArtifactsServicer,
    ArtifactsStub,
    add_ArtifactsServicer_to_server,
)

_FETCH = "/jupiter.v1.Artifacts/Fetch"


def artifacts_stub(channel: grpc.aio.Channel) -> ArtifactsStub:
    """Return a stub of the service whose `Fetch` yields `Piece`."""
    stub = ArtifactsStub(channel)
    fetch = channel.unary_stream(_FETCH, FetchRequest.SerializeToString, decode_piece)
    cast("Any", stub).Fetch = fetch
    return stub


def add_artifacts(service: ArtifactsServicer, server: grpc.aio.Server) -> None:
    """Register the service on a server; its `Fetch` must yield `Piece`."""
    add_ArtifactsServicer_to_server(service, cast("Any", _Registration(server)))


class _Registration:
    """Stands in for a server while the generated code registers the service."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, _handlers: object) -> None:
        """Do nothing: the generated code registers the same handlers again by name."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        fetch = handlers["Fetch"]._replace(response_serializer=encode_piece)
        all_of_it = grpc.method_handlers_generic_handler(service, {**handlers, "Fetch": fetch})
        self._server.add_generic_rpc_handlers((all_of_it,))
