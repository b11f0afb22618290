"""Passes a rank's question to the daemon with its gang's store, over mutual TLS.

Owns the call, its answer and its pace. Doesn't know the questions, or what a store holds.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import grpc.aio

from jupiterd.cluster.training.gang_store import StoreQuestion
from jupiterd.cluster.training.store_place import StorePlace
from jupiterd.cluster.values.rate_limit import Rate, RateLimit
from jupiterd.daemon.executor.gang_stores import PARAM, GangStores
from jupiterd.daemon.executor.gang_tunnels import RankTunnels
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError
from jupiterd.ids import NodeId
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.protocol.frames import StoreAnswered, StoreAsked
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)

PATIENCE_S: Final = 2.0
"""How much longer than the holder of a store its answer is waited for."""

PACE: Final = Rate(per_s=100.0, burst=300.0)
"""Half of what another node answers (`net.call_guard`): a gang of a hundred ranks asks 200 times
for each of its ranks, and mustn't take their turn from heartbeats."""

SOON_S: Final = 0.01


class StoreCalls:
    """The questions of the ranks of this node."""

    def __init__(self, peers: Peers, stores: GangStores) -> None:
        self._peers = peers
        self._stores = stores
        self._pace = RateLimit[NodeId](PACE, PACE, now_s())

    async def serve(
        self,
        params: Mapping[str, Any],
        frame: StoreAsked,
        hand_in: Callable[[StoreAnswered], None],
        tunnels: RankTunnels | None = None,
    ) -> None:
        """Answer a rank that runs here; params: its order's."""
        try:
            place = StorePlace.from_plain(params.get(PARAM))
            question = StoreQuestion.of(frame.verb, frame.keys, frame.values)

            def ask(question: StoreQuestion) -> Awaitable[bytes]:
                return self._answer(place, question, frame.within_s)

            value = await (ask(question) if tunnels is None else tunnels.answer(question, ask))
            answer = StoreAnswered(frame.number, value)
        except JupiterError as error:
            answer = StoreAnswered(frame.number, b"", error.code, error.message, error.hint)
        except Exception as error:  # whatever it is, it ends one rank and not the daemon
            log.exception("store_not_asked")
            failed = JupiterError(f"a gang's store can't be asked: {error}")
            answer = StoreAnswered(frame.number, b"", failed.code, failed.message, failed.hint)
        hand_in(answer)

    async def _answer(self, place: StorePlace, question: StoreQuestion, within_s: float) -> bytes:
        if place.holder == self._peers.own:
            return await self._stores.answer(place.holder, place.name, question, within_s)
        peer = self._peers.require(place.holder)
        request = peer_pb2.StoreRequest(
            store=place.name,
            verb=question.verb,
            keys=question.keys,
            values=question.values,
            within_s=within_s,
        )
        while not self._pace.allows(now_s(), place.holder):  # noqa: ASYNC110 - time alone helps
            await asyncio.sleep(SOON_S)
        try:
            with peer.channels.in_use() as channels:
                use = channels.control.UseStore
                return (await use(request, timeout=within_s + PATIENCE_S)).value
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, peer.name) from error
