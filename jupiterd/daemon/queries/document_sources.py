"""What the documents of a running daemon are read from.

Owns the names of these sources. Doesn't know any document. A document that needs one or two of them
takes those alone.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jupiterd.cluster.health.alerts import Alert
from jupiterd.cluster.health.health import HealthWarning
from jupiterd.cluster.health.health_ages import HealthAges
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.artifacts.model_exports import ModelExports
from jupiterd.daemon.catalog.hub_fetches import HubFetches
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.membership.approval_client import ApprovalClient
from jupiterd.daemon.queries.cycle.curve_files import CurveFiles
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.serving.serving_fleet import ServingFleet
from jupiterd.daemon.serving.serving_report import ServingReport
from jupiterd.daemon.view.health_view import ClusterFileNotes, HealthView
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.ids import NodeId
from jupiterd.net.refusals import Refusals

Document = dict[str, Any]


class RaisedAlerts(Protocol):
    """The alerts that are raised on this node's view of the cluster."""

    ages: HealthAges
    """Since when each of status's findings holds."""

    @property
    def raised(self) -> Sequence[Alert]:
        """The raised alerts, the gravest first."""
        ...

    @property
    def dismissed(self) -> Sequence[Alert]:
        """What is raised, too, and people have seen it."""
        ...

    def is_dismissed(self, alarm: Alert | HealthWarning) -> bool:
        """Say whether people have seen it as it stands."""
        ...

    def key(self, alarm: Alert | HealthWarning) -> str:
        """Return its key, which is unique in the cluster."""
        ...


class MemberReports(Protocol):
    """The reports of members, fetched while somebody looks at them."""

    def of(self, member: NodeId) -> Awaitable[Document]:
        """Return a member's report, its keys None where there is none."""
        ...


class MemberHistories(Protocol):
    """The last minutes of every member's telemetry."""

    def of(self, member: NodeId) -> Document:
        """Return what is known of a member's last minutes."""
        ...


class SeenEvents(Protocol):
    """What was seen to happen in the cluster."""

    def document(self) -> Document:
        """Return the events, the oldest first."""
        ...


@dataclass(frozen=True)
class DocumentSources:
    """What status and the documents about cycles and models are read from."""

    settings: Settings
    view: LocalView
    health: HealthView
    alerts: RaisedAlerts
    replica: Replica
    peers: Peers
    artifact_cache: ArtifactCache
    exports: ModelExports
    refusals: Refusals
    fetches: HubFetches
    cluster_file: ClusterFileNotes
    approval: ApprovalClient
    """This node's wait for approval, and the words that people compare."""
    serving: ServingReport
    """The models that each member serves."""
    fleet: ServingFleet
    """The members, and who has a model."""


@dataclass(frozen=True)
class SlowSources:
    """What documents are read from that need the disk or other nodes."""

    sources: DocumentSources
    curves: CurveFiles
    reports: MemberReports
    histories: MemberHistories

    @property
    def state(self) -> State:
        """Return what the ledger adds up to now."""
        return self.sources.replica.state
