"""Letting a node of another version lead where more machines that can work run it.

Owns when that is looked at, and for how long it must have been so. Doesn't know which versions are
alike (`jupiterd.versions`), or who is elected then.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.planning.roles import drained
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.version_groups import SETTLE_S, is_outnumbered
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import NodeId

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0


@dataclass(frozen=True)
class VersionGuard:
    """Which versions run on the machines here that can work."""

    program: str
    """This node's version."""
    replica: Replica
    alive: Callable[[], frozenset[NodeId]]
    hardware_of: Callable[[NodeId], Hardware | None]
    written_roles: Callable[[], Mapping[NodeId, str]]
    """What the file of the cluster says."""

    def is_of_most(self) -> bool:
        """Say whether no other version runs on more of the machines here that can work."""
        pins = {member: pin.role for member, pin in self.replica.state.pins.items()}
        here = self.alive() - drained(pins, self.written_roles())
        known = (self.hardware_of(member) for member in here)
        programs = [machine.program for machine in known if machine is not None and machine.engines]
        return not is_outnumbered(self.program, programs)


async def watch_versions(
    guard: VersionGuard,
    leads: Callable[[], bool],
    step_aside: Callable[[], Awaitable[None]],
    look_s: float = LOOK_S,
    settle_s: float = SETTLE_S,
) -> None:
    """Step aside, as a leader, whenever our version has been outnumbered for a while."""
    since_s = math.inf
    while True:
        await asyncio.sleep(look_s)
        if not leads() or guard.is_of_most():
            since_s = math.inf
            continue
        since_s = min(since_s, now_s())
        if now_s() - since_s >= settle_s:
            log.info("steps_aside", extra={"reason": "more machines run another version"})
            since_s = math.inf
            await step_aside()
