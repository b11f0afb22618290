"""What watches a daemon and tells of it: documents, alerts, events, reports and heartbeats.

Owns putting these together. Doesn't know what any of them says.
"""

import asyncio
from collections.abc import Awaitable, Sequence
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
from jupiterd.daemon.view.health_view import HealthView
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.net.refusals import Refusals


class Observed(Protocol):
    """The parts of a daemon that are looked at."""

    settings: Settings
    setting_sources: dict[str, str]
    state_dir: StateDir
    outlook: LocalView
    journal: Replica
    peers: Peers
    library: ArtifactCache
    exports: ModelExports
    curves: CurveFiles
    refusals: Refusals
    runner: WorkerRunner
    listening: Listening
    greeter: Handshake
    fetches: HubFetches
    commands: Commands
    written: ClusterFilePolicy


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
    view, journal, peers = daemon.outlook, daemon.journal, daemon.peers
    health = HealthView(view, daemon.settings, journal, peers, daemon.greeter, daemon.written)
    alerts = _alerts(daemon, health)
    sources = _sources(daemon, health, alerts)
    events = EventRing(daemon.state_dir.events, sources)
    own_report = NodeReport(daemon.runner)
    reports = RemoteReports(peers, own_report)
    histories = TelemetryHistory(view, journal, peers)
    documents = Documents(
        sources, daemon.curves, reports, histories, events, daemon.setting_sources
    )
    unreached = daemon.greeter.unreached
    description = HeartbeatDescription(view, peers, unreached, alerts.told)
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
    runner, crowding = daemon.runner, daemon.listening.crowding

    def tell_over(keys: Sequence[str]) -> Awaitable[dict[str, Any]]:
        return daemon.commands.execute("alarm.over", {"keys": keys})

    refused = RefusedHere(runner.knocks, crowding, runner.offered)
    return AlertWatch(daemon.outlook, health, daemon.journal, daemon.peers, refused, tell_over)


def _sources(daemon: Observed, health: HealthView, alerts: AlertWatch) -> DocumentSources:
    return DocumentSources(
        settings=daemon.settings,
        view=daemon.outlook,
        health=health,
        alerts=alerts,
        journal=daemon.journal,
        peers=daemon.peers,
        library=daemon.library,
        exports=daemon.exports,
        refusals=daemon.refusals,
        fetches=daemon.fetches,
        cluster_file=daemon.written,
        applying=daemon.greeter.joining.applying,
    )
