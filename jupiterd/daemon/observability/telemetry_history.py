"""The last ten minutes of every member's telemetry, as this node hears of it.

Owns when a point is taken. Doesn't know what is stored of it (`node_history`), or who shows it.
"""

import asyncio
from typing import Any

from jupiterd.cluster.health.node_history import INTERVAL_S, NodeHistory, SeriesValues, slot_of
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.daemon.leader.node_speed import speed_of
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.ids import NodeId


class TelemetryHistory:
    """One for each member; who is one no more is forgotten."""

    def __init__(self, view: LocalView, replica: Replica, peers: Peers) -> None:
        self._view, self._replica, self._peers = view, replica, peers
        self._of: dict[NodeId, NodeHistory] = {}

    def of(self, member: NodeId) -> dict[str, Any]:
        """Return what is known of a member's last minutes, for a document."""
        return self._of.get(member, NodeHistory()).to_plain()

    async def run(self) -> None:
        """Take a point of everybody, again and again."""
        while True:
            self.take(now_s())
            await asyncio.sleep(INTERVAL_S)

    def take(self, at_s: float) -> None:
        """Take a point of every member; of one that doesn't answer nothing is known."""
        view, slot = self._view, slot_of(at_s)
        running = view.running()
        members = self._replica.state.members
        self._of = {member: self._of.get(member) or NodeHistory() for member in members}
        for member, history in self._of.items():
            if view.liveness(member) is not Liveness.ALIVE:
                history.add(slot, {})
                continue
            peer = self._peers.get(member)
            speed = speed_of(member, running)
            reading: SeriesValues = {
                **view.load_of(member),
                "tokens_per_s": speed.tokens_per_s,
                "step_lag": speed.step_lag,
                "rtt_s": None if peer is None else peer.beats.rtt_s,
            }
            history.add(slot, reading, view.gpu_loads_of(member))
