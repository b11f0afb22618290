"""The whole examination: every check there is, one beside the other.

Owns the list of checks, and that one that fails to read never hides the others. Doesn't know what
any check looks at. Takes several seconds, and up to a minute: run it in a thread.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from jupiterd.client.reachability import not_answering
from jupiterd.doctor import (
    clock_check,
    disk,
    engines,
    firewall,
    health,
    links,
    local_network,
    multicast,
    nvidia_driver,
    ports,
    versions,
    wsl,
)
from jupiterd.doctor.finding import Finding, warn
from jupiterd.doctor.place import Place

log = logging.getLogger(__name__)

Check = Callable[[Place], Finding | Sequence[Finding]]


def _health(place: Place) -> list[Finding]:
    return health.judge(place, lambda: not_answering(place.state_dir))


CHECKS: Final[dict[str, Check]] = {
    health.CHECK: _health,
    disk.CHECK: lambda place: disk.judge(disk.read(place)),
    clock_check.CHECK: lambda place: clock_check.judge(clock_check.read(place)),
    ports.CHECK: lambda place: ports.judge(ports.read(place)),
    firewall.CHECK: lambda place: firewall.judge(firewall.read(place)),
    multicast.CHECK: lambda place: multicast.judge(multicast.read(place)),
    local_network.CHECK: lambda place: local_network.judge(local_network.read(place)),
    wsl.CHECK: lambda place: wsl.judge(wsl.read(place)),
    links.CHECK: lambda place: links.judge(links.read(place)),
    versions.CHECK: versions.judge,
    nvidia_driver.CHECK: lambda place: nvidia_driver.judge(nvidia_driver.read(place)),
    "engines": lambda place: engines.judge(engines.read(place)),
}
"""Name -> check, in the order in which they are shown."""


def examine(place: Place, checks: dict[str, Check] | None = None) -> list[Finding]:
    """Return every finding, in the order of the checks."""
    chosen = CHECKS if checks is None else checks
    with ThreadPoolExecutor(len(chosen)) as pool:
        running = [pool.submit(_checked, name, check, place) for name, check in chosen.items()]
        return [finding for future in running for finding in future.result()]


def _checked(name: str, check: Check, place: Place) -> list[Finding]:
    try:
        found: Any = check(place)
    except Exception as error:  # a check that can't look mustn't hide the others
        log.debug("check_failed", extra={"check": name}, exc_info=True)
        why = f"this couldn't be looked at: {type(error).__name__}: {error}"
        return [warn(name, why, "report it, with what jupiterctl --debug doctor shows")]
    return [found] if isinstance(found, Finding) else list(found)
