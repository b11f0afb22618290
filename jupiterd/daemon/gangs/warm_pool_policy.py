"""Which kinds of worker a node keeps warm: those of the gangs that train, if it may be in one.

Owns that choice. Doesn't know how workers are kept warm (`processes.warm_pool`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.training.named_trainers import named_trainers
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.planning.gang_plan import TRAINING_ROLES
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.ids import NodeId
from jupiterd.processes.environment import worker_environment

_LOOPBACK = "lo"


@dataclass(frozen=True)
class WarmPoolPolicy:
    """One node's choice, by its machine and its settings."""

    own: NodeId
    hardware: Hardware
    settings: Settings

    def wanted_kinds(self, state: State) -> Mapping[str, Mapping[str, str]]:
        """Return each kind with the environment that its workers will need."""
        wanted: dict[str, Mapping[str, str]] = {}
        for cycle in state.cycles.values():
            if cycle.has_nothing_to_do:
                continue
            for opened in cycle.open_attempts:
                engine, _, _ = opened.engine.partition("/")
                if engine in self.hardware.engines and self._may_join(state, cycle, opened):
                    wanted[engine] = self._environment(opened, engine)
        return wanted

    def _may_join(self, state: State, cycle: CycleState, opened: AttemptOpened) -> bool:
        if named := named_trainers(cycle):
            return self.own in named
        assigned = state.roles.get(self.own)
        return self.own in opened.gang or (assigned is not None and assigned.role in TRAINING_ROLES)

    def _environment(self, opened: AttemptOpened, engine: str) -> Mapping[str, str]:
        own, devices = self.own, len(self.hardware.devices)
        params = {
            "threads": self.settings.threads,
            "world_size": len(opened.gang),
            "local_world_size": max(opened.gang.count(own), devices, 1),
            "interface": _LOOPBACK if self.settings.local else "",
            "engine": engine,
        }
        return worker_environment("train", params)
