"""What leaders write: finished work, checkpoints and rounds on their canonical line, settings.

Owns the facts and when they come. Doesn't know how they get into a ledger.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.facts import (
    WALKED_IN,
    CheckpointCommitted,
    ClusterFounded,
    CycleStarted,
    Fact,
    NodeAdmitted,
    RoleAssigned,
    RoundCommitted,
    WorkCompleted,
)
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.ids import ArtifactId, CycleId, NodeId
from tests.simulation.node import members
from tests.simulation.node.signing import certificate_of

if TYPE_CHECKING:
    from tests.simulation.node.process import Process
    from tests.simulation.world import World

CYCLE = CycleId("d" * 16)


def founding(
    founder: NodeId, founders: Sequence[NodeId], *, is_first_day: bool = False
) -> list[list[Fact]]:
    """Return what the first entries of the cluster say; on its first day nothing has begun."""
    if is_first_day:
        guests = [replace(admission(node), reason=WALKED_IN) for node in founders]
        guests = [each for each in guests if each.node != founder]
        return [[ClusterFounded("home"), admission(founder)], *([guests] if guests else [])]
    started = CycleStarted(CYCLE, "python", "", 1000, "1m", 7, "2026-01-01T00:00:00Z")
    rest = [admission(node) for node in founders if node != founder]
    return [[ClusterFounded("home"), admission(founder)], [*rest, started]]


def admission(node: NodeId) -> NodeAdmitted:
    """Return what makes a node a member."""
    return NodeAdmitted(node, node[:2], certificate_of(node), "window open")


def keep_recording(world: "World") -> None:
    """Let whoever leads append something now and then, also what piles up while it sleeps."""
    if not world.is_healed:
        for machine in world.machines.values():
            machine.deliver(lambda process: process.record(something))
        world.at(
            world.rng.expovariate(1.0 / world.profile.fact_every_s), lambda: keep_recording(world)
        )


def something(process: "Process") -> Sequence[Fact]:
    """Return facts that a leader may append as it sees the ledger."""
    rng = process.world.rng
    kinds = (_work, _work, _checkpoint, _checkpoint, _round, members.window, _role, _epoch)
    commands = [COMMANDS[name] for name in process.world.profile.commands]
    return rng.choice([*kinds, *commands])(process)


def work(process: "Process", item: str) -> Sequence[Fact]:
    """Return that an item of work is done."""
    outputs = {"samples": ArtifactId(process.world.fresh_name(64))}
    return [WorkCompleted(CYCLE, 1, "generate", item, process.node, outputs, {"kept": 3.0})]


def _work(process: "Process") -> Sequence[Fact]:
    return work(process, f"r1/generate/{process.world.rng.randrange(30)}")


def _checkpoint(process: "Process") -> Sequence[Fact]:
    """Extend the canonical line as this leader sees it."""
    cycle, rng = cycle_of(process), process.world.rng
    parent, tokens = _last_checkpoint(cycle)
    artifact = ArtifactId(process.world.fresh_name(64))
    current, added = cycle.rounds_committed + 1, rng.randrange(1, 4) * 100
    return [
        CheckpointCommitted(CYCLE, current, parent, artifact, 1, 10, tokens + added, 5, 3.5, False)
    ]


def _round(process: "Process") -> Sequence[Fact]:
    cycle = cycle_of(process)
    line = cycle.canonical_branch()
    if not line or not isinstance(line[-1], CheckpointCommitted):
        return []
    verdict = process.world.rng.choice(("PROMOTE", "HOLD"))
    return [RoundCommitted(CYCLE, cycle.rounds_committed + 1, line[-1].artifact, verdict, "")]


def _epoch(process: "Process") -> Sequence[Fact]:
    """Launch a gang, or end the one that runs."""
    cycle = cycle_of(process)
    if cycle.open_attempts:
        return [AttemptClosed(CYCLE, cycle.open_attempts[0].attempt, "it is done")]
    current, attempt = cycle.rounds_committed + 1, cycle.next_attempt
    return [AttemptOpened(CYCLE, current, attempt, (process.node,), "torch", "", 0)]


def _role(process: "Process") -> Sequence[Fact]:
    state, rng = process.replica.ledger.state, process.world.rng
    node = rng.choice(sorted(state.members))
    known = state.roles.get(node)
    edit = 1 if known is None else known.edit + 1
    return [RoleAssigned(node, rng.choice(("trainer", "generator", "idle")), "seen", edit)]


def cycle_of(process: "Process") -> CycleState:
    """Return what a process knows of the only cycle there is."""
    return process.replica.ledger.state.cycles.get(CYCLE) or CycleState()


def _last_checkpoint(cycle: CycleState) -> tuple[str, int]:
    """Return the artifact and the tokens of the line's last checkpoint."""
    found = [fact for fact in cycle.canonical_branch() if isinstance(fact, CheckpointCommitted)]
    return (found[-1].artifact, found[-1].tokens) if found else ("", 0)


COMMANDS: "Mapping[str, Callable[[Process], Sequence[Fact]]]" = {
    "window": members.window,
    "token": members.token,
    "trust": members.trust,
    "withdraw": members.withdraw,
    "remove": members.remove,
}
"""What people may ask for, by the names that profiles use."""
