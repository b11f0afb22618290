"""How steady this machine is, looked at now and then.

Owns the readings. Doesn't know what they weigh (`cluster.stability`), or what an election does.
"""

import asyncio
import logging
from collections.abc import Callable

from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.cluster.values.stability import stability
from jupiterd.daemon.membership.heartbeat_loop import HeartbeatLoop
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.hardware.host import is_on_mains
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.interfaces import addresses_by_interface

log = logging.getLogger(__name__)

LOOK_S = 10.0


async def watch_stability(
    heartbeats: HeartbeatLoop,
    settings: Settings,
    is_of_most: Callable[[], bool],
    is_trusted: Callable[[], bool],
) -> None:
    """Report this machine's stability to the heartbeats for ever."""
    began_s = now_s()
    while True:
        try:
            mains = is_on_mains()
            wired = settings.local or has_wire(settings.interface)
        except OSError as error:  # the system can't say just now: the last report stands
            log.debug("steadiness_unknown", extra={"reason": str(error)})
        else:
            uptime_s, lag_s = now_s() - began_s, heartbeats.worst_lag_s
            heartbeats.set_stability(
                stability(
                    on_mains=mains,
                    is_wired=wired,
                    lag_s=lag_s,
                    uptime_s=uptime_s,
                    is_of_most=is_of_most(),
                    is_trusted=is_trusted(),
                )
            )
        await asyncio.sleep(LOOK_S)


def has_wire(interfaces: tuple[str, ...]) -> bool:
    """Say whether one of these interfaces (all, where none is named) is a cable."""
    found = {name for name, _ in addresses_by_interface(interfaces)}
    return any(kind_of(name) <= InterfaceKind.ETHERNET for name in found)
