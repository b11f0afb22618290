"""How answers of models are put together on one node.

Owns which part is given what. Doesn't know what any of them does.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Protocol

from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.commands.cluster_file_policy import ClusterFilePolicy
from jupiterd.daemon.executor.order_executor import OrderExecutor
from jupiterd.daemon.executor.worker_runner import WorkerRunner
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.daemon.serving.endpoints import Endpoints
from jupiterd.daemon.serving.engines_on_demand import EndsEngines, EnginesOnDemand
from jupiterd.daemon.serving.local_engines import AnswerCounts, LocalEngines
from jupiterd.daemon.serving.name_followers import NameFollowers
from jupiterd.daemon.serving.promotion_follower import FollowedName, PromotionFollower
from jupiterd.daemon.serving.remote_engine import RemoteEngine
from jupiterd.daemon.serving.router import Router
from jupiterd.daemon.serving.serving_fleet import ServingFleet
from jupiterd.daemon.serving.serving_report import ServingReport
from jupiterd.daemon.serving.tasks.batch_service import AnswersLines, BatchService
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.ids import ArtifactId
from jupiterd.memory_limits import free_memory_bytes
from jupiterd.net.identity import Identity
from jupiterd.processes.tasks.batch_answers import batch_answers


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
    state_dir: StateDir
    hardware: Hardware
    worker_runner: WorkerRunner


class Serving:
    """What answers models on one node, and on others for it."""

    def __init__(self, node: AnsweringNode) -> None:
        held = self.engines = EnginesOnDemand(lambda: pool_of(node))
        cache = node.artifact_cache
        counts = AnswerCounts()

        async def bring(artifact: ArtifactId) -> None:
            await cache.ensure_with_base(artifact)

        def follower_of(followed: FollowedName) -> PromotionFollower:
            ledger, group = node.replica, node.group
            return PromotionFollower(ledger, held, counts.waiting, bring, group, followed)

        self.followers = NameFollowers(follower_of, node.group)
        self.local = LocalEngines(held, self.followers, bring, counts)
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
        self.batches = BatchService(
            cache.store,
            partial(_model_opened, node.state_dir.logs),
            lambda: self._hindrance(node),
            free_memory_bytes,
            can_evaluate=node.hardware.can_evaluate,
        )

    def _hindrance(self, node: AnsweringNode) -> str:
        """Return why this machine answers no tasks of other members now; empty where it does."""
        if node.order_executor.has_gang:
            return "it trains"
        return "it is drained" if self.fleet.is_drained(node.identity.node_id) else ""


def _model_opened(
    logs: Path, folder: Path, device: str, scratch: Path
) -> AbstractAsyncContextManager[AnswersLines]:
    return batch_answers(folder, device, scratch, logs / "answer_requests.log")


def pool_of(node: AnsweringNode) -> EndsEngines:
    """Return the pool of this machine's engines."""
    from jupiterd.daemon.serving.engine_pool import (  # takes 16 MB, idle or not
        EnginePool,
        PoolOptions,
    )
    from jupiterd.daemon.serving.engines.engine_devices import EngineDevices

    runner = node.worker_runner  # whose workers may share a GPU with engines
    devices = EngineDevices(node.hardware, runner.loans, lambda: node.endpoints.is_pinned)
    store, threads = node.artifact_cache.store, runner.thread_shares
    options = PoolOptions(wanted=lambda: node.endpoints.engine)
    return EnginePool(node.state_dir, store, devices, threads, node.group, options)
