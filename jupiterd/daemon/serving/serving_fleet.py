"""The members as the router sees them: who is there, what each serves and has, what else it does.

Owns putting this together, and finding out who has a model's files. Doesn't choose among them
(`cluster.serving.routing`).
"""

import asyncio
import datetime as dt
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol

from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.planning.roles import drained
from jupiterd.cluster.serving.routing import ServingNode
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.serving.serving_rows import NodeServing
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.runtime.clock import now_s, wall_s
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.daemon.serving.serving_report import ServingReport
from jupiterd.ids import ArtifactId, NodeId

ASK_S: Final = 1.0
"""How long members are waited for that are asked what they have."""

KNOWN_FOR_S: Final = 5.0
"""So long it is taken for true that a member lacks a model: it may fetch it."""


class KnowsMembers(Protocol):
    """What this node knows of every member; `LocalView` is it."""

    own: NodeId

    def liveness(self, node: NodeId) -> Liveness:
        """Return whether a member answers."""
        ...

    def last_heard_s(self, node: NodeId) -> float | None:
        """Return how long ago it was heard."""
        ...

    def hardware_of(self, node: NodeId) -> Hardware | None:
        """Return its hardware."""
        ...

    def running(self) -> list[dict[str, Any]]:
        """Return the leader's telemetry of every running phase."""
        ...


class KnowsHolders(Protocol):
    """Asks members which artifacts they have; `ArtifactCache` is it."""

    async def held_by(
        self, node: NodeId, artifacts: Sequence[ArtifactId], timeout_s: float
    ) -> tuple[NodeId, frozenset[ArtifactId], int] | None:
        """Return what a node has of these; None where it doesn't say."""
        ...


class ServingFleet:
    """The members, looked at for one request after another."""

    def __init__(
        self,
        view: KnowsMembers,
        replica: Replica,
        report: ServingReport,
        holders: KnowsHolders,
        written_roles: Callable[[], Mapping[NodeId, str]],
    ) -> None:
        """`written_roles` are those in the cluster file of this machine."""
        self._view, self._replica, self._report = view, replica, report
        self._holders, self._written_roles = holders, written_roles
        self._having: dict[ArtifactId, set[NodeId]] = {}
        self._asked_s: dict[tuple[NodeId, ArtifactId], float] = {}
        self._lost_s: dict[NodeId, float] = {}

    def serving(self) -> dict[NodeId, NodeServing]:
        """Return what each member serves."""
        return {node: self._report.of(node) for node in self._replica.state.members}

    def note_lost(self, node: NodeId) -> None:
        """Ask a member nothing until it is heard again: it has just lost an answer."""
        if node != self._view.own:
            self._lost_s[node] = now_s()

    async def find_holders(self, artifact: ArtifactId) -> None:
        """Ask the members that answer who has a model, unless that was found out just now."""
        alive = [node for node in self._replica.state.members if not self._absence(node)]
        now = now_s()
        due = [
            node
            for node in alive
            if node not in self._having.get(artifact, ())
            and now - self._asked_s.get((node, artifact), -KNOWN_FOR_S) >= KNOWN_FOR_S
        ]
        answers = await asyncio.gather(
            *(self._holders.held_by(node, [artifact], ASK_S) for node in due)
        )
        for said in answers:
            if said is not None:
                node, found, _ = said
                self._asked_s[node, artifact] = now
                if artifact in found:
                    self._having.setdefault(artifact, set()).add(node)

    def nodes(
        self, model: ServedModel, in_flight: Mapping[NodeId, int], without: Collection[NodeId] = ()
    ) -> list[ServingNode]:
        """Return the members but some, as far as answering a model goes."""
        state = self._replica.state
        idle = self._drained()
        training = _training_nodes(self._view.running())
        having = self._having.get(model.artifact, set()) if model.artifact else set[NodeId]()
        return [
            self._node(
                node,
                in_flight.get(node, 0),
                is_drained=node in idle,
                trains=node in training,
                holds=node in having,
            )
            for node in state.members
            if node not in without
        ]

    def is_drained(self, node: NodeId) -> bool:
        """Say whether people want a member to do nothing."""
        return node in self._drained()

    def _drained(self) -> frozenset[NodeId]:
        pins = {node: pin.role for node, pin in self._replica.state.pins.items()}
        return drained(pins, self._written_roles())

    def _node(
        self, node: NodeId, in_flight: int, *, is_drained: bool, trains: bool, holds: bool
    ) -> ServingNode:
        hardware = self._view.hardware_of(node)
        serving = self._report.of(node)
        if trains and not serving.trains:
            serving = NodeServing(serving.models, serving.is_open, serving.is_pinned, trains=True)
        return ServingNode(
            node=node,
            name=sanitized_text(self._replica.state.members[node].name),
            absence=self._absence(node),
            is_own=node == self._view.own,
            is_drained=is_drained,
            can_compute=hardware is not None and (hardware.can_answer or bool(hardware.engines)),
            has_accelerator=hardware is not None and bool(hardware.working_gpus),
            serving=serving,
            holds=holds,
            in_flight=in_flight,
        )

    def _absence(self, node: NodeId) -> str:
        """Return why a member isn't asked; empty where it answers."""
        heard_s = self._view.last_heard_s(node)
        if node == self._view.own or self._view.liveness(node) is Liveness.ALIVE:
            is_silent = (
                heard_s is not None and self._lost_s.get(node, -math.inf) > now_s() - heard_s
            )
            return "doesn't answer just now" if is_silent else ""
        if heard_s is None:
            return "hasn't been heard since this daemon was started"
        since = dt.datetime.fromtimestamp(wall_s() - heard_s)  # noqa: DTZ006 - people read it here
        return f"is off or asleep since {since:%H:%M}"


def _training_nodes(running: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return who has a rank in a phase that runs, as the leader tells."""
    seats = (row for live in running for row in live.get("gang") or ())
    return frozenset(str(row.get("node", "")) for row in seats)
