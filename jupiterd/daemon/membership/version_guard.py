"""Letting a node of another version lead where more machines that can work run it.

Owns when that is looked at, and for how long it must have been so. Doesn't know which versions are
alike (`jupiterd.versions`), or who is elected then.
"""

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Final

from jupiterd.cluster.planning.roles import drained
from jupiterd.cluster.values.version_groups import SETTLE_S, is_outnumbered
from jupiterd.daemon.runtime.clock import now_s

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0


def is_of_most(node: "Node") -> bool:
    """Say whether no other version runs on more of the machines here that can work."""
    pins = {member: pin.role for member, pin in node.journal.state.pins.items()}
    here = node.alive() - drained(pins, node.written.roles())
    machines = [node.outlook.hardware_of(member) for member in here]
    programs = [machine.program for machine in machines if machine is not None and machine.engines]
    return not is_outnumbered(node.hardware.program, programs)


async def watch_versions(node: "Node", look_s: float = LOOK_S, settle_s: float = SETTLE_S) -> None:
    """Step aside, as a leader, whenever our version has been outnumbered for a while."""
    since_s = math.inf
    while True:
        await asyncio.sleep(look_s)
        if node.leading is None or is_of_most(node):
            since_s = math.inf
            continue
        since_s = min(since_s, now_s())
        if now_s() - since_s >= settle_s:
            log.info("steps_aside", extra={"reason": "more machines run another version"})
            since_s = math.inf
            await node.pulse.step_aside(lambda: not node.is_removed)
