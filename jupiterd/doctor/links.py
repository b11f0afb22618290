"""Are the paths to other machines as fast as they should be?

Owns the expected speed of each kind, and the comparison. Doesn't measure bandwidth: `jupiterctl
check links` does, and the daemon remembers the result for CARRIES_S.
"""

from dataclasses import dataclass
from shlex import quote
from typing import Any, Final

from jupiterd.cluster.links.links import CARRIES_S
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.doctor.examined_machine import ExaminedMachine, Row, name_of
from jupiterd.doctor.finding import Finding, not_here, ok, warn
from jupiterd.doctor.lan import Network, networks

CHECK: Final = "links"
LEAST_MBIT_PER_S: Final = {InterfaceKind.THUNDERBOLT: 5000.0, InterfaceKind.ETHERNET: 600.0}
"""The expected speed of a path of that kind, if its interface reports no negotiated speed."""
SHARE: Final = 0.6
"""The share of an interface's negotiated speed that is expected."""
MOST_RTT_MS: Final = {InterfaceKind.THUNDERBOLT: 5.0, InterfaceKind.ETHERNET: 5.0}
MOST_LOSS: Final = 0.05
GIGABIT: Final = 1000
MEASURE: Final = "jupiterctl check links"
_KINDS: Final = {kind.label: kind for kind in InterfaceKind}


@dataclass(frozen=True)
class LinkReading:
    """The paths that the daemon knows, and the negotiated speeds of our interfaces."""

    paths: tuple[tuple[str, Row], ...]
    """(name of the node, path); the paths of a node are consecutive."""
    agreed: dict[str, int]
    """Interface -> Mbit/s, without interfaces that don't report it."""
    wired: tuple[Network, ...] = ()


def read(machine: ExaminedMachine) -> LinkReading:
    """Return the paths of the status document, and the speeds of the interfaces."""
    found = networks(machine.interfaces) if not machine.local else []
    agreed = {network.interface: network.mbit_per_s for network in found if network.mbit_per_s}
    paths = tuple((name_of(node), path) for node, path in machine.paths())
    wired = tuple(n for n in found if n.kind is InterfaceKind.ETHERNET)
    return LinkReading(paths, agreed, wired)


def judge(reading: LinkReading) -> list[Finding]:
    """Return a finding for each slow port and path; if there is none, a summary."""
    found = [_slow_port(network) for network in reading.wired if 0 < network.mbit_per_s < GIGABIT]
    active = [(name, path) for name, path in reading.paths if path.get("active")]
    for name, path in active:
        found += _judge_path(name, path, reading)
    if found:
        return found
    if not active:
        return [not_here(CHECK, "there is no link to another machine")]
    measured = sum(path.get("mbit_per_s") is not None for _, path in active)
    summary = (
        "the link is as it should be" if len(active) == 1 else f"all {len(active)} links are well"
    )
    if unmeasured := len(active) - measured:
        hours = CARRIES_S / 3600
        summary += f"; what {unmeasured} carry wasn't measured in {hours:g} h ({MEASURE})"
    return [ok(CHECK, summary)]


def _judge_path(name: str, path: Row, reading: LinkReading) -> list[Finding]:
    kind = _KINDS.get(str(path.get("kind")), InterfaceKind.CONTAINER)
    measure = f"{MEASURE} {quote(name)}"
    where = f"{name} over {path.get('kind')} ({path.get('interface')})"
    found: list[Finding] = []
    least = _least(kind, path, reading)
    carried, rtt, loss = path.get("mbit_per_s"), path.get("rtt_ms"), path.get("loss") or 0.0
    if carried is not None and carried < least:
        why = f"{where}: {carried:,.0f} Mbit/s measured, {least:,.0f} and more expected"
        found.append(warn(CHECK, why, f"try another cable and port; then: {measure}"))
    if rtt is not None and rtt > MOST_RTT_MS.get(kind, float("inf")):
        why = f"{where}: a round trip takes {rtt:.1f} ms, and a wire less than one"
        found.append(warn(CHECK, why, f"look what else uses the wire; then: {measure}"))
    if loss > MOST_LOSS:
        why = f"{where}: {loss:.0%} of what is asked gets no answer"
        found.append(warn(CHECK, why, "try another cable, or move nearer to the access point"))
    if (better := _better(name, path, kind, reading)) is not None:
        why = f"{where}, although {better.get('kind')} answers at {better.get('target')}"
        found.append(warn(CHECK, why, f"if this lasts a minute: {measure}"))
    return found


def _least(kind: InterfaceKind, path: Row, reading: LinkReading) -> float:
    agreed = reading.agreed.get(str(path.get("interface")), 0)
    return SHARE * agreed if agreed else LEAST_MBIT_PER_S.get(kind, 0.0)


def _better(name: str, path: Row, kind: InterfaceKind, reading: LinkReading) -> Any:  # noqa: ANN401
    """Return a path of a better kind that answers, to the same node; None: there is none."""
    others = [other for node, other in reading.paths if node == name and other is not path]
    better = [
        other
        for other in others
        if other.get("answers") and _KINDS.get(str(other.get("kind")), kind) < kind
    ]
    return next(iter(better), None)


def _slow_port(network: Network) -> Finding:
    why = f"{network.interface} has agreed on {network.mbit_per_s} Mbit/s with its other end"
    fix = "use a cable with all eight wires (Cat 5e) and a gigabit port"
    return warn(CHECK, why, fix)
