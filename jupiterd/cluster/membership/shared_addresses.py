"""Addresses that several machines of a cluster tell as their own.

Pure. Owns what counts as the same one. Doesn't know where machines tell of them. Two machines with
one address form a cluster over another one, such as IPv6, and then half of their traffic is lost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class AnnouncedAddresses:
    """Where one daemon says that it answers, on interfaces that lead to other machines."""

    name: str
    machine: str
    """The same for all daemons of a machine; empty where it isn't known."""
    places: frozenset[tuple[str, str]]
    """Host and port of each address."""


def shared_addresses(announced: Sequence[AnnouncedAddresses]) -> Iterator[tuple[str, str, str]]:
    """Yield each host that two machines tell, with their names; of a pair the first one alone."""
    for one, other in combinations(announced, 2):
        # Daemons of one machine share its addresses, and never a port.
        same = {host for host, _ in one.places & other.places}
        if one.machine and other.machine and one.machine != other.machine:
            same |= {host for host, _ in one.places} & {host for host, _ in other.places}
        if same:
            first, second = sorted((one.name, other.name))
            yield min(same), first, second
