"""Passes a request for text to the node that answers it, this one or another.

Owns one request's way: whom `routing` chooses, another one where that one can't take it or load the
model, has damaged files of it or dies before it has begun, and how many requests of this node each
peer has. Doesn't choose, and doesn't know how a node answers. What has begun isn't asked again:
half an answer of another engine would be another answer.
"""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Final, Protocol

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.routing import Lack, NoRoute, Route, ServingNode, route
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.answering import Answer, AnswersRequests
from jupiterd.errors import (
    BusyError,
    CorruptWeightsError,
    EngineLostError,
    JupiterError,
    MissingExtraError,
    ModelNotServedError,
    PeerUnreachableError,
    WorkFailedError,
)
from jupiterd.ids import ArtifactId, NodeId, short

log = logging.getLogger(__name__)

MAX_TRIES: Final = 4
"""Nodes that one request is offered to; those that can't be reached don't count."""

AWAY_RETRY_S: Final = 30.0

_LOST: Final = (EngineLostError, PeerUnreachableError)
_PASSED_ON: Final = (*_LOST, BusyError, CorruptWeightsError, WorkFailedError)
"""Another node may do better: its engines, its memory and its copy of the files are its own."""


class KnowsNodes(Protocol):
    """The members, as far as answering goes; `ServingFleet` is it."""

    async def find_holders(self, artifact: ArtifactId) -> None:
        """Find out who has a model's files."""
        ...

    def note_lost(self, node: NodeId) -> None:
        """Take note that a node has lost an answer."""
        ...

    def nodes(
        self, model: ServedModel, in_flight: Mapping[NodeId, int], without: Collection[NodeId] = ()
    ) -> list[ServingNode]:
        """Return the members but some."""
        ...


class Router:
    """Answers a request wherever that can be done."""

    def __init__(
        self,
        own: NodeId,
        local: AnswersRequests,
        remote: Callable[[NodeId], AnswersRequests],
        fleet: KnowsNodes,
    ) -> None:
        """`remote` returns what answers on another node."""
        self._own, self._local, self._remote = own, local, remote
        self._fleet = fleet
        self._engines: dict[NodeId, AnswersRequests] = {}
        self._in_flight: dict[ServedModel, Counter[NodeId]] = {}

    @asynccontextmanager
    async def answering(self, model: ServedModel, request: AnswerRequest) -> AsyncGenerator[Answer]:
        """Begin an answer on the node that is best for it; see `AnswersRequests`."""
        async with AsyncExitStack() as stack:
            yield await self._begun(stack, model, request)

    async def _begun(
        self, stack: AsyncExitStack, model: ServedModel, request: AnswerRequest
    ) -> Answer:
        """Offer a request to one node after another; those tried in vain aren't asked again."""
        tried: dict[NodeId, JupiterError] = {}
        while True:
            found = await self._route(model, tried)
            if isinstance(found, NoRoute) or _offers(tried) >= MAX_TRIES:
                raise _refusal(found, tried)
            try:
                return await self._ask(stack, found.node, model, request)
            except _PASSED_ON as error:
                tried[found.node] = error
                if isinstance(error, _LOST):
                    self._fleet.note_lost(found.node)
                extra = {"node": short(found.node), "reason": error.message}
                log.info("answer_passed_on", extra=extra)

    async def _ask(
        self, stack: AsyncExitStack, node: NodeId, model: ServedModel, request: AnswerRequest
    ) -> Answer:
        counts = self._in_flight.setdefault(model, Counter())
        counts[node] += 1
        async with AsyncExitStack() as asked:
            asked.callback(self._end, node, model)
            answer = await asked.enter_async_context(
                self._engines_of(node).answering(model, request)
            )
            stack.push_async_exit(asked.pop_all())
        return replace(answer, chunks=self._watched(node, answer.chunks))

    async def _watched(self, node: NodeId, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        try:
            async for chunk in chunks:
                yield chunk
        except EngineLostError:
            self._fleet.note_lost(node)
            raise

    def _end(self, node: NodeId, model: ServedModel) -> None:
        counts = self._in_flight[model]
        counts[node] -= 1
        if not +counts:
            del self._in_flight[model]

    async def _route(self, model: ServedModel, tried: Collection[NodeId]) -> Route | NoRoute:
        """Choose a node; who has the files is asked only where nobody serves the model."""
        in_flight = self._in_flight.get(model, Counter[NodeId]())
        found = route(model, self._fleet.nodes(model, in_flight, tried))
        if model.artifact is None or (isinstance(found, Route) and not found.must_load):
            return found
        await self._fleet.find_holders(model.artifact)
        return route(model, self._fleet.nodes(model, in_flight, tried))

    def _engines_of(self, node: NodeId) -> AnswersRequests:
        if node == self._own:
            return self._local
        if node not in self._engines:
            self._engines[node] = self._remote(node)
        return self._engines[node]


def _offers(tried: Mapping[NodeId, JupiterError]) -> int:
    """Return how many nodes have heard of a request."""
    return sum(not isinstance(error, PeerUnreachableError) for error in tried.values())


def _refusal(found: Route | NoRoute, tried: Mapping[NodeId, JupiterError]) -> JupiterError:
    """Return the error of a request that nobody takes; what a node said of it comes first."""
    if tried:
        busy = [error for error in tried.values() if isinstance(error, BusyError)]
        return min(busy, key=lambda error: error.retry_after_s) if busy else [*tried.values()][-1]
    if isinstance(found, Route):
        return BusyError("nobody answers just now")
    match found.lack:
        case Lack.UNKNOWN:
            return ModelNotServedError(found.message, found.hint)
        case Lack.NO_ENGINE:
            return MissingExtraError(found.message, found.hint)
        case Lack.AWAY:
            return BusyError(found.message, found.hint, AWAY_RETRY_S)
        case Lack.BUSY:
            return BusyError(found.message, found.hint, found.retry_after_s)
