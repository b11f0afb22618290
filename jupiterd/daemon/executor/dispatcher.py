"""Runs an order on a node, this one or another, through one interface.

Owns the stream to a peer. The stream is the lease: closing it ends the work over there, but for a
gang's, which waits for the next leader unless it is ended.
"""

from collections.abc import AsyncGenerator

import grpc.aio

from jupiterd.daemon.executor.order_executor import OrderExecutor
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.runtime.untrusted_input import MAX_REASON_CHARACTERS, sanitized_text
from jupiterd.daemon.runtime.work_events import (
    CheckpointStored,
    Finished,
    SaveRequest,
    WorkEvent,
    WorkOrder,
    checkpoint_from_proto,
    from_proto,
)
from jupiterd.errors import PeerUnreachableError, from_wire
from jupiterd.ids import NodeId
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import peer_pb2

END_TIMEOUT_S = 3.0
PREPARE_TIMEOUT_S = 5.0
"""A driver that sleeps takes a second or two to say how much memory is free."""


class Dispatcher:
    """Where orders go out."""

    def __init__(self, self_id: NodeId, executor: OrderExecutor, peers: Peers) -> None:
        self._self_id = self_id
        self._executor = executor
        self._peers = peers

    def run(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        """Yield the events of the work; close the iterator to end it, or to leave a gang's.

        Raises:
            PeerUnreachableError: the node has gone, or its stream broke off.
            JupiterError: whatever the worker said.
        """
        if node == self._self_id:
            return self._executor.run(self._self_id, order)
        return self._run_remote(node, order)

    async def end(
        self, node: NodeId, term: int, attempt: int, save: SaveRequest | None = None
    ) -> CheckpointStored | None:
        """End a gang's work on a node; return when none of it runs there any more.

        With `save`, return the last finished step that was saved there.

        Raises:
            JupiterError: the node doesn't answer, or follows another leader.
        """
        if node == self._self_id:
            return await self._executor.end(self._self_id, term, attempt, save)
        request = peer_pb2.EndAttemptRequest(term=term, attempt=attempt)
        if save is not None:
            request.keep_within_s, request.keep_after_step = save.within_s, save.after_step
        reply = await self._ask_to_end(node, request)
        return checkpoint_from_proto(reply.kept) if reply.HasField("kept") else None

    async def prepare(self, node: NodeId, request: peer_pb2.PrepareRanksRequest) -> tuple[int, str]:
        """Ask whether a gang's ranks may run on a node; return the micro batch, and a note on it.

        Raises:
            JupiterError: they may not, or the node doesn't answer.
        """
        reply = await self._prepare(node, request)
        if reply.failure.code:
            raise from_wire(reply.failure.code, reply.failure.message, reply.failure.hint)
        return reply.micro_batch, sanitized_text(reply.note, MAX_REASON_CHARACTERS)

    async def _prepare(
        self, node: NodeId, request: peer_pb2.PrepareRanksRequest
    ) -> peer_pb2.PrepareRanksReply:
        if node == self._self_id:
            return await self._executor.prepare(request)
        peer = self._peers.require(node)
        try:
            with peer.channels.in_use() as channels:
                return await channels.control.PrepareRanks(request, timeout=PREPARE_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:  # an older Jupiter finds out later
                return peer_pb2.PrepareRanksReply(micro_batch=request.needs[0].micro_batch)
            raise from_rpc(error, peer.name) from error

    async def stop_after_step(self, node: NodeId, term: int, attempt: int) -> None:
        """Ask a gang's ranks on a node to stop together with the others after their running step.

        Raises:
            JupiterError: the node doesn't answer, or follows another leader.
        """
        if node == self._self_id:
            await self._executor.stop_after_step(self._self_id, term, attempt)
        else:
            request = peer_pb2.EndAttemptRequest(term=term, attempt=attempt, after_step=True)
            await self._ask_to_end(node, request)

    async def _ask_to_end(
        self, node: NodeId, request: peer_pb2.EndAttemptRequest
    ) -> peer_pb2.EndAttemptReply:
        peer = self._peers.require(node)
        timeout_s = END_TIMEOUT_S + request.keep_within_s
        try:
            with peer.channels.in_use() as channels:
                return await channels.control.EndEpoch(request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, peer.name) from error

    async def _run_remote(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        peer = self._peers.require(node)
        with peer.channels.in_use() as channels:
            call = channels.control.RunWork(order.to_proto())
            finished = False
            try:
                async for message in call:
                    event = from_proto(message)
                    finished = isinstance(event, Finished)
                    yield event
            except grpc.aio.AioRpcError as error:
                raise from_rpc(error, peer.name) from error
            finally:
                call.cancel()
            if not finished:
                raise PeerUnreachableError(
                    f"{peer.name} ended the work {order.id} without a result"
                )
