"""The parts that observe a daemon: documents, alerts, events, reports and heartbeats.

Owns putting these together. Doesn't know what any of them says.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.artifacts.model_exports import ModelExports
from jupiterd.daemon.catalog.hub_fetches import HubFetches
from jupiterd.daemon.commands.cluster_file_policy import ClusterFilePolicy
from jupiterd.daemon.commands.commands import Commands
from jupiterd.daemon.executor.worker_runner import WorkerRunner
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.membership.handshake import Handshake
from jupiterd.daemon.membership.listening import Listening
from jupiterd.daemon.observability.alert_watch import AlertWatch
from jupiterd.daemon.observability.event_ring import EventRing
from jupiterd.daemon.observability.heartbeat_description import HeartbeatDescription
from jupiterd.daemon.observability.node_report import NodeReport
from jupiterd.daemon.observability.refused_here import RefusedHere
from jupiterd.daemon.observability.remote_reports import RemoteReports
from jupiterd.daemon.observability.telemetry_history import TelemetryHistory
from jupiterd.daemon.queries.cycle.curve_files import CurveFiles
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.daemon.queries.documents import Documents
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.daemon.serving.serving_fleet import ServingFleet
from jupiterd.daemon.serving.serving_report import ServingReport
from jupiterd.daemon.view.health_view import HealthView
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.net.refusals import Refusals


class ServesModels(Protocol):
    """What answers models here."""

    report: ServingReport
    fleet: ServingFleet


class Observed(Protocol):
    """The parts of a daemon that are looked at."""

    settings: Settings
    setting_sources: dict[str, str]
    state_dir: StateDir
    local_view: LocalView
    replica: Replica
    peers: Peers
    artifact_cache: ArtifactCache
    exports: ModelExports
    curves: CurveFiles
    refusals: Refusals
    worker_runner: WorkerRunner
    listening: Listening
    handshake: Handshake
    hub_fetches: HubFetches
    commands: Commands
    file_policy: ClusterFilePolicy

    @property
    def serving(self) -> ServesModels:
        """What answers models here."""
        ...


@dataclass(frozen=True)
class Observers:
    """All that watches one daemon."""

    view: LocalView
    health: HealthView
    sources: DocumentSources
    alerts: AlertWatch
    events: EventRing
    own_report: NodeReport
    reports: RemoteReports
    histories: TelemetryHistory
    documents: Documents
    description: HeartbeatDescription

    async def run(self) -> None:
        """Keep what needs looking at again and again."""
        async with asyncio.TaskGroup() as group:
            for part in (self.view.load_watch, self.histories, self.reports):
                group.create_task(part.run())


def observers_of(daemon: Observed) -> Observers:
    """Return what watches a daemon; it looks once it runs."""
    view, replica, peers = daemon.local_view, daemon.replica, daemon.peers
    health = HealthView(view, daemon.settings, replica, peers, daemon.handshake, daemon.file_policy)
    alerts = _alerts(daemon, health)
    sources = _sources(daemon, health, alerts)
    events = EventRing(daemon.state_dir.events, sources)
    own_report = NodeReport(daemon.worker_runner)
    reports = RemoteReports(peers, own_report)
    histories = TelemetryHistory(view, replica, peers)
    documents = Documents(
        sources, daemon.curves, reports, histories, events, daemon.setting_sources
    )
    unreached = daemon.handshake.unreached
    served = daemon.serving.report

    def more_telemetry() -> Mapping[str, Any]:
        return {**alerts.telemetry(), **served.telemetry()}

    description = HeartbeatDescription(view, peers, unreached, more_telemetry)
    return Observers(
        view,
        health,
        sources,
        alerts,
        events,
        own_report,
        reports,
        histories,
        documents,
        description,
    )


def _alerts(daemon: Observed, health: HealthView) -> AlertWatch:
    runner, crowding = daemon.worker_runner, daemon.listening.crowding

    def report_over(keys: Sequence[str]) -> Awaitable[dict[str, Any]]:
        return daemon.commands.execute("alarm.over", {"keys": keys})

    refused = RefusedHere(runner.refused_connections, crowding, runner.offered)
    return AlertWatch(daemon.local_view, health, daemon.replica, daemon.peers, refused, report_over)


def _sources(daemon: Observed, health: HealthView, alerts: AlertWatch) -> DocumentSources:
    return DocumentSources(
        settings=daemon.settings,
        view=daemon.local_view,
        health=health,
        alerts=alerts,
        replica=daemon.replica,
        peers=daemon.peers,
        artifact_cache=daemon.artifact_cache,
        exports=daemon.exports,
        refusals=daemon.refusals,
        fetches=daemon.hub_fetches,
        cluster_file=daemon.file_policy,
        approval=daemon.handshake.joining.approval,
        serving=daemon.serving.report,
        fleet=daemon.serving.fleet,
    )
