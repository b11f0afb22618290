"""The whole examination: all checks, run at the same time.

Owns the list of checks, and isolates their errors, so that one failing check doesn't hide the
others. Doesn't know what checks read. Takes seconds, at most about a minute: run it in a thread.
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
    rank_variables,
    versions,
    wsl,
)
from jupiterd.doctor.examined_machine import ExaminedMachine
from jupiterd.doctor.finding import Finding, warn

log = logging.getLogger(__name__)

Check = Callable[[ExaminedMachine], Finding | Sequence[Finding]]


def _health(machine: ExaminedMachine) -> list[Finding]:
    return health.judge(machine, lambda: not_answering(machine.state_dir))


CHECKS: Final[dict[str, Check]] = {
    health.CHECK: _health,
    disk.CHECK: lambda machine: disk.judge(disk.read(machine)),
    clock_check.CHECK: lambda machine: clock_check.judge(clock_check.read(machine)),
    ports.CHECK: lambda machine: ports.judge(ports.read(machine)),
    firewall.CHECK: lambda machine: firewall.judge(firewall.read(machine)),
    multicast.CHECK: lambda machine: multicast.judge(multicast.read(machine)),
    local_network.CHECK: lambda machine: local_network.judge(local_network.read(machine)),
    wsl.CHECK: lambda machine: wsl.judge(wsl.read(machine)),
    links.CHECK: lambda machine: links.judge(links.read(machine)),
    versions.CHECK: versions.judge,
    nvidia_driver.CHECK: lambda machine: nvidia_driver.judge(nvidia_driver.read(machine)),
    rank_variables.CHECK: rank_variables.judge,
    "engines": lambda machine: engines.judge(engines.read(machine)),
}
"""Name -> check, in the order of the output."""


def examine(machine: ExaminedMachine, checks: dict[str, Check] | None = None) -> list[Finding]:
    """Return every finding, in the order of the checks."""
    chosen = CHECKS if checks is None else checks
    with ThreadPoolExecutor(len(chosen)) as pool:
        running = [pool.submit(_checked, name, check, machine) for name, check in chosen.items()]
        return [finding for future in running for finding in future.result()]


def _checked(name: str, check: Check, machine: ExaminedMachine) -> list[Finding]:
    try:
        found: Any = check(machine)
    except Exception as error:  # a failing check must not hide the others
        log.debug("check_failed", extra={"check": name}, exc_info=True)
        why = f"this couldn't be looked at: {type(error).__name__}: {error}"
        return [warn(name, why, "report it, with what jupiterctl --debug doctor shows")]
    return [found] if isinstance(found, Finding) else list(found)
