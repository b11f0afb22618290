"""Whether this machine reaches nobody because of its own link: its cable is out, say.

Pure. Owns the rule and the words. Doesn't know how interfaces are read, or over which of them the
others were reached (`daemon.links.own_link`).

Where everybody else is silent, and every way by which a machine was reached leaves from an
interface that can't carry anything now, it isn't that machine that needs waking. One with a way
left that may carry something, or that was never reached, is told of as ever; so is a container: its
bridge has no link while it is off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.ids import NodeId

_CABLES: Final = (InterfaceKind.THUNDERBOLT, InterfaceKind.ETHERNET)


@dataclass(frozen=True)
class Egress:
    """Where the packets to another machine leave this one."""

    interface: str
    """Empty where that isn't known."""
    source: str
    """The address of ours; empty where it can't be lost."""
    kind: InterfaceKind = InterfaceKind.ETHERNET
    """Of the interface."""


@dataclass(frozen=True)
class Interface:
    """One of this machine's interfaces as it is now."""

    is_on: bool
    has_link: bool
    """It has a carrier."""
    families: frozenset[int]
    """4 and 6: of which it has an address that isn't link-local."""
    addresses: frozenset[str]


@dataclass(frozen=True)
class Other:
    """Another member."""

    node: NodeId
    is_alive: bool
    egresses: Sequence[Egress] = ()
    """By which it was reached, the one in use last first."""


@dataclass(frozen=True)
class Outage:
    """What is wrong with this machine's own link."""

    cause: str
    """Such as `eth0 has no link (cable out?)`."""
    hint: str
    cut_off: frozenset[NodeId]
    """Whom it can't reach because of that."""


def outage(others: Sequence[Other], interfaces: Mapping[str, Interface]) -> Outage | None:
    """Return why this machine reaches nobody, where it is its own link; None where it isn't."""
    if any(other.is_alive for other in others):
        return None
    cut_off = [
        other
        for other in others
        if other.egresses and all(_fault(egress, interfaces) for egress in other.egresses)
    ]
    faults = dict.fromkeys(_fault(other.egresses[0], interfaces) for other in cut_off)
    known = [fault for fault in faults if fault is not None]
    if not known:
        return None
    return Outage(
        " and ".join(words for words, _ in known),
        "; ".join(dict.fromkeys(hint for _, hint in known)),
        frozenset(other.node for other in cut_off),
    )


def _fault(egress: Egress, interfaces: Mapping[str, Interface]) -> tuple[str, str] | None:
    """Return what is wrong with where a way leaves, and what to do; None where it may work."""
    name = egress.interface
    if not name or not egress.source or egress.kind is InterfaceKind.CONTAINER:
        return None
    seen = interfaces.get(name)
    if seen is None:
        return f"{name} is gone", f"plug the adapter of {name} in, or start what makes it"
    if not seen.is_on:
        return f"{name} is switched off", f"switch it on (Linux: sudo ip link set {name} up)"
    if not seen.has_link:
        return _without_link(egress)
    family = 6 if ":" in egress.source else 4
    if egress.source in seen.addresses or family in seen.families:
        return None
    return (
        f"{name} has lost its address {egress.source}",
        "look whether its cable is in, and whether the router gives out addresses",
    )


def _without_link(egress: Egress) -> tuple[str, str]:
    name = egress.interface
    if egress.kind is InterfaceKind.WIFI:
        return f"{name} is in no network", f"connect {name} to the Wi-Fi of the others"
    if egress.kind in _CABLES:
        return (
            f"{name} has no link (cable out?)",
            "plug it in, at both ends; or switch on what is at its other end",
        )
    return f"{name} has no link", f"start what makes {name}"
