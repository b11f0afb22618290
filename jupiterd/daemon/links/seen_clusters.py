"""The cluster summaries of the nodes that were met, of this cluster or another.

Owns the summary's form on the wire, and when each was received. Doesn't know what follows
from it (`admission`, `token_wait`, `cluster_merge`).
"""

from dataclasses import dataclass

from jupiterd.cluster.membership.admission import Summary
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import is_id, sanitized_text
from jupiterd.errors import RefusedError
from jupiterd.ids import ClusterId, NodeId
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2

MAX_ABSORBED = 64
MAX_OUTSIDERS = 16
REMEMBERED_S = 60.0
"""How long a summary counts: a known address is looked at every half minute."""


@dataclass(frozen=True)
class Outsider:
    """Another cluster, as one of its nodes described it."""

    summary: Summary
    address: Address


class SeenClusters:
    """The latest summary of each cluster."""

    def __init__(self) -> None:
        self._seen: dict[ClusterId, tuple[Summary, float]] = {}
        self.outsiders: dict[ClusterId, Outsider] = {}
        """Other clusters that were met, and where."""

    def note(self, summary: Summary) -> None:
        """Store a node's summary, and drop those older than REMEMBERED_S."""
        recent = {c: seen for c, seen in self._seen.items() if now_s() - seen[1] < REMEMBERED_S}
        self._seen = recent | {summary.cluster: (summary, now_s())}

    def note_outsider(self, outsider: Outsider) -> None:
        """Remember the cluster met last; of too many the one met longest ago is forgotten."""
        cluster = outsider.summary.cluster
        self.outsiders.pop(cluster, None)
        self.outsiders[cluster] = outsider
        if len(self.outsiders) > MAX_OUTSIDERS:
            del self.outsiders[next(iter(self.outsiders))]

    def within(self, age_s: float = REMEMBERED_S) -> list[Summary]:
        """Return the summaries received in the last `age_s` seconds."""
        return [summary for summary, at_s in self._seen.values() if now_s() - at_s < age_s]


def to_message(summary: Summary) -> peer_pb2.ClusterSummary:
    """Return a cluster's summary for the wire."""
    return peer_pb2.ClusterSummary(
        cluster=summary.cluster,
        label=summary.label,
        blank=summary.blank,
        open=summary.open,
        leader=summary.leader or "",
        term=summary.term,
        members=summary.members,
        absorbed=sorted(summary.absorbed),
    )


def from_message(message: peer_pb2.ClusterSummary) -> Summary:
    """Rebuild a cluster's summary; raises RefusedError where it isn't one."""
    absorbed = message.absorbed[:MAX_ABSORBED]
    named = [message.cluster, *absorbed, *([message.leader] if message.leader else [])]
    if not all(map(is_id, named)):
        raise RefusedError("a stranger named a cluster or a leader that can't be one")
    return Summary(
        cluster=ClusterId(message.cluster),
        label=sanitized_text(message.label),
        blank=message.blank,
        open=message.open,
        leader=NodeId(message.leader) if message.leader else None,
        term=message.term,
        members=message.members,
        absorbed=frozenset(map(ClusterId, absorbed)),
    )
