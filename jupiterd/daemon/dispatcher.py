"""Runs an order on a node, this one or another, through one interface.

Owns the stream to a peer. The stream is the lease: closing it ends the work over there.
"""

import asyncio
from collections.abc import AsyncGenerator

import grpc.aio

from jupiterd.daemon.peers import Peers
from jupiterd.daemon.work_events import Finished, WorkEvent, WorkOrder, from_proto
from jupiterd.daemon.work_runner import WorkRunner
from jupiterd.errors import PeerUnreachableError
from jupiterd.failures import from_rpc
from jupiterd.ids import NodeId


class Dispatcher:
    """Where orders go out."""

    def __init__(self, self_id: NodeId, runner: WorkRunner, peers: Peers) -> None:
        self._self_id = self_id
        self._runner = runner
        self._peers = peers

    def run(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        """Yield the events of the work; close the iterator to end it.

        Raises:
            PeerUnreachableError: the node has gone, or its stream broke off.
            JupiterError: whatever the worker said.
        """
        return self._runner.run(order) if node == self._self_id else self._run_remote(node, order)

    async def _run_remote(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        peer = self._peers.require(node)
        call = peer.channels.control.RunWork(order.to_proto())
        finished = False
        try:
            async for message in call:
                event = from_proto(message)
                finished = isinstance(event, Finished)
                yield event
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, peer.name) from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # A channel that is closed under a stream cancels it, and nobody asked for that.
            raise PeerUnreachableError(f"the link to {peer.name} was closed") from None
        finally:
            call.cancel()
        if not finished:
            raise PeerUnreachableError(f"{peer.name} ended the work {order.id} without a result")
