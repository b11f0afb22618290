"""Which kinds of worker a node keeps warm: those of the gangs that train, if it may be in one.

Owns that choice. Doesn't know how workers are kept warm (`gang`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import EpochOpened
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.training.named_trainers import named_trainers
from jupiterd.daemon.planning.gang_plan import TRAINING_ROLES
from jupiterd.processes.environment import worker_environment

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node

_LOOPBACK = "lo"


def wanted_kinds(node: "Node") -> Mapping[str, Mapping[str, str]]:
    """Return each kind with the environment that its workers will need."""
    wanted: dict[str, Mapping[str, str]] = {}
    for cycle in node.journal.state.cycles.values():
        if cycle.finished:
            continue
        for opened in cycle.open_epochs:
            engine, _, _ = opened.engine.partition("/")
            if engine in node.hardware.engines and _may_join(node, cycle, opened):
                wanted[engine] = _environment(node, opened, engine)
    return wanted


def _may_join(node: "Node", cycle: CycleState, opened: EpochOpened) -> bool:
    own = node.identity.node_id
    if named := named_trainers(cycle):
        return own in named
    assigned = node.journal.state.roles.get(own)
    return own in opened.gang or (assigned is not None and assigned.role in TRAINING_ROLES)


def _environment(node: "Node", opened: EpochOpened, engine: str) -> Mapping[str, str]:
    own = node.identity.node_id
    params = {
        "threads": node.settings.threads,
        "world_size": len(opened.gang),
        "local_world_size": max(opened.gang.count(own), len(node.hardware.devices), 1),
        "interface": _LOOPBACK if node.settings.local else "",
        "engine": engine,
    }
    return worker_environment("train", params)
