"""How answers of models are put together on one node.

Owns which part is given what. Doesn't know what any of them does.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.commands.cluster_file_policy import ClusterFilePolicy
from jupiterd.daemon.executor.order_executor import OrderExecutor
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.serving.answering import Answer
from jupiterd.daemon.serving.endpoints import Endpoints
from jupiterd.daemon.serving.local_engines import AnswerCounts, HoldsEngines, LocalEngines
from jupiterd.daemon.serving.promotion_follower import PromotionFollower
from jupiterd.daemon.serving.remote_engine import RemoteEngine
from jupiterd.daemon.serving.router import Router
from jupiterd.daemon.serving.serving_fleet import ServingFleet
from jupiterd.daemon.serving.serving_report import ServingReport
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.errors import MissingExtraError
from jupiterd.net.identity import Identity


class AnsweringNode(Protocol):
    """The parts of a daemon that answers need."""

    identity: Identity
    replica: Replica
    peers: Peers
    artifact_cache: ArtifactCache
    order_executor: OrderExecutor
    local_view: LocalView
    file_policy: ClusterFilePolicy
    group: asyncio.TaskGroup
    endpoints: Endpoints


class Serving:
    """What answers models on one node, and on others for it."""

    def __init__(self, node: AnsweringNode, engines: HoldsEngines | None = None) -> None:
        held = engines or NoEngines()
        cache = node.artifact_cache
        counts = AnswerCounts()
        self.follower = PromotionFollower(
            node.replica, held, counts.waiting, cache.ensure, node.group
        )
        self.local = LocalEngines(held, self.follower, cache.ensure, counts)
        self.report = ServingReport(
            self.local,
            node.peers,
            lambda: node.order_executor.has_gang,
            lambda: node.endpoints.is_pinned,
        )
        self.fleet = ServingFleet(
            node.local_view, node.replica, self.report, cache, node.file_policy.roles
        )
        self.router = Router(
            node.identity.node_id,
            self.local,
            lambda peer: RemoteEngine(node.peers, peer),
            self.fleet,
        )


class NoEngines:
    """Stands where nothing is installed that could load a model."""

    def answering(
        self, model: ServedModel, request: AnswerRequest
    ) -> AbstractAsyncContextManager[Answer]:
        """Refuse with MissingExtraError."""
        del request
        raise MissingExtraError(f"no engine is installed that could load {model.name}")

    async def load(self, model: ServedModel) -> None:
        """Refuse with MissingExtraError."""
        raise MissingExtraError(f"no engine is installed that could load {model.name}")

    async def unload(self, model: ServedModel) -> None:
        """Do nothing: nothing is loaded."""

    def ready(self) -> Sequence[ServedModel]:
        """Return nothing."""
        return ()

    def loading(self) -> Sequence[ServedModel]:
        """Return nothing."""
        return ()
